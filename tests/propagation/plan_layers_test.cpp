// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Layers of a plan, and plans that the theory does not cover.

#include <cmath>
#include <cstddef>
#include <variant>

#include "propagation/small_model.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/complete_p.hpp"
#include "scalewise/policy/deep_norm.hpp"
#include "scalewise/policy/deep_scale_lm.hpp"
#include "scalewise/policy/ds_init.hpp"
#include "scalewise/policy/layer_scale.hpp"
#include "scalewise/policy/ngpt.hpp"
#include "scalewise/policy/pytorch.hpp"
#include "scalewise/policy/rezero.hpp"
#include "scalewise/policy/xavier.hpp"
#include "scalewise/propagation/depth_methods.hpp"
#include "scalewise/propagation/model.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

using namespace scalewise;
using namespace scalewise::test;
using namespace scalewise::propagation;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using Catch::Matchers::WithinRel;

TEST_CASE("Layers of a plan have the plan's variances and residual weights") {
  const Shape shape = small_shape();  // d = 32, d_ff = 96, 4 layers
  const double d = 32;
  SECTION("xavier") {
    const Layers layers = plan_layers(plan_of<Xavier>(shape), conditions());
    REQUIRE(layers.depth() == 4);
    for (std::size_t l = 0; l < 4; ++l) {
      const Attention& a = attention_at(layers, 2 * l);
      for (const double variance : {a.query, a.key, a.value, a.output}) {
        CHECK_THAT(variance, WithinRel(1 / d, 1e-13));
      }
      CHECK(a.width == 32);
      CHECK(a.heads == 32);
      CHECK(a.length == 16);
      CHECK_THAT(a.score_scale, WithinRel(1, 1e-13));
      CHECK(a.dropout == 0.1);
      CHECK(a.probability_dropout == 0.1);
      CHECK_FALSE(a.causal);
      const Mlp& m = mlp_at(layers, 2 * l + 1);
      CHECK_THAT(m.up, WithinRel(2.0 / (32 + 96), 1e-13));
      CHECK_THAT(m.down, WithinRel(2.0 / (32 + 96), 1e-13));
      CHECK(m.hidden == 96);
    }
    for (const Block& block : layers.blocks) CHECK((block.skip == 1 && block.branch == 1));
  }
  SECTION("deep-scale-lm") {
    const Layers layers = plan_layers(plan_of<DeepScaleLM>(shape), conditions());
    double r = 0.221 * 0.9;
    for (std::size_t l = 0; l < 4; ++l) {
      CHECK_THAT(layers.blocks[2 * l].skip, WithinRel(0.5, 1e-13));  // 1 - 2/4
      CHECK_THAT(layers.blocks[2 * l + 1].branch, WithinRel(0.5, 1e-13));
      const Attention& a = attention_at(layers, 2 * l);
      CHECK_THAT(a.query, WithinRel(1 / d, 1e-13));
      CHECK_THAT(a.value, WithinRel(std::sqrt(0.9 / r) / d, 1e-12));
      CHECK_THAT(a.output, WithinRel(std::sqrt(0.9 / r) / d, 1e-12));
      CHECK_THAT(mlp_at(layers, 2 * l + 1).up, WithinRel(std::sqrt(2 * 0.9 / (96 * d)), 1e-12));
      r = (r + 0.9) / 2;
      r = (r + 0.9 * relu_product(r)) / 2;
    }
  }
  SECTION("deep-norm") {
    const Layers layers = plan_layers(plan_of<DeepNorm>(shape), conditions());
    const double beta2 = 1 / std::sqrt(8.0 * 4);
    for (const Block& block : layers.blocks) {
      CHECK_THAT(block.skip, WithinRel(std::sqrt(2.0 * 4), 1e-12));
      CHECK(block.branch == 1);
    }
    CHECK_THAT(attention_at(layers, 0).query, WithinRel(1 / d, 1e-12));
    CHECK_THAT(attention_at(layers, 0).value, WithinRel(beta2 / d, 1e-12));
    CHECK_THAT(mlp_at(layers, 7).down, WithinRel(beta2 * 2 / 128, 1e-12));
  }
  SECTION("rezero") {
    const Layers layers = plan_layers(plan_of<ReZero>(shape), conditions());
    for (const Block& block : layers.blocks) CHECK((block.skip == 1 && block.branch == 0));
  }
  SECTION("layer-scale") {
    const Layers layers = plan_layers(plan_of<LayerScale>(shape), conditions());
    for (const Block& block : layers.blocks) {
      CHECK(block.skip == 1);
      CHECK_THAT(block.branch, WithinRel(0.01, 1e-13));  // 0.1²
    }
    CHECK_THAT(mlp_at(layers, 1).up, WithinRel(0.0004, 1e-13));
  }
  SECTION("ds-init") {
    const Layers layers = plan_layers(plan_of<DsInit>(shape), conditions());
    for (std::size_t l = 0; l < 4; ++l) {
      const double number = static_cast<double>(l) + 1;
      CHECK_THAT(attention_at(layers, 2 * l).key, WithinRel(1 / d / number, 1e-12));
      CHECK_THAT(mlp_at(layers, 2 * l + 1).down, WithinRel(2.0 / 128 / number, 1e-12));
    }
  }
}

