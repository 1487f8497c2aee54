// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

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

/// Coefficients of the even part x/2 tanh(x/2) of SiLU in normalized Hermite polynomials of even order, for x of
/// variance v, by trapezoids.
inline std::vector<double> silu_series(double v) {
  constexpr int orders = 200, points = 150;
  constexpr double step = 0.08;
  std::vector<double> series(orders / 2);
  for (int i = 0; i < points; ++i) {
    const double z = step * (i + 0.5);
    const double x = std::sqrt(v) * z;
    double before = 0;
    double now = 2 * step * std::numbers::inv_sqrtpi / std::numbers::sqrt2 * std::exp(-z * z / 2) *
                 x / 2 * std::tanh(x / 2);
    for (int k = 0; k < orders; ++k) {  // √(k+1) He_k+1 = z He_k - √k He_k-1, normalized
      if (k % 2 == 0) series[static_cast<std::size_t>(k / 2)] += now;
      const double next = (z * now - std::sqrt(k) * before) / std::sqrt(k + 1);
      before = now;
      now = next;
    }
  }
  return series;
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

/// A normal number that an activation is applied to, ready for products with others.
/// Units:    variance: of the number, whose mean is zero
struct Preactivation {
  Preactivation(Activation f, double of)
      : activation(f),
        variance(of),
        series(f == Activation::silu ? detail::silu_series(of) : std::vector<double>{}) {}

  Activation activation;
  double variance;
  std::vector<double> series;  // of SiLU
};

/// Mean product of an activation of two normal numbers.
/// Equation: E f(x) f(y); of SiLU, c/4 + Σ a_k(v) a_k(w) r^k
/// Source:   definition; ReLU and GELU in closed form, SiLU as x/2 + x/2 tanh(x/2), the second by Mehler's formula.
/// Shapes:   x and y with covariance c
/// Accuracy: relu, gelu: rounding; silu: 1e-13 for variances up to 4, then parts of √(v w): 2e-6 up to 100, and 1.1e-4.
inline double activation_product(const Preactivation& x, const Preactivation& y, double c) {
  const double v = x.variance, w = y.variance;
  if (x.activation == Activation::gelu) return gelu_product(v, w, c);
  const double deviations = v == w ? v : std::sqrt(v) * std::sqrt(w);
  if (!(deviations > 0)) return 0;
  if (x.activation == Activation::relu) return deviations * relu_correlation(c / deviations) / 2;
  const double r = std::clamp(c / deviations, -1.0, 1.0);
  double sum = 0;
  for (std::size_t k = x.series.size(); k-- > 0;) sum = sum * r * r + x.series[k] * y.series[k];
  return c / 4 + sum;
}

/// Mean product of an activation's slopes.
/// Equation: E f'(x) f'(y); of SiLU, 1/4 + Σ k a_k(v) a_k(w) r^(k-1)/√(v w)
/// Source:   as activation_product.
/// Shapes:   x and y with covariance c
/// Accuracy: relu, gelu: rounding; silu: 1e-12 for variances up to 4, 3e-4 up to 100, then 2e-2; at r = ±1.
inline double activation_slope_product(const Preactivation& x, const Preactivation& y, double c) {
  const double v = x.variance, w = y.variance;
  if (x.activation == Activation::gelu) return gelu_slope_product(v, w, c);
  const double deviations = v == w ? v : std::sqrt(v) * std::sqrt(w);
  const double r = deviations > 0 ? std::clamp(c / deviations, -1.0, 1.0) : 0;
  if (x.activation == Activation::relu) return 0.25 + std::numbers::inv_pi / 2 * std::asin(r);
  if (r == 0) return 0.25;
  double sum = 0;
  for (std::size_t k = x.series.size(); k-- > 0;) {
    sum = sum * r * r + 2 * static_cast<double>(k) * x.series[k] * y.series[k];
  }
  return 0.25 + sum / (r * deviations);
}

}  // namespace scalewise::policy
