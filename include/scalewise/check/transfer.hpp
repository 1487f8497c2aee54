// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <vector>

#include "scalewise/check/rate_curve.hpp"
#include "scalewise/check/rate_fit.hpp"
#include "scalewise/numeric/line.hpp"

namespace scalewise::check {

/// A number with its 95 % interval, which is infinite where seeds cannot tell.
struct IntervalEstimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// The best rate of one size, and how the rate that was tuned at the smallest size does there.
/// Units:    rates in octaves from the centre; losses and regret as the runs' losses
struct SizeTransfer {
  long size = 0;
  std::size_t seeds = 0;  // that have a curve
  bool trained = false;   // some rate has a finite loss with every seed
  bool interior = false;  // the optimum lies between rates that were tried
  bool cliff = false;     // the rate above the lowest loss diverges
  double low = 0;         // the lowest rate tried
  double best = 0;        // the rate of the lowest loss
  IntervalEstimate optimum = {};
  double scatter = 0;            // standard deviation of a seed's optimum
  double loss = 0;               // there
  double weight = 0;             // of the optimum in the drift
  double transferred = 0;        // the rate that the smallest size proposes
  IntervalEstimate regret = {};  // its loss minus that at the optimum; infinite: it diverges
};

/// How the optimal rate moves with size.
/// Units:    drift in octaves of rate per octave of size
struct Transfer {
  double expected = 0;
  bool curved = false;  // the losses have a minimum, beyond their noise
  double curvature = 0;
  std::vector<SizeTransfer> sizes = {};
  IntervalEstimate drift = {};
};

namespace detail {

/// The variance of the sum of these multiples of the shared curvature and third order.
inline double shape_variance(const RateFit& fit, double curvature, double third) {
  const auto [cc, ct, tt] = fit.covariance;
  return curvature * curvature * cc + 2 * curvature * third * ct + third * third * tt;
}

/// Half the interval of a weighted sum of the sizes' optima. The degrees of freedom are those of the
/// seeds: with the many of the shape, a scatter that is low by chance would seem well known.
/// Source:   Welch 1947, doi:10.1093/biomet/34.1-2.28, for the degrees of freedom of a sum
inline double optima_half(const RateFit& fit, const std::vector<double>& weights) {
  double seeds = 0;
  double squares = 0;  // each over its degrees of freedom
  double curvature = 0;
  double third = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const SizeFit& size = fit.sizes[k];
    const auto n = static_cast<double>(size.seeds.size());
    if (std::fabs(weights[k]) < 1e-9) continue;
    if (size.seeds.size() < 2) return std::numeric_limits<double>::infinity();
    const double variance = weights[k] * weights[k] * size.scatter * size.scatter / n;
    seeds += variance;
    squares += variance * variance / (n - 1);
    curvature += weights[k] * size.leverage[0];
    third += weights[k] * size.leverage[1];
  }
  const double degrees = squares > 0 ? std::fmax(seeds * seeds / squares, 1) : 1;
  return numeric::t_quantile(static_cast<std::size_t>(degrees)) *
         std::sqrt(seeds + shape_variance(fit, curvature, third));
}

/// A weighted sum of the sizes' optima.
inline IntervalEstimate optima_sum(const RateFit& fit, const std::vector<double>& weights) {
  double value = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) value += weights[k] * fit.sizes[k].optimum;
  const double half = optima_half(fit, weights);
  return {value, value - half, value + half};
}

/// The weights with which optima make the slope of their line of least squares.
inline std::vector<double> slope_weights(const RateFit& fit) {
  std::vector<double> x;
  double mean = 0;
  for (const SizeFit& size : fit.sizes) {
    x.push_back(std::log2(static_cast<double>(size.size)));
    mean += x.back() / static_cast<double>(fit.sizes.size());
  }
  double squares = 0;
  for (const double at : x) squares += (at - mean) * (at - mean);
  for (double& at : x) at = squares > 0 ? (at - mean) / squares : 0;
  return x;
}

/// How much more than at the optimum the fitted curve says at a distance of v.
inline double rise(const RateFit& fit, double v) {
  return fit.curvature * v * v + fit.third * v * v * v;
}

/// The regret at a rate that is a distance from the optimum. The interval of the distance gives one
/// of the regret, errors of the shape give another, and both are combined by MOVER.
/// Source:   Zou and Donner 2008, doi:10.1002/sim.3095, for the sum of two estimates
inline IntervalEstimate fitted_regret(const RateFit& fit, const IntervalEstimate& distance) {
  const double v = distance.value;
  const double value = rise(fit, v);
  const double ends[] = {rise(fit, distance.low), rise(fit, distance.high)};
  const double least = distance.low <= 0 && distance.high >= 0 ? 0 : std::fmin(ends[0], ends[1]);
  const double most = std::fmax(value, std::fmax(ends[0], ends[1]));
  const double shape =
      numeric::t_quantile(fit.shape_degrees) * std::sqrt(shape_variance(fit, v * v, v * v * v));
  return {value, value - std::hypot(value - std::fmin(least, value), shape),
          value + std::hypot(most - value, shape)};
}

