// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/number_text.hpp"

namespace scalewise::check {

/// A finished run.
struct RateRun {
  long size = 0;      // width, depth or steps
  double octave = 0;  // log2(rate / centre)
  long seed = 0;
  double loss = 0;  // not finite: diverged

  /// The learning rate of the run.
  /// Units:    absolute, as the centre
  double rate(double centre) const {
    const double whole = std::floor(octave);
    return std::ldexp(centre * std::exp2(octave - whole), static_cast<int>(whole));
  }
};

/// The losses of one size. Diverged runs are infinite.
struct RateCurve {
  long size = 0;
  std::map<long, std::map<double, double>> losses = {};  // of a seed at an octave
  double blown_up = std::nan("");  // the lowest octave whose finite losses count as diverged

  std::set<double> octaves() const {
    std::set<double> all;
    for (const auto& [seed, curve] : losses) {
      for (const auto& [octave, loss] : curve) all.insert(octave);
    }
    return all;
  }

  /// Those that were run at every rate.
  std::vector<long> complete_seeds() const {
    const std::size_t rates = octaves().size();
    std::vector<long> complete;
    for (const auto& [seed, curve] : losses) {
      if (curve.size() == rates) complete.push_back(seed);
    }
    return complete;
  }

  /// Whether a seed diverged at this rate.
  bool diverged(double octave) const {
    return std::any_of(losses.begin(), losses.end(), [&](const auto& seed) {
      const auto run = seed.second.find(octave);
      return run != seed.second.end() && !std::isfinite(run->second);
    });
  }
};

namespace detail {

/// Losses of runs that diverged may be finite, as of a model that predicts one token. A curve through them would bend
/// to them, so they become infinite: those from the lowest rate on that has one above all of the three rates below it
/// by more than ten times their range, and by more than a tenth of the loss. A parabola's next one is three times above.
inline void mark_blown_up(RateCurve& curve) {
  const std::set<double> octaves = curve.octaves();
  std::vector<double> below;  // up to three rates
  for (const double octave : octaves) {
    double least = HUGE_VAL, most = -HUGE_VAL, highest = -HUGE_VAL;
    for (const auto& [seed, losses] : curve.losses) {
      for (const double other : below) {
        if (!losses.contains(other)) continue;
        least = std::fmin(least, losses.at(other));
        most = std::fmax(most, losses.at(other));
      }
      if (losses.contains(octave) && std::isfinite(losses.at(octave)))
        highest = std::fmax(highest, losses.at(octave));
    }
    const double limit = most + std::fmax(10 * (most - least), 0.1 * least);
    if (below.size() == 3 && highest > limit) {
      curve.blown_up = octave;
      for (auto& [seed, losses] : curve.losses) {
        for (auto& [at, loss] : losses) {
          if (at >= octave && loss > limit) loss = HUGE_VAL;
        }
      }
      return;
    }
    below.push_back(octave);
    if (below.size() > 3) below.erase(below.begin());
  }
}

}  // namespace detail

/// The runs as one curve per size, by size. A loss far above those of lower rates counts as that of a diverged run.
/// Throws:   InvalidInput for a size that is not positive, an octave that no double has, or a run given
///           twice.
inline std::vector<RateCurve> rate_curves(const std::vector<RateRun>& runs) {
  std::map<long, RateCurve> sorted;
  for (const RateRun& run : runs) {
    if (run.size < 1) throw InvalidInput("size", std::to_string(run.size), "a positive size");
    if (!(std::fabs(run.octave) <= 1000)) {
      throw InvalidInput("octave", std::to_string(run.octave), "a number from -1000 to 1000");
    }
    const double loss =
        std::isfinite(run.loss) ? run.loss : std::numeric_limits<double>::infinity();
    RateCurve& curve = sorted.try_emplace(run.size, RateCurve{run.size}).first->second;
    if (!curve.losses[run.seed].emplace(run.octave, loss).second) {
      throw InvalidInput("seed", std::to_string(run.seed),
                         "one run at size " + std::to_string(run.size) + " and rate " +
                             numeric::number_text(std::exp2(run.octave)));
    }
  }
  std::vector<RateCurve> curves;
  curves.reserve(sorted.size());
  for (auto& [size, curve] : sorted) {
    detail::mark_blown_up(curve);
    curves.push_back(std::move(curve));
  }
  return curves;
}

namespace detail {

/// The effects of rates besides those of seeds, by least squares: loss(seed, octave) = mean(octave) + of(seed), where the
/// latter have mean zero. So a seed that ran at few rates does not move their means by its luck.
inline std::map<double, double> means_of_gaps(const RateCurve& curve,
                                              const std::set<double>& octaves) {
  std::map<long, double> of;
  std::map<double, double> means;
  for (int step = 0; step < 200; ++step) {
    for (const double octave : octaves) {
      double sum = 0;
      double count = 0;
      for (const auto& [seed, losses] : curve.losses) {
        if (!losses.contains(octave)) continue;
        sum += losses.at(octave) - of[seed];
        ++count;
      }
      means[octave] = sum / count;
    }
    double all = 0;
    for (const auto& [seed, losses] : curve.losses) {
      double sum = 0;
      double count = 0;
      for (const auto& [octave, loss] : losses) {
        if (!octaves.contains(octave)) continue;
        sum += loss - means.at(octave);
        ++count;
      }
      of[seed] = count > 0 ? sum / count : 0;
      all += of[seed] / static_cast<double>(curve.losses.size());
    }
    for (auto& [seed, loss] : of) loss -= all;
  }
  return means;
}

}  // namespace detail

/// The mean loss at every octave over the seeds that were run at all of them, or, where none was, by
/// least squares over all seeds; infinite where a seed diverged.
inline std::map<double, double> mean_losses(const RateCurve& curve) {
  const std::vector<long> seeds = curve.complete_seeds();
  std::set<double> finite;
  std::map<double, double> means;
  for (const double octave : curve.octaves()) {
    means[octave] = std::numeric_limits<double>::infinity();
    if (!curve.diverged(octave)) finite.insert(octave);
  }
  if (seeds.empty()) {
    for (const auto& [octave, mean] : detail::means_of_gaps(curve, finite)) means[octave] = mean;
    return means;
  }
  for (const double octave : finite) {
    double sum = 0;
    for (const long seed : seeds) sum += curve.losses.at(seed).at(octave);
    means[octave] = sum / static_cast<double>(seeds.size());
  }
  return means;
}

/// The octave of the lowest loss, the first of equals.
/// Units:    octaves of the rate: log2(rate / centre)
/// Requires: losses.
inline double lowest(const std::map<double, double>& losses) {
  return std::min_element(losses.begin(), losses.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace scalewise::check
