// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "frame/program.hpp"
#include "scalewise/files/bytes.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/messages/utf8.hpp"
#include "scalewise/numeric/exact_text.hpp"

namespace scalewise::frame {

std::string input_text(const nlohmann::ordered_json& setting) {
  return setting.is_string() ? setting.get<std::string>() : setting.dump();
}

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

template <class... Call>
struct Overloaded : Call... {
  using Call::operator()...;
};
template <class... Call>
Overloaded(Call...) -> Overloaded<Call...>;  // which Clang asks for before version 17

/// A checksum of the bytes of a file. A pipe could not be read again by the program.
std::string file_fingerprint(const std::string& option, const std::string& path) {
  if (path.empty()) return {};
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    throw InvalidInput(option, messages::printable(path), "a regular file");
  }
  return files::fingerprint(files::read_file(path, std::size_t{1} << 30U));
}

/// Cuts lines at spaces so that they have `columns` at most, where words allow. What continues a line
/// is indented by `indent`. With 0 columns the text stays as it is.
std::string wrapped(const std::string& text, std::size_t columns, std::size_t indent) {
  if (columns <= indent) return text;
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); result += line + "\n") {
    while (line.size() > columns) {
      std::size_t space = line.rfind(' ', columns);
      if (space == std::string::npos || space <= indent) space = line.find(' ', columns);
      if (space == std::string::npos) break;
      result += line.substr(0, space) + "\n";
      line = std::string(indent, ' ') + line.substr(space + 1);
    }
  }
  return result;
}

}  // namespace

std::string Option::type() const {
  if (path_) return "PATH";
  return std::string(kind_ == Kind::text ? "TEXT" : "N") + (list_ && !repeated_ ? ",..." : "");
}

std::string Option::default_text() const {
  const Json value = get();
  if (value.is_number_float()) return numeric::exact_text(value.get<double>());
  if (!value.is_array()) return value.is_null() ? "" : input_text(value);
  std::string list;
  for (const Json& item : value) list += (list.empty() ? "" : ",") + input_text(item);
  return list;
}

std::string Option::expectation() const {
  if (!words_.empty()) return messages::listed(words_);
  if (path_) return "a path";
  if (kind_ == Kind::flag) return "no value";
  if (kind_ == Kind::text) return "a text in UTF-8";
  if (kind_ == Kind::seed) return "a whole number from 0 to 18446744073709551615";
  const bool whole = kind_ == Kind::whole;
  const auto text = [&](double x) {
    return whole ? std::to_string(std::lround(x)) : numeric::exact_text(x);
  };
  return std::string(whole ? "a whole number" : "a number") + (above_ ? " above " : " from ") +
         text(least_) + (above_ ? " and" : "") + (above_ && below_ ? "" : " to") +
         (below_ ? " below " : " ") + text(most_);
}

void Option::refuse(const std::string& value, const std::string& hint) const {
  throw InvalidInput(name_, value.empty() ? "(empty)" : messages::printable(value), expectation(),
                     hint);
}

template <class Number>
Number Option::number(const std::string& word) const {
  Number x{};
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, x);
  const auto value = static_cast<double>(x);
  const bool inside = (above_ ? value > least_ : value >= least_) &&  // NaN is not
                      (below_ ? value < most_ : value <= most_);
  if (error != std::errc{} || stop != end || !inside) refuse(word);
  return x;
}

Option::Json Option::item(const std::string& word) const {
  if (kind_ == Kind::whole) return number<long>(word);
  if (kind_ == Kind::seed) return number<std::uint64_t>(word);
  if (kind_ == Kind::number) return number<double>(word);
  if (id_) return id_(word, name_);
  if (!words_.empty()) {
    const bool known = std::find(words_.begin(), words_.end(), word) != words_.end();
    if (!known) refuse(word, messages::did_you_mean(word, words_));
  } else if (path_ ? word.empty() || word.find('\0') != word.npos : !messages::is_utf8(word)) {
    refuse(word);
  }
  return word;
}