/// The rate among those tried that is next to one.
inline double nearest_rate(const RateCurve& curve, double octave) {
  double nearest = std::numeric_limits<double>::infinity();
  for (const double rate : curve.octaves()) {
    if (std::fabs(rate - octave) < std::fabs(nearest - octave)) nearest = rate;
  }
  return nearest;
}

/// The regret far from the optimum: measured there, seed by seed, above the fit's optimum.
inline IntervalEstimate measured_regret(const RateCurve& curve, const SizeFit& size,
                                        double octave) {
  const double infinite = std::numeric_limits<double>::infinity();
  std::vector<double> regrets;
  for (const SeedCurve& seed : size.seeds) {
    const std::map<double, double>& losses = curve.losses.at(seed.seed);
    const auto run = losses.find(octave);
    if (run != losses.end()) regrets.push_back(run->second - seed.offset);
  }
  const auto n = static_cast<double>(regrets.size());
  double mean = 0;
  for (const double regret : regrets) mean += regret / n;
  double squares = 0;
  for (const double regret : regrets) squares += (regret - mean) * (regret - mean);
  const double half = regrets.size() < 2 ? infinite
                                         : numeric::t_quantile(regrets.size() - 1) *
                                               std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half};
}

inline IntervalEstimate regret(const RateCurve& curve, const RateFit& fit, std::size_t k,
                               double transferred) {
  const double infinite = std::numeric_limits<double>::infinity();
  const double nearest = nearest_rate(curve, transferred);
  if (k == 0) return {};
  if (curve.diverged(nearest)) return {infinite, infinite, infinite};
  const SizeFit& size = fit.sizes[k];
  if (transferred < size.low || transferred > size.high) {
    return measured_regret(curve, size, nearest);
  }
  std::vector<double> weights(fit.sizes.size());
  weights[0] = 1;
  weights[k] = -1;
  IntervalEstimate distance = optima_sum(fit, weights);
  const double expected = transferred - fit.sizes[0].optimum;
  return fitted_regret(
      fit, {distance.value + expected, distance.low + expected, distance.high + expected});
}

/// The result of one size without a fit.
inline SizeTransfer tried(const RateCurve& curve, const SizeFit& fit) {
  const std::map<double, double> means = mean_losses(curve);
  SizeTransfer size{.size = curve.size,
                    .seeds = fit.seeds.size(),
                    .trained = fit.trained,
                    .interior = fit.interior};
  size.low = means.begin()->first;
  size.best = lowest(means);
  size.optimum = {size.best, -std::numeric_limits<double>::infinity(),
                  std::numeric_limits<double>::infinity()};
  size.loss = means.at(size.best);
  const auto above = means.upper_bound(size.best);
  size.cliff = above != means.end() && !std::isfinite(above->second);
  return size;
}

}  // namespace detail

/// The optimal rate of each size, its drift, and the regret of a rate tuned at the smallest size.
/// Equation: optima o(size), curvature c and third order d as fit_rates() has them;
///           drift: slope of o against log2(size) by least squares, every size counting alike;
///           variance of Σ w o: Σ w² scatter(size)²/seeds(size) + what c and d do to it (delta
///           method); interval: value ± t √variance, t Student's 97.5 % quantile at Welch's degrees of
///           freedom, rounded down;
///           regret: c v² + d v³, v = o(smallest) + expected × octaves of size - o(size); beyond the
///           rates of the fit: losses measured at the rate next to it minus the fitted one at o
/// Accuracy: the drift is that of the sizes given. That optima may bend between them is not in the
///           interval. Optima of one seed at several sizes count as independent; where they move
///           together the interval is too wide.
/// Throws:   InvalidInput for runs that rate_curves() refuses.
inline Transfer analyse_transfer(const std::vector<RateRun>& runs, double expected = 0) {
  const std::vector<RateCurve> curves = rate_curves(runs);
  const RateFit fit = fit_rates(curves);
  Transfer result{.expected = expected};
  for (std::size_t k = 0; k < curves.size(); ++k) {
    result.sizes.push_back(detail::tried(curves[k], fit.sizes[k]));
  }
  if (!fit.fitted) return result;
  result.curvature = fit.curvature;
  result.curved =
      fit.curvature > numeric::t_quantile(fit.shape_degrees) * std::sqrt(fit.covariance[0]);
  const std::vector<double> slope = detail::slope_weights(fit);
  result.drift = detail::optima_sum(fit, slope);
  for (std::size_t k = 0; k < curves.size(); ++k) {
    SizeTransfer& size = result.sizes[k];
    std::vector<double> weights(curves.size());
    weights[k] = 1;
    size.optimum = detail::optima_sum(fit, weights);
    size.scatter = fit.sizes[k].scatter;
    size.loss = fit.sizes[k].loss;
    size.weight = slope[k];
    const double octaves =
        std::log2(static_cast<double>(size.size) / static_cast<double>(result.sizes.front().size));
    size.transferred = result.sizes.front().optimum.value + expected * octaves;
    size.regret = detail::regret(curves[k], fit, k, size.transferred);
  }
  return result;
}

}  // namespace scalewise::check