TEST_CASE("An MLP of DeepScaleLM returns the variance one, whatever its activation") {
  Shape shape = small_shape();
  Conditions c = conditions();
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::silu}) {
    for (const bool gated : {false, true}) {
      CAPTURE(activation, gated);
      shape.activation = c.activation = activation;
      shape.gated_mlp = gated;
      const Plan plan = plan_of<DeepScaleLM>(shape);
      const Layers layers = plan_layers(plan, c);
      const Mlp& m = mlp_at(layers, 3);
      CHECK(m.gate.has_value() == gated);
      if (gated) CHECK(*m.gate == plan.at("layer.1.mlp_gate").init_variance.value);
      CHECK_THAT(mlp_block(correlated(1, 0.3), m).variance, WithinRel(1, 1e-11));
    }
  }
}

TEST_CASE(
    "An input's own variance and correlation enter DeepScaleLM's recursion as the moments have "
    "them") {
  // Speech, section 4.3 of the source: 2.2 and 0.29. Long sequences, as Table 2 has them; pre-norm.
  Shape shape = small_shape();
  Conditions c = conditions(1e9);
  shape.activation = c.activation = Activation::gelu;
  for (const double variance : {1.0, 2.2, 0.3}) {
    CAPTURE(variance);
    const DeepScaleLM rule{
        .dropout = 0.1, .input_correlation = 0.29, .input_variance = variance, .k = 1};
    const Plan plan = make_plan(rule, {.model = shape});
    const Profile profile = propagate(plan_layers(plan, c), correlated(variance, 0.29 * 0.9),
                                      correlated(1, 0.5), Reading::paper_simple);
    const std::vector<double> r = rule.token_correlations(4, plan.shape);
    double s = variance;
    for (std::size_t l = 0; l < 4; ++l) {
      const double expected = l == 0 ? 0.29 * 0.9 : profile.forward_at(l).correlation();
      CHECK_THAT(r[l], WithinRel(expected, 1e-11));
      CHECK_THAT(attention_at(plan_layers(plan, c), 2 * l).value,
                 WithinRel(std::sqrt(0.9 / r[l]) / 32, 1e-12));
      CHECK_THAT(profile.forward_at(l).variance, WithinRel(s, 1e-11));
      s = 0.75 * (0.75 * s + 0.25) + 0.25;
    }
  }
}

TEST_CASE("DeepScaleLM's recursion has a skip connection of one as the moments have it") {
  Shape shape = small_shape();
  Conditions c = conditions(1e9);
  shape.activation = c.activation = Activation::gelu;
  const DeepScaleLM rule{.dropout = 0.1, .input_correlation = 0.221, .k = 1, .unit_skip = true};
  const Plan plan = make_plan(rule, {.model = shape});
  const Profile profile = propagate(plan_layers(plan, c), correlated(1, 0.221 * 0.9),
                                    correlated(1, 0.5), Reading::paper_simple);
  const std::vector<double> r = rule.token_correlations(4, plan.shape);
  for (std::size_t l = 1; l < 4; ++l) {
    CHECK_THAT(profile.forward_at(l).variance, WithinRel(1 + 0.5 * static_cast<double>(l), 1e-11));
    CHECK_THAT(r[l], WithinRel(profile.forward_at(l).correlation(), 1e-11));
  }
}

TEST_CASE("DeepScaleLM's recursion has cross attention as the moments have it") {
  Shape shape = small_shape();
  shape.encoder_depth = 2;
  Conditions c = conditions(1e9);
  c.source_length = 1e9;
  shape.activation = c.activation = Activation::gelu;
  const DeepScaleLM rule{
      .dropout = 0.1, .input_correlation = 0.221, .k = 1, .cross_attention = true};
  const Plan plan = make_plan(rule, {.model = shape});
  const std::vector<double> of_encoder = rule.token_correlations(2, plan.shape);
  Layers decoder = plan_layers(plan, c, Stack::decoder);
  for (Block& block : decoder.blocks) {
    if (auto* cross = std::get_if<CrossAttention>(&block.inner))
      cross->memory = correlated(1, of_encoder.back());
  }
  const Profile profile =
      propagate_forward(decoder, correlated(1, 0.221 * 0.9), Reading::paper_simple);
  for (std::size_t l = 1; l < 4; ++l) {
    const double r = profile.forward.at(3 * l).correlation();
    CHECK_THAT(attention_at(decoder, 3 * l).value, WithinRel(std::sqrt(0.9 / r) / 32, 1e-11));
  }
  CHECK_THAT(attention_at(plan_layers(plan, c, Stack::encoder), 2).value,
             WithinRel(std::sqrt(0.9 / of_encoder[1]) / 32, 1e-12));
}

