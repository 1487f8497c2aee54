// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "scalewise/dense/matrix.hpp"
#include "scalewise/numeric/parallel.hpp"
#include "scalewise/numeric/random.hpp"

namespace scalewise::nn {

/// Which entries of one tensor one pass drops. Entry i is a function of the key and i, so that no
/// mask is stored and the order of the work is free.
/// Equation: y_i = x_i / (1 - p) with probability 1 - p, else 0; the gradient is the same map
/// Source:   Srivastava et al. 2014, section 10 (the form that scales in training).
/// Units:    rate: probability that an entry is dropped.
class Dropout {
 public:
  Dropout() = default;  // drops nothing
  Dropout(double rate, std::uint64_t seed, std::uint64_t draw, std::string_view name,
          std::string_view end = {})  // a name in two parts is their concatenation
      : rate_(rate) {
    if (rate > 0)
      key_ = numeric::RandomStream(seed + numeric::RandomStream::mix(draw), name, end).bits();
  }

  bool active() const { return rate_ > 0; }

  /// Applies the mask to entries [first, first + size).
  template <class Scalar>
  void apply(Eigen::Index first, Eigen::Index size, Scalar* x) const {
    const auto bound = static_cast<std::uint64_t>(rate_ * 0x1p53);
    const auto keep = static_cast<Scalar>(1 / (1 - rate_));
    for (Eigen::Index i = 0; i < size; ++i) {
      const auto at = static_cast<std::uint64_t>(first + i + 1);
      const bool dropped =
          (numeric::RandomStream::mix(key_ + at * 0x9E3779B97F4A7C15ULL) >> 11U) < bound;
      x[i] *= dropped ? Scalar(0) : keep;
    }
  }

  /// Applies the mask to a whole matrix; does nothing where dropout is off.
  template <class Scalar>
  void apply(View<Scalar> x) const {
    if (!active()) return;
    numeric::parallel_rows(x.rows(),
                           [&](Eigen::Index i) { apply(i * x.cols(), x.cols(), x.row(i).data()); });
  }

 private:
  double rate_ = 0;
  std::uint64_t key_ = 0;
};

}  // namespace scalewise::nn
