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

/// How many threads a program uses.
int threads();

}  // namespace scalewise::frame
