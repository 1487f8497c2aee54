// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Gradients of single logits of the reference transformer, and the kernel that they make, against
// central differences. Sizes are pairwise distinct: B = 2, T = 3, H = 4, K = 2, D = 6, C = 8,
// F = 10, V = 7.

#include <algorithm>
#include <vector>

#include "check/logit_gradient.hpp"
#include "scalewise/check/tangent_kernel.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/model_gradient.hpp"
#include "support/small_shapes.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

Plan tiny_plan() {
  return make_plan("neural-tangent", {.model = grouped_shape(), .optimizer = sgd});
}

/// Rows of the Jacobian of two logits of each sequence.
const std::vector<std::pair<Index, Index>> places{{2, 0}, {2, 5}, {5, 0}, {5, 5}};

}  // namespace

TEST_CASE("The gradient of a logit begins with one at its place and zero elsewhere") {
  const Plan plan = tiny_plan();
  Transformer<double> model(plan, {});
  prepare(model, plan);
  int seen = 0;
  model.observe([&](std::string_view name, Observed quantity, const ConstView<double>& d) {
    if (name != "logits" || quantity != Observed::gradient) return;
    ++seen;
    CHECK(std::abs(d(4, 3) - 1) <= epsilon);
    CHECK(std::abs(d.cwiseAbs().sum() - d(4, 3)) == 0);
  });
  experiment::logit_gradient(model, random_batch(plan.shape, 2, 3, 0), 4, 3);
  CHECK(seen == 1);
}

TEST_CASE("The empirical kernel agrees with central differences, tensor by tensor") {
  const Plan plan = tiny_plan();
  Transformer<double> model(plan, {});
  prepare(model, plan);
  const Batch<double> batch = random_batch(plan.shape, 2, 3, 0);
  const auto parameters = static_cast<std::size_t>(model.parameters().values().size());

  GradientError worst;
  std::vector<std::vector<double>> jacobian;  // by central differences
  for (const auto& [row, column] : places) {
    experiment::logit_gradient(model, batch, row, column);
    const Matrix<double> analytic = model.parameters().gradients();
    const auto logit = [&, r = row, c = column] {
      model.loss(batch);
      return model.logits()(r, c);
    };
    View<double> values = model.parameters().values();
    jacobian.emplace_back();
    const double floor = std::max(1e-3 * largest(analytic), rounding_floor(3));
    for (Index p = 0; p < values.size(); ++p) {
      const double numeric = central_difference(values(0, p), logit);
      jacobian.back().push_back(numeric);
      worst.offer("parameter " + std::to_string(p), analytic(0, p), numeric, floor);
    }
  }
  INFO(worst);
  CHECK(worst.accepted());

  std::vector<check::ParameterRange> ranges;
  std::size_t begin = 0;
  for (const Entry& entry : plan.entries) {
    ranges.push_back({entry.name, begin, static_cast<std::size_t>(entry.rows * entry.columns)});
    begin += ranges.back().size;
  }
  REQUIRE(begin == parameters);
  const check::TangentKernel kernel = check::tangent_kernel<double>(
      places.size(), parameters, ranges,
      [&](std::size_t i, std::span<double> row) {
        experiment::logit_gradient(model, batch, places[i].first, places[i].second);
        const View<double> g = model.parameters().gradients();
        std::copy(g.data(), g.data() + g.size(), row.begin());
      },
      3);
  double total = 0;
  double difference = 0;
  for (std::size_t g = 0; g < ranges.size(); ++g) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (std::size_t j = 0; j < places.size(); ++j) {
        double numeric = 0;
        for (std::size_t p = ranges[g].begin; p < ranges[g].begin + ranges[g].size; ++p) {
          numeric += jacobian[i][p] * jacobian[j][p];
        }
        difference += std::abs(kernel.parts[g][i * places.size() + j] - numeric);
        total += std::abs(numeric);
      }
    }
  }
  CHECK(total > 1);
  CHECK(difference < 2 * gradient_relative * total);
}
