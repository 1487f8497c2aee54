// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Shapes, and the comparison of a plan with numbers, for the tests that compute these anew.

#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"

namespace scalewise::test {

inline bool near(double a, double b) {
  return std::abs(a - b) <= 1e-13 * std::max(std::abs(a), std::abs(b));
}

/// Grouped queries, heads wider than the model, d_ff = 25/12 n, gated.
inline Shape decoder() {
  return {.d_model = 96,
          .depth = 5,
          .heads = 6,
          .kv_heads = 2,
          .head_dim = 24,
          .d_ff = 200,
          .context = 32,
          .vocab = 101,
          .iterations = 8000,
          .gated_mlp = true};
}

/// The base of `decoder`: n ratio 3, F 2.5, L 2.5, C 3, H*C 144/32 = 4.5, K*C 3, D 8.
inline Shape decoder_base() {
  Shape s = decoder();
  s.d_model = 32;
  s.depth = 2;
  s.heads = 4;
  s.kv_heads = 2;
  s.head_dim = 8;
  s.d_ff = 80;
  s.iterations = 1000;
  return s;
}

/// A vision transformer.
inline Shape vision() {
  return {.input = Input::patch,
          .d_model = 192,
          .depth = 3,
          .heads = 3,
          .context = 17,
          .patch_dim = 48,
          .classes = 10};
}

inline Shape encoder_decoder() {
  return {.d_model = 64, .depth = 4, .encoder_depth = 6, .heads = 4, .context = 20, .vocab = 97};
}

/// Everything that a tensor gets, with decay in the coupled form.
struct Numbers {
  double variance = 0;
  double multiplier = 1;
  double rate = 1;
  double decay = 1;
  double epsilon = 1;
};

inline void check(const Plan& plan, const std::string& name, const Numbers& expected) {
  const Entry& entry = plan.at(name);
  INFO(plan.rule << ", " << name);
  CHECK(near(entry.init_variance.value, expected.variance));
  CHECK(near(entry.multiplier.value, expected.multiplier));
  CHECK(near(entry.learning_rate.value, expected.rate));
  CHECK(near(entry.weight_decay.value, expected.decay));
  CHECK(near(entry.epsilon.value, expected.epsilon));
}

/// Of a rule that scales the initialization alone.
inline void check_variance(const Plan& plan, const std::string& name, double variance) {
  check(plan, name, {.variance = variance});
}

/// The gains of the branches: how many, where they start, and entries of each.
inline void check_gains(const Plan& plan, std::size_t count, double start, long entries) {
  const auto gains = plan.of(Group::residual_gain);
  REQUIRE(gains.size() == count);
  for (const Entry* entry : gains) {
    CHECK(entry->init_mean.value == start);
    CHECK(entry->init_variance.value == 0);
    CHECK(entry->rows * entry->columns == entries);
  }
}

}  // namespace scalewise::test
