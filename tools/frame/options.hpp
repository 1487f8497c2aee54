// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The options of a program. Each is declared once, with its name, variable and the values it takes;
// parsing, messages, --help and the inputs that a result depends on come from there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "frame/option_texts.hpp"
#include "scalewise/files/inputs.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise::frame {

/// One option. Its variable holds the default until the command line is read. A list is one value
/// with commas unless it is repeated(); the last of several values counts.
class Option {
 public:
  /// Not set: whole numbers are from 0 to 10^9, other numbers between -1e30 and 1e30. Never NaN.
  Option& from(double least) { return least_ = least, above_ = false, *this; }
  Option& above(double bound) { return least_ = bound, above_ = true, *this; }
  Option& to(double most) { return most_ = most, below_ = false, *this; }
  Option& below(double bound) { return most_ = bound, below_ = true, *this; }

  /// The words that it takes.
  Option& words(std::vector<std::string> words) { return words_ = std::move(words), *this; }
  template <class Enum, std::size_t size>
  Option& words(const Spelling<Enum, size>& spelling) {
    words_.clear();
    for (const auto& entry : spelling) words_.emplace_back(entry.text);
    return *this;
  }

  /// Names of things that have ids. `id` returns the id of any of their names, and throws for what is none;
  /// its second argument is the option.
  using Id = std::function<std::string(const std::string& name, const std::string& option)>;
  Option& names(Id id) { return id_ = std::move(id), *this; }

  /// Of lists: each number is larger than the one before; so many at least.
  Option& increasing() { return increasing_ = true, *this; }
  Option& at_least(std::size_t count) { return count_ = count, *this; }
  /// Of lists: an item each time that the option is given.
  Option& repeated() { return repeated_ = true, *this; }

  /// Cannot be given together with another option, or each of several.
  Option& excludes(std::string name) { return excludes_.push_back(std::move(name)), *this; }
  /// Said in parentheses after what the option means in all programs (option_texts.cpp).
  Option& note(std::string text) { return note_ = std::move(text), *this; }

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

  const std::string& name() const { return name_; }
  bool is_input() const { return role_ == Role::input || role_ == Role::reads; }

 private:
  friend class Options;
  using Variable = std::variant<bool*, int*, long*, std::uint64_t*, double*, std::optional<double>*,
                                std::string*, std::vector<long>*, std::vector<std::string>*>;
  enum class Role { input, no_input, runs, reads, writes_file, writes_folder };

  bool is_path() const { return path_ || role_ >= Role::reads; }
  bool is_whole() const;
  bool is_list() const;
  bool is_text() const;
  std::string default_text() const;
  std::string help() const;
  std::string expectation() const;
  [[noreturn]] void refuse(const std::string& value, const std::string& hint = {}) const;
  template <class Number>
  Number number(const std::string& text) const;
  std::string text(const std::string& word) const;
  void read(const std::vector<std::string>& words);
  nlohmann::ordered_json value() const;

  std::string name_;
  Variable variable_;
  std::string text_;
  std::string note_;
  std::string group_;
  double least_ = std::numeric_limits<double>::quiet_NaN();
  double most_ = std::numeric_limits<double>::quiet_NaN();
  bool above_ = true;
  bool below_ = true;
  std::vector<std::string> words_;
  Id id_;
  bool increasing_ = false;
  std::size_t count_ = 1;
  bool repeated_ = false;
  std::vector<std::string> excludes_;
  std::string read_with_;
  bool path_ = false;
  Role role_ = Role::input;
  bool given_ = false;
  std::vector<std::string> given_words_;
};

/// The action that the command line asks for.
enum class Request { run, dry_run, help, version };

/// A flag of all programs.
struct CommonOption {
  const char* name;
  const char* help;
};
inline constexpr std::array common_options{
    CommonOption{"--help", "print this help and stop"},
    CommonOption{"--version", "print the version and stop"},
    CommonOption{"--dry-run", "check the options, print what the result depends on, and stop"},
};

class Options {
 public:
  Options() = default;
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  /// The heading in --help of the options that follow.
  void group(std::string heading) { group_ = std::move(heading); }

  template <class Value>
  Option& add(std::string name, Value& variable, std::string note = {}) {
    Option& option = list_.emplace_back();
    option.text_ = option_text(name);
    option.name_ = std::move(name);
    option.variable_ = &variable;
    option.note_ = std::move(note);
    option.group_ = group_;
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
  Inputs inputs() const;

  /// The same and which runs are made, as JSON, without the dashes of the names.
  nlohmann::ordered_json settings() const;

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
  struct CommandLine;

  [[noreturn]] void refuse_unknown(const std::string& word) const;

  std::vector<std::string> words(bool from_anywhere) const;

  std::deque<Option> list_;
  std::string group_ = "Options";
};

}  // namespace scalewise::frame
