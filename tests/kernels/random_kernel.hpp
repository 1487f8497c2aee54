// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "scalewise/kernels/stacked_kernel.hpp"
#include "scalewise/numeric/random.hpp"

namespace scalewise::test {

/// Standard normal entries.
inline Matrix<> random_matrix(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed,
                              std::string_view name = "matrix") {
  numeric::RandomStream stream(seed, name);
  Matrix<> m(rows, columns);
  for (Eigen::Index i = 0; i < m.size(); ++i) m.data()[i] = stream.normal();
  return m;
}

/// Kernels of rank 6.
inline kernels::Kernel random_kernel(const std::vector<Eigen::Index>& lengths, std::uint64_t seed) {
  kernels::Tokens tokens(lengths);
  const Matrix<> g = random_matrix(tokens.total(), 6, seed, "nngp");
  const Matrix<> h = random_matrix(tokens.total(), 6, seed, "ntk");
  return {tokens, g * g.transpose() / 6, h * h.transpose() / 6};
}

}  // namespace scalewise::test
