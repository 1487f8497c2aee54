// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <type_traits>

#include "frame/outputs.hpp"
#include "scalewise/files/bytes.hpp"
#include "scalewise/files/exact_text.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise::frame {

namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t begin = 0;;) {
    const std::size_t comma = text.find(',', begin);
    items.push_back(text.substr(begin, comma - begin));
    if (comma == std::string::npos) return items;
    begin = comma + 1;
  }
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

/// Of the bytes of a file. A pipe could not be read again by the program.
std::string file_fingerprint(const std::string& option, const std::string& path) {
  if (path.empty()) return {};
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    throw InvalidInput(option, printable(path), "a regular file");
  }
  return fingerprint(read_file(path, std::size_t{1} << 30U));
}

/// A value of settings() as Inputs hold it.
std::string input_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// What CLI11 has read of one option.
struct Words {
  std::string last;
  std::vector<std::string> all;
  bool flag = false;
  CLI::Option* option = nullptr;
};

}  // namespace

bool Option::is_whole() const {
  return std::holds_alternative<int*>(variable_) || std::holds_alternative<long*>(variable_) ||
         std::holds_alternative<std::vector<long>*>(variable_);
}

bool Option::is_list() const {
  return std::holds_alternative<std::vector<long>*>(variable_) ||
         std::holds_alternative<std::vector<std::string>*>(variable_);
}

bool Option::is_text() const {
  return std::holds_alternative<std::string*>(variable_) ||
         std::holds_alternative<std::vector<std::string>*>(variable_);
}

std::string Option::default_text() const {
  return std::visit(
      [&](const auto* variable) -> std::string {
        using Value = std::remove_cv_t<std::remove_pointer_t<decltype(variable)>>;
        if constexpr (std::is_same_v<Value, std::string>) {
          return *variable;
        } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
          std::string list;
          for (const std::string& word : *variable) list += (list.empty() ? "" : ",") + word;
          return list;
        } else if constexpr (std::is_same_v<Value, std::vector<long>>) {
          std::string list;
          for (const long x : *variable) list += (list.empty() ? "" : ",") + std::to_string(x);
          return list;
        } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
          return *variable ? exact_text(**variable) : "";
        } else if constexpr (std::is_same_v<Value, bool>) {
          return "";
        } else {
          return exact_text(*variable);
        }
      },
      variable_);
}

std::string Option::expectation() const {
  if (!words_.empty()) return listed(words_);
  if (std::holds_alternative<bool*>(variable_)) return "no value";
  if (role_ == Role::writes_folder) return "a folder";
  if (is_path()) return "a file";
  if (std::holds_alternative<std::uint64_t*>(variable_)) {
    return "a whole number from 0 to 18446744073709551615";
  }
  if (is_whole()) {
    return "a whole number from " + std::to_string(std::isnan(least_) ? 0 : std::lround(least_)) +
           " to " + std::to_string(std::isnan(most_) ? 1'000'000'000 : std::lround(most_));
  }
  if (std::holds_alternative<double*>(variable_) ||
      std::holds_alternative<std::optional<double>*>(variable_)) {
    return (above_ ? "a number above " : "a number from ") +
           exact_text(std::isnan(least_) ? -1e30 : least_) + (above_ ? " and" : "") +
           (below_ ? (above_ ? " below " : " to below ") : " to ") +
           exact_text(std::isnan(most_) ? 1e30 : most_);
  }
  return "a text in UTF-8";
}

void Option::refuse(const std::string& value, const std::string& hint) const {
  throw InvalidInput(name_, value.empty() ? "(empty)" : printable(value), expectation(), hint);
}

template <class Number>
Number Option::number(const std::string& text) const {
  Number x{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, x);
  if (error != std::errc{} || stop != end) refuse(text);
  if constexpr (!std::is_same_v<Number, std::uint64_t>) {
    constexpr bool whole = std::is_integral_v<Number>;
    const auto value = static_cast<double>(x);
    const double least = std::isnan(least_) ? (whole ? 0 : -1e30) : least_;
    const double most = std::isnan(most_) ? (whole ? 1e9 : 1e30) : most_;
    const bool open = !whole;  // of whole numbers both ends belong to the range
    const bool good = (open && above_ ? value > least : value >= least) &&
                      (open && below_ ? value < most : value <= most);
    if (!good) refuse(text);  // NaN too
  }
  return x;
}

const std::string& Option::text(const std::string& word) const {
  if (!words_.empty()) {
    if (std::find(words_.begin(), words_.end(), word) == words_.end()) {
      refuse(word, did_you_mean(word, words_));
    }
  } else if (is_path() ? word.empty() || word.find('\0') != std::string::npos : !is_utf8(word)) {
    refuse(word);
  }
  return word;
}

void Option::read(const std::vector<std::string>& words) {
  const std::string& last = words.back();
  const auto too_few = [&](std::size_t found) {
    if (found >= count_) return;
    throw InvalidInput(name_, printable(last),
                       "at least " + std::to_string(count_) + " values, separated by commas");
  };
  std::visit(
      [&](auto* variable) {
        using Value = std::remove_pointer_t<decltype(variable)>;
        if constexpr (std::is_same_v<Value, bool>) {
          *variable = true;
        } else if constexpr (std::is_same_v<Value, std::string>) {
          *variable = text(last);
        } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
          *variable = number<double>(last);
        } else if constexpr (std::is_arithmetic_v<Value>) {
          *variable = number<Value>(last);
        } else {
          Value list;
          for (const std::string& word : repeated_ ? words : split(last)) {
            if constexpr (std::is_same_v<Value, std::vector<long>>) {
              list.push_back(number<long>(word));
              const std::size_t n = list.size();
              if (increasing_ && n > 1 && list[n - 1] <= list[n - 2]) {
                throw InvalidInput(name_, word, "numbers, each one larger than the one before");
              }
            } else {
              list.push_back(text(word));
            }
          }
          too_few(list.size());
          *variable = std::move(list);
        }
      },
      variable_);
}

