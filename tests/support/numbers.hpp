// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Shapes, and the comparison of a plan with numbers, for the tests that compute these anew.

#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/optimizers.hpp"

namespace scalewise::test {

inline bool near(double a, double b) {
  return std::abs(a - b) <= 1e-13 * std::max(std::abs(a), std::abs(b));
}

/// Grouped queries, heads wider than the model, d_ff = 25/12 n, gated.
inline Shape decoder() {
  Shape s;
  s.d_model = 96;
  s.depth = 5;
  s.heads = 6;
  s.kv_heads = 2;
  s.head_dim = 24;
  s.d_ff = 200;
  s.gated_mlp = true;
  s.context = 32;
  s.vocab = 101;
  s.iterations = 8000;
  return s;
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
  Shape s;
  s.input = Input::patch;
  s.d_model = 192;
  s.depth = 3;
  s.heads = 3;
  s.context = 17;
  s.patch_dim = 48;
  s.classes = 10;
  return s;
}

inline Shape encoder_decoder() {
  Shape s;
  s.d_model = 64;
  s.encoder_depth = 6;
  s.depth = 4;
  s.heads = 4;
  s.context = 20;
  s.vocab = 97;
  return s;
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

}  // namespace scalewise::test
