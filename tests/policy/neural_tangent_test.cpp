// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/neural_tangent.hpp"

#include <cmath>

#include "scalewise/architecture/presets.hpp"
#include "scalewise/plan/constants.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;

namespace {
namespace neural_tangent_table {

using namespace scalewise::symbols;

// Cell by cell, retyped from arXiv:2304.02034v1: variances (1.25)-(1.34), SGD (1.99)-(1.107), AdamW
// (1.108)-(1.116), footnote 8.
constexpr Row nt(Group g) { return fans(NeuralTangent{}, g); }
static_assert(cells(nt(Group::patch_embedding), 1 / n_patch, 1 / n_patch, 1 / (n_patch * sqrt(n))));
static_assert(cells(nt(Group::token_embedding), 1, 1, 1 / sqrt(n)));
static_assert(cells(nt(Group::position_embedding), 1, 1, 1 / sqrt(n)));
static_assert(cells(nt(Group::query), 1 / n, 1 / n, 1 / (n * sqrt(n))));
static_assert(cells(nt(Group::key), 1 / n, 1 / n, 1 / (n * sqrt(n))));
static_assert(cells(nt(Group::value), 1 / n, 1 / n, 1 / (n * sqrt(n))));
static_assert(cells(nt(Group::attention_output), 1 / n, 1 / n, 1 / (n * sqrt(n))));
static_assert(cells(nt(Group::mlp_up), 1 / n, 1 / n, 1 / (n * sqrt(M * n))));
static_assert(cells(nt(Group::mlp_gate), 1 / n, 1 / n, 1 / (n * sqrt(M * n))));
static_assert(cells(nt(Group::mlp_down), 1 / (M * n), 1 / (M * n), 1 / (M * n * sqrt(n))));
static_assert(cells(nt(Group::head), 1 / n, 1 / n, 1 / (n * sqrt(n_out))));
// The head's bias is not decayed (section II 1 D).
static_assert(cells(nt(Group::head_bias), 0, 1, 1 / sqrt(n_out), 0));

// Heads that are not as wide as the model, or shared: the gradient of query, key and value is
// |g| = √(norm²/count) in (1.95), which is 1/√fan-out where (1.110)-(1.112) have 1/√n.
constexpr Row nt(Group g, const Scaling& in, const Scaling& out) {
  return bound(NeuralTangent{}.row(g), in, out);
}
static_assert(cells(nt(Group::query, n, HC), 1 / n, 1 / n, 1 / (n * sqrt(HC))));
static_assert(cells(nt(Group::key, n, KC), 1 / n, 1 / n, 1 / (n * sqrt(KC))));
static_assert(cells(nt(Group::value, n, KC), 1 / n, 1 / n, 1 / (n * sqrt(KC))));
static_assert(cells(nt(Group::attention_output, HC, n), 1 / HC, 1 / HC, 1 / (HC * sqrt(n))));

// Tensors that the paper's models lack: a gain or bias of fan-out n moves like (1.100).
static_assert(nt(Group::norm_gain).init_mean == Mean(1));
static_assert(nt(Group::norm_gain).init_variance == Variance(0));
static_assert(nt(Group::norm_gain).rate(sgd) == Rate(1));
static_assert(nt(Group::norm_gain).rate(adamw) == Rate(1 / sqrt(n)));
static_assert(nt(Group::final_norm_gain).init_mean == Mean(1));
static_assert(nt(Group::hidden_bias).init_variance == Variance(0));
static_assert(nt(Group::hidden_bias).rate(adamw) == Rate(1 / sqrt(n)));

static_assert(NeuralTangent{}.model().attention_scale == Multiplier(1 / sqrt(C)));
static_assert(NeuralTangent{}.model().logit_multiplier == Multiplier(1));
static_assert(NeuralTangent{}.model().tied_logit_multiplier == Multiplier(1 / sqrt(n)));
static_assert(NeuralTangent{}.model().residual_skip == Multiplier(1));
static_assert(NeuralTangent{}.model().residual_branch == Multiplier(1));
static_assert(NeuralTangent::reference == Reference::absolute);

// The experiments drop the factor of M from the two MLP AdamW rates, and from nothing else.
constexpr Row without_m(Group g) { return fans(NeuralTangent{.mlp_ratio_in_rates = false}, g); }
static_assert(without_m(Group::mlp_up).rate(adamw) == Rate(1 / (n * sqrt(n))));
static_assert(without_m(Group::mlp_gate).rate(adamw) == Rate(1 / (n * sqrt(n))));
static_assert(without_m(Group::mlp_down).rate(adamw) == Rate(1 / (n * sqrt(n))));
static_assert(without_m(Group::mlp_up).rate(sgd) == Rate(1 / n));
static_assert(without_m(Group::mlp_down).rate(sgd) == Rate(1 / (M * n)));
static_assert(without_m(Group::mlp_down).init_variance == Variance(1 / (M * n)));
static_assert(without_m(Group::query).rate(adamw) == Rate(1 / (n * sqrt(n))));

// Order-one constants multiply their own column of their own group.
constexpr Row with_constants(Group g) {
  NeuralTangent policy;
  policy.init_constant[Group::query] = 0.5;
  policy.rate_constant[Group::query] = 3;
  return fans(policy, g);
}
static_assert(with_constants(Group::query).init_variance == Variance(0.5 / n));
static_assert(with_constants(Group::query).rate(sgd) == Rate(3 / n));
static_assert(with_constants(Group::query).rate(adamw) == Rate(3 / (n * sqrt(n))));
static_assert(with_constants(Group::key).init_variance == Variance(1 / n));
static_assert(with_constants(Group::key).rate(adamw) == Rate(1 / (n * sqrt(n))));

}  // namespace neural_tangent_table
}  // namespace

