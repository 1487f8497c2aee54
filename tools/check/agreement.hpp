// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "check/depth_probe.hpp"
#include "scalewise/check/profile.hpp"

namespace scalewise::experiment {

/// How far a prediction is from what was measured, over the layers.
struct Agreement {
  double relative = 0;  // mean of |prediction / measurement - 1|
  double log = 0;       // mean of |ln prediction - mean ln measurement|
  double r2 = 0;        // of the logarithms; not a number where they hardly differ
};

inline Agreement agreement(const std::vector<double>& predicted,
                           const check::MeasuredProfile& measured) {
  Agreement a;
  std::vector<double> logs;
  double mean = 0;
  const auto n = static_cast<double>(predicted.size());
  for (std::size_t l = 0; l < predicted.size(); ++l) {
    const std::vector<double>& seeds = measured.variances(stream_place(static_cast<long>(l)));
    double sum = 0;
    double sum_log = 0;
    for (const double v : seeds) sum += v, sum_log += std::log(v);
    const auto count = static_cast<double>(seeds.size());
    logs.push_back(sum_log / count);
    mean += logs.back() / n;
    a.relative += std::abs(predicted[l] / (sum / count) - 1) / n;
    a.log += std::abs(std::log(predicted[l]) - logs.back()) / n;
  }
  double off = 0;
  double spread = 0;
  for (std::size_t l = 0; l < predicted.size(); ++l) {
    off += (std::log(predicted[l]) - logs[l]) * (std::log(predicted[l]) - logs[l]);
    spread += (logs[l] - mean) * (logs[l] - mean);
  }
  constexpr double least = 0.02;  // deviation of the logarithms
  a.r2 = spread > least * least * n ? 1 - off / spread : std::numeric_limits<double>::quiet_NaN();
  return a;
}

}  // namespace scalewise::experiment
