// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Steps of the optimizer: what its observer sees, to the last bit, and several of them against their
// definition.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/nn/normalize_matrices.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "scalewise/nn/orthogonal.hpp"
#include "scalewise/numeric/random.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/sanitized.hpp"
#include "support/small_shapes.hpp"
#include "support/tolerances.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;
using Eigen::Index;

/// Its factors on rate, decay and epsilon differ from tensor to tensor. The token embedding is
/// larger than a tile of the optimizer.
Plan small_plan(DecayForm decay = DecayForm::coupled) {
  Shape s{
      .d_model = 28, .depth = 2, .heads = 4, .head_dim = 6, .d_ff = 17, .context = 8, .vocab = 701};
  Shape base = s;
  base.d_model = 7;
  base.depth = 1;
  return make_plan("complete-p", {.model = s, .base = base, .decay = decay});
}

void fill(View<double> row, const std::string& name) {
  numeric::RandomStream stream(9, name);
  for (Index i = 0; i < row.size(); ++i) row(0, i) = stream.normal();
}

void set_optimizer(Plan& plan, const Optimizer& method) {
  plan.optimizer = method;
  for (Entry& entry : plan.entries) entry.optimizer = policy::optimizer_of(method, entry.group);
}

bool is_whole(const Entry& entry) {
  return entry.optimizer.normalization == policy::Normalization::by_matrix;
}

/// The first update of one number, from the update's definition.
double first_change(const Optimizer& optimizer, double rate, double shrink, double epsilon,
                    double w, double g) {
  const auto change = [&](double along) { return -shrink * w - rate * along; };
  if (optimizer == sgd) return change(g);
  if (optimizer == sign_sgd) return change(g > 0 ? 1 : -1);
  if (optimizer == adamw) return change(g / (std::abs(g) + epsilon));
  FAIL("define the first step of " << optimizer.name);
  return 0;
}

/// Of the forms of Muon, which differ by a factor, a sanitizer sees one.
bool is_left_out(const Optimizer& method) {
  return test::sanitized && method.normalization == policy::Normalization::by_matrix &&
         method != muon;
}

void check(const Optimizer& method) {
  INFO(method.name);
  Plan plan = small_plan();
  set_optimizer(plan, method);
  const OptimizerConfig config{.rate = 0.01, .weight_decay = 0.1, .momentum = 0.9, .epsilon = 0.05};
  Parameters<double> parameters(plan);
  Parameters<double> unobserved(plan);
  fill(parameters.values(), "values");
  unobserved.values() = parameters.values();
  PlannedOptimizer<double> optimizer(plan, config);
  PlannedOptimizer<double> other(plan, config);
  for (int step = 0; step < 3; ++step) {
    fill(parameters.gradients(), "gradients " + std::to_string(step));
    unobserved.gradients() = parameters.gradients();
    const Matrix<double> before = parameters.values();
    const double schedule = 1 - 0.25 * step;
    std::vector<std::string> names;
    std::vector<Matrix<double>> changes;
    optimizer.step(parameters, schedule,
                   [&](const std::string& name, const ConstView<double>& change) {
                     names.push_back(name);
                     changes.emplace_back(change);
                   });
    REQUIRE(names.size() == parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const ConstView<double> after = std::as_const(parameters).value(i);
      const Index offset = after.data() - std::as_const(parameters).values().data();
      const ConstView<double> gradient = std::as_const(parameters).gradient(i);
      INFO(names[i] << ", step " << step);
      CHECK(names[i] == parameters.name(i));
      REQUIRE(changes[i].rows() == after.rows());
      REQUIRE(changes[i].cols() == after.cols());
      const ConstView<double> old(before.data() + offset, after.rows(), after.cols(),
                                  Eigen::OuterStride<>(after.cols()));
      CHECK(changes[i] == Matrix<double>(after - old));
      CHECK(changes[i].cwiseAbs().minCoeff() > 0);
      if (step > 0 || is_whole(plan.entries[i])) continue;
      double worst = 0;
      for (Index j = 0; j < after.size(); ++j) {
        const double w = old.data()[j];
        const double expected =
            first_change(plan.entries[i].optimizer, optimizer.rate(i), optimizer.shrink(i),
                         optimizer.epsilon(i), w, gradient.data()[j]);
        worst = std::max(worst, std::abs(changes[i].data()[j] - expected));
      }
      CHECK(worst <= 32 * epsilon);
    }
    other.step(unobserved, schedule);
    CHECK(unobserved.values() == parameters.values());  // observed or not
  }
}

