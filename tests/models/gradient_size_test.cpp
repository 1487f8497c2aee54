// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Adam's epsilon has to follow the gradient: the gradients of the reference transformer at
// initialization change with the shape as the planned epsilons do. And DeepScaleLM has to keep the
// variance of what its MLPs return.

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "instances/transformer.hpp"
#include "scalewise/nn/initialize.hpp"
#include "scalewise/policy/all.hpp"
#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;
using Network = Transformer<double>;

Shape one_layer(long d_model, long heads, long kv_heads, long d_ff) {
  Shape s{.d_model = d_model, .depth = 1, .heads = heads, .kv_heads = kv_heads, .head_dim = 16};
  s.d_ff = d_ff;
  s.context = 8;
  s.vocab = 32;
  s.tied_head = false;
  return s;
}

Batch<double> token_batch(std::uint64_t seed) {
  numeric::RandomStream stream(seed, "batch");
  Batch<double> batch;
  batch.size = 4;
  for (int i = 0; i < 32; ++i) {
    batch.tokens.push_back(static_cast<int>(32 * stream.uniform()));
    batch.targets.push_back(static_cast<int>(32 * stream.uniform()));
  }
  return batch;
}

/// The mean over draws, with its standard error, of the log of the root mean square of gradients.
struct Sample {
  double sum = 0;
  double squares = 0;
  double count = 0;

  void add(double x) {
    sum += x;
    squares += x * x;
    count += 1;
  }
  double mean() const { return sum / count; }
  double error() const { return std::sqrt((squares / count - mean() * mean()) / (count - 1)); }
};

/// Of every tensor of a plan, over 40 draws of weights and data.
std::vector<Sample> gradients(const Plan& plan) {
  // Small logits, so that their gradient does not depend on the width.
  BaseDeviation base = BaseDeviation::uniform(0.125);
  base.values[static_cast<std::size_t>(Group::head)] = 0.0125;
  Network model(plan, {});
  std::vector<Sample> samples(plan.entries.size());
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    initialize(model.parameters(), plan, seed, base);
    model.loss_and_gradient(token_batch(seed));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto g = model.parameters().gradient(i);
      samples[i].add(0.5 * std::log(g.squaredNorm() / static_cast<double>(g.size())));
    }
  }
  return samples;
}

/// How far a ratio of epsilons is from that of the gradients, in standard errors.
class Comparison {
 public:
  Comparison(Plan from, Plan to)
      : from_(std::move(from)),
        to_(std::move(to)),
        before_(gradients(from_)),
        after_(gradients(to_)) {}

  double planned(const std::string& name) const {
    return to_.at(name).epsilon.value / from_.at(name).epsilon.value;
  }
  double distance(const std::string& name, double ratio) const {
    const Sample& a = of(before_, from_, name);
    const Sample& b = of(after_, to_, name);
    return std::abs(b.mean() - a.mean() - std::log(ratio)) / std::hypot(a.error(), b.error());
  }

 private:
  static const Sample& of(const std::vector<Sample>& all, const Plan& plan,
                          const std::string& name) {
    std::size_t at = 0;
    while (plan.entries.at(at).name != name) ++at;
    return all[at];
  }

  Plan from_, to_;
  std::vector<Sample> before_, after_;
};

// Distances have a mean near 0 and a standard deviation near 1 under the rule; beyond 5 they are
// once in 300,000 (Student's t, 78 degrees of freedom), so all checks below raise a false alarm once
// in 10,000 sets of seeds. Formulas that are off by a factor of 2 or 4 are more than 20 away.
// Biases of keys are left out: softmax does not see them, and their gradient is rounding.
constexpr double within = 5;
constexpr double beyond = 20;

void check_followed(const Comparison& c) {
  for (const char* kind : {"query", "key", "value", "attention_output", "mlp_up", "mlp_down",
                           "query_bias", "value_bias", "mlp_up_bias", "attention_norm_gain"}) {
    const std::string name = std::string("layer.0.") + kind;
    INFO(name);
    CHECK(c.distance(name, c.planned(name)) < within);
  }
}

}  // namespace

TEST_CASE("Epsilon of neural tangent follows the gradients of heads wider than the model") {
  const Comparison c(make_plan(NeuralTangent{}, {.model = one_layer(64, 4, 4, 256)}),
                     make_plan(NeuralTangent{}, {.model = one_layer(64, 64, 64, 256)}));
  check_followed(c);
  for (const char* name : {"layer.0.query", "layer.0.key", "layer.0.value"}) {
    CHECK(c.planned(name) == 0.25);
    CHECK(c.distance(name, 1) > beyond);  // 1/√n: the paper's heads fill the width
  }
}

TEST_CASE("Epsilon of neural tangent follows the gradients of shared heads") {
  const Comparison c(make_plan(NeuralTangent{}, {.model = one_layer(128, 8, 8, 256)}),
                     make_plan(NeuralTangent{}, {.model = one_layer(128, 8, 2, 256)}));
  check_followed(c);
  for (const char* name : {"layer.0.key", "layer.0.value"}) {
    CHECK(c.planned(name) == 2);
    CHECK(c.distance(name, 1) > beyond);
  }
}

TEST_CASE("Epsilon of maximal update follows the gradients where fan-outs do not grow") {
  const Shape base = one_layer(64, 4, 2, 256);
  const Shape target = one_layer(256, 16, 2, 256);
  const Comparison c(make_plan(MaximalUpdate{}, {.model = base, .base = base}),
                     make_plan(MaximalUpdate{}, {.model = target, .base = base}));
  check_followed(c);
  for (const char* name : {"layer.0.key", "layer.0.value", "layer.0.mlp_up"}) {
    CHECK(c.planned(name) == 0.5);
    CHECK(c.distance(name, 0.25) > beyond);  // 1/m_N: all widths grow alike
  }
}

TEST_CASE("DeepScaleLM's MLPs return a variance of one with ReLU, and are refused with others") {
  const Plan plan = make_plan(DeepScaleLM{.dropout = 0, .input_correlation = 0.2, .k = 0.5},
                              {.model = one_layer(64, 4, 4, 256)});
  const auto refusal = [&](const Config& config) {
    return error_message([&] { Network(plan, config); });
  };
  CHECK(refusal({}).starts_with("activation = gelu: expected relu"));
  CHECK(refusal({.activation = Activation::silu}).starts_with("activation = silu: expected relu"));

  // The variance at unit input, over 40 draws; with GELU only for a plan that says nothing of it.
  const auto variance = [&](Activation activation) {
    Plan open = plan;
    open.shape.activation.reset();
    Network model(open, {.activation = activation});
    Sample sample;
    model.observe([&](std::string_view name, Observed quantity, const ConstView<double>& values) {
      if (name != "layer.0.mlp.output" || quantity != Observed::value) return;
      sample.add(values.squaredNorm() / static_cast<double>(values.size()));
    });
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      initialize(model.parameters(), open, seed);
      model.loss(token_batch(seed));
    }
    REQUIRE(sample.count == 40);
    return sample;
  };
  const Sample relu = variance(Activation::relu);
  CHECK(std::abs(relu.mean() - 1) < within * relu.error());
  const Sample gelu = variance(Activation::gelu);  // 0.80 where the pre-activations have 1/√2
  CHECK(std::abs(gelu.mean() - 1) > within * gelu.error());
}
