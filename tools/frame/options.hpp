// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The options of a program. Each is declared once, with its name, variable, help and the values it takes. CLI11 reads
// the command line and writes --help; here are messages of one form, and the inputs that a result depends on.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/files/inputs.hpp"
#include "scalewise/messages/words.hpp"

namespace CLI {
class App;
}

namespace scalewise::frame {

/// One option. Its variable holds the default until the command line is read. A list is one value with commas unless
/// it is repeated(); the last of several values counts. A name means the same in all programs; what one adds stands
/// in parentheses at the end of its help.
class Option {
 public:
  using Json = nlohmann::ordered_json;

  Option& help(std::string text) { return help_ = std::move(text), *this; }

  /// Not set: whole numbers are from 0 to 10^9, other numbers between -1e30 and 1e30. Never NaN.
  Option& from(double least) { return least_ = least, above_ = false, *this; }
  Option& above(double bound) { return least_ = bound, above_ = true, *this; }
  Option& to(double most) { return most_ = most, below_ = false, *this; }
  Option& below(double bound) { return most_ = bound, below_ = true, *this; }

  /// The words that a text may be.
  Option& words(std::vector<std::string> words) { return words_ = std::move(words), *this; }

  /// Names of things that have ids. `id` returns the id of any of their names, and throws for what is none;
  /// its second argument is the option.
  using Id = std::function<std::string(const std::string& name, const std::string& option)>;
  Option& names(Id id) { return id_ = std::move(id), *this; }

  /// A list obeys these: each number is larger than the one before; so many at least; an item each time that it is given.
  Option& increasing() { return increasing_ = true, *this; }
  Option& at_least(std::size_t count) { return count_ = count, *this; }
  Option& repeated() { return repeated_ = true, *this; }

  /// Cannot be given together with another option, or each of several.
  Option& excludes(std::string name) { return excludes_.push_back(std::move(name)), *this; }

  /// Every option is an input of the result, unless one of these says otherwise:
  /// how the program runs or shows the result;
  Option& not_an_input() { return role_ = Role::no_input, *this; }
  /// which runs are made: a file of results keeps that with each run.
  Option& of_runs() { return role_ = Role::runs, *this; }

  /// A path to data: the bytes of the file are the input, not its name.
  Option& reads() { return role_ = Role::reads, *this; }
  /// Paths that results are written to. They are tried before the program works.
  Option& writes_file() { return role_ = Role::writes_file, *this; }
  Option& writes_folder() { return role_ = Role::writes_folder, *this; }
  /// With another option the folder is only read.
  Option& read_with(std::string name) { return read_with_ = std::move(name), *this; }
  /// A path that is not in these roles, which need not be UTF-8.
  Option& path() { return path_ = true, *this; }

 private:
  friend class Options;
  enum class Kind { flag, whole, seed, number, text };
  enum class Role { input, no_input, runs, reads, writes_file, writes_folder };

  bool is_path() const { return path_ || role_ >= Role::reads; }
  bool is_input() const { return role_ == Role::input || role_ == Role::reads; }
  bool is_setting() const { return is_input() || role_ == Role::runs; }
  std::string key() const { return name_.substr(name_.starts_with("--") ? 2 : 0); }
  std::string type() const;
  std::string default_text() const;
  std::string expectation() const;
  [[noreturn]] void refuse(const std::string& value, const std::string& hint = {}) const;
  template <class Number>
  Number number(const std::string& word) const;
  Json item(const std::string& word) const;
  Json value_of_words() const;
  Json value() const;

  std::string name_;
  Kind kind_ = Kind::text;
  bool list_ = false;
  std::function<Json()> get_;             // from the variable
  std::function<void(const Json&)> set_;  // to the variable
  std::string help_;
  std::string group_;
  double least_ = 0;
  double most_ = 0;
  bool above_ = false;
  bool below_ = false;
  std::vector<std::string> words_;
  Id id_;
  bool increasing_ = false;
  std::size_t count_ = 1;
  bool repeated_ = false;
  std::vector<std::string> excludes_;
  std::string read_with_;
  bool path_ = false;
  Role role_ = Role::input;
  std::vector<std::string> given_words_;  // none: it was not given
};

/// The action that the command line asks for.
enum class Request { run, dry_run, help, version };

class Options {
 public:
  using Json = Option::Json;

  Options() = default;
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  /// The heading in --help of the options that follow.
  void group(std::string heading) { group_ = std::move(heading); }

