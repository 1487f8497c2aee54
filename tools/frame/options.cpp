// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>

#include "frame/terminal.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/numeric/exact_text.hpp"

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

std::string Option::help() const {
  return text_ + (note_.empty() ? "" : " (" + note_ + ")") +
         (words_.empty() ? "" : ": " + listed(words_));
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

std::string Option::text(const std::string& word) const {
  if (id_) return id_(word, name_);
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
  /// Of one option, as read.
  struct Words {
    std::string last;
    std::vector<std::string> all;
    bool flag = false;
    CLI::Option* option = nullptr;
  };

  explicit CommandLine(const Options& options) {
    const auto& [help, version, dry] = common_options;
    app.set_help_flag(std::string("-h,") + help.name, help.help);
    app.set_version_flag(version.name, "", version.help);
    app.add_flag(dry.name, dry_run, dry.help);
    app.allow_extras();
    for (const Option& option : options.list_) add(option, words.emplace_back());
  }

  void add(const Option& option, Words& to) {
    const std::string help = option.help();
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

void Options::refuse_unknown(const std::string& word) const {
  std::vector<std::string> names;
  names.reserve(common_options.size() + list_.size());
  for (const CommonOption& common : common_options) names.emplace_back(common.name);
  for (const Option& option : list_) names.push_back(option.name_);
  throw InvalidInput(
      printable(word), "(unknown)", "an option of --help",
      word.starts_with("-") ? did_you_mean(word, names) : "lists have commas and no spaces");
}

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
    refuse_unknown(rest[0].substr(0, rest[0].find('=', 1)));
  }
  for (std::size_t i = 0; i < list_.size(); ++i) {
    Option& option = list_[i];
    CommandLine::Words& words = line.words[i];
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
    for (const std::string& other : option.excludes_) {
      if (!option.given_ || !given(other)) continue;
      throw InvalidInput(option.name_, "(given)", "it without " + other);
    }
  }
  return line.dry_run ? Request::dry_run : Request::run;
}

std::string Options::help(const std::string& program, const std::string& about) const {
  CommandLine line(*this);
  line.app.name(program);
  line.app.description(about);
  return wrapped(line.app.help(), terminal_columns(), 30);
}

}  // namespace scalewise::frame
