// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "scalewise/check/rate_curve.hpp"
#include "scalewise/numeric/line.hpp"
#include "scalewise/numeric/quantile.hpp"

namespace scalewise::check {

/// How far from the lowest loss a rate may be to enter a fit, in octaves: two, and half a one because
/// the lowest loss may be that far from the middle of the rates.
inline constexpr double fit_reach = 2.5;

/// How far beyond the rates that were tried the fit may find an optimum, in octaves. The shape that
/// sizes share says where it is; further out it need not hold.
inline constexpr double edge_reach = 0.5;

/// One seed at one size, within reach of the lowest loss.
struct SeedCurve {
  long seed = 0;
  std::vector<double> octaves = {};
  std::vector<double> losses = {};
  double offset = 0;   // of the fit: its loss at the size's optimum,
  double tilt = 0;     // its slope there,
  double optimum = 0;  // and its own optimum
};

/// The fit of one size.
struct SizeFit {
  long size = 0;
  bool trained = false;    // some rate has finite losses
  bool used = false;       // in the fit: a seed has three rates, and the optimum is near them
  bool interior = false;   // the optimum lies between rates that were tried
  bool bracketed = false;  // and so does the lowest loss
  double low = 0;          // the rates that entered, in octaves
  double high = 0;
  double optimum = 0;
  double loss = 0;  // there, the mean over seeds
  std::vector<SeedCurve> seeds = {};
  double scatter = 0;                   // standard deviation of the seeds' optima; 0 for one seed
  double noise = 0;                     // the part of it that comes from noise of the losses
  std::array<double, 2> leverage = {};  // how errors of the shared shape move the optimum,
  std::array<double, 2> lift = {};      // and how much they lower the loss there
};

/// Everything that the losses near the optima say.
struct RateFit {
  std::vector<SizeFit> sizes = {};
  double curvature = 0;                   // in nats per octave²
  double third = 0;                       // in nats per octave³
  std::array<double, 3> covariance = {};  // of the two: curvature, both, third
  std::size_t shape_degrees = 0;          // degrees of freedom of its error
  double noise = 0;                       // variance of a loss about the curve of its seed
  bool fitted = false;                    // two parameters and an optimum for every size used
};

namespace detail {

/// Sums over the curves that determine the shared shape.
struct ShapeSums {
  std::array<double, 3> matrix = {};
  std::array<double, 2> vector = {};
  double squares = 0;  // of the losses
  std::size_t degrees = 0;
};

/// A function on the points of a curve without what offset and slope can say, and those.
inline numeric::Line remove_line(const std::vector<double>& v, std::vector<double>& f) {
  const numeric::Line line = numeric::fit_line(v, f);
  for (std::size_t i = 0; i < v.size(); ++i) f[i] -= line.intercept + line.slope * v[i];
  return line;
}

inline double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Σ (x - mean)²
inline double spread(const std::vector<double>& x) {
  double mean = 0;
  for (const double at : x) mean += at / static_cast<double>(x.size());
  double sum = 0;
  for (const double at : x) sum += (at - mean) * (at - mean);
  return sum;
}

/// Squares and cubes of the distances from the optimum.
struct Powers {
  std::vector<double> first, second, third;
  Powers(const SeedCurve& curve, double optimum) {
    for (const double octave : curve.octaves) {
      const double v = octave - optimum;
      first.push_back(v);
      second.push_back(v * v);
      third.push_back(v * v * v);
    }
  }
};

inline void add(ShapeSums& sums, const SeedCurve& curve, double optimum) {
  Powers powers(curve, optimum);
  std::vector<double> losses = curve.losses;
  remove_line(powers.first, powers.second);
  remove_line(powers.first, powers.third);
  remove_line(powers.first, losses);
  sums.matrix[0] += product(powers.second, powers.second);
  sums.matrix[1] += product(powers.second, powers.third);
  sums.matrix[2] += product(powers.third, powers.third);
  sums.vector[0] += product(powers.second, losses);
  sums.vector[1] += product(powers.third, losses);
  sums.squares += product(losses, losses);
  sums.degrees += losses.size() - 2;
}

/// Solves for the shared shape; without a third-order term where rates cannot tell it, as with three.
inline void solve(const ShapeSums& sums, RateFit& fit) {
  const auto [qq, qt, tt] = sums.matrix;
  const auto [q, t] = sums.vector;
  const double determinant = qq * tt - qt * qt;
  const bool both = determinant > 1e-9 * qq * tt;
  fit.curvature = both ? (tt * q - qt * t) / determinant : q / qq;
  fit.third = both ? (qq * t - qt * q) / determinant : 0;
  const std::size_t parameters = both ? 2 : 1;
  fit.shape_degrees = sums.degrees > parameters ? sums.degrees - parameters : 0;
  const double rest = std::fmax(0, sums.squares - fit.curvature * q - fit.third * t);
  const double variance =
      rest / static_cast<double>(fit.shape_degrees);  // NaN or infinite: unknown
  fit.noise = variance;
  fit.covariance = {variance / qq, 0, 0};
  if (both) {
    fit.covariance = {variance * tt / determinant, -variance * qt / determinant,
                      variance * qq / determinant};
  }
}

/// Offset, tilt and optimum of every seed of a size, given the shape.
inline void fit_seeds(const RateFit& fit, SizeFit& size) {
  const auto n = static_cast<double>(size.seeds.size());
  const double slope = 2 * fit.curvature;
  size.loss = 0;
  size.leverage = size.lift = {};
  double noise = 0;
  for (SeedCurve& seed : size.seeds) {
    Powers powers(seed, size.optimum);
    std::vector<double> rest = seed.losses;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      rest[i] -= fit.curvature * powers.second[i] + fit.third * powers.third[i];
    }
    const numeric::Line line = remove_line(powers.first, rest);
    seed.offset = line.intercept;
    seed.tilt = line.slope;
    seed.optimum = size.optimum - seed.tilt / (2 * fit.curvature);
    size.loss += seed.offset / n;
    const numeric::Line second = remove_line(powers.first, powers.second);
    const numeric::Line third = remove_line(powers.first, powers.third);
    size.leverage[0] += second.slope / slope / n;
    size.leverage[1] += third.slope / slope / n;
    size.lift[0] += second.intercept / n;
    size.lift[1] += third.intercept / n;
    noise += fit.noise / (slope * slope * spread(powers.first)) / n;
  }
  size.noise = std::sqrt(noise);
}

/// How far the optimum lies beyond the rates of the fit; negative between them.
inline double distance_outside(const SizeFit& size) {
  return std::fmax(size.low - size.optimum, size.optimum - size.high);
}

/// Moves each size's optimum to the mean of its seeds'. One that leaves its rates far behind leaves
/// the fit.
/// Returns:  the longest way.
inline double recentre(RateFit& fit) {
  double longest = 0;
  for (SizeFit& size : fit.sizes) {
    if (!size.used) continue;
    double mean = 0;
    for (const SeedCurve& seed : size.seeds) {
      mean += (seed.optimum - size.optimum) / static_cast<double>(size.seeds.size());
    }
    if (!std::isfinite(mean)) return mean;
    size.optimum += std::fmin(std::fmax(mean, -0.5), 0.5);
    longest = std::fmax(longest, std::fabs(mean));
    size.used = distance_outside(size) < fit_reach;
  }
  return longest;
}

/// The rates of a size within reach of its lowest loss, and its seeds there.
inline SizeFit within_reach(const RateCurve& curve) {
  const std::map<double, double> means = mean_losses(curve);
  SizeFit fit{.size = curve.size, .optimum = lowest(means)};
  fit.trained = std::isfinite(means.at(fit.optimum));
  fit.low = fit.high = fit.optimum;
  if (!fit.trained) return fit;
  const auto enters = [&](double octave) {
    return std::fabs(octave - fit.optimum) <= fit_reach + 0.01 && std::isfinite(means.at(octave));
  };
  for (const auto& [number, losses] : curve.losses) {
    SeedCurve seed{.seed = number};
    for (const auto& [octave, loss] : losses) {
      if (!enters(octave)) continue;
      seed.octaves.push_back(octave);
      seed.losses.push_back(loss);
    }
    if (seed.octaves.size() < 3) continue;
    fit.low = std::fmin(fit.low, seed.octaves.front());
    fit.high = std::fmax(fit.high, seed.octaves.back());
    fit.seeds.push_back(seed);
  }
  fit.interior = fit.low < fit.optimum && fit.optimum < fit.high;
  fit.bracketed = fit.interior;
  fit.used = !fit.seeds.empty();
  return fit;
}

inline void add_scatter(SizeFit& size) {
  if (size.seeds.size() < 2) return;
  double squares = 0;
  for (const SeedCurve& seed : size.seeds) {
    squares += (seed.optimum - size.optimum) * (seed.optimum - size.optimum);
  }
  size.scatter = std::sqrt(squares / static_cast<double>(size.seeds.size() - 1));
}

/// Fits the sizes that are used.
/// Returns:  whether it converged.
inline bool converge(RateFit& fit) {
  for (int step = 0; step < 100; ++step) {
    ShapeSums sums;
    for (const SizeFit& size : fit.sizes) {
      if (!size.used) continue;
      for (const SeedCurve& seed : size.seeds) add(sums, seed, size.optimum);
    }
    solve(sums, fit);
    if (!(fit.curvature > 0) || !std::isfinite(fit.third)) return false;
    for (SizeFit& size : fit.sizes) {
      if (size.used) fit_seeds(fit, size);
    }
    const double longest = recentre(fit);
    if (!std::isfinite(longest)) return false;
    if (longest < 1e-10) return true;
  }
  return false;
}

/// The size whose optimum the fit puts furthest beyond its rates, or, without a fit, whose lowest loss is
/// at the edge; null where all may stay.
inline const SizeFit* doubtful(const RateFit& fit) {
  const SizeFit* furthest = nullptr;
  for (const SizeFit& size : fit.sizes) {
    if (!size.used || (fit.fitted ? distance_outside(size) <= edge_reach : size.bracketed))
      continue;
    if (!furthest || distance_outside(size) > distance_outside(*furthest)) furthest = &size;
  }
  return furthest;
}

/// The fit without the sizes that were left out.
inline RateFit fit_without(const std::vector<RateCurve>& curves, const std::set<long>& left_out) {
  RateFit fit;
  bool any = false;
  for (const RateCurve& curve : curves) {
    fit.sizes.push_back(within_reach(curve));
    SizeFit& size = fit.sizes.back();
    size.used = size.used && !left_out.contains(size.size);
    any = any || size.used;
  }
  fit.fitted = any && converge(fit);
  return fit;
}

}  // namespace detail