TEST_CASE("neural-tangent numbers") {
  const double n = 96;
  SECTION("the tied head is the default; its logits are divided by the root of the width") {
    const Plan plan = make_plan(NeuralTangent{}, {.model = decoder()});
    CHECK(plan.of(Group::head).empty());
    CHECK(near(plan.model.logit_multiplier.value, 1 / std::sqrt(n)));
  }
  SECTION("decay in the independent form is one") {
    const Plan plan =
        make_plan(NeuralTangent{}, {.model = decoder(), .decay = DecayForm::independent});
    CHECK(plan.at("layer.0.query").weight_decay.value == 1);
    CHECK(plan.at("layer.0.mlp_down").weight_decay.value == 1);
  }
  SECTION("the vision experiments: order-one constants, no factor of M, no decay of the bias") {
    NeuralTangent policy;
    policy.mlp_ratio_in_rates = false;
    for (const Group g : {Group::query, Group::key, Group::value}) policy.init_constant[g] = 0.5;
    policy.init_constant[Group::attention_output] = 1.0 / 3;
    policy.init_constant[Group::mlp_up] = 2.0 / 5;
    policy.init_constant[Group::mlp_down] = 8.0 / 5;
    policy.init_constant[Group::position_embedding] = 0.02 * 0.02;
    const Plan plan = make_plan(policy, {.model = vision()});
    const double w = 192;
    CHECK(near(plan.at("layer.0.query").init_variance.value, 0.5 / w));
    CHECK(near(plan.at("layer.1.attention_output").init_variance.value, 1 / (3 * w)));
    CHECK(near(plan.at("layer.1.mlp_up").init_variance.value, 0.4 / w));
    CHECK(near(plan.at("layer.1.mlp_down").init_variance.value, 1.6 / (4 * w)));
    CHECK(near(plan.at("position_embedding").init_variance.value, 0.0004));
    CHECK(near(plan.at("layer.1.mlp_up").learning_rate.value, std::pow(w, -1.5)));
    CHECK(near(plan.at("layer.1.mlp_down").learning_rate.value, std::pow(w, -1.5)));
    CHECK(near(plan.at("patch_embedding").init_variance.value, 1.0 / 48));
    CHECK(near(plan.at("patch_embedding").learning_rate.value, 1 / (48 * std::sqrt(w))));
    CHECK(near(plan.at("head_bias").learning_rate.value, 1 / std::sqrt(10.0)));
    CHECK(plan.at("head_bias").init_variance.value == 0);
    CHECK(plan.at("head_bias").weight_decay.value == 0);
  }
}

