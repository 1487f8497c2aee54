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

/// Sees to it that OpenMP gets `threads` threads: where it gets none it ends the program with exit code 1.
/// Throws:   InvalidInput for more than 1024 threads and for more than the system grants.
void try_threads(int threads);

/// The most memory that this process has held so far; 0 where the system does not say.
double peak_mebibytes();

}  // namespace scalewise::frame
