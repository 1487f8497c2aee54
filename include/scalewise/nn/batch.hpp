// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "scalewise/dense/matrix.hpp"

namespace scalewise::nn {

/// A target that is not there: the loss leaves its row out. The number is that of PyTorch's `ignore_index`.
inline constexpr int no_target = -100;

/// The input of a model in one step. Tokens and targets are row by row, sequence after sequence.
template <class Scalar>
struct Batch {
  Eigen::Index size = 0;     // B sequences
  std::vector<int> tokens;   // (B*T) of the main stack, or of the decoder
  std::vector<int> source;   // (B*S) of the encoder of an encoder-decoder
  Matrix<Scalar> patches;    // (B*T, patch_dim), for patch input
  std::vector<int> targets;  // (B*T) tokens or no_target, or (B) classes
  Matrix<Scalar> values;     // of the shape of the logits, for a regression instead of classes
};

}  // namespace scalewise::nn
