// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// In a package for x86-64, a program that computes is there once for each level of the processor, and this in
// its place: it becomes the program of its own name for the highest level that the processor has.

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "frame/processor_level.hpp"

int main(int, char** argv) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  const fs::path programs = self.parent_path() / SCALEWISE_LEVELS_DIR;
  for (int level = scalewise::frame::processor_level(); level > 0; --level) {
    const std::string folder = level > 1 ? "x86-64-v" + std::to_string(level) : "x86-64";
    ::execv((programs / folder / self.filename()).c_str(), argv);  // returns where there is none
  }
  std::fprintf(stderr, "%s: %s: expected programs for this processor; install the package again\n",
               self.filename().c_str(), programs.c_str());
  return 2;
}