nlohmann::ordered_json Option::value() const {
  return std::visit(
      [&](const auto* variable) -> Json {
        using Value = std::remove_cv_t<std::remove_pointer_t<decltype(variable)>>;
        if constexpr (std::is_same_v<Value, std::optional<double>>) {
          return *variable ? Json(**variable) : Json(nullptr);
        } else if constexpr (std::is_same_v<Value, std::string>) {
          return role_ == Role::reads ? file_fingerprint(name_, *variable) : *variable;
        } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
          if (role_ != Role::reads) return *variable;
          Json files = Json::array();
          for (const std::string& path : *variable) files.push_back(file_fingerprint(name_, path));
          return files;
        } else {
          return *variable;
        }
      },
      variable_);
}

Option& Options::at(const std::string& name) {
  return *std::find_if(list_.begin(), list_.end(),
                       [&](const Option& option) { return option.name_ == name; });
}

bool Options::given(const std::string& name) const {
  return std::any_of(list_.begin(), list_.end(),
                     [&](const Option& option) { return option.name_ == name && option.given_; });
}

/// The options as CLI11 knows them: it cuts the command line into words and writes the help.
struct Options::CommandLine {
  explicit CommandLine(const Options& options) {
    app.set_help_flag("-h,--help", "print this help and stop");
    app.set_version_flag("--version", "", "print the version and stop");
    app.add_flag("--dry-run", dry_run,
                 "check the options, print what the result depends on, and stop");
    app.allow_extras();
    for (const Option& option : options.list_) add(option, words.emplace_back());
  }

  void add(const Option& option, Words& to) {
    std::string help = option.help_;
    if (!option.words_.empty()) help += (help.empty() ? "" : ": ") + listed(option.words_);
    if (std::holds_alternative<bool*>(option.variable_)) {
      to.option = app.add_flag(option.name_, to.flag, help)->group(option.group_);
      return;
    }
    to.option = option.repeated_ ? app.add_option(option.name_, to.all, help)
                                 : app.add_option(option.name_, to.last, help)->take_last();
    const bool number = option.words_.empty() && !option.is_path() && !option.is_text();
    to.option->type_name(number ? "N" : option.is_path() ? "PATH" : "TEXT")->group(option.group_);
    if (option.is_list() && !option.repeated_) to.option->type_name(number ? "N,..." : "TEXT,...");
    to.option->default_str(option.default_text());
  }

  /// The option that a message of CLI11 begins with.
  const Option* blamed(const Options& options, const std::string& message) const {
    const Option* found = nullptr;
    for (const Option& option : options.list_) {
      if (message.find(option.name_) == std::string::npos) continue;
      if (found == nullptr || option.name_.size() > found->name_.size()) found = &option;
    }
    return found;
  }

  CLI::App app;
  std::deque<Words> words;
  bool dry_run = false;
};