/// Three clipped steps under a falling schedule, one number at a time, as PyTorch's AdamW and SGD
/// define them: decay first, then the step along the moments of the clipped gradient.
void check_steps(const Optimizer& method, DecayForm decay) {
  INFO(method.name);
  Plan plan = small_plan(decay);
  set_optimizer(plan, method);
  const OptimizerConfig config{.rate = 0.01,
                               .weight_decay = 0.1,
                               .momentum = 0.8,
                               .beta1 = 0.7,
                               .beta2 = 0.6,
                               .epsilon = 0.05,
                               .clip_norm = 3};
  Parameters<double> parameters(plan);
  fill(parameters.values(), "values");
  PlannedOptimizer<double> optimizer(plan, config);
  Matrix<double> expected = parameters.values();
  Matrix<double> first = Matrix<double>::Zero(1, expected.size());
  Matrix<double> second = first;
  for (int t = 1; t <= 3; ++t) {
    fill(parameters.gradients(), "gradients " + std::to_string(t));
    const double schedule = 1 - 0.25 * t;
    const double norm = parameters.gradients().norm();
    REQUIRE(norm > 30);  // of some twenty thousand normal numbers, so that clipping shrinks it
    Index i = 0;
    for (const Entry& entry : plan.entries) {
      const double rate = 0.01 * schedule * entry.learning_rate.value;
      const double shrink =
          0.1 * entry.weight_decay.value * (decay == DecayForm::independent ? schedule : rate);
      if (is_whole(entry)) {
        const double shape = double(entry.fan_out) / double(entry.fan_in);
        const double longer = std::max(entry.fan_in, entry.fan_out);
        const double own = method == muon_fan_ratio     ? std::sqrt(shape)
                           : method == muon_original    ? std::sqrt(std::max(1.0, shape))
                           : method == muon_spectral    ? std::sqrt(longer)
                           : method == muon_match_adamw ? 0.2 * std::sqrt(longer)
                           : method == muon             ? 1
                                                        : std::nan("not defined");
        Matrix<double> gradients = parameters.gradients();
        const auto part = [&](Matrix<double>& of) {
          return View<double>(of.data() + i, entry.rows, entry.columns,
                              Eigen::OuterStride<>(entry.columns));
        };
        part(first) = 0.8 * part(first) + part(gradients) * 3 / norm;
        part(expected) = (1 - shrink) * part(expected) -
                         rate * own * orthogonal<double>(dense::read(Matrix<double>(part(first))));
        i += entry.rows * entry.columns;
        continue;
      }
      for (const Index end = i + entry.rows * entry.columns; i < end; ++i) {
        const double g = parameters.gradients()(0, i) * 3 / norm;
        double& m = first(0, i);
        double& v = second(0, i);
        double along = 0;
        if (entry.optimizer == adamw) {
          m = 0.7 * m + 0.3 * g;
          v = 0.6 * v + 0.4 * g * g;
          along = m / (1 - std::pow(0.7, t)) /
                  (std::sqrt(v / (1 - std::pow(0.6, t))) + 0.05 * entry.epsilon.value);
        } else if (method == sgd || method == sign_sgd) {
          m = 0.8 * m + g;
          along = method == sgd ? m : m > 0 ? 1 : -1;
        } else {
          FAIL("define the steps of " << method.name);
        }
        expected(0, i) = (1 - shrink) * expected(0, i) - rate * along;
      }
    }
    optimizer.step(parameters, schedule);
    const Matrix<double> error = parameters.values() - expected;
    // Some 20 roundings of numbers below 5, and as many of steps that are far smaller.
    CHECK(error.cwiseAbs().maxCoeff() <= 100 * epsilon);
  }
}

}  // namespace

TEST_CASE("Clipped steps under a schedule are those of the definition, in both forms of decay") {
  for (const DecayForm decay : {DecayForm::coupled, DecayForm::independent}) {
    if (test::sanitized && decay == DecayForm::independent) continue;
    for (const Optimizer& method : policy::known_optimizers) {
      if (!is_left_out(method)) check_steps(method, decay);
    }
  }
}

TEST_CASE("The observer of a step sees what it adds to each tensor") {
  for (const Optimizer& method : policy::known_optimizers) {
    if (!is_left_out(method)) check(method);
  }
}

TEST_CASE("An optimizer refuses numbers that it cannot use, by name") {
  const Plan plan = small_plan();
  const double none = std::nan("");
  const std::vector<std::pair<std::string, OptimizerConfig>> bad = {
      {"rate", {.rate = none}},
      {"rate", {.rate = -1}},
      {"beta1", {.beta1 = 1}},
      {"beta2", {.beta2 = 1}},
      {"momentum", {.momentum = -1}},
      {"epsilon", {.epsilon = -1e-8}},
      {"clip_norm", {.clip_norm = none}},
      {"weight_decay", {.weight_decay = -0.1}}};
  for (const auto& [field, config] : bad) {
    try {
      const PlannedOptimizer<double> optimizer(plan, config);
      FAIL_CHECK(field << " was accepted");
    } catch (const InvalidInput& error) {
      CHECK(std::string(error.what()).find(field) != std::string::npos);
    }
  }
}

