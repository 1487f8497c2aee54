// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Two formulations of one rule train alike: a linear model y = a W x by AdamW and by SGD, written
// out here, for a rule and for what reformulate() makes of it.

#include <array>
#include <cmath>

#include "scalewise/architecture/values.hpp"
#include "scalewise/policy/formulation.hpp"
#include "support/catch.hpp"

using namespace scalewise;

namespace {

constexpr std::array<double, 3> x{0.7, -1.3, 0.4};
constexpr std::array<double, 3> start{0.3, -0.8, 1.1};  // standard normal draws, times the std

Shape small_shape() {
  Shape shape{.d_model = 48, .depth = 2, .heads = 3, .context = 5, .vocab = 11};
  return resolved(shape);
}

double number(const Scaling& scaling) {
  return architecture::evaluate(scaling, architecture::Values(small_shape()));
}

/// Output a W x after 50 steps on the loss (y - 2)^2 / 2.
double output_after_training(const Row& rule, Optimizer optimizer) {
  const double a = number(rule.multiplier.scaling);
  const double std_dev = std::sqrt(number(rule.init_variance.scaling));
  const double rate = 0.01 * number(rule.rate(optimizer).scaling);
  const double epsilon = 0.05 * number(rule.epsilon.scaling);  // large, so that it matters
  const double decay = 0.3 * number(rule.weight_decay.scaling);
  const double shrink = rule.decay_form == DecayForm::coupled ? rate * decay : 0.01 * decay;
  std::array<double, 3> w{};
  std::array<double, 3> m{};
  std::array<double, 3> v{};
  for (std::size_t i = 0; i < 3; ++i) w[i] = std_dev * start[i];
  const auto output = [&] { return a * (w[0] * x[0] + w[1] * x[1] + w[2] * x[2]); };
  for (int step = 1; step <= 50; ++step) {
    const double error = output() - 2;
    for (std::size_t i = 0; i < 3; ++i) {
      const double g = error * a * x[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.95 * v[i] + 0.05 * g * g;
      const double m_hat = m[i] / (1 - std::pow(0.9, step));
      const double v_hat = v[i] / (1 - std::pow(0.95, step));
      const double update = optimizer == sgd ? g : m_hat / (std::sqrt(v_hat) + epsilon);
      w[i] -= shrink * w[i] + rate * update;
    }
  }
  return output();
}

constexpr Row rule{.init_variance = 1 / symbols::n,
                   .rates = {{sgd, 1}, {adamw, 1}},
                   .weight_decay = 1,
                   .decay_form = DecayForm::coupled,
                   .epsilon = 1};

}  // namespace

TEST_CASE("A reformulated rule trains alike", "[formulation]") {
  for (const Optimizer optimizer : {sgd, adamw}) {
    for (const DecayForm form : {DecayForm::coupled, DecayForm::independent}) {
      Row original = rule;
      original.decay_form = form;
      const Row moved = reformulate(original, sqrt(symbols::n), optimizer);
      CHECK(std::abs(number(moved.multiplier.scaling) - std::sqrt(48.0)) < 1e-13);
      const double expected = output_after_training(original, optimizer);
      // 50 steps of a few operations each: rounding grows to some 1e-14 relative.
      CHECK(std::abs(output_after_training(moved, optimizer) / expected - 1) < 1e-12);
    }
  }
}

TEST_CASE("Training tells a wrong epsilon, rate or decay", "[formulation]") {
  const Row moved = reformulate(rule, sqrt(symbols::n), adamw);
  const double expected = output_after_training(rule, adamw);
  const auto differs = [&](const Row& wrong) {
    return std::abs(output_after_training(wrong, adamw) / expected - 1) > 1e-4;
  };
  Row wrong = moved;
  wrong.epsilon = 1;
  CHECK(differs(wrong));
  wrong = moved;
  wrong.rates.set(adamw, 1);
  CHECK(differs(wrong));
  wrong = moved;
  wrong.weight_decay = 1;
  CHECK(differs(wrong));
}
