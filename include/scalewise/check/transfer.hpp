// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
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
  double fixed = 0;  // the part of half its width that more seeds leave as it is
};

/// The best rate of one size, and how the rate that was tuned at the smallest size does there.
/// Units:    rates in octaves from the centre; losses and regret as the runs' losses
struct SizeTransfer {
  long size = 0;
  std::size_t seeds = 0;  // that have a curve: three rates near the lowest loss
  bool trained = false;   // some rate has a finite loss with every seed
  bool interior = false;  // the optimum lies between rates that were tried, or next to them
  bool bracketed = true;  // the lowest loss does
  bool cliff = false;     // the rate above the lowest loss diverges
  double blown_up = std::nan("");  // the lowest rate whose finite losses count as diverged
  bool flat = false;               // all rates have one loss
  bool empty = false;              // no run has a loss
  double low = 0;                  // the lowest rate tried
  double best = 0;                 // the rate of the lowest loss
  IntervalEstimate optimum = {};
  double scatter = 0;                       // standard deviation of a seed's optimum
  double loss = 0;                          // there,
  CurveShape shape = {};                    // how losses rise around it
  double loss_half = 0;                     // half the interval that the shape alone gives it,
  std::map<long, double> seed_losses = {};  // and of each seed
  double weight = 0;                        // of the optimum in the drift
  double transferred = std::nan("");        // the rate that the smallest size proposes, if it can
  /// Its loss minus that at the optimum; infinite: it diverges; NaN: not tried, or no optimum.
  IntervalEstimate regret = {std::nan(""), -HUGE_VAL, HUGE_VAL};
};

/// How the optimal rate moves with size.
/// Units:    drift in octaves of rate per octave of size
struct Transfer {
  double expected = 0;
  bool curved = false;   // the losses have a minimum, beyond their noise
  double curvature = 0;  // the mean over sizes
  double noise = 0;      // standard deviation of a loss about the curve of its seed, at the optimum
  std::vector<SizeTransfer> sizes = {};
  IntervalEstimate drift = {std::nan(""), -HUGE_VAL,
                            HUGE_VAL};  // of fewer than two optima: not known
};

namespace detail {

/// Sizes with fewer seeds have too few to say how far optima scatter, so they share what all seeds say,
/// together with what earlier sweeps found.
inline constexpr std::size_t enough_seeds = 3;

/// Standard deviation of a seed's optimum in earlier sweeps, in octaves, and how many degrees of freedom
/// that knowledge is worth: the variance of few seeds varies from sweep to sweep as if it had been
/// measured with five seeds.
/// Measured: 0.06 to 0.2 at widths 32 to 256, docs/checks/learning_rate_transfer.md
inline constexpr double usual_scatter = 0.08;
inline constexpr double usual_degrees = 6;

/// The variance of a seed's optimum that one expects before seeing two.
inline double usual_variance(const SizeFit& size) {
  return usual_scatter * usual_scatter + size.noise * size.noise;
}

/// How many times as large the variances are, judging by all seeds, and its degrees of freedom.
/// Source:   Smyth 2004, doi:10.2202/1544-6115.1027, moderated variances
struct SharedScatter {
  double factor = 1;
  double degrees = usual_degrees;
  explicit SharedScatter(const RateFit& fit) {
    double sum = usual_degrees;
    for (const SizeFit& size : fit.sizes) {
      if (!size.used || size.seeds.size() < 2) continue;
      const auto own = static_cast<double>(size.seeds.size() - 1);
      sum += own * size.scatter * size.scatter / usual_variance(size);
      degrees += own;
    }
    factor = sum / degrees;
  }
};

/// The variance of a seed's optimum.
inline double seed_variance(const SizeFit& size, const SharedScatter& shared) {
  return size.seeds.size() < enough_seeds ? shared.factor * usual_variance(size)
                                          : size.scatter * size.scatter;
}

/// Half the width of an interval, and the part of it that more seeds leave as it is.
struct HalfWidth {
  double all = 0;
  double fixed = 0;
};

/// Half the interval of a weighted sum of the sizes' optima. The degrees of freedom are those of the
/// seeds: with the many of the shape, a scatter that is low by chance would seem well known.
/// Source:   Welch 1947, doi:10.1093/biomet/34.1-2.28, for the degrees of freedom of a sum
inline HalfWidth optima_half(const RateFit& fit, const std::vector<double>& weights) {
  const SharedScatter scatter(fit);
  double seeds = 0;
  double shared = 0;   // the part of sizes with few seeds
  double squares = 0;  // each over its degrees of freedom
  double shapes = 0;
  CurveShape mean;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const SizeFit& size = fit.sizes[k];
    const auto n = static_cast<double>(size.seeds.size());
    if (std::fabs(weights[k]) < 1e-9) continue;
    const double variance = weights[k] * weights[k] * seed_variance(size, scatter) / n;
    seeds += variance;
    if (size.seeds.size() < enough_seeds) {
      shared += variance;
    } else {
      squares += variance * variance / (n - 1);
    }
    const CurveShape moved = size.own_error * size.leverage;
    const double missed = cubic_misfit * size.noise * size.noise;
    shapes += weights[k] * weights[k] * (product(size.leverage, moved) + missed);
    mean = mean + scaled({weights[k], weights[k]}, scaled(fit.precision, moved));
  }
  squares += shared * shared / scatter.degrees;
  const double degrees = squares > 0 ? std::fmax(seeds * seeds / squares, 1) : 1;
  const double curves = shapes + product(mean, fit.mean_error * mean);
  return {numeric::t_quantile(static_cast<std::size_t>(degrees)) * std::sqrt(seeds + curves),
          numeric::t_quantile(1000000) * std::sqrt(curves)};
}

