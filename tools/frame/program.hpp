// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The frame of every program, main() included. Each defines program(), which declares its options and what to run.
// docs/programs.md has the exit codes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frame/options.hpp"

namespace scalewise::frame {

struct Program {
  std::string name;
  std::string about;  // one sentence for --help
  std::shared_ptr<Options> options = std::make_shared<Options>();

  /// Checks what no option can check alone, and may settle defaults that depend on others.
  std::function<void()> check = {};

  /// The expected cost of the run, in a line for --dry-run; programs that run for seconds have none.
  std::function<std::string()> expected = {};

  /// Returns: the exit code. It prints to std::cout and throws what it cannot do.
  std::function<int(const std::vector<std::string>& arguments)> run = {};
};

/// Defined by each program.
Program program();

/// Columns of the terminal; 0: standard output is none, and lines are as long as they are.
std::size_t terminal_columns();

/// The program's path or name on the command line; set by main().
inline std::string called_as;

}  // namespace scalewise::frame