Option::Json Option::value_of_words() const {
  if (kind_ == Kind::flag) return true;
  const std::string& last = given_words_.back();
  if (!list_) return item(last);
  std::vector<std::string> words = given_words_;
  if (!repeated_) {
    words = CLI::detail::split(last + ",.", ',');  // which drops an empty item at the end
    words.pop_back();
  }
  Json list = Json::array();
  for (const std::string& word : words) {
    list.push_back(item(word));
    const auto number = [&](std::size_t i) { return list[list.size() - i].get<double>(); };
    if (increasing_ && list.size() > 1 && number(1) <= number(2)) {
      throw InvalidInput(name_, word, "numbers, each one larger than the one before");
    }
  }
  if (list.size() < count_) {
    throw InvalidInput(name_, messages::printable(last),
                       "at least " + std::to_string(count_) + " values, separated by commas");
  }
  return list;
}

void Option::set(const Json& value) const {
  std::visit(Overloaded{[&](const Word& word) { word.set(value); },
                        [&](std::optional<double>* number) { *number = value.get<double>(); },
                        [&](auto* variable) { value.get_to(*variable); }},
             variable_);
}

Option::Json Option::get() const {
  return std::visit(Overloaded{[](const Word& word) { return Json(word.get()); },
                               [](const std::optional<double>* number) {
                                 return *number ? Json(**number) : Json(nullptr);
                               },
                               [](const auto* variable) { return Json(*variable); }},
                    variable_);
}

/// Whether a value is the path of a file that is read.
bool Option::is_read(const std::string& word) const {
  return ending_.empty() ? path_ && !attempt_ : word.ends_with(ending_);
}

Option::Json Option::value() const {
  Json value = get();
  if (role_ != Role::reads) return value;
  if (value.is_string()) return is_read(value) ? Json(file_fingerprint(name_, value)) : value;
  for (Json& path : value) path = file_fingerprint(name_, path);
  return value;
}

std::vector<std::string> Option::files_read() const {
  if (kind_ != Kind::text) return {};
  const Json value = get();
  auto words =
      value.is_array() ? value.get<std::vector<std::string>>() : std::vector<std::string>{value};
  std::erase_if(words, [&](const std::string& word) { return !is_read(word); });
  return words;
}

std::vector<std::string> Option::files_written() const {
  if (!attempt_) return {};
  const std::string path = get();
  if (!names_) return {path};
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (names_(entry.path().filename().string())) files.push_back(entry.path().string());
  }
  return files;
}

Option& Options::declare(const std::string& name, Option::Variable variable,
                         const std::string& help) {
  Option& option = list_.emplace_back();
  option.name_ = name;
  option.variable_ = std::move(variable);
  option.help_ = help;
  option.group_ = group_;
  using Kind = Option::Kind;
  constexpr std::array of_variable{Kind::flag,   Kind::whole,  Kind::whole, Kind::seed,
                                   Kind::number, Kind::number, Kind::text,  Kind::text,
                                   Kind::whole,  Kind::number, Kind::text};
  static_assert(of_variable.size() == std::variant_size_v<Option::Variable>);
  option.kind_ = of_variable.at(option.variable_.index());
  option.list_ = option.variable_.index() > 7;
  if (option.kind_ == Kind::whole) return option.from(0).to(1e9);
  if (option.kind_ == Kind::seed) return option.from(0).to(1.8446744073709552e19);
  return option.above(-1e30).below(1e30);
}

Option& Options::at(const std::string& name) {
  return *std::find_if(list_.begin(), list_.end(),
                       [&](const Option& option) { return option.name_ == name; });
}

bool Options::given(const std::string& name) const {
  return std::any_of(list_.begin(), list_.end(),
                     [&](const Option& option) { return option.name_ == name && option.given(); });
}

void Options::fill(CLI::App& app) const {
  app.set_help_flag("-h,--help", "print this help and stop");
  app.set_version_flag("--version", "", "print the version and stop");
  app.add_flag("--dry-run")
      ->description("check the options, print what the result depends on, and stop");
  app.allow_extras();
  for (const Option& option : list_) {
    const std::string help =
        option.help_ + (option.words_.empty() ? "" : ": " + messages::listed(option.words_));
    if (option.kind_ == Option::Kind::flag) {
      app.add_flag(option.name_)->description(help)->disable_flag_override()->group(option.group_);
      continue;
    }
    CLI::Option* added = app.add_option(
        option.name_, [](const CLI::results_t&) { return true; }, help);
    added->type_name(option.type())->group(option.group_)->default_str(option.default_text());
    if (option.repeated_) {
      added->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args();
    } else {
      added->take_last();
    }
  }
}

