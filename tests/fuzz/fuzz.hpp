// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A fuzz target: three functions, which each file next to this one defines in a namespace of its own, and
// driver.cpp calls. scripts/fuzz.sh builds and runs them.

#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace scalewise::fuzz {

using Random = std::minstd_rand;

/// A number below `count`, which is positive.
inline std::size_t below(std::size_t count, Random& random) { return random() % count; }

struct Target {
  std::string_view name;
  /// Valid inputs to begin with.
  std::vector<std::string> (*seeds)();
  /// An input changed where it matters; bytes are changed by libFuzzer itself.
  std::string (*edited)(std::string input, Random& random);
  /// The function under test. It may throw InvalidInput and nothing else.
  void (*run)(std::string_view input);
};

/// Those of the program.
inline std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

/// Adds a target to them.
struct Added {
  explicit Added(const Target& target) { targets().push_back(target); }
};

}  // namespace scalewise::fuzz
