// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Rules for depth, at concrete shapes, against numbers computed here from the papers' formulas.

#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "scalewise/policy/all.hpp"
#include "support/catch.hpp"
#include "support/numbers.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {

/// The recursion of DeepScaleLM, typed anew: r_1 ... r_L.
std::vector<double> correlations(double r0, double p, long layers, double k, double a) {
  const double share = k / std::pow(static_cast<double>(layers), a);
  std::vector<double> list;
  double c = (1 - p) * r0;
  for (long i = 0; i < layers; ++i) {
    list.push_back(c);
    c += share * ((1 - p) - c);  // the attention block's output has correlation 1 - p
    const double angle = std::acos(c);
    const double relu = (std::sin(angle) + (std::numbers::pi - angle) * c) / std::numbers::pi;
    c += share * ((1 - p) * relu - c);
  }
  return list;
}

}  // namespace

TEST_CASE("DeepScaleLM numbers") {
  Shape shape;
  shape.d_model = 256;
  shape.depth = 12;
  shape.heads = 4;
  shape.d_ff = 700;
  shape.context = 64;
  shape.vocab = 1000;
  shape.segments = 2;
  const double n = 256;
  const double p = GENERATE(0.0, 0.1, 0.3);
  const double k = GENERATE(2.0, 1.5);
  const double a = GENERATE(1.0, 1.25);
  CAPTURE(p, k, a);
  const DeepScaleLM policy{
      .dropout = p, .input_correlation = 0.25, .embedding_tables = 3, .k = k, .a = a};
  const Plan plan = make_plan<DeepScaleLM, adamw>(shape, {}, policy);
  const std::vector<double> r = correlations(0.25, p, 12, k, a);
  CHECK(near(r[0], 0.25 * (1 - p)));
  const double mlp = std::sqrt(2 * (1 - p) / (700 * n));
  for (const Residual& residual : plan.model.residuals) {  // what the letters of its formulas are
    REQUIRE(residual.where.size() == 1);
    CHECK(residual.where[0].text == "(1-β²)");
    CHECK(near(residual.where[0].value, 1 - k / std::pow(12, a)));
  }
  for (std::size_t layer = 0; layer < 12; ++layer) {
    const std::string prefix = "layer." + std::to_string(layer) + ".";
    const double attention = std::sqrt((1 - p) / r[layer]) / n;
    check_variance(plan, prefix + "query", 1 / n);
    check_variance(plan, prefix + "key", 1 / n);
    check_variance(plan, prefix + "value", attention);
    check_variance(plan, prefix + "attention_output", attention);
    check_variance(plan, prefix + "mlp_up", mlp);
    check_variance(plan, prefix + "mlp_down", mlp);
  }
  for (const char* name : {"token_embedding", "position_embedding", "segment_embedding"}) {
    check_variance(plan, name, (1 - p) / 3);
  }
  const double beta2 = k / std::pow(12.0, a);
  REQUIRE(plan.model.residuals.size() == 12);
  for (const Residual& residual : plan.model.residuals) {
    CHECK(near(residual.skip.value, std::sqrt(1 - beta2)));
    CHECK(near(residual.branch.value, std::sqrt(beta2)));
  }
  CHECK(near(plan.model.logit_multiplier.value, 1 / 16.0));
  CHECK(near(plan.model.attention_scale.value, 1 / 8.0));
  // The MLP keeps the variance at one for every F: n s1 F s2 / (2 (1-p)) = 1.
  CHECK(near(n * mlp * 700 * mlp / (2 * (1 - p)), 1));

  shape.tied_head = true;
  CHECK(near(make_plan<DeepScaleLM, adamw>(shape, {}, policy).model.logit_multiplier.value,
             1 / 16.0));

  const Plan simple = make_plan<DeepScaleLMSimple, adamw>(shape, {}, {.full = policy});
  for (const Group g : {Group::value, Group::attention_output}) {
    for (const Entry* entry : simple.of(g)) {
      CHECK(near(entry->init_variance.value, std::sqrt((1 - p) / 2) / n));
    }
  }
  CHECK(simple.model.residuals == plan.model.residuals);
}

TEST_CASE("DeepScaleLM's correlations where they are known") {
  // N = 12 and 192 layers, p = 0.1, r0 (1-p) = 0.2041: .7948 and .7896 after the last layer.
  const DeepScaleLM policy{.dropout = 0.1, .input_correlation = 0.2041 / 0.9};
  const PolicyView view(policy);
  CHECK(std::abs(view.token_correlations(12).back() - 0.7948) < 1e-4);
  CHECK(std::abs(view.token_correlations(192).back() - 0.7896) < 1e-4);
  CHECK(near(view.token_correlations(12).front(), 0.2041));
}

