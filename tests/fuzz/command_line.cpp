// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The command line of a program, one argument per line, and a program's work where that is small.

#include <algorithm>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "frame/program.hpp"
#include "fuzz/fuzz.hpp"

namespace scalewise::fuzz::command_line_target {

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

/// What --help names.
std::vector<std::string> option_names() {
  const frame::Program program = frame::program();
  std::istringstream help(program.options->help(program.name, program.about));
  std::vector<std::string> names;
  for (std::string word; help >> word;) {
    if (!word.starts_with("--")) continue;
    names.push_back(word.substr(0, word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-")));
  }
  return names;
}

const std::vector<std::string> hostile_values{"",
                                              "0",
                                              "-1",
                                              "1",
                                              "2",
                                              "1e3",
                                              "0.5",
                                              "nan",
                                              "-inf",
                                              "1e309",
                                              "x",
                                              "16,1e3",
                                              "16,,32",
                                              "8,16,32",
                                              "16,16",
                                              "99999999999999999999",
                                              "--",
                                              "-",
                                              "=",
                                              "a=b",
                                              "\xff",
                                              "depth=1",
                                              "d_model=8",
                                              "base.depth=1",
                                              "d_ff=9223372036854775807",
                                              "alpha=1e308",
                                              "heads=1",
                                              "gpt2",
                                              "bert-base",
                                              "maximal-update",
                                              "complete-p,gpt2",
                                              "neural-tangent",
                                              "sgd",
                                              "adamw",
                                              "json",
                                              "latex",
                                              "csv",
                                              "markdown",
                                              "l2"};

/// The program's own check of its options, or all of its work where it takes no file and a second at
/// the most: plans of few layers.
void work(const frame::Program& program, const std::vector<std::string>& arguments) {
  const auto has = [&](const char* word) {
    return std::find(arguments.begin(), arguments.end(), word) != arguments.end();
  };
  const frame::Options& given = *program.options;
  if (program.name != "plan" || !has("depth=1")) return;
  if (given.given("--save") || given.given("--config") || given.given("--base-config")) return;
  if (given.given("--base-preset") && !has("base.depth=1")) return;
  std::ostringstream output;
  std::streambuf* terminal = std::cout.rdbuf(output.rdbuf());
  try {
    program.run(arguments);
  } catch (const std::invalid_argument&) {
    // a refusal is an answer
  }
  std::cout.rdbuf(terminal);
}

}  // namespace

static std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (const std::string& name : option_names()) all.push_back(name + "\n1\n");
  all.emplace_back("--rule\ngpt2\n--preset\ngpt2\n--set\ndepth=1\n");
  all.emplace_back(
      "--compare\nmaximal-update,complete-p\n--preset\nllama-3-8b\n--base-preset\ngpt2\n--set\n"
      "depth=1\n--set\nbase.depth=1\n--format\njson\n");
  return all;
}

static std::string edited(std::string input, Random& random) {
  static const std::vector<std::string> names = option_names();
  std::vector<std::string> lines = lines_of(input);
  if (lines.empty()) lines.emplace_back();
  std::string& line = lines[below(lines.size(), random)];
  const std::string& name = names[below(names.size(), random)];
  const std::string& value = hostile_values[below(hostile_values.size(), random)];
  switch (below(5, random)) {
    case 0:
      line = value;
      break;
    case 1:
      line = name;
      break;
    case 2:
      line = name + '=' + value;
      break;
    case 3:
      lines.push_back(name);
      lines.push_back(value);
      break;
    default:
      lines.erase(lines.begin() + (&line - lines.data()));
  }
  return text_of(lines);
}

static void run(std::string_view input) {
  const frame::Program program = frame::program();
  const std::vector<std::string> arguments = lines_of(input);
  try {
    if (read(program, arguments) == frame::Request::run) work(program, arguments);
  } catch (const InvalidInput&) {
    throw;  // its message is looked at
  } catch (const std::invalid_argument&) {
    // which says how to give a base
  }
}

static const Added added{{"command_line", seeds, edited, run}};

}  // namespace scalewise::fuzz::command_line_target