/// A weighted sum of the sizes' optima.
inline IntervalEstimate optima_sum(const RateFit& fit, const std::vector<double>& weights) {
  double value = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) value += weights[k] * fit.sizes[k].optimum;
  const HalfWidth half = optima_half(fit, weights);
  return {value, value - half.all, value + half.all, half.fixed};
}

/// The weights with which optima make the slope of their line of least squares; 0 of sizes that are
/// not used.
inline std::vector<double> slope_weights(const RateFit& fit) {
  std::vector<double> x;
  double mean = 0;
  double count = 0;
  for (const SizeFit& size : fit.sizes) {
    x.push_back(std::log2(static_cast<double>(size.size)));
    if (size.used) mean += (x.back() - mean) / ++count;
  }
  double squares = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    x[k] = fit.sizes[k].used ? x[k] - mean : 0;
    squares += x[k] * x[k];
  }
  for (double& at : x) at = squares > 0 ? at / squares : 0;
  return x;
}

/// How much more than at the optimum the fitted curve says at a distance of v.
inline double rise(const CurveShape& shape, double v) {
  return shape.curvature * v * v + shape.third * v * v * v;
}

/// Half the interval that errors of the shape give the loss at the optimum.
inline double loss_half(const RateFit& fit, const SizeFit& size) {
  const CurveShape moved = size.own_error * size.lift;
  const CurveShape mean = scaled(fit.precision, moved);
  return numeric::t_quantile(fit.shape_degrees) *
         std::sqrt(product(size.lift, moved) + product(mean, fit.mean_error * mean));
}

/// The end of an interval of what cannot be below zero; one that is not finite stays.
inline double never_negative(double low) { return low < 0 && std::isfinite(low) ? 0 : low; }

/// The regret of a rate that is v above the optimum of size k; `weights` are those of the optima in v. An error of
/// the shape changes it twice: through the optimum, and at a given v. Both come from one error and mostly cancel,
/// so the second counts as a further move of the optimum, and the interval of v becomes that of the regret.
/// Equation: δ(c v² + d v³) = (2 c v + 3 d v²) (δv + (v δc + v² δd) / (2 c + 3 d v)); that divisor is at least c,
///           also where the curve bends back
inline IntervalEstimate fitted_regret(RateFit fit, const std::vector<double>& weights,
                                      std::size_t k, double v) {
  const CurveShape shape = fit.sizes[k].shape;
  const double divisor = std::fmax(2 * shape.curvature + 3 * shape.third * v, shape.curvature);
  fit.sizes[k].leverage = fit.sizes[k].leverage + CurveShape{-v / divisor, -v * v / divisor};
  const HalfWidth half = optima_half(fit, weights);
  const double value = rise(shape, v);
  const auto [least, most] = std::minmax({rise(shape, v - half.all), rise(shape, v + half.all)});
  const double high = std::fmax(value, most);
  return {value, std::fabs(v) <= half.all ? 0 : std::fmin(std::fmax(least, 0), value), high,
          half.all > 0 ? (high - value) * half.fixed / half.all : 0};
}