TEST_CASE("DeepNorm numbers") {
  SECTION("encoder and decoder") {
    const Plan plan = make_plan<DeepNorm, adamw>(encoder_decoder());
    const double pair = std::pow(6.0, 4) * 4;
    const double encoder_gain = 0.87 * std::pow(pair, -1.0 / 16);
    const double decoder_gain = std::pow(12.0 * 4, -1.0 / 4);
    const auto stack = [&](const std::string& prefix, double gain) {
      check_variance(plan, prefix + "query", 2 / 128.0);
      check_variance(plan, prefix + "key", 2 / 128.0);
      check_variance(plan, prefix + "value", gain * gain * 2 / 128);
      check_variance(plan, prefix + "attention_output", gain * gain * 2 / 128);
    };
    stack("encoder.0.", encoder_gain);
    stack("encoder.5.", encoder_gain);
    stack("decoder.3.", decoder_gain);
    stack("decoder.3.cross_", decoder_gain);
    for (const char* name : {"mlp_up", "mlp_down"}) {
      check_variance(plan, std::string("encoder.2.") + name,
                     encoder_gain * encoder_gain * 2 / (64 + 256));
      check_variance(plan, std::string("decoder.2.") + name,
                     decoder_gain * decoder_gain * 2 / (64 + 256));
    }
    REQUIRE(plan.model.residuals.size() == 10);
    for (const Residual& residual : plan.model.residuals) {
      const bool encoder = residual.stack == Stack::encoder;
      CHECK(near(residual.skip.value,
                 encoder ? 0.81 * std::pow(pair, 1.0 / 16) : std::pow(3.0 * 4, 0.25)));
      CHECK(residual.branch.value == 1);
    }
  }
  SECTION("one stack") {
    const Plan plan = make_plan<DeepNorm, adamw>(vision());
    const double gain = std::pow(8.0 * 3, -0.25);
    check_variance(plan, "layer.1.value", gain * gain * 2 / 384);
    check_variance(plan, "layer.1.key", 2 / 384.0);
    check_variance(plan, "layer.1.mlp_down", gain * gain * 2 / (192 * 5));
    CHECK(near(plan.model.residuals.at(2).skip.value, std::pow(6.0, 0.25)));
  }
}

TEST_CASE("DS-Init, LayerScale, ReZero, SkipInit numbers") {
  const Plan ds = make_plan<DsInit, adamw>(decoder());
  for (int l = 1; l <= 5; ++l) {
    const std::string prefix = "layer." + std::to_string(l - 1) + ".";
    check_variance(ds, prefix + "query", 2.0 / (l * (96 + 144)));
    check_variance(ds, prefix + "value", 2.0 / (l * (96 + 48)));
    check_variance(ds, prefix + "attention_output", 2.0 / (l * (144 + 96)));
    check_variance(ds, prefix + "mlp_down", 2.0 / (l * (200 + 96)));
  }
  check_variance(ds, "head", 2.0 / (96 + 101));

  for (const auto& [depth, gain] : std::map<long, double>{
           {1, 0.1}, {18, 0.1}, {19, 1e-5}, {24, 1e-5}, {25, 1e-6}, {40, 1e-6}}) {
    Shape shape = decoder();
    shape.depth = depth;
    const Plan plan = make_plan<LayerScale, adamw>(shape);
    const auto gains = plan.of(Group::residual_gain);
    CHECK(gains.size() == 2 * static_cast<std::size_t>(depth));
    for (const Entry* entry : gains) {
      CHECK(entry->init_mean.value == gain);
      CHECK(entry->init_variance.value == 0);
      CHECK(entry->rows * entry->columns == 96);
    }
    check_variance(plan, "layer.0.query", 0.0004);
  }
  const auto zero_gains = [](const Plan& plan) {
    const auto gains = plan.of(Group::residual_gain);
    REQUIRE(gains.size() == 10);
    for (const Entry* entry : gains) {
      CHECK(entry->init_mean.value == 0);
      CHECK(entry->init_variance.value == 0);
      CHECK(entry->rows * entry->columns == 1);
    }
  };
  const Plan rezero = make_plan<ReZero, adamw>(decoder());
  zero_gains(rezero);
  check_variance(rezero, "layer.0.mlp_up", 2.0 / (96 + 200));
  const Plan skip_init = make_plan<SkipInit, sgd>(decoder());
  zero_gains(skip_init);
  check_variance(skip_init, "layer.0.mlp_down", 2.0 / 200);
}