  /// A flag (bool), a number, a text, or a list (std::vector) of numbers or texts.
  template <class Value>
  Option& add(const std::string& name, Value& variable, const std::string& help) {
    return declare<Value>(
        name, help, [&variable] { return Json(variable); },
        [&variable](const Json& value) { value.get_to(variable); });
  }
  Option& add(const std::string& name, std::optional<double>& variable, const std::string& help) {
    return declare<double>(
        name, help, [&variable] { return variable ? Json(*variable) : Json(nullptr); },
        [&variable](const Json& value) { variable = value.get<double>(); });
  }

  /// A value with a word. None is the empty text.
  template <class Value, std::size_t size>
  Option& add(const std::string& name, Value& variable,
              const messages::Spelling<Value, size>& spelling, const std::string& help) {
    return declare<std::string>(
               name, help, [&] { return Json(word(spelling, variable)); },
               [&, name](const Json& text) {
                 variable = value_of(spelling, name, text.get<std::string>());
               })
        .words(words_of(spelling));
  }
  template <class Value, std::size_t size>
  Option& add(const std::string& name, std::optional<Value>& variable,
              const messages::Spelling<Value, size>& spelling, const std::string& help) {
    return declare<std::string>(
               name, help, [&] { return Json(variable ? word(spelling, *variable) : ""); },
               [&, name](const Json& text) {
                 variable = value_of(spelling, name, text.get<std::string>());
               })
        .words(words_of(spelling));
  }

  /// Requires: an option of that name.
  Option& at(const std::string& name);
  bool given(const std::string& name) const;

  /// Reads the arguments after the program's name into the variables.
  /// Throws:   InvalidInput for the first that is unknown or has no value that it takes.
  Request parse(const std::vector<std::string>& arguments);

  std::string help(const std::string& program, const std::string& about) const;

  /// All that a result depends on: names and values of the variables as they are now, which may be
  /// later than parse(), and the fingerprints of data.
  /// Throws:   InvalidInput for data that cannot be read.
  files::Inputs inputs() const;

  /// The same and which runs are made, as JSON, without the dashes of the names.
  Json settings() const;

  /// The words of a command line that has these inputs and runs: the options that were given, as they
  /// were given.
  std::vector<std::string> given_words() const { return words(false); }

  /// The same from any folder, on as many threads: with absolute paths.
  std::vector<std::string> again() const { return words(true); }

  /// Makes the folders that results go to, and tries to write there.
  /// Throws:   InvalidInput when one cannot be made or written, and for a folder that has the file
  ///           `program`.json with other inputs among its "settings".
  void try_outputs(const std::string& program) const;

 private:
  template <class Value, std::size_t size>
  static std::vector<std::string> words_of(const messages::Spelling<Value, size>& spelling) {
    std::vector<std::string> words;
    for (const auto& entry : spelling) words.emplace_back(entry.text);
    return words;
  }

  template <class Item>
  static constexpr Option::Kind kind_of() {
    if constexpr (std::same_as<Item, bool>) return Option::Kind::flag;
    if constexpr (std::same_as<Item, std::uint64_t>) return Option::Kind::seed;
    if constexpr (std::integral<Item>) return Option::Kind::whole;
    return std::floating_point<Item> ? Option::Kind::number : Option::Kind::text;
  }

  template <class Value, class Get, class Set>
  Option& declare(const std::string& name, const std::string& help, Get get, Set set) {
    constexpr bool list = requires(Value value) { value.push_back(value.front()); }
    &&!std::same_as<Value, std::string>;
    if constexpr (list) {
      return declare(name, kind_of<typename Value::value_type>(), list, help, get, set);
    } else {
      return declare(name, kind_of<Value>(), list, help, get, set);
    }
  }
  Option& declare(const std::string& name, Option::Kind kind, bool list, const std::string& help,
                  std::function<Json()> get, std::function<void(const Json&)> set);
  void fill(CLI::App& app) const;
  std::vector<std::string> words(bool from_anywhere) const;

  std::deque<Option> list_;
  std::string group_ = "Options";
};

/// The form of a report.
enum class Format { table, json, csv };
inline constexpr messages::Spelling<Format, 3> format_words{
    {{Format::table, "table"}, {Format::json, "json"}, {Format::csv, "csv"}}};
inline void add_format(Options& options, Format& format) {
  options.add("--format", format, format_words, "format of the output").not_an_input();
}

}  // namespace scalewise::frame
