// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How often intervals hold the truth, over many independent draws.

#pragma once

#include <cmath>

namespace scalewise::test {

/// The counts out of `draws` that a right interval leaves in one run of a million: a tail of at most
/// 5e-7 on each side of Binomial(draws, chance) is cut off.
class Coverage {
 public:
  Coverage(int draws, double chance) : low_(0), high_(draws) {
    const auto share = [&](int k) {
      return std::exp(std::lgamma(draws + 1.0) - std::lgamma(k + 1.0) -
                      std::lgamma(draws - k + 1.0) + k * std::log(chance) +
                      (draws - k) * std::log1p(-chance));
    };
    for (double tail = share(0); tail <= 5e-7; tail += share(low_)) ++low_;
    for (double tail = share(draws); tail <= 5e-7; tail += share(high_)) --high_;
  }

  int low() const { return low_; }
  int high() const { return high_; }
  bool accepts(int held) const { return held >= low_ && held <= high_; }

 private:
  int low_;
  int high_;
};

}  // namespace scalewise::test
