// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Settings of the training step benchmark, and the arithmetic of a step.

#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace scalewise::benchmark {

/// The flags of the program.
struct StepSettings {
  std::vector<long> widths = {256};
  long depth = 4;
  long heads = 0;  // width / 64, but at least 4
  long seq = 64;
  long batch = 8;
  long vocab = 256;
  long steps = 10;  // timed in each round
  long rounds = 9;
  long threads = 0;   // of ours: all cores
  std::string torch;  // the interpreter; empty: the first that has PyTorch
  bool no_torch = false;
  long torch_threads = 1;
  long torch_blas_threads = 0;  // as threads
  std::string torch_foreach = "auto";

  long heads_at(long width) const { return heads > 0 ? heads : std::max(4L, width / 64); }
};

/// Matrix-multiply GFLOP of one training step. N = batch * seq rows, C width.
/// Equation: forward 2 N K M for each product (N, K) (K, M): the four matrices of attention
///           8 N C², the two of the MLP 16 N C², scores and values 4 N seq C, counted in full
///           though half is masked, and the head 2 N C V; backward twice the forward
inline double matrix_gflop(const StepSettings& s, long width) {
  const auto rows = static_cast<double>(s.batch * s.seq);
  const auto c = static_cast<double>(width);
  const double layer = 24 * rows * c * c + 4 * rows * static_cast<double>(s.seq) * c;
  const double head = 2 * rows * c * static_cast<double>(s.vocab);
  return 3 * (static_cast<double>(s.depth) * layer + head) / 1e9;
}

}  // namespace scalewise::benchmark
