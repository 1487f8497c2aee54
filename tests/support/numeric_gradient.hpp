// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Gradients by central differences, element by element, and their comparison with analytic ones.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "scalewise/dense/matrix.hpp"
#include "scalewise/numeric/random.hpp"
#include "support/sanitized.hpp"
#include "support/tolerances.hpp"

namespace scalewise::test {

using Eigen::Index;

/// The largest relative error, and where it is.
struct GradientError {
  double relative = 0;
  std::string where = "nowhere";
  double analytic = 0;
  double numeric = 0;

  bool accepted() const { return relative <= gradient_relative; }

  /// Keeps the larger error; one that is not a number is the largest.
  void offer(const std::string& at, double a, double n, double floor) {
    double error = std::abs(a - n) / std::max({std::abs(a), std::abs(n), floor});
    if (!std::isfinite(error)) error = std::numeric_limits<double>::infinity();
    if (a == n) error = 0;
    if (error < relative || (error == relative && where != "nowhere")) return;
    *this = {error, at, a, n};
  }
  void offer(const GradientError& other) {
    if (other.relative >= relative) *this = other;
  }

  friend std::ostream& operator<<(std::ostream& out, const GradientError& e) {
    return out << "relative error " << e.relative << " at " << e.where << ": analytic "
               << e.analytic << ", numeric " << e.numeric;
  }
};

/// Entries of an independent standard normal, times a deviation.
inline Matrix<double> normal_matrix(Index rows, Index columns, const std::string& name,
                                    double deviation = 1) {
  numeric::RandomStream stream(2024, name);
  Matrix<double> m(rows, columns);
  for (Index i = 0; i < m.size(); ++i) m.data()[i] = deviation * stream.normal();
  return m;
}

/// The largest size of an entry.
inline double largest(const Matrix<double>& m) { return m.cwiseAbs().maxCoeff(); }

/// Derivative of f() with respect to x, which f reads; x is left as it was.
template <class F>
double central_difference(double& x, const F& f) {
  const double kept = x;
  const double step = step_at(kept);
  const double above = kept + step;
  const double below = kept - step;
  x = above;
  const double f_above = f();
  x = below;
  const double f_below = f();
  x = kept;
  return (f_above - f_below) / (above - below);
}

/// The size below which a difference of gradients says nothing. `magnitude` is the size of what the function adds up,
/// `largest_of_all` the largest gradient of the model, and `multiplier` what the function multiplies x by first.
inline double gradient_floor(const Matrix<double>& gradient, double magnitude,
                             double largest_of_all = 0, double multiplier = 1) {
  return std::max(
      {1e-3 * largest(gradient), 1e-6 * largest_of_all, rounding_floor(magnitude) * multiplier});
}

/// Compares every entry of the gradient of f() with respect to x, which f reads; under a sanitizer
/// every seventh. `magnitude` is the size of what f adds up.
template <class F>
GradientError gradient_error(const std::string& name, View<double> x,
                             const Matrix<double>& analytic, const F& f, double magnitude) {
  GradientError worst;
  if (x.rows() != analytic.rows() || x.cols() != analytic.cols()) {
    worst.offer(name + " (shape)", 0, std::numeric_limits<double>::infinity(), 1);
    return worst;
  }
  const double floor = gradient_floor(analytic, magnitude);
  for (Index r = 0; r < x.rows(); ++r) {
    for (Index c = 0; c < x.cols(); ++c) {
      if (sanitized && (r * x.cols() + c) % 7 != 0) continue;
      const std::string at = name + "(" + std::to_string(r) + ", " + std::to_string(c) + ")";
      worst.offer(at, analytic(r, c), central_difference(x(r, c), f), floor);
    }
  }
  return worst;
}

/// The scalar that layers are tested through: the sum of y times fixed weights, its gradient with
/// respect to y the weights. Roundings of its terms are independent, so they add up as their norm.
struct Probe {
  Matrix<double> weights;

  Probe(Index rows, Index columns) : weights(normal_matrix(rows, columns, "probe")) {}
  double operator()(const Matrix<double>& y) const { return weights.cwiseProduct(y).sum(); }
  double magnitude(const Matrix<double>& y) const {
    return std::max({1.0, std::abs((*this)(y)), weights.cwiseProduct(y).norm()});
  }
};

/// Ids drawn from [0, count).
inline std::vector<int> random_ids(Index size, int count, const std::string& name) {
  numeric::RandomStream stream(5, name);
  std::vector<int> ids;
  for (Index i = 0; i < size; ++i) {
    ids.push_back(static_cast<int>(stream.bits() % static_cast<std::uint64_t>(count)));
  }
  return ids;
}

}  // namespace scalewise::test
