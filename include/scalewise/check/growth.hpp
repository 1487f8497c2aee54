// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "scalewise/check/size_curve.hpp"

namespace scalewise::check {

/// How seeds of one size scatter: models average over themselves, the more the wider they are.
/// Equation: variance of log(root mean square) = σ² (size / smallest)^-power
struct Scatter {
  double variance = 0;  // at the smallest size
  double degrees = 0;   // how well it is known
  double power = 0;
};

/// The terms that bend a curve before its limit, the same for all seeds.
/// Equation: log(root mean square) = a + slope log(size) + c₁ (smallest/size)^½ + c₂ smallest/size,
///           c₁ and c₂ normal about 0 with these standard deviations
/// Few curves bend much more: beyond three standard deviations about as many as if these were `tails`
/// times as large.
struct Bending {
  double root = 0;
  double first = 0;
  double tails = 1;
};

/// The growth of one quantity at large sizes, as far as the curve tells it.
/// Units:    slopes of log(root mean square) against log(size); errors are standard errors
struct Growth {
  double slope = 0;
  double error = 0;       // from seeds and from bending: of intervals of 95 %
  double tail_error = 0;  // the same where deviations are rare, with the tails of bending
  double scatter = 0;     // from seeds alone
  double last = 0;        // between the two largest sizes
  double degrees = 0;     // of the errors
};

/// Rounding of floats and of their sums: a smaller scatter tells nothing.
inline constexpr double least_variance = 1e-8;

/// The scatter of one curve, drawn towards what is typical.
/// Equation: (Σ squares + ν₀ σ₀²) / (degrees + ν₀), squares scaled to the smallest size
inline Scatter scatter_of(const SizeCurve& curve, double power, const Scatter& typical = {}) {
  double squares = typical.variance * typical.degrees;
  for (const SizePoint& point : curve.points) {
    squares += point.squares * std::pow(static_cast<double>(point.size) /
                                            static_cast<double>(curve.points.front().size),
                                        power);
  }
  Scatter scatter{0, static_cast<double>(curve.degrees()) + typical.degrees, power};
  if (scatter.degrees > 0) scatter.variance = squares / scatter.degrees;
  return scatter;
}

namespace detail {

using Normal = std::array<std::array<double, 4>, 4>;  // the matrix of the normal equations
using Sides = std::array<std::array<double, 2>, 4>;

/// Solves A x = b for both b at once, A symmetric and positive definite: Gauss without pivots.
inline bool solve(Normal a, Sides& b) {
  constexpr std::size_t n = 4;
  for (std::size_t k = 0; k < n; ++k) {
    if (!(a[k][k] > 0)) return false;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      for (std::size_t j = 0; j < 2; ++j) b[i][j] -= factor * b[k][j];
    }
  }
  for (std::size_t k = 0; k < n; ++k)
    for (double& x : b[k]) x /= a[k][k];
  return true;
}

struct SlopeAndError {
  double slope = 0;
  double error = HUGE_VAL;
  double misfit = 0;  // of the curve and its bending, as a sum of squared deviates
};

/// By how much the error of a slope grows where its curve is not of the form that is fitted.
/// Equation: √(misfit/(ν + 3√(2ν))), at least 1: what lies beyond three standard deviations of χ² with
///           ν = sizes - 2 degrees of freedom is the form's, and adds to the scatter
/// Source:   after Birge 1932, Physical Review 40, p. 207, who scales by √(misfit/ν)
inline double misfit_factor(double misfit, std::size_t sizes) {
  if (sizes < 3) return 1;
  const auto degrees = static_cast<double>(sizes - 2);
  return std::sqrt((std::max)(1.0, misfit / (degrees + 3 * std::sqrt(2 * degrees))));
}

/// Weighted least squares with normal priors on the two terms of bending.
inline SlopeAndError fit(const SizeCurve& curve, const Scatter& scatter, const Bending& bending) {
  Normal a{};
  Sides b{};  // for the mean, and for the variance of the slope
  const auto smallest = static_cast<double>(curve.points.front().size);
  for (const SizePoint& point : curve.points) {
    const double ratio = static_cast<double>(point.size) / smallest;
    const std::array<double, 4> row{1, std::log(ratio), 1 / std::sqrt(ratio), 1 / ratio};
    const double weight = static_cast<double>(point.runs) * std::pow(ratio, scatter.power);
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) a[i][j] += weight * row[i] * row[j];
      b[i][0] += weight * row[i] * point.mean;
    }
  }
  b[1][1] = 1;
  const auto prior = [&](std::size_t i, double deviation) {
    a[i][i] += deviation > 0 ? scatter.variance / (deviation * deviation) : 1e30;
  };
  prior(2, bending.root);
  prior(3, bending.first);
  if (!solve(a, b)) return {};
  double misfit = 0;
  for (const SizePoint& point : curve.points) {
    const double ratio = static_cast<double>(point.size) / smallest;
    const double away = point.mean - b[0][0] - b[1][0] * std::log(ratio) -
                        b[2][0] / std::sqrt(ratio) - b[3][0] / ratio;
    misfit += static_cast<double>(point.runs) * std::pow(ratio, scatter.power) * away * away /
              scatter.variance;
  }
  if (bending.root > 0) misfit += std::pow(b[2][0] / bending.root, 2);
  if (bending.first > 0) misfit += std::pow(b[3][0] / bending.first, 2);
  return {b[1][0], std::sqrt(scatter.variance * b[1][1]), misfit};
}

}  // namespace detail