/// Fits all losses near the optima at once, by least squares.
/// Equation: loss(size, seed, octave) = a(size, seed) + c v² + d v³ + noise,
///           v = octave - o(size, seed), |octave - lowest| ≤ 2.5; c and d are common to all, and
///           o(size, seed) is normal about o(size), with a variance of each size. Linear about
///           o(size), where the seeds' slopes have mean zero: found by Gauss and Newton's steps.
/// Accuracy: three rates per seed determine a parabola, four or more the third order as well. A rate
///           at which a seed diverged is left out, and so are seeds of fewer than three rates. A size
///           is not used if no seed has three, or if its optimum lies more than half an octave beyond
///           its rates. fitted is false where no size is left, and where the fit has no minimum.
/// Requires: curves that rate_curves() made.
inline RateFit fit_rates(const std::vector<RateCurve>& curves) {
  std::set<long> left_out;
  RateFit fit = detail::fit_without(curves, left_out);
  while (const SizeFit* size = detail::doubtful(fit)) {
    left_out.insert(size->size);
    fit = detail::fit_without(curves, left_out);
  }
  for (SizeFit& size : fit.sizes) {
    if (!fit.fitted || !size.used) continue;
    size.interior = size.low < size.optimum && size.optimum < size.high;
    detail::add_scatter(size);
  }
  return fit;
}

