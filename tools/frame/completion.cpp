// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Scripts that complete options in bash, zsh and fish, from the same table as --help.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frame/options.hpp"

namespace scalewise::frame {

namespace {

/// The kind of word after an option.
enum class Follows { nothing, word, item, file, folder, other };

/// An option as the shells see it. One without dashes in its name stands for the words that no option takes.
struct Known {
  std::string name;
  std::string help;
  Follows follows = Follows::nothing;
  std::string words = {};  // with spaces in between; of a file, what it may be instead
  bool repeated = false;

  bool is_option() const { return name.starts_with("-"); }
};

std::string escaped(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

/// Between single quotes of a POSIX shell.
std::string in_single_quotes(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result;
}

std::string bash_action(const Known& option) {
  switch (option.follows) {
    case Follows::word:
      return "COMPREPLY=($(compgen -W '" + option.words + "' -- \"$word\"))";
    case Follows::item:
      return "compopt -o nospace; COMPREPLY=($(compgen -P \"${word%\"${word##*,}\"}\" -W '" +
             option.words + "' -- \"${word##*,}\"))";
    case Follows::file:
      return "compopt -o default" + (option.words.empty() ? ""
                                                          : "; COMPREPLY=($(compgen -W '" +
                                                                option.words + "' -- \"$word\"))");
    case Follows::folder:
      return "compopt -o dirnames";
    default:
      return "";
  }
}

std::string bash_script(const std::string& program, const std::vector<Known>& options) {
  std::string names;
  bool files = false;
  std::vector<std::pair<std::string, std::string>> cases;  // action and the options that it is of
  std::map<std::string, std::size_t> known;
  for (const Known& option : options) {
    if (!option.is_option()) {
      files = true;
      continue;
    }
    names += (names.empty() ? "" : " ") + option.name;
    if (option.follows == Follows::nothing) continue;
    const std::string action = bash_action(option);
    const auto [at, is_new] = known.try_emplace(action, cases.size());
    if (is_new) cases.emplace_back(action, "");
    std::string& of = cases[at->second].second;
    of += (of.empty() ? "" : "|") + option.name;
  }
  std::string script = "_scalewise_" + program +
                       "() {\n"
                       "  local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]}\n"
                       "  if [[ $word == '=' ]]; then word=\n"
                       "  elif [[ $option == '=' ]]; then option=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                       "  COMPREPLY=()\n"
                       "  case $option in\n";
  for (const auto& [action, of] : cases)
    script.append("    ").append(of).append(") ").append(action).append(" ;;\n");
  script += "    *) ";
  if (files) script += "[[ $word == -* ]] || compopt -o default; [[ $word == -* ]] && ";
  return script + "COMPREPLY=($(compgen -W '" + names +
         "' -- \"$word\")) ;;\n  esac\n}\ncomplete -F _scalewise_" + program + " " + program + "\n";
}

std::string zsh_action(const Known& option) {
  switch (option.follows) {
    case Follows::word:
      return "(" + option.words + ")";
    case Follows::item:
      return "_sequence compadd - " + option.words;
    case Follows::file:
      return option.words.empty() ? "_files" : "{compadd -- " + option.words + "; _files}";
    case Follows::folder:
      return "_files -/";
    default:
      return " ";
  }
}

std::string zsh_script(const std::string& program, const std::vector<Known>& options) {
  std::string script = "#compdef " + program + "\n_scalewise_" + program + "() {\n  _arguments";
  for (const Known& option : options) {
    script += " \\\n    '";
    if (!option.is_option()) {
      script += "*:" + option.name + ":_files'";
      continue;
    }
    const bool value = option.follows != Follows::nothing;
    script += (option.repeated ? "*" : "") + option.name + (value ? "=" : "") + "[" +
              in_single_quotes(escaped(option.help, "\\[]:")) + "]";
    if (value) script += ":" + option.name.substr(2) + ":" + zsh_action(option);
    script += "'";
  }
  // Found by its name in fpath, this file is the body of a function _program.
  return script + "\n}\nif [[ ${funcstack[1]-} == _" + program + " ]]; then _scalewise_" + program +
         " \"$@\"\nelse compdef _scalewise_" + program + " " + program + "\nfi\n";
}

std::string fish_script(const std::string& program, const std::vector<Known>& options) {
  std::string script = "complete -c " + program + " -e\n";
  bool files = false;
  for (const Known& option : options) files = files || !option.is_option();
  if (!files) script += "complete -c " + program + " -f\n";
  for (const Known& option : options) {
    if (!option.is_option()) continue;
    script += "complete -c " + program + " -l " + option.name.substr(2);
    switch (option.follows) {
      case Follows::nothing:
        break;
      case Follows::word:
        script += " -x -a '" + option.words + "'";
        break;
      case Follows::item:
        script += " -x -a '(__fish_append , " + option.words + ")'";
        break;
      case Follows::file:
        script += " -r -F" + (option.words.empty() ? "" : " -a '" + option.words + "'");
        break;
      case Follows::folder:
        script += " -x -a '(__fish_complete_directories)'";
        break;
      case Follows::other:
        script += " -x";
        break;
    }
    script += " -d '" + escaped(option.help, "\\'") + "'\n";
  }
  return script;
}

}  // namespace

std::string Options::completion(const std::string& program) const {
  std::vector<Known> options;
  options.reserve(common_options.size() + list_.size());
  for (const CommonOption& common : common_options) options.push_back({common.name, common.help});
  for (const Option& option : list_) {
    Known& known = options.emplace_back(Known{option.name_, option.text_});
    known.repeated = option.repeated_;
    for (const std::string& word : option.words_.empty() ? option.ids_ : option.words_) {
      known.words += (known.words.empty() ? "" : " ") + word;
    }
    using enum Option::Role;
    const bool list = option.is_list() && !option.repeated_;
    known.follows = std::holds_alternative<bool*>(option.variable_) ? Follows::nothing
                    : option.role_ == writes_folder                 ? Follows::folder
                    : option.is_path() || option.or_file_           ? Follows::file
                    : known.words.empty()                           ? Follows::other
                    : list                                          ? Follows::item
                                                                    : Follows::word;
  }
  const std::string use = "# Completes options of " + program + ".\n";
  if (shell_ == "bash") return use + bash_script(program, options);
  return shell_ == "zsh" ? zsh_script(program, options) : use + fish_script(program, options);
}

}  // namespace scalewise::frame
