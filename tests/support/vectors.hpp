// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Vectors of tests that compute a network by hand.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "scalewise/numeric/random.hpp"

namespace scalewise::test {

using Vector = std::vector<double>;

inline double inner(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline double length(const Vector& a) { return std::sqrt(inner(a, a)); }

/// x a + y b.
inline Vector mixed(double x, const Vector& a, double y, const Vector& b) {
  Vector c(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) c[i] = x * a[i] + y * b[i];
  return c;
}

inline Vector unit(const Vector& a) { return mixed(1 / length(a), a, 0, a); }

/// Standard normal numbers.
inline Vector drawn(numeric::RandomStream& stream, std::size_t size) {
  Vector v(size);
  for (double& x : v) x = stream.normal();
  return v;
}

}  // namespace scalewise::test
