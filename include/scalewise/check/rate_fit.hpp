// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <vector>

#include "scalewise/check/curve_shape.hpp"
#include "scalewise/check/rate_curve.hpp"
#include "scalewise/numeric/line.hpp"

namespace scalewise::check {

/// How far from the lowest loss a rate may be to enter a fit, in octaves: two, and half a one because
/// the lowest loss may be that far from the middle of the rates.
inline constexpr double fit_reach = 2.5;

/// How far beyond the rates that were tried the fit may find an optimum, in octaves. The mean shape of the sizes says
/// where it is; further out it need not hold.
inline constexpr double edge_reach = 0.5;

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
  double scatter = 0;  // standard deviation of the seeds' optima; 0 for one seed
  double noise = 0;    // the part of it that comes from noise of the losses
  CurveShape shape = {};
  CurveShape leverage = {};    // how errors of the shape move the optimum,
  CurveShape lift = {};        // and how much they lower the loss there
  CurveMatrix own_error = {};  // covariance of the shape, given the mean one
};

/// Everything that the losses near the optima say.
struct RateFit {
  std::vector<SizeFit> sizes = {};
  CurveShape mean = {};           // of the sizes' shapes
  CurveMatrix mean_error = {};    // its covariance
  CurveShape precision = {};      // 1/variance of a size's shape about the mean
  std::size_t shape_degrees = 0;  // degrees of freedom of the noise
  double noise = 0;               // variance of a loss about the curve of its seed, at the optimum
  bool fitted = false;            // a mean shape, and an optimum for every size used
};

/// The variance that a loss has at least, over the squared curvature, so that matrices have an inverse.
inline constexpr double least_noise = 1e-9;

namespace detail {

/// The sums of a size; zero for one that is not used.
inline ShapeSums shape_sums(const SizeFit& size) {
  ShapeSums sums;
  if (!size.used) return sums;
  for (const SeedCurve& seed : size.seeds) {
    const Distances at(seed, size.optimum);
    std::vector<double> second = at.power(2), third = at.power(3), losses = seed.losses;
    at.remove_line(second);
    at.remove_line(third);
    at.remove_line(losses);
    sums = sums + ShapeSums{{at.product(second, second), at.product(second, third),
                             at.product(third, third)},
                            {at.product(second, losses), at.product(third, losses)},
                            at.product(losses, losses),
                            losses.size() - 2};
  }
  return sums;
}

/// A first curvature and noise, of parabolas that all are the same.
inline void begin(RateFit& fit, const ShapeSums& all) {
  const auto& [second, both, third] = all.matrix;
  fit.mean = {all.vector.curvature / second, 0};
  fit.noise = std::fmax(all.rest(fit.mean) / static_cast<double>(all.degrees),
                        least_noise * fit.mean.curvature * fit.mean.curvature);
  const std::size_t parameters = second * third - both * both > 1e-9 * second * third ? 2 : 1;
  fit.shape_degrees = all.degrees > parameters ? all.degrees - parameters : 0;
}

/// Solves for the shapes of sizes and their mean, given the noise, and then for the noise.
/// Equation: s = σ² (1 + cubic_misfit × seeds), C = (M/s + T⁻¹)⁻¹, V = (Σ (T⁻¹ - T⁻¹ C T⁻¹) + P)⁻¹,
///           mean = V Σ T⁻¹ C q/s, shape = C (q/s + T⁻¹ mean),
///           σ² = rest/(degrees - Σ tr M (C + C T⁻¹ V T⁻¹ C)/s); M and q are a size's sums, T the variances between
///           sizes, P the precision of the third order between sweeps
/// Source:   Henderson 1975, doi:10.2307/2529430
inline void solve(RateFit& fit, const std::vector<ShapeSums>& sums) {
  const double c = fit.mean.curvature;
  const auto precision = [&](double share) { return 1 / (share * share * c * c); };
  const CurveShape p{precision(shapes_differ.curvature), precision(shapes_differ.third)};
  fit.precision = p;
  // The noise in a size's sums counts what its seeds share.
  const auto noise_of = [noise = fit.noise](const SizeFit& size) {
    return noise * (1 + cubic_misfit * static_cast<double>(size.seeds.size()));
  };
  CurveMatrix known{0, 0, precision(usual_third)};
  CurveShape found;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    SizeFit& size = fit.sizes[k];
    if (!size.used) continue;
    const double noise = noise_of(size);
    const CurveMatrix e =
        (sums[k].matrix * (1 / noise) + CurveMatrix{p.curvature, 0, p.third}).inverse();
    size.own_error = e;
    size.shape = e * scaled({1 / noise, 1 / noise}, sums[k].vector);
    known = known + CurveMatrix{p.curvature * (1 - e.curvature * p.curvature),
                                -p.curvature * e.both * p.third, p.third * (1 - e.third * p.third)};
    found = found + scaled(p, size.shape);
  }
  fit.mean_error = known.inverse();
  fit.mean = fit.mean_error * found;
  double rest = 0, degrees = 0;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    SizeFit& size = fit.sizes[k];
    if (!size.used) continue;
    const CurveMatrix& m = sums[k].matrix;
    size.shape = size.shape + size.own_error * scaled(p, fit.mean);
    const CurveShape one = size.own_error * CurveShape{p.curvature, 0};
    const CurveShape other = size.own_error * CurveShape{0, p.third};
    const CurveMatrix through{product(one, m * one), product(one, m * other),
                              product(other, m * other)};
    rest += sums[k].rest(size.shape);
    degrees += static_cast<double>(sums[k].degrees) -
               (product(m, size.own_error) + product(through, fit.mean_error)) / noise_of(size);
  }
  fit.noise = std::fmax(degrees > 0 ? rest / degrees : 0, least_noise * c * c);
}