/// The curve of a size that is fitted alone.
/// Units:    octaves from the centre, nats per octave², nats per octave³
struct OwnShape {
  double optimum = 0;
  double curvature = 0;
  double third = 0;
};

/// A fit of each size alone, where their shapes differ by more than chance.
/// Source:   the ratio of variances of nested models, Fisher 1924; beyond its 99 % point
/// Requires: the fit of these curves.
/// Returns:  a fit for each curve; none where shapes do not differ, or where the rates of a used size cannot tell.
inline std::optional<std::vector<RateFit>> own_fits(const std::vector<RateCurve>& curves,
                                                    const RateFit& fit) {
  constexpr double surely = 2.326;  // standard deviations
  std::vector<RateFit> own;
  double rest = 0;
  std::size_t degrees = 0;
  for (std::size_t k = 0; k < curves.size(); ++k) {
    own.push_back(fit_rates({curves[k]}));
    if (!fit.sizes[k].used) continue;
    if (!own[k].fitted || own[k].shape_degrees == 0) return {};
    rest += own[k].noise * static_cast<double>(own[k].shape_degrees);
    degrees += own[k].shape_degrees;
  }
  if (degrees >= fit.shape_degrees) return {};
  const auto above = static_cast<double>(fit.shape_degrees - degrees);
  const auto below = static_cast<double>(degrees);
  const double more = fit.noise * static_cast<double>(fit.shape_degrees) - rest;
  const double z = numeric::normal_deviate_of_ratio(more / above / (rest / below), above, below);
  if (!(z > surely)) return {};
  return own;
}

}  // namespace scalewise::check