TEST_CASE("An optimizer that the reference transformer lacks is refused") {
  Plan plan = small_plan();
  plan.optimizer = {.name = "unknown", .normalization = policy::Normalization::by_entry};
  CHECK_THROWS_WITH((PlannedOptimizer<double>(plan, {})),
                    Catch::Matchers::ContainsSubstring("optimizer = unknown"));
  Plan whole = small_plan();
  whole.entries.back().optimizer = {.name = "lamb",
                                    .normalization = policy::Normalization::by_matrix};
  CHECK_THROWS_WITH((PlannedOptimizer<double>(whole, {})),
                    Catch::Matchers::ContainsSubstring("optimizer = lamb"));
}

TEST_CASE("A penalty inside Adam's gradient is refused") {
  Plan plan = small_plan();
  plan.decay = DecayForm::l2;
  CHECK_THROWS_WITH((PlannedOptimizer<double>(plan, {})),
                    Catch::Matchers::ContainsSubstring("decay = l2"));
  plan.optimizer = sgd;
  for (Entry& entry : plan.entries) entry.optimizer = sgd;
  CHECK_NOTHROW(PlannedOptimizer<double>(plan, {}));
}

TEST_CASE("The length of a gradient is right where squares in float would not be") {
  const Plan plan = small_plan();
  Parameters<float> parameters(plan);
  for (const double size : {1e-23, 1.0, 1e25}) {
    parameters.gradients().setConstant(float(size));
    const double expected = double(float(size)) * std::sqrt(double(parameters.values().size()));
    CHECK(std::abs(gradient_norm(parameters) - expected) <= 1e-12 * expected);
  }
}

TEST_CASE("A matrix that a normalized transformer lacks is refused, not brought to some length") {
  Plan plan = make_plan("standard", {.model = token_shape()});
  plan.shape.blocks = Blocks::normalized;
  Parameters<double> parameters(plan);
  CHECK_THAT(error_message([&] { normalize_matrices(parameters, plan); }),
             Catch::Matchers::ContainsSubstring(
                 "position_embedding = position_embedding: expected no such matrix"));
}

TEST_CASE("Matrices of a normalized transformer get length one along d_model, and no others") {
  const Shape shape = token_shape();
  for (const std::string rule : {"ngpt", "standard"}) {
    const Plan plan = make_plan(rule, {.model = shape});
    Parameters<double> parameters(plan);
    fill(parameters.values(), "values");
    parameters.value(0).row(3).setZero();
    const Matrix<double> before = parameters.values();
    normalize_matrices(parameters, plan);
    if (rule == "standard") {
      CHECK(parameters.values() == before);
      continue;
    }
    const double* old = before.data();
    int matrices = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      INFO(parameters.name(i));
      const View<double> now = parameters.value(i);
      const Eigen::Map<const Matrix<double>> was(old, now.rows(), now.cols());
      old += now.size();
      if (now.rows() == 1) {
        CHECK(now == was);  // vectors
        continue;
      }
      // One of the sides is d_model, and no other size is 14: what runs along it gets length one.
      REQUIRE((now.rows() == 14) != (now.cols() == 14));
      ++matrices;
      Matrix<double> unit = was;
      if (now.cols() == 14) {
        unit.rowwise().normalize();
      } else {
        unit.colwise().normalize();
      }
      CHECK((now - unit).cwiseAbs().maxCoeff() <= 8 * epsilon);
    }
    CHECK(matrices >= 2 + 2 * 6);
  }
}

TEST_CASE("Plans of more numbers than there can be are refused before memory is asked for") {
  const auto refusal = [](const std::vector<Entry>& entries, auto make) {
    Plan plan;
    plan.entries = entries;
    return error_message([&] { make(plan); });
  };
  const auto parameters = [](const Plan& plan) { Parameters<float> made(plan); };
  const auto optimizer = [](const Plan& plan) { PlannedOptimizer<float> made(plan, {.rate = 1}); };
  const auto of_size = [](long rows, long columns) {
    Entry entry;
    entry.name = "w";
    entry.rows = rows;
    entry.columns = columns;
    return entry;
  };
  const std::string product = ": expected positive sizes whose product is below 2^63";
  for (const auto& [rows, columns] : {std::pair{3037000500L, 3037000500L},
                                      {1L << 62, 2L},
                                      {1L << 32, 1L << 32},
                                      {-3L, 5L},
                                      {-3L, -5L},
                                      {5L, 0L}}) {
    const std::string expected =
        "w = " + std::to_string(rows) + " x " + std::to_string(columns) + product;
    CHECK(refusal({of_size(rows, columns)}, parameters) == expected);
    CHECK(refusal({of_size(rows, columns)}, optimizer) == expected);
  }
  const std::vector<Entry> two{of_size(1L << 31, 1L << 31), of_size(1L << 31, 1L << 31)};
  const std::string sum = "parameter count = more than 2^63: expected a model that can be counted";
  CHECK(refusal(two, parameters) == sum);
  CHECK(refusal(two, optimizer) == sum);
}