TEST_CASE("Both stacks of a plan become layers") {
  Shape shape = small_shape();
  shape.encoder_depth = 2;
  shape.depth = 3;
  Conditions c = conditions(8);
  c.source_length = 12;
  const Plan plan = plan_of<DeepScaleLM>(shape, {.k = 1});
  const Layers encoder = plan_layers(plan, c, Stack::encoder);
  const Layers decoder = plan_layers(plan, c, Stack::decoder);
  CHECK(encoder.depth() == 2);
  CHECK(decoder.depth() == 3);
  CHECK(attention_at(encoder, 0).length == 12);
  CHECK_FALSE(attention_at(encoder, 0).causal);
  CHECK(attention_at(decoder, 0).length == 8);
  CHECK(attention_at(decoder, 0).causal);
  const auto& cross = std::get<CrossAttention>(decoder.blocks[4].inner);
  CHECK(cross.attention.length == 12);
  CHECK_FALSE(cross.attention.causal);
  CHECK(cross.queries == 8);
  // The second layer's, after one step of the recursion with β² = 1/3.
  double r = 0.221 * 0.9;
  r = (2 * r + 0.9) / 3;
  r = (2 * r + 0.9 * relu_product(r)) / 3;
  CHECK_THAT(cross.attention.value, WithinRel(std::sqrt(0.9 / r) / 32, 1e-12));
  CHECK_THAT(decoder.blocks[4].branch, WithinRel(1.0 / 3, 1e-13));
}

TEST_CASE("Multipliers and scales of a plan count as the variances they amount to") {
  Plan plan = plan_of<Xavier>(small_shape());
  for (Entry& e : plan.entries) {
    if (e.group == Group::value) e.multiplier.value = 3;
  }
  plan.model.attention_scale.value = 0.5;  // 2/√head_dim
  const Layers layers = plan_layers(plan, conditions());
  CHECK_THAT(attention_at(layers, 2).value, WithinRel(9.0 / 32, 1e-13));
  CHECK_THAT(attention_at(layers, 2).score_scale, WithinRel(2, 1e-13));
  // Scores four times as large in variance.
  const SignalMoments x = correlated(1, 0.5);
  CHECK_THAT(attention_validity(x, attention_at(layers, 2)).value,
             WithinRel(std::exp(4 * 0.5) * (std::exp(4 * 0.5) - 0.5) / 16, 1e-12));
}