Request Options::parse(const std::vector<std::string>& arguments) {
  CLI::App app;
  fill(app);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return Request::help;
  } catch (const CLI::CallForVersion&) {
    return Request::version;
  } catch (const CLI::ParseError& error) {  // its message begins with the option
    const std::string message = error.what();
    const std::string name = message.substr(0, message.find_first_of(": "));
    for (const Option& option : list_) {
      if (option.name_ != name && option.key() != name) continue;
      const bool flag = option.kind_ == Option::Kind::flag;
      throw InvalidInput(option.name_, flag ? "(a value)" : "(missing)", option.expectation());
    }
    throw InvalidInput("options", messages::printable(message), "what --help lists");
  }
  if (const std::vector<std::string> rest = app.remaining(); !rest.empty()) {
    std::vector<std::string> names;
    for (const CLI::Option* known : app.get_options()) names.push_back(known->get_name());
    const std::string word = rest[0].substr(0, rest[0].find('=', 1));
    throw InvalidInput(messages::printable(word), "(unknown)", "an option of --help",
                       word.starts_with("-") ? messages::did_you_mean(word, names)
                                             : "lists have commas and no spaces");
  }
  for (Option& option : list_) {
    option.given_words_ = app.get_option(option.name_)->results();
    if (!option.given()) continue;
    if (!option.repeated_) option.given_words_ = {option.given_words_.back()};
    option.set(option.value_of_words());
  }
  for (const Option& option : list_) {
    for (const std::string& other : option.excludes_) {
      if (option.given() && given(other)) {
        throw InvalidInput(option.name_, "(given)", "it without " + other);
      }
    }
  }
  return app.count("--dry-run") > 0 ? Request::dry_run : Request::run;
}

std::string Options::help(const std::string& program, const std::string& about) const {
  CLI::App app(about, program);
  fill(app);
  return wrapped(app.help(), terminal_columns(), 30);
}

files::Inputs Options::inputs() const {
  files::Inputs inputs;
  for (const Option& option : list_) {
    if (option.is_input()) inputs.push_back({option.name_, input_text(option.value())});
  }
  return inputs;
}

Options::Json Options::settings() const {
  Json settings = Json::object();
  for (const Option& option : list_) {
    if (option.is_setting()) settings[option.key()] = option.value();
  }
  return settings;
}

std::vector<std::string> Options::given_words(bool from_anywhere,
                                              const std::vector<std::string>& names) const {
  std::vector<std::string> words;
  for (const Option& option : list_) {
    const bool named = std::find(names.begin(), names.end(), option.name_) != names.end();
    const bool threads = from_anywhere && option.name_ == "--threads";
    if (!named && !(names.empty() && (option.is_setting() || threads))) continue;
    for (const std::string& word : option.given_words_) {
      words.push_back(option.name_);
      if (option.kind_ == Option::Kind::flag) continue;
      const bool path =
          from_anywhere && option.role_ == Option::Role::reads && option.is_read(word);
      words.push_back(path ? fs::absolute(word).string() : word);
    }
  }
  return words;
}

void Options::keep_inputs(std::vector<std::string> more) const {
  for (const Option& option : list_) {
    for (std::string& file : option.files_read()) more.push_back(std::move(file));
  }
  std::error_code error;
  std::erase_if(more, [&](const std::string& file) { return !fs::is_regular_file(file, error); });
  for (const Option& option : list_) {
    for (const std::string& file : option.files_written()) {
      if (std::none_of(more.begin(), more.end(),
                       [&](const std::string& read) { return fs::equivalent(read, file, error); }))
        continue;
      throw InvalidInput(option.name_, messages::printable(file),
                         "a place of its own for the result",
                         "this file is read, and would be lost");
    }
  }
}

void Options::try_outputs() const {
  for (const Option& option : list_) {
    if (!option.attempt_) continue;
    if (const std::string path = option.get(); !path.empty()) option.attempt_(path, option.name_);
  }
}

}  // namespace scalewise::frame
