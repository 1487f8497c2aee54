// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Integrals by Gauss-Legendre rules.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

namespace scalewise::test {

struct GaussLegendre {
  std::vector<double> nodes, weights;  // on (-1, 1)
};

inline GaussLegendre gauss_legendre(int n) {
  GaussLegendre rule;
  for (int i = 0; i < n; ++i) {
    double x = std::cos(std::numbers::pi * (i + 0.75) / (n + 0.5));
    double slope = 1;
    for (int step = 0; step < 10; ++step) {
      double p = 1;
      double before = 0;
      for (int k = 1; k <= n; ++k) {
        const double next = ((2 * k - 1) * x * p - (k - 1) * before) / k;
        before = p;
        p = next;
      }
      slope = n * (x * p - before) / (x * x - 1);
      x -= p / slope;
    }
    rule.nodes.push_back(x);
    rule.weights.push_back(2 / ((1 - x * x) * slope * slope));
  }
  return rule;
}

inline double integral(const GaussLegendre& rule, double begin, double end, const auto& f) {
  const double half = (end - begin) / 2;
  double sum = 0;
  for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
    sum += rule.weights[i] * f(begin + half * (1 + rule.nodes[i]));
  }
  return half * sum;
}

/// E f(x, y) of two standard normal numbers with correlation r, in polar coordinates, sector by
/// sector between the lines x = 0 and y = 0, where f may have a kink or a step.
inline double normal_mean(double r, const auto& f) {
  constexpr double pi = std::numbers::pi;
  static const GaussLegendre rule = gauss_legendre(60);
  const double angle = std::acos(r);
  std::vector<double> edges{0, pi / 2, 3 * pi / 2, angle + pi / 2, 2 * pi, angle + 3 * pi / 2};
  for (double& edge : edges) edge = edge > 2 * pi ? edge - 2 * pi : edge;
  std::sort(edges.begin(), edges.end());
  double sum = 0;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    sum += integral(rule, edges[i], edges[i + 1], [&](double t) {
      const double x = std::cos(t);
      const double y = std::cos(t - angle);
      const auto radial = [&](double a) { return a * std::exp(-a * a / 2) * f(a * x, a * y); };
      return integral(rule, 0, 3, radial) + integral(rule, 3, 12, radial);
    });
  }
  return sum / (2 * pi);
}

}  // namespace scalewise::test
