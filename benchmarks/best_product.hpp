// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How fast this machine multiplies at best: the mark that a training step is held against.

#pragma once

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/dense/blas.hpp"
#include "scalewise/dense/product.hpp"
#include "scalewise/numeric/parallel.hpp"

namespace scalewise::benchmark {

/// The highest rate of square products of 512 and 1024, in tiles of 256 rows on all threads, by each of the
/// libraries that were compiled in, in GFLOP/s; the best of twenty runs each.
inline nlohmann::ordered_json best_products() {
  using Product = void (*)(Into, float, const Operand<float>&, const Operand<float>&, View<float>);
  std::vector<std::pair<std::string, Product>> libraries{
      {"Eigen", &dense::detail::eigen_product<float>}};
#ifdef EIGEN_USE_BLAS
  libraries = {{"BLAS", [](Into into, float factor, const Operand<float>& a,
                           const Operand<float>& b, View<float> c) {
                  dense::detail::blas_product(sgemm_, into, factor, a, b, c);
                }}};  // Eigen calls it too
#endif
#ifdef SCALEWISE_ONEDNN
  libraries.emplace_back("oneDNN", &dense::detail::onednn_product);
#endif
  keep_to_one_thread();
  nlohmann::ordered_json report;
  for (const auto& [name, product] : libraries) {
    double best = 0;
    for (const Eigen::Index n : {512, 1024}) {
      const Eigen::Index rows = 2048;
      const Matrix<float> a = Matrix<float>::Constant(rows, n, 0.5F);
      const Matrix<float> b = Matrix<float>::Constant(n, n, 0.25F);
      Matrix<float> c(rows, n);
      for (int run = 0; run < 20; ++run) {
        const auto start = std::chrono::steady_clock::now();
        parallel_tiles(rows, 256, [&, multiply = product](Eigen::Index begin, Eigen::Index count) {
          multiply(Into::fresh, 1, Operand<float>(read(a)).middle_rows(begin, count), read(b),
                   block(view(c), begin, 0, count, n));
        });
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        best = std::max(best, 2e-9 * static_cast<double>(rows * n * n) / seconds.count());
      }
    }
    report[name] = best;
  }
  return report;
}

}  // namespace scalewise::benchmark
