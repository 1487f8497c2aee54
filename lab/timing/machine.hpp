// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The state of the machine and of this process, from /proc.

#pragma once

#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

extern char** environ;

namespace scalewise::benchmark {

/// The text after "key :" on the first line of a file that begins with the key; empty if none.
inline std::string line_value(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(" \t:", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

inline std::string cpu_model() { return line_value("/proc/cpuinfo", "model name"); }

/// Processes that wanted to run in the last minute, this one aside: 0 on a quiet machine.
inline double load_average() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  return load;
}

/// Variables of the environment that threads obey.
inline std::map<std::string, std::string> thread_variables() {
  std::map<std::string, std::string> found;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string variable = *at;
    for (const char* prefix : {"OMP_", "GOMP_", "KMP_", "OPENBLAS_", "MKL_"}) {
      if (!variable.starts_with(prefix)) continue;
      const std::size_t equals = variable.find('=');
      found[variable.substr(0, equals)] = variable.substr(equals + 1);
    }
  }
  return found;
}

/// The most memory that this process has held so far, in MiB; 0 where /proc does not say.
inline double peak_memory() {
  std::istringstream text(line_value("/proc/self/status", "VmHWM"));
  double kibibytes = 0;
  text >> kibibytes;
  return kibibytes / 1024;
}

}  // namespace scalewise::benchmark
