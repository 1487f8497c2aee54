// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Alignment exponents of the reference transformer while it learns: library check_reference.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "check/network.hpp"
#include "scalewise/check/alignment.hpp"

namespace scalewise::experiment {

/// Remembers a network's initial matrices and what they read on the fixed batch.
/// Accuracy: at most 256 tokens, evenly spaced over the batch, and products in single precision:
///           changes below some 1e-5 of the weights are lost in rounding.
/// Embeddings are left out: their input is one token, and never changes. So is a tied head.
class AlignmentProbe {
 public:
  explicit AlignmentProbe(Network& network);

  /// The name for all matrices inside the blocks together.
  static constexpr const char* all_hidden = "hidden";

  /// How many of the fixed batch's tokens it keeps.
  static std::size_t rows_of(std::size_t tokens);

  /// Adds every matrix, by the name of its group, and those inside the blocks once more, together.
  /// Requires: alignments.begin_step() has been called.
  void measure(Network& network, check::Alignments& alignments) const;

 private:
  /// Some rows of an intermediate, copied.
  struct Rows {
    std::vector<float> entries;
    std::size_t rows = 0;
    std::size_t columns = 0;

    Array view() const { return {entries.data(), rows, columns}; }
  };
  struct Matrix {
    std::size_t entry;
    std::string group;
    bool hidden;
    std::string input;  // name of what it reads
    std::vector<float> initial;
  };

  std::map<std::string, Rows> inputs(Network& network) const;

  std::vector<Matrix> matrices_;
  std::map<std::string, Rows> initial_inputs_;
};

}  // namespace scalewise::experiment