TEST_CASE("neural-tangent numbers of heads wider than the model, and of shared ones") {
  // 1/(n √fan-out) and 1/√fan-out, the gradient's size in (1.95).
  const Plan wide = make_plan(NeuralTangent{}, {.model = preset_shape("t5-11b")});
  for (const char* name : {"query", "key", "value", "cross_query", "cross_key", "cross_value"}) {
    const Entry& entry = wide.at(std::string("decoder.0.") + name);  // 1024 -> 128 * 128
    CHECK(near(entry.learning_rate.value, 1.0 / (1024 * 128)));
    CHECK(near(entry.epsilon.value, 1.0 / 128));
  }
  const Plan shared = make_plan(NeuralTangent{}, {.model = preset_shape("llama-3-8b")});
  CHECK(near(shared.at("layer.0.query").learning_rate.value, 1.0 / (4096 * 64)));
  for (const char* name : {"key", "value"}) {
    const Entry& entry = shared.at(std::string("layer.0.") + name);  // 4096 -> 8 * 128
    CHECK(near(entry.learning_rate.value, 1.0 / (4096 * 32)));
    CHECK(near(entry.epsilon.value, 1.0 / 32));
  }
}

TEST_CASE("constants of the experiments, by their deviations") {
  // Tables of II 1 E and II 2 E: deviations; where they have a sharp sign, the numbers of II 1 C.
  const auto deviation = [](const Plan& plan, const char* name) {
    return std::sqrt(plan.at(name).init_variance.value);
  };
  NeuralTangent policy;
  policy.experiment_constants = true;
  const Plan images = make_plan(policy, {.model = preset_shape("vit-b16")});
  for (const char* name : {"layer.0.query", "layer.3.key", "layer.11.value"})
    CHECK(near(deviation(images, name), std::sqrt(0.5 / 768)));
  // Uniform in ±1/√n, footnote 38.
  CHECK(near(deviation(images, "layer.5.attention_output"), 1 / std::sqrt(3 * 768.0)));
  // Xavier's 2/(fan-in + fan-out).
  CHECK(near(deviation(images, "layer.0.mlp_up"), std::sqrt(2.0 / (768 + 3072))));
  CHECK(near(deviation(images, "layer.0.mlp_down"), std::sqrt(2.0 / (768 + 3072))));
  CHECK(near(deviation(images, "position_embedding"), 0.02));
  CHECK(near(deviation(images, "patch_embedding"), 1 / std::sqrt(768.0)));
  CHECK(near(deviation(images, "head"), 1 / std::sqrt(768.0)));
  for (const char* preset : {"bart-large", "r2c2-2.7b"}) {
    const Plan text = make_plan(policy, {.model = preset_shape(preset)});
    CHECK(deviation(text, "token_embedding") == 1);
    for (const Entry& entry : text.entries) {
      INFO(entry.name);
      if (role_of(entry.group) == Role::hidden || entry.group == Group::position_embedding)
        CHECK(near(std::sqrt(entry.init_variance.value), 0.02));
    }
    CHECK(text.at("encoder.0.query").learning_rate ==
          make_plan(NeuralTangent{}, {.model = preset_shape(preset)})
              .at("encoder.0.query")
              .learning_rate);
  }
  // On top of them C of a group; and the family has them, too.
  policy.init_constant[Group::query] = 3;
  const Plan more = make_plan(MetaPrincipled{.s = 1, .neural_tangent = policy},
                              {.model = preset_shape("vit-b16")});
  CHECK(near(deviation(more, "layer.0.query"), std::sqrt(1.5 / 768)));
  CHECK(near(deviation(more, "head"), 1 / 768.0));
}

