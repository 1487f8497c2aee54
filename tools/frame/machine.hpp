// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The parts of the machine that a program uses.
#pragma once

#include <string>

namespace scalewise::frame {

/// The libraries that matrices are multiplied with, such as "oneDNN 2.6.0, OpenBLAS 0.3.21 (SkylakeX)": the
/// first for float, the second for the rest. "Eigen" where there is none.
std::string products();

/// The widest vector instructions that the program was compiled for: "AVX-512", "AVX2", "SSE2", ….
std::string vectors();

/// The version of scalewise.
std::string version();

/// How many threads a program uses.
int threads();

/// Sees to it that the libraries which use `threads` threads get them and the memory that they need: where
/// OpenMP has no more threads it ends the program with exit code 1, and OpenBLAS asks for memory for ever.
/// Throws:   InvalidInput for more than 1024 threads, more than the system grants, and too little memory.
void try_threads(int threads);

/// The most memory that this process has held so far; 0 where the system does not say.
double peak_mebibytes();

}  // namespace scalewise::frame