/// The rate among those tried that is next to one.
inline double nearest_rate(const RateCurve& curve, double octave) {
  double nearest = std::numeric_limits<double>::infinity();
  for (const double rate : curve.octaves()) {
    if (std::fabs(rate - octave) < std::fabs(nearest - octave)) nearest = rate;
  }
  return nearest;
}

/// A seed's loss at a rate that it may not have been run at, above the fit's optimum. What its runs
/// have beyond the fit's shape is interpolated between the next rates.
struct SeedRegret {
  double value = std::numeric_limits<double>::quiet_NaN();  // of a rate far from all tried
  double runs = 1;                                          // sum of the runs' squared weights
  SeedRegret(const SizeFit& size, const SeedCurve& seed, const std::map<double, double>& losses,
             double octave) {
    const auto extra = [&](const auto& run) {
      return run->second - seed.offset - rise(size.shape, run->first - size.optimum);
    };
    auto above = losses.lower_bound(octave);
    auto below = above;
    if (above == losses.end() || (above->first > octave && above != losses.begin())) --below;
    if (above == losses.end() || !std::isfinite(above->second)) above = below;
    if (!std::isfinite(below->second)) below = above;
    if (!std::isfinite(above->second)) return;
    const double step = above->first - below->first;
    const double share = step > 0 ? (octave - below->first) / step : 0;
    if (step == 0 && std::fabs(octave - above->first) > edge_reach) return;
    value =
        rise(size.shape, octave - size.optimum) + (1 - share) * extra(below) + share * extra(above);
    runs = (1 - share) * (1 - share) + share * share;
  }
};

/// How steeply the fitted curve rises at a distance of v.
inline double steepness(const CurveShape& shape, double v) {
  return 2 * shape.curvature * v + 3 * shape.third * v * v;
}

/// The regret far from the optimum: measured there, seed by seed, above the fit's optimum. The scatter of
/// fewer than three seeds is what noise and their optima make of it. `half`: that of the transferred rate.
inline IntervalEstimate measured_regret(const RateCurve& curve, const RateFit& fit,
                                        const SizeFit& size, double octave, double half) {
  std::vector<double> regrets;
  double noise = 0;
  for (const SeedCurve& seed : size.seeds) {
    const SeedRegret regret(size, seed, curve.losses.at(seed.seed), octave);
    if (!std::isfinite(regret.value)) continue;
    regrets.push_back(regret.value);
    noise = fit.noise * (Distances::growth(octave - size.optimum) * regret.runs +
                         1 / static_cast<double>(seed.losses.size()));
  }
  const auto n = static_cast<double>(regrets.size());
  double mean = regrets.empty() ? std::numeric_limits<double>::quiet_NaN() : 0;
  for (const double regret : regrets) mean += regret / n;
  double squares = 0;
  for (const double regret : regrets) squares += (regret - mean) * (regret - mean);
  std::size_t degrees = regrets.size() - 1;
  double variance = squares / (n - 1);
  const double slope = steepness(size.shape, octave - size.optimum);
  if (regrets.size() < enough_seeds) {
    degrees = fit.shape_degrees;
    variance = noise + slope * slope * seed_variance(size, SharedScatter(fit));
  }
  half = std::hypot(numeric::t_quantile(degrees) * std::sqrt(variance / n), slope * half,
                    loss_half(fit, size));
  return {mean, never_negative(mean - half), mean + half};
}

/// `first` is the size whose optimum is transferred.
inline IntervalEstimate regret(const RateCurve& curve, const RateFit& fit, std::size_t first,
                               std::size_t k, double transferred) {
  const double infinite = std::numeric_limits<double>::infinity();
  if (k == first) return {};
  if (curve.diverged(nearest_rate(curve, transferred))) return {infinite, infinite, infinite};
  const SizeFit& size = fit.sizes[k];
  std::vector<double> weights(fit.sizes.size());
  weights[first] = 1;
  if (transferred < size.low || transferred > size.high) {
    return measured_regret(curve, fit, size, transferred, optima_half(fit, weights).all);
  }
  weights[k] = -1;
  return fitted_regret(fit, weights, k, transferred - size.optimum);
}

/// Whether a size that trains at other rates diverges at the transferred one, or little above it.
inline bool surely_diverges(const RateCurve& curve, const SizeTransfer& size) {
  const double nearest = nearest_rate(curve, size.transferred);
  return size.trained && nearest <= size.transferred + edge_reach && curve.diverged(nearest);
}