/// Offset, tilt and optimum of every seed of a size, given its shape.
inline void fit_seeds(const RateFit& fit, SizeFit& size) {
  const auto n = static_cast<double>(size.seeds.size());
  size.loss = 0;
  size.leverage = size.lift = {};
  double noise = 0;
  for (SeedCurve& seed : size.seeds) {
    const Distances at(seed, size.optimum);
    std::vector<double> second = at.power(2), third = at.power(3), rest = seed.losses;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      rest[i] -= size.shape.curvature * second[i] + size.shape.third * third[i];
    }
    const numeric::Line line = at.remove_line(rest);
    const numeric::Line by_second = at.remove_line(second);
    const numeric::Line by_third = at.remove_line(third);
    // How fast the tilt falls as the optimum moves; where the curve bends back, not slower than half a parabola's.
    const double slope = std::fmax(
        2 * size.shape.curvature + 3 * size.shape.third * by_second.slope, size.shape.curvature);
    seed.offset = line.intercept;
    seed.tilt = line.slope;
    seed.optimum = size.optimum - seed.tilt / slope;
    size.loss += seed.offset / n;
    size.leverage =
        size.leverage + CurveShape{by_second.slope / slope / n, by_third.slope / slope / n};
    size.lift = size.lift + CurveShape{by_second.intercept / n, by_third.intercept / n};
    noise += fit.noise / (slope * slope * at.spread()) / n;
  }
  size.noise = std::sqrt(noise);
}

/// How far the optimum lies beyond the rates of the fit; negative between them.
inline double distance_outside(const SizeFit& size) {
  return std::fmax(size.low - size.optimum, size.optimum - size.high);
}

/// Moves each size's optimum to the mean of its seeds', or a part of the way. One that leaves its rates far behind
/// leaves the fit.
/// Returns:  the longest way.
inline double recentre(RateFit& fit, double part = 1) {
  double longest = 0;
  for (SizeFit& size : fit.sizes) {
    if (!size.used) continue;
    double mean = 0;
    for (const SeedCurve& seed : size.seeds) {
      mean += (seed.optimum - size.optimum) / static_cast<double>(size.seeds.size());
    }
    if (!std::isfinite(mean)) return mean;
    size.optimum += part * std::fmin(std::fmax(mean, -0.5), 0.5);
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

/// Fits the sizes that are used. One whose losses have no minimum leaves the fit.
/// Returns:  whether it converged.
inline bool converge(RateFit& fit) {
  double last = HUGE_VAL;
  double part = 1;
  for (int step = 0; step < 200; ++step) {
    std::vector<ShapeSums> sums;
    ShapeSums all;
    for (const SizeFit& size : fit.sizes) {
      sums.push_back(shape_sums(size));
      all = all + sums.back();
    }
    if (step == 0) begin(fit, all);
    if (!(fit.mean.curvature > 0) || !std::isfinite(fit.noise)) return false;
    double before = 0;
    for (int i = 0; i < 100 && std::fabs(fit.noise - before) > 1e-9 * fit.noise; ++i) {
      before = fit.noise;
      solve(fit, sums);
    }
    if (!(fit.mean.curvature > 0) || !std::isfinite(fit.mean.third)) return false;
    bool left = false;
    for (SizeFit& size : fit.sizes) {
      if (!size.used) continue;
      size.used = size.shape.curvature > 0;
      left = left || !size.used;
      if (size.used) fit_seeds(fit, size);
    }
    const double longest = recentre(fit, part);
    if (!std::isfinite(longest)) return false;
    if (longest < 1e-10 && !left) return true;
    if (longest >= last)
      part = std::fmax(part / 2, 0.125);  // weights move with optima, which may swing
    last = longest;
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
  fit.fitted =
      any && converge(fit) &&
      std::any_of(fit.sizes.begin(), fit.sizes.end(), [](const SizeFit& s) { return s.used; });
  return fit;
}

}  // namespace detail

/// Fits all losses near the optima at once.
/// Equation: loss(size, seed, octave) = a(size, seed) + c(size) v² + d(size) v³ + noise,
///           v = octave - o(size, seed), |octave - lowest| ≤ 2.5; the noise has variance σ² (1 + v⁴); c and d of
///           sizes are normal about their means, with standard deviations of 0.2 and 0.1 times the mean curvature;
///           the mean of d is normal about 0, with 0.12 times it; o(size, seed) is normal about o(size), with a
///           variance of each size. Linear about o(size), where the seeds' slopes have mean zero: found by Gauss
///           and Newton's steps.
/// Accuracy: a rate at which a seed diverged is left out, and so are seeds of fewer than three rates. A size
///           is not used if no seed has three, if its losses have no minimum, or if its optimum lies more than half an
///           octave beyond its rates. fitted is false where no size is left, and where the fit has no minimum.
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

}  // namespace scalewise::check
