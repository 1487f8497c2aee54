// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/line.hpp"
#include "scalewise/propagation/depth_methods.hpp"
#include "scalewise/propagation/propagate.hpp"

namespace scalewise::propagation {

/// The results for a model of one depth.
struct DepthPoint {
  long depth = 0;
  double forward = 0;         // variance after the last layer
  double gradient = 0;        // variance after the first layer, over that after the last
  double covariance = 0;      // the same of its covariance
  double least_gradient = 0;  // over all blocks
  double most_gradient = 0;
  double mean_sensitivity = 0;
  double median_sensitivity = 0;
};

/// The numbers of a profile that growth with depth is read from.
/// Throws:   InvalidInput for a profile of no layer, or of one pass only.
inline DepthPoint depth_point(const Profile& p) {
  if (p.gradient.size() <= p.blocks_per_layer || p.forward.size() != p.gradient.size()) {
    throw InvalidInput("profile", std::to_string(p.gradient.size()) + " gradients",
                       "one layer at least, forward and backward");
  }
  DepthPoint point;
  const std::size_t depth = p.depth();
  const SignalMoments& first = p.gradient_at(1);
  const SignalMoments& last = p.gradient_at(depth);
  const auto [least, most] = std::minmax_element(
      p.gradient.begin(), p.gradient.end(),
      [](const SignalMoments& a, const SignalMoments& b) { return a.variance < b.variance; });
  point.depth = static_cast<long>(depth);
  point.forward = p.forward_at(depth).variance;
  point.gradient = first.variance / last.variance;
  point.covariance = first.covariance / last.covariance;
  point.least_gradient = least->variance / last.variance;
  point.most_gradient = most->variance / last.variance;
  point.mean_sensitivity = mean_sensitivity(p);
  point.median_sensitivity = median_sensitivity(p);
  return point;
}

/// How the numbers of a point grow with the depth N.
/// Equation: slopes of their logarithms against ln N; gradient_per_layer that of ln gradient against
///           N; sensitivity_per_log that of mean_sensitivity against ln N
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), Table 3, has the orders.
struct GrowthOrders {
  double forward = 0;
  double gradient = 0;
  double covariance = 0;
  double mean_sensitivity = 0;
  double median_sensitivity = 0;
  double gradient_per_layer = 0;
  double sensitivity_per_log = 0;
};

/// The powers of the depth with which moments grow, by least squares.
/// Requires: two points of different depths at least.
inline GrowthOrders growth_orders(std::span<const DepthPoint> points) {
  std::vector<double> depths;
  std::vector<double> logs;
  for (const DepthPoint& p : points) {
    depths.push_back(static_cast<double>(p.depth));
    logs.push_back(std::log(depths.back()));
  }
  const auto values = [&](double DepthPoint::*field, bool log) {
    std::vector<double> list;
    for (const DepthPoint& p : points) list.push_back(log ? std::log(p.*field) : p.*field);
    return list;
  };
  const auto order = [&](double DepthPoint::*field) {
    return numeric::fit_line(logs, values(field, true)).slope;
  };
  GrowthOrders orders;
  orders.forward = order(&DepthPoint::forward);
  orders.gradient = order(&DepthPoint::gradient);
  orders.covariance = order(&DepthPoint::covariance);
  orders.mean_sensitivity = order(&DepthPoint::mean_sensitivity);
  orders.median_sensitivity = order(&DepthPoint::median_sensitivity);
  orders.gradient_per_layer = numeric::fit_line(depths, values(&DepthPoint::gradient, true)).slope;
  orders.sensitivity_per_log =
      numeric::fit_line(logs, values(&DepthPoint::mean_sensitivity, false)).slope;
  return orders;
}

}  // namespace scalewise::propagation
