// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include "scalewise/dense/matrix.hpp"
#include "scalewise/numeric/parallel.hpp"

namespace scalewise::nn {

/// Cosines and sines of the angles of rotary position embedding.
/// Equation: features (c, c + C/2) of a head at position t turn by t * 10000^(-2c/C)
/// Source:   Su et al. 2021 (arXiv:2104.09864v5), eq. (34), with the halves of a head as pairs.
/// Shapes:   cosine, sine (T, C/2)
template <class Scalar>
class RotaryTable {
 public:
  /// Makes the table long enough for `tokens` positions of heads of `head_dim` features.
  /// Requires: an even number of features per head.
  void prepare(Eigen::Index tokens, Eigen::Index head_dim) {
    const Eigen::Index half = head_dim / 2;
    if (cosine_.cols() == half && cosine_.rows() >= tokens) return;
    cosine_.resize(tokens, half);
    sine_.resize(tokens, half);
    for (Eigen::Index t = 0; t < tokens; ++t) {
      for (Eigen::Index c = 0; c < half; ++c) {
        const double frequency =
            std::pow(10000.0, -2.0 * static_cast<double>(c) / static_cast<double>(head_dim));
        cosine_(t, c) = static_cast<Scalar>(std::cos(static_cast<double>(t) * frequency));
        sine_(t, c) = static_cast<Scalar>(std::sin(static_cast<double>(t) * frequency));
      }
    }
  }

  /// Turns every head of every row in place; `sign` -1 turns back, which is the gradient.
  /// Shapes:   x (B*tokens, heads*C)
  /// Requires: prepare(tokens, C) before.
  void rotate(View<Scalar> x, Eigen::Index tokens, int sign) const {
    const Eigen::Index half = cosine_.cols();
    const auto direction = static_cast<Scalar>(sign);
    numeric::parallel_rows(x.rows(), [&](Eigen::Index i) {
      const Scalar* cosine = cosine_.row(i % tokens).data();
      const Scalar* sine = sine_.row(i % tokens).data();
      for (Eigen::Index at = 0; at < x.cols(); at += 2 * half) {
        Scalar* first = x.row(i).data() + at;
        Scalar* second = first + half;
        for (Eigen::Index c = 0; c < half; ++c) {
          const Scalar a = first[c];
          const Scalar b = second[c];
          first[c] = a * cosine[c] - b * direction * sine[c];
          second[c] = a * direction * sine[c] + b * cosine[c];
        }
      }
    });
  }

 private:
  Matrix<Scalar> cosine_, sine_;
};

}  // namespace scalewise::nn