/// The result of one size without a fit.
inline SizeTransfer tried(const RateCurve& curve, const SizeFit& fit) {
  const std::map<double, double> means = mean_losses(curve);
  SizeTransfer size{.size = curve.size,
                    .seeds = fit.seeds.size(),
                    .trained = fit.trained,
                    .interior = fit.interior};
  size.bracketed = fit.bracketed;
  size.low = means.begin()->first;
  size.best = lowest(means);
  size.optimum = {size.best, -std::numeric_limits<double>::infinity(),
                  std::numeric_limits<double>::infinity()};
  size.loss = means.at(size.best);
  const auto above = means.upper_bound(size.best);
  size.blown_up = curve.blown_up;
  size.cliff = above != means.end() && !std::isfinite(above->second);
  size.flat = std::all_of(means.begin(), means.end(),
                          [&](const auto& rate) { return rate.second == size.loss; });
  return size;
}

}  // namespace detail

/// The optimal rate of each size, its drift, and the regret of a rate tuned at the smallest size.
/// Equation: optima o(size) and shapes (c, d) as fit_rates() has them;
///           drift: slope of o against log2(size) by least squares, every size counting alike;
///           variance of Σ w o: Σ w² (scatter(size)²/seeds(size) + cubic_misfit × noise² + l C l) + u V u,
///           u = Σ w T⁻¹ C l, l how the shape of a size moves its optimum (delta method), C, V and T as in solve();
///           interval: value ± t √variance, t Student's 97.5 % quantile at Welch's degrees of freedom, rounded down;
///           regret: c v² + d v³, v = o(smallest) + expected × octaves of size - o(size); beyond the
///           rates of the fit: losses measured at the rate next to it minus the fitted one at o
/// Accuracy: the drift is that of the sizes given. That optima may bend between them is not in the
///           interval. Optima of one seed at several sizes count as independent; where they move
///           together the interval is too wide. On 4000 tables drawn like those of users, 95.8 % of the drifts' intervals and
///           96.4 % of the regrets' hold the truth (docs/checks/learning_rate_transfer.md).
/// Throws:   InvalidInput for runs that rate_curves() refuses.
inline Transfer analyse_transfer(const std::vector<RateRun>& runs, double expected = 0) {
  const std::vector<RateCurve> curves = rate_curves(runs);
  const RateFit fit = fit_rates(curves);
  Transfer result{.expected = expected};
  for (std::size_t k = 0; k < curves.size(); ++k) {
    result.sizes.push_back(detail::tried(curves[k], fit.sizes[k]));
  }
  if (!fit.fitted) return result;
  result.curvature = fit.mean.curvature;
  result.noise = std::sqrt(fit.noise);
  result.curved = fit.mean.curvature >
                  numeric::t_quantile(fit.shape_degrees) * std::sqrt(fit.mean_error.curvature);
  const std::vector<double> slope = detail::slope_weights(fit);
  if (*std::max_element(slope.begin(), slope.end()) > 0)
    result.drift = detail::optima_sum(fit, slope);
  const auto used = [](const SizeFit& size) { return size.used; };
  const auto first = static_cast<std::size_t>(
      std::find_if(fit.sizes.begin(), fit.sizes.end(), used) - fit.sizes.begin());
  for (std::size_t k = 0; k < curves.size(); ++k) {
    SizeTransfer& size = result.sizes[k];
    size.interior = fit.sizes[k].used;
    const double octaves =
        std::log2(static_cast<double>(size.size) / static_cast<double>(curves[first].size));
    size.transferred = fit.sizes[first].optimum + expected * octaves;
    if (!size.interior) {
      if (detail::surely_diverges(curves[k], size)) size.regret.value = HUGE_VAL;
      continue;
    }
    std::vector<double> weights(curves.size());
    weights[k] = 1;
    size.optimum = detail::optima_sum(fit, weights);
    size.scatter = fit.sizes[k].scatter;
    size.loss = fit.sizes[k].loss;
    size.shape = fit.sizes[k].shape;
    size.loss_half = detail::loss_half(fit, fit.sizes[k]);
    for (const SeedCurve& seed : fit.sizes[k].seeds) size.seed_losses[seed.seed] = seed.offset;
    size.weight = slope[k];
    size.regret = detail::regret(curves[k], fit, first, k, size.transferred);
  }
  return result;
}

}  // namespace scalewise::check
