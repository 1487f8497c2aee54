// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/theory/kernels/network.hpp"

namespace scalewise::kernels {

/// Where the tokens of each input stand when all inputs are stacked.
class Tokens {
 public:
  /// Throws:   InvalidInput for no input or an input without tokens.
  explicit Tokens(std::vector<Index> lengths) : lengths_(std::move(lengths)) {
    if (lengths_.empty()) throw InvalidInput("lengths", "empty", "at least one input");
    for (const Index length : lengths_) {
      if (length <= 0) {
        throw InvalidInput("length of an input", std::to_string(length), "at least one token");
      }
      offsets_.push_back(total_);
      total_ += length;
    }
  }

  Index inputs() const { return static_cast<Index>(lengths_.size()); }
  Index length(Index input) const { return lengths_[static_cast<std::size_t>(input)]; }
  Index offset(Index input) const { return offsets_[static_cast<std::size_t>(input)]; }
  Index total() const { return total_; }

  /// Block (i, j) of a stacked matrix.
  template <class M>
  auto block(M& m, Index i, Index j) const {
    return m.block(offset(i), offset(j), length(i), length(j));
  }

 private:
  std::vector<Index> lengths_;
  std::vector<Index> offsets_;
  Index total_ = 0;
};

/// The kernels of a few inputs, all tokens stacked.
/// Shapes:   nngp, ntk (S, S), S the sum of lengths; block (i, j) is between inputs i and j
struct Kernel {
  Tokens tokens;
  Matrix nngp;
  Matrix ntk;
};

}  // namespace scalewise::kernels
