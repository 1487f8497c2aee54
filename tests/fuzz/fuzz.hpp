// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A fuzz target: three functions, which each file beside this one defines, and driver.cpp calls.
// scripts/fuzz.sh builds and runs them.

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

/// Valid inputs to begin with.
std::vector<std::string> seeds();

/// An input changed where it matters; bytes are changed by libFuzzer itself.
std::string edited(std::string input, Random& random);

/// What is tested. It may throw InvalidInput and nothing else.
void run(std::string_view input);

}  // namespace scalewise::fuzz