TEST_CASE("between standard and neural-tangent tuning") {
  const auto constants = [](const auto& policy, const char* preset, double rate, double decay,
                            DecayForm form = DecayForm::coupled) {
    return plan::constants_of_standard(
        make_plan(policy, {.model = preset_shape(preset), .decay = form}), rate, decay);
  };
  for (const DecayForm form : {DecayForm::coupled, DecayForm::independent}) {
    // II 2 E: 1024^{3/2} 1e-3 = 32.768 and 0.01 1024^{-3/2}; (64.88, 1.08e-7) for R2C2.
    const auto bart = constants(NeuralTangent{}, "bart-large", 1e-3, 0.01, form);
    CHECK(bart[0].name == "rate");
    CHECK(near(bart[0].value, 32.768));
    CHECK(bart[1].name == "decay");
    CHECK(near(bart[1].value, 0.01 * std::pow(1024, -1.5)));
    const auto r2c2 = constants(NeuralTangent{}, "r2c2-2.7b", 7e-4, 0.01, form);
    CHECK(std::abs(r2c2[0].value - 64.88) < 0.005);
    CHECK(std::abs(r2c2[1].value - 1.08e-7) < 0.005e-7);
  }
  // II 1 E: 20 is 9.4e-4 at n = 768, and the family's hybrid has n^{5/4}.
  CHECK(near(constants(NeuralTangent{}, "vit-b16", 20 * std::pow(768, -1.5), 0)[0].value, 20));
  CHECK(near(constants(MetaPrincipled{.s = 0.5}, "vit-b16", 1, 0)[0].value, std::pow(768, 1.25)));
  CHECK(constants(MetaPrincipled{}, "vit-b16", 1, 0).size() == 1);
}

TEST_CASE("a plan from a standard run has its rate and decay for matrices") {
  const Shape shape = decoder_base();
  for (const DecayForm form : {DecayForm::coupled, DecayForm::independent}) {
    PlanRequest request{.model = shape, .decay = form};
    request.constants =
        plan::constants_of_standard(make_plan(NeuralTangent{}, request), 0.002, 0.3);
    const Plan plan = make_plan(NeuralTangent{}, request);
    const Entry& query = plan.at("layer.0.query");
    CHECK(near(query.learning_rate.value, 0.002));
    // Of a weight, the fraction that a step at the rate 1 and the decay 1 takes.
    CHECK(near(query.weight_decay.value * (form == DecayForm::coupled ? 0.002 : 1), 0.002 * 0.3));
    CHECK(near(plan.at("token_embedding").learning_rate.value, 0.002 * 32));  // n times as fast
  }
  const auto refusal = [&](const Plan& plan, double rate, double decay) {
    return error_message([&] { plan::constants_of_standard(plan, rate, decay); });
  };
  const Plan plan = make_plan(NeuralTangent{}, {.model = shape});
  CHECK_THAT(refusal(plan, 0, 0), ContainsSubstring("rate = 0: expected a positive number"));
  CHECK_THAT(refusal(plan, 1, -1), ContainsSubstring("decay = -1: expected 0 or more"));
  Shape base = shape;
  base.d_model = 16;
  base.head_dim = 4;
  CHECK_THAT(refusal(make_plan(MaximalUpdate{}, {.model = shape, .base = base}), 1, 0),
             ContainsSubstring("rule = maximal-update: expected one with rates of its own"));
  CHECK_THAT(refusal(make_plan(NuGpt{}, {.model = shape, .base = base}), 1, 0),
             ContainsSubstring("rule = nu-gpt: expected one with rates of its own"));
}
