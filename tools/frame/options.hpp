// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The options of a program. Each is declared once, with its name, variable, help and the values it takes. CLI11 reads
// the command line and writes --help; here are messages of one form, and the inputs that a result depends on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
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
  using Id = std::function<std::string(const std::string& name, const std::string& option)>;
  using Attempt = std::function<void(const std::string& path, const std::string& option)>;
  using Names = std::function<bool(const std::string& file)>;

  Option& help(std::string text) { return help_ = std::move(text), *this; }

  /// Not set: whole numbers are from 0 to 10^9, other numbers between -1e30 and 1e30. Never NaN.
  Option& from(double least) { return least_ = least, above_ = false, *this; }
  Option& above(double bound) { return least_ = bound, above_ = true, *this; }
  Option& to(double most) { return most_ = most, below_ = false, *this; }
  Option& below(double bound) { return most_ = bound, below_ = true, *this; }

  /// The words that a text may be; or names of things that have ids: `id` returns the id of any of their names, and
  /// throws for what is none.
  Option& words(std::vector<std::string> words) { return words_ = std::move(words), *this; }
  Option& names(Id id) { return id_ = std::move(id), *this; }

  /// The numbers of a list, `count` at least, have to increase; a repeated option adds an item each time that it is given.
  Option& increasing(std::size_t count = 1) { return increasing_ = true, count_ = count, *this; }
  Option& repeated() { return repeated_ = true, *this; }

  /// Cannot be given together with another option, or each of several.
  Option& excludes(std::string name) { return excludes_.push_back(std::move(name)), *this; }

  /// Every option is an input of the result, unless it only says how the program runs or shows the result, or which
  /// runs are made: a file of results keeps that with each run.
  Option& not_an_input() { return role_ = Role::no_input, *this; }
  Option& of_runs() { return role_ = Role::runs, *this; }

  /// Paths, which need not be UTF-8: of a file that is read, unless it writes(). Of data the bytes of the file are the
  /// input, not its name. Where results are written is tried before the program works, and no file that is read may be
  /// there: of a folder, `names` says which of its files the program writes.
  Option& path() { return path_ = true, *this; }
  Option& reads() { return role_ = Role::reads, path(); }

  /// A value that ends so is the path of data, and another one is a word.
  Option& reads(std::string ending) {
    return role_ = Role::reads, ending_ = std::move(ending), *this;
  }
  Option& writes(Attempt attempt, Names names = {}) {
    return attempt_ = std::move(attempt), names_ = std::move(names), not_an_input().path();
  }

 private:
  friend class Options;
  enum class Kind { flag, whole, seed, number, text };
  enum class Role { input, no_input, runs, reads };

  bool is_input() const { return role_ == Role::input || role_ == Role::reads; }
  bool is_setting() const { return is_input() || role_ == Role::runs; }
  bool given() const { return !given_words_.empty(); }
  std::string key() const { return name_.substr(name_.starts_with("--") ? 2 : 0); }
  std::string type() const;
  std::string default_text() const;
  std::string expectation() const;
  [[noreturn]] void refuse(const std::string& value, const std::string& hint = {}) const;
  template <class Number>
  Number number(const std::string& word) const;
  Json item(const std::string& word) const;
  Json value_of_words() const;
  void set(const Json& value) const;
  Json get() const;
  bool is_read(const std::string& word) const;
  Json value() const;
  std::vector<std::string> files_read() const;
  std::vector<std::string> files_written() const;

  /// A variable that holds a value of a word; lists come last.
  struct Word {
    std::function<std::string()> get;
    std::function<void(const std::string& word)> set;
  };
  using Variable = std::variant<bool*, int*, long*, std::uint64_t*, double*, std::optional<double>*,
                                std::string*, Word, std::vector<long>*, std::vector<double>*,
                                std::vector<std::string>*>;

  std::string name_, help_, group_;
  Variable variable_;
  Kind kind_ = Kind::text;
  bool list_ = false;
  double least_ = 0, most_ = 0;
  bool above_ = false, below_ = false, increasing_ = false, repeated_ = false, path_ = false;
  std::vector<std::string> words_, excludes_;
  Id id_;
  Attempt attempt_;
  Names names_;
  std::string ending_;
  std::size_t count_ = 1;
  Role role_ = Role::input;
  std::vector<std::string> given_words_;  // none: it was not given
};

/// The action that the command line asks for.
enum class Request { run, dry_run, help, version };

class Options {
 public:
  using Json = Option::Json;

  /// The heading in --help of the options that follow.
  void group(std::string heading) { group_ = std::move(heading); }

  /// A flag (bool), a number, a text, or a list of numbers or texts.
  template <class Value>
  Option& add(const std::string& name, Value& variable, const std::string& help) {
    return declare(name, &variable, help);
  }

  /// A value with a word. No value is the empty text.
  template <class Variable, class Value, std::size_t size>
  Option& add(const std::string& name, Variable& variable,
              const messages::Spelling<Value, size>& spelling, const std::string& help) {
    const auto get = [&] {
      const std::optional<Value> value = variable;
      return std::string(value ? word(spelling, *value) : "");
    };
    const auto set = [&, name](const std::string& text) {
      variable = value_of(spelling, name, text);
    };
    Option& option = declare(name, Option::Word{get, set}, help);
    for (const auto& entry : spelling) option.words_.emplace_back(entry.text);
    return option;
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

  /// The words of a command line that has these inputs and runs: the options that were given, as they were given; or
  /// from any folder and on as many threads, with absolute paths. With `names`, of the options with these names alone,
  /// for another program that has them too.
  std::vector<std::string> given_words(bool from_anywhere = false,
                                       const std::vector<std::string>& names = {}) const;

  /// Refuses to write over files that are read: those of the options, and `more` that the program reads besides.
  /// Throws:   InvalidInput naming the option of the output.
  void keep_inputs(std::vector<std::string> more = {}) const;

  /// Tries where results are to be written.
  /// Throws:   InvalidInput.
  void try_outputs() const;

 private:
  Option& declare(const std::string& name, Option::Variable variable, const std::string& help);
  void fill(CLI::App& app) const;

  std::deque<Option> list_;
  std::string group_ = "Options";
};

/// A value of settings() as Inputs hold it.
std::string input_text(const nlohmann::ordered_json& setting);

/// The form of a report.
enum class Format { table, json, csv };
inline constexpr messages::Spelling<Format, 3> format_words{
    {{Format::table, "table"}, {Format::json, "json"}, {Format::csv, "csv"}}};
inline void add_format(Options& options, Format& format) {
  options.add("--format", format, format_words, "format of the output").not_an_input();
}

}  // namespace scalewise::frame
