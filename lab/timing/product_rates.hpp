// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How fast each library multiplies matrices of floats.

#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/dense/product.hpp"
#include "scalewise/numeric/parallel.hpp"

namespace scalewise::benchmark {

using Product = void (*)(dense::Into, float, const dense::Operand<float>&,
                         const dense::Operand<float>&, View<float>);

/// The libraries that were compiled in, and Eigen.
inline std::vector<std::pair<std::string, Product>> product_libraries() {
  std::vector<std::pair<std::string, Product>> libraries;
#ifdef SCALEWISE_ONEDNN
  libraries.emplace_back("oneDNN", &dense::detail::onednn_product);
#endif
  libraries.emplace_back("Eigen", &dense::detail::eigen_product<float>);
  return libraries;
}

/// (rows, k) (k, columns), each factor stored transposed where asked for.
struct ProductShape {
  Eigen::Index rows, k, columns;
  bool transposed_a = false, transposed_b = false;
};

/// The best rate of some runs, in tiles of `tile` rows on all threads, in GFLOP/s.
inline double product_rate(Product product, const ProductShape& s, Eigen::Index tile) {
  dense::keep_to_one_thread();
  const auto factor = [](Eigen::Index rows, Eigen::Index columns, bool transposed) {
    return transposed ? Matrix<float>(columns, rows).setConstant(0.5F).eval()
                      : Matrix<float>(rows, columns).setConstant(0.5F).eval();
  };
  const Matrix<float> a = factor(s.rows, s.k, s.transposed_a);
  const Matrix<float> b = factor(s.k, s.columns, s.transposed_b);
  Matrix<float> c(s.rows, s.columns);
  const dense::Operand<float> left(dense::read(a), s.transposed_a),
      right(dense::read(b), s.transposed_b);
  const double gflop = 2e-9 * static_cast<double>(s.rows * s.k * s.columns);
  const int repeats = std::max(1, static_cast<int>(0.02 / gflop));
  double best = 0;
  for (int run = 0; run < 20; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) {
      numeric::parallel_tiles(s.rows, tile, [&](Eigen::Index begin, Eigen::Index count) {
        product(dense::Into::fresh, 1, left.middle_rows(begin, count), right,
                dense::block(dense::view(c), begin, 0, count, s.columns));
      });
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, gflop * repeats / seconds.count());
  }
  return best;
}

}  // namespace scalewise::benchmark
