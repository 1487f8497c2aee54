// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The main function of the programs on kernels: library kernel_program.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "check/report.hpp"

namespace scalewise::experiment {

/// An option of a program; what it points to holds the default.
struct Option {
  std::string name;  // without the dashes
  std::variant<long*, double*, std::string*, std::vector<long>*, std::vector<std::string>*> value;
  std::string help;
};

/// Reads the options and --threads, --format, --out and --quiet, runs, and publishes.
/// Returns:  the exit code: that of the verdict, 2 for input that makes no sense, 130 after Ctrl-C.
int run_kernel_program(int argc, char** argv, const std::string& name, const std::string& about,
                       const std::vector<Option>& options, const std::function<Report()>& run);

/// What is thrown after Ctrl-C.
struct Interrupted {};

/// Shows how far a long computation is, on stderr, unless --quiet was given.
/// Throws:   Interrupted after Ctrl-C.
class Work {
 public:
  /// `what` is done `all` times.
  Work(std::string what, long all);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  void done(long done);

  /// The same for callers that must not throw: false asks to stop.
  bool report(long done);

 private:
  std::string what_;
  long all_;
  double start_;
  double shown_;
  bool visible_ = false;
};

/// Throws:   InvalidInput unless least <= value <= most.
void require_between(const char* option, long value, long least, long most);

}  // namespace scalewise::experiment
