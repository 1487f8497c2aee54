// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Means of independent draws, and how far from them a prediction may be.

#pragma once

#include <cmath>

#include "support/tolerances.hpp"

namespace scalewise::test {

class Average {
 public:
  void add(double x) {
    ++count_;
    const double step = x - mean_;
    mean_ += step / count_;
    squares_ += step * (x - mean_);
  }

  double mean() const { return mean_; }
  double error() const { return std::sqrt(squares_ / (count_ - 1) / count_); }

 private:
  double count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

/// Whether a prediction lies within standard errors and its own relative accuracy.
inline bool agrees(const Average& simulated, double predicted, double accuracy = 0) {
  return std::abs(simulated.mean() - predicted) <=
         standard_errors * simulated.error() + accuracy * std::abs(predicted);
}

}  // namespace scalewise::test
