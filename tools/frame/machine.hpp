// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The parts of the machine that a program uses.
#pragma once

#include <string>

namespace scalewise::frame {

/// The library that matrices of floats are multiplied with, such as "oneDNN 2.6.0" or "Eigen".
std::string products();

/// The widest vector instructions that the program was compiled for: "AVX-512", "AVX2", "SSE2", ….
std::string vectors();

/// The version of scalewise.
std::string version();

/// How many threads a program uses.
int threads();

/// The most memory that this process has held so far; 0 where the system does not say.
double peak_mebibytes();

}  // namespace scalewise::frame
