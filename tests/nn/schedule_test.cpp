// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Schedules against those of Dinan, Yaida, Zhang 2023 (arXiv:2304.02034), (2.1) and (2.5), typed from the paper.

#include "scalewise/nn/schedule.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace scalewise::nn;

TEST_CASE("A warm-up and a cosine are those of the vision experiments") {
  const long warmup = 312L * 20, decline = 312L * 280;
  const double lr = 20, last = 1e-6;
  const Schedule schedule{warmup + decline, warmup, Decline::cosine, last / lr};
  for (const long t : {1L, 100L, 6239L, 6240L, 6241L, 20'000L, 93'599L, 93'600L}) {
    const double pi = 3.14159265358979323846;
    const double eta =
        t <= warmup ? lr * (static_cast<double>(t) / (312.0 * 20))
                    : last + (lr - last) * (0.5 + 0.5 * std::cos(static_cast<double>(t - warmup) *
                                                                 pi / (312.0 * 280)));
    // Steps are counted from 0; after the warm-up the paper is one step ahead.
    INFO("t = " << t);
    CHECK(std::abs(lr * schedule.factor(t <= warmup ? t - 1 : t) - eta) < 1e-12 * lr);
  }
}

TEST_CASE("A warm-up and a linear fall are those of the language experiments") {
  const Schedule schedule{200'000, 5000, Decline::linear};
  for (const long t : {1L, 5000L, 5001L, 100'000L, 199'999L, 200'000L}) {
    const double eta =
        t <= 5000 ? static_cast<double>(t) / 5000 : static_cast<double>(200'000 - t) / 195'000;
    INFO("t = " << t);
    CHECK(std::abs(schedule.factor(t <= 5000 ? t - 1 : t) - eta) < 1e-14);
  }
}

TEST_CASE("A schedule keeps its last value, and without a decline its peak") {
  CHECK(Schedule{10, 2, Decline::cosine, 0.1}.factor(25) == 0.1);
  CHECK(Schedule{10, 2}.factor(9) == 1);
  CHECK(Schedule{10, 0, Decline::linear}.factor(0) == 1);
}