/// Fits a curve of at least two sizes.
/// Equation: error of the tails² = scatter² + tails² (error² - scatter²)
/// Accuracy: the mean and standard deviation of the slope given the scatter and the priors of the
///           bending; exact up to rounding where the curve is of that form.
inline Growth growth_of(const SizeCurve& curve, const Scatter& scatter, const Bending& bending) {
  Scatter s = scatter;
  s.variance = (std::max)(s.variance, least_variance);
  const detail::SlopeAndError all = detail::fit(curve, s, bending);
  Growth growth;
  growth.slope = all.slope;
  growth.error = all.error * detail::misfit_factor(all.misfit, curve.points.size());
  growth.scatter = detail::fit(curve, s, {}).error;
  growth.degrees = s.degrees;
  const double bent = growth.error * growth.error - growth.scatter * growth.scatter;
  growth.tail_error = std::hypot(growth.scatter, bending.tails * std::sqrt((std::max)(0.0, bent)));
  const SizePoint& largest = curve.points.back();
  const SizePoint& before = curve.points[curve.points.size() - 2];
  const double distance =
      std::log(static_cast<double>(largest.size) / static_cast<double>(before.size));
  growth.last = (largest.mean - before.mean) / distance;
  return growth;
}

/// The error of exact slopes: a step of Adam is short by epsilon over the gradient, and sums of floats
/// are rounded.
/// Measured: in 73 correct set-ups the 95 % intervals of 2207 such slopes hold the prediction in 94.8 %
///           with it, and in 93.8 % without.
inline constexpr double exact_error = 2e-4;

/// The growth of what has no bending, within seeds: what runs of one seed have in common, such as
/// their batch, cancels.
/// Equation: slope = Σ (x - x̄)(y - ȳ) / Σ (x - x̄)², means over the sizes of each seed;
///           error² = that of least squares + exact_error²
/// None without two seeds that have several sizes.
inline std::optional<Growth> growth_within_seeds(const SizeCurve& curve) {
  struct Sums {
    double n = 0, x = 0, y = 0;
  };
  std::map<std::uint64_t, Sums> seeds;
  for (const SizeRun& run : curve.logs) {
    Sums& s = seeds[run.seed];
    s.n += 1;
    s.x += std::log(static_cast<double>(run.size));
    s.y += run.log;
  }
  double xx = 0;
  double xy = 0;
  double yy = 0;
  double degrees = -1;
  for (const auto& [seed, s] : seeds) degrees += s.n - 1;
  for (const SizeRun& run : curve.logs) {
    const Sums& s = seeds.at(run.seed);
    const double x = std::log(static_cast<double>(run.size)) - s.x / s.n;
    const double y = run.log - s.y / s.n;
    xx += x * x;
    xy += x * y;
    yy += y * y;
  }
  if (!(xx > 0) || degrees < 2) return {};
  Growth growth;
  growth.slope = xy / xx;
  growth.degrees = degrees;
  const double residual = (std::max)(0.0, yy - xy * xy / xx) / degrees;
  growth.scatter = std::sqrt((std::max)(residual, least_variance) / xx);
  growth.error = growth.tail_error = std::hypot(growth.scatter, exact_error);
  growth.last = growth.slope;
  return growth;
}

}  // namespace scalewise::check