Request Options::parse(const std::vector<std::string>& arguments) {
  CommandLine line(*this);
  try {
    line.app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return Request::help;
  } catch (const CLI::CallForVersion&) {
    return Request::version;
  } catch (const CLI::ParseError& error) {
    const std::string message = error.what();
    const Option* option = line.blamed(*this, message);
    if (option == nullptr) throw InvalidInput("options", printable(message), "what --help lists");
    const bool flag = std::holds_alternative<bool*>(option->variable_);
    throw InvalidInput(option->name_, flag ? "(a value)" : "(missing)", option->expectation());
  }
  if (const std::vector<std::string> rest = line.app.remaining(); !rest.empty()) {
    const std::string word = rest[0].substr(0, rest[0].find('='));
    std::vector<std::string> names{"--help", "--version", "--dry-run"};
    for (const Option& option : list_) names.push_back(option.name_);
    throw InvalidInput(
        printable(word), "(unknown)", "an option of --help",
        word.starts_with("-") ? did_you_mean(word, names) : "lists have commas and no spaces");
  }
  for (std::size_t i = 0; i < list_.size(); ++i) {
    Option& option = list_[i];
    Words& words = line.words[i];
    option.given_ = words.option->count() > 0;
    if (!option.given_) continue;
    if (std::holds_alternative<bool*>(option.variable_)) {
      if (!words.flag) throw InvalidInput(option.name_, "false", "no value");
      words.all = {"true"};
    }
    option.given_words_ = option.repeated_ ? words.all : std::vector<std::string>{words.last};
    option.read(option.given_words_);
  }
  for (const Option& option : list_) {
    if (!option.given_ || option.excludes_.empty() || !given(option.excludes_)) continue;
    throw InvalidInput(option.name_, "(given)", "it without " + option.excludes_);
  }
  return line.dry_run ? Request::dry_run : Request::run;
}

std::string Options::help(const std::string& program, const std::string& about) const {
  CommandLine line(*this);
  line.app.name(program);
  line.app.description(about);
  return line.app.help();
}

Inputs Options::inputs() const {
  Inputs inputs;
  for (const Option& option : list_) {
    if (option.is_input()) inputs.push_back({option.name_, input_text(option.value())});
  }
  return inputs;
}

nlohmann::ordered_json Options::settings() const {
  Json settings = Json::object();
  for (const Option& option : list_) {
    if (option.is_input() || option.role_ == Option::Role::runs) {
      settings[option.name_.starts_with("--") ? option.name_.substr(2) : option.name_] =
          option.value();
    }
  }
  return settings;
}

std::vector<std::string> Options::words(bool from_anywhere) const {
  std::vector<std::string> words;
  for (const Option& option : list_) {
    const bool counts = option.is_input() || option.role_ == Option::Role::runs;
    if (!option.given_ || !(counts || (from_anywhere && option.name_ == "--threads"))) continue;
    for (const std::string& word : option.given_words_) {
      words.push_back(option.name_);
      if (std::holds_alternative<bool*>(option.variable_)) break;
      const bool path = from_anywhere && option.role_ == Option::Role::reads;
      words.push_back(path ? std::filesystem::absolute(word).string() : word);
    }
  }
  return words;
}

void Options::try_outputs(const std::string& program) const {
  for (const Option& option : list_) {
    const auto* path = std::get_if<std::string*>(&option.variable_);
    if (path == nullptr || (*path)->empty()) continue;
    if (option.role_ == Option::Role::writes_file) try_file(option.name_, **path);
    if (option.role_ != Option::Role::writes_folder) continue;
    try_folder(option.name_, **path);
    const std::string file = (std::filesystem::path(**path) / (program + ".json")).string();
    std::error_code error;
    if (!std::filesystem::exists(file, error)) continue;
    const Json saved = Json::parse(read_file(file, std::size_t{1} << 30U), nullptr, false);
    if (!saved.is_object() || !saved.contains("settings") || !saved["settings"].is_object()) {
      throw InvalidInput(option.name_, printable(**path), "a folder without another " + file,
                         "use another folder, or delete that file");
    }
    Inputs there;
    for (const auto& [name, value] : saved["settings"].items()) {
      const std::string option_name = "--" + name;
      const auto runs = [&](const Option& o) {
        return o.name_ == option_name && o.role_ == Option::Role::runs;
      };
      if (std::any_of(list_.begin(), list_.end(), runs)) continue;
      there.push_back({option_name, input_text(value)});
    }
    require_same_inputs(inputs(), there, file);
  }
}

}  // namespace scalewise::frame