TEST_CASE("Plans that the theory does not cover are refused, and why") {
  const auto refusal = [](const Plan& plan, const Conditions& c = conditions()) {
    return error_message([&] { plan_layers(plan, c); });
  };
  Shape shape = small_shape();
  const Plan relative = make_plan(CompleteP{}, {.model = shape, .base = shape});
  CHECK_THAT(refusal(relative),
             ContainsSubstring("rule = complete-p: expected a rule whose variances are absolute"));
  CHECK_THAT(refusal(relative),
             ContainsSubstring("the theory of signal propagation covers no other"));
  CHECK_THAT(error_message([&] { embedding(relative, conditions(), Data{}); }),
             ContainsSubstring("absolute"));
  CHECK_THAT(refusal(plan_of<NGpt>(shape)),
             ContainsSubstring("blocks = not residual: expected residual blocks"));
  Conditions gelu = conditions();
  gelu.activation = Activation::gelu;
  CHECK_THAT(refusal(plan_of<DeepScaleLM>(shape), gelu),
             ContainsSubstring("activation = gelu: expected relu"));
  CHECK(refusal(plan_of<Xavier>(shape), gelu) == "no error");
  Shape biased = shape;
  biased.biases = true;
  CHECK_THAT(refusal(plan_of<PyTorch>(biased)),
             ContainsSubstring("expected biases that start at zero"));
  CHECK_THAT(refusal(plan_of<PyTorch>(biased)), ContainsSubstring("layer.0."));
  CHECK(refusal(plan_of<Xavier>(biased)) == "no error");  // they start at zero
  CHECK(refusal(plan_of<PyTorch>(shape)) == "no error");
  Shape bucketed = shape;
  bucketed.relative_buckets = 8;
  CHECK_THAT(refusal(plan_of<Xavier>(bucketed)),
             ContainsSubstring("relative_buckets = 8: expected 0"));
  Plan gains = plan_of<Xavier>(shape);
  for (Entry& e : gains.entries) {
    if (e.group == Group::norm_gain) e.init_mean.value = 0.5;
  }
  CHECK_THAT(refusal(gains), ContainsSubstring("expected norm gains that start at one"));
  Conditions c = conditions();
  c.dropout = 1;
  CHECK_THAT(refusal(plan_of<Xavier>(shape), c), ContainsSubstring("dropout = 1"));
  CHECK_THAT(refusal(plan_of<Xavier>(shape), conditions(0)),
             ContainsSubstring("length = 0: expected at least one token"));

  CHECK_THAT(error_message([&] { embedding(plan_of<Xavier>(shape), c, Data{}); }),
             ContainsSubstring("dropout = 1"));
  for (const Group group : {Group::final_norm_gain, Group::final_norm_bias}) {
    Plan ends = plan_of<Xavier>(shape);
    for (Entry& e : ends.entries) {
      if (e.group == group) e.init_mean.value = 0.5, e.init_variance.value = 1;
    }
    CHECK_THAT(refusal(ends), ContainsSubstring("final_norm"));
  }
  Shape classes = shape;
  classes.input = Input::patch;
  classes.patch_dim = 4;
  classes.classes = 3;
  classes.class_token = true;
  for (const Group group : {Group::patch_bias, Group::head_bias}) {
    classes.biases = true;
    Plan starts = plan_of<Xavier>(classes);
    CHECK(refusal(starts) == "no error");
    for (Entry& e : starts.entries) {
      if (e.group == group) e.init_variance.value = 1;
    }
    CHECK_THAT(refusal(starts), ContainsSubstring("bias = 1: expected biases that start at zero"));
  }
  CHECK_THAT(error_message([&] {
               loss_gradient(plan_of<Xavier>(classes), conditions(), Data{}, correlated(1, 0));
             }),
             ContainsSubstring("class_token = true: expected the mean over patches"));
  CHECK_THAT(error_message([] { depth_layers(DepthMethod::deep_scale_lm, DepthModel{}, 2); }),
             ContainsSubstring("depth = 2: expected more layers than k"));
  CHECK_THAT(error_message([] { depth_layers(DepthMethod::vanilla, DepthModel{}, 0); }),
             ContainsSubstring("depth = 0: expected a whole number from 1 to 1000000"));
  CHECK_THAT(error_message([] { depth_layers(DepthMethod::deep_norm, DepthModel{}, 4); }),
             ContainsSubstring("deep-norm is for post-norm models"));

  const SignalMoments m;
  Shape both = shape;
  both.encoder_depth = 2;
  CHECK_THAT(error_message([&] { predict(plan_of<Xavier>(both), conditions(), m, m); }),
             ContainsSubstring("encoder_depth = 2: expected 0 (hint: predict_encoder_decoder()"));
  CHECK_THAT(
      error_message(
          [&] { predict_encoder_decoder(plan_of<Xavier>(shape), conditions(), m, m, m); }),
      ContainsSubstring(
          "encoder_depth = 0: expected a positive number (hint: predict() is for one stack)"));
  CHECK_THAT(error_message(
                 [&] { predict_encoder_decoder(plan_of<Xavier>(shape), conditions(0), m, m, m); }),
             ContainsSubstring("encoder_depth"));
}

TEST_CASE("Conditions out of range are refused") {
  const Plan plan = plan_of<Xavier>(small_shape());
  const auto message = [&](auto change) {
    Conditions c = conditions();
    change(c);
    return error_message([&] { plan_layers(plan, c); });
  };
  CHECK_THAT(message([](Conditions& c) { c.length = 0; }), StartsWith("length = 0: expected"));
  CHECK_THAT(message([](Conditions& c) { c.source_length = -3; }),
             StartsWith("source_length = -3: expected at least one token"));
  CHECK_THAT(message([](Conditions& c) { c.norm_epsilon = -1; }),
             StartsWith("norm_epsilon = -1: expected"));
  CHECK_THAT(message([](Conditions& c) { c.dropout = 1; }), StartsWith("dropout = 1: expected"));
  Conditions c = conditions();
  c.norm_epsilon = -1;
  CHECK_THROWS_AS(embedding(plan, c, Data{}), InvalidInput);
  CHECK_THROWS_AS(embedding(plan, c, TokenCovariance(2, SignalMoments{})), InvalidInput);
}
