// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/policy/relu_correlation.hpp"

namespace scalewise::detail {

/// The parts of products of GELUs of two normal numbers.
/// Equation: g = vw - c², D = (1+v)(1+w) - c², density 1/(2π√D), both 1/4 + atan(c/√D)/2π,
///           inverses 1/(1+v) + 1/(1+w)
struct GeluPair {
  GeluPair(double v, double w, double c) {
    const double deviations = v == w ? v : std::sqrt(v) * std::sqrt(w);
    g = (std::max)(0.0, deviations - std::abs(c)) * (deviations + std::abs(c));
    D = 1 + v + w + g;
    const double root = std::sqrt(D);
    density = std::numbers::inv_pi / 2 / root;
    both = std::numbers::inv_pi / 2 * std::atan2(root, -c);
    inverses = 1 / (1 + v) + 1 / (1 + w);
  }

  double g, D, density, both, inverses;
};

/// E f(x) f(y) by trapezoids in two independent normal numbers, of which x is the first.
/// Accuracy: for functions whose nearest pole is iπ, as SiLU's: 1e-12 for variances up to 200. Above, the step stays
///           0.05, which is 1e-4 of a ReLU.
double normal_product(double v, double w, double c, const auto& f) {
  const double deviations = std::sqrt(v) * std::sqrt(w);
  const double r = deviations > 0 ? std::clamp(c / deviations, -1.0, 1.0) : 0;
  const double rest = std::sqrt(w * (1 - r) * (1 + r));
  const double step = (std::max)(0.7 / std::sqrt(1 + (std::max)(v, w)), 0.05);
  const int last = static_cast<int>(8.5 / step) + 1;
  const auto mean = [&](const auto& at) {
    double sum = 0;
    for (int k = -last; k <= last; ++k) {
      const double z = step * k;
      sum += std::exp(-z * z / 2) * at(z);
    }
    return sum * step * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  };
  return mean([&](double z) {
    const double y = r * std::sqrt(w) * z;
    const double other = rest > 0 ? mean([&](double u) { return f(y + rest * u); }) : f(y);
    return f(std::sqrt(v) * z) * other;
  });
}

}  // namespace scalewise::detail

namespace scalewise::policy {

/// Mean product of two GELUs.
/// Equation: c Q + P (v w + c² (1/a + 1/b - 1)), a = 1+v, b = 1+w, D = ab - c²,
///           P = 1/(2π√D), Q = 1/4 + atan(c/√D)/2π
/// Source:   derived by parts; for equal variances Kedia et al. 2024 (arXiv:2403.09635), A.5.
/// Shapes:   two normal numbers of variances v and w with covariance c; x Φ(x) with the exact Φ
/// Accuracy: 2e-14 against quadrature. For variances from 1e-300 to 1e100, 2e-16 of √(vw) from this
///           equation in 700 digits, and relative 5e-16 where c > 0; where v and w differ, at a
///           covariance that is c up to rounding.
inline double gelu_product(double v, double w, double c) {
  const detail::GeluPair pair(v, w, c);
  return c * pair.both + pair.density * (pair.g + c * (c * pair.inverses));
}

/// Mean product of two GELUs' slopes.
/// Equation: Q + c P (1/a + 1/b + 1/D)
/// Source:   as gelu_product.
/// Shapes:   two normal numbers of variances v and w with covariance c
/// Accuracy: as gelu_product, 2e-16; rounding of c changes it by 2e-16/√(1 - c²/vw).
inline double gelu_slope_product(double v, double w, double c) {
  const detail::GeluPair pair(v, w, c);
  return pair.both + c * pair.density * (pair.inverses + 1 / pair.D);
}

/// Mean product of an activation of two normal numbers.
/// Equation: E f(x) f(y)
/// Source:   definition; ReLU and GELU in closed form, SiLU by quadrature.
/// Shapes:   variances v and w, covariance c
/// Accuracy: relu, gelu: rounding; silu: 1e-12 for variances up to 200, 1e-4 above.
inline double activation_product(Activation activation, double v, double w, double c) {
  if (activation == Activation::gelu) return gelu_product(v, w, c);
  if (activation == Activation::silu) {
    return detail::normal_product(v, w, c, [](double x) { return x / (1 + std::exp(-x)); });
  }
  const double deviations = v == w ? v : std::sqrt(v) * std::sqrt(w);
  return deviations > 0 ? deviations * relu_correlation(c / deviations) / 2 : 0;
}

/// Mean product of an activation's slopes.
/// Equation: E f'(x) f'(y)
/// Source:   as activation_product.
/// Shapes:   variances v and w, covariance c
/// Accuracy: as activation_product.
inline double activation_slope_product(Activation activation, double v, double w, double c) {
  if (activation == Activation::gelu) return gelu_slope_product(v, w, c);
  if (activation == Activation::silu) {
    return detail::normal_product(v, w, c, [](double x) {
      const double sigmoid = 1 / (1 + std::exp(-x));
      return sigmoid * (1 + x * (1 - sigmoid));
    });
  }
  const double r = c / (v == w ? v : std::sqrt(v) * std::sqrt(w));
  return 0.25 + std::numbers::inv_pi / 2 * std::asin(std::clamp(r, -1.0, 1.0));
}

}  // namespace scalewise::policy
