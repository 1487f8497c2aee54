// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Maximal update and its extensions to depth, against numbers computed here from the papers'
// tables.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "scalewise/policy/all.hpp"
#include "scalewise/presets.hpp"
#include "support/catch.hpp"
#include "support/numbers.hpp"

using namespace scalewise;
using namespace scalewise::test;

TEST_CASE("maximal update numbers") {
  // Ratios of target to base.
  const double N = 3;
  const double F = 2.5;
  const double Q = 4.5;  // of heads * head_dim
  const double K = 3;    // of kv_heads * head_dim
  Shape target = decoder();
  Shape base = decoder_base();
  target.tied_head = base.tied_head = false;

  /// Columns of one table: variance, multiplier, SGD, Adam as functions of fi and fo.
  struct Matrix {
    std::string name;
    double in;
    double out;
  };
  const std::vector<Matrix> hidden{
      {"query", N, Q},    {"key", N, K},      {"value", N, K},           {"mlp_up", N, F},
      {"mlp_gate", N, F}, {"mlp_down", F, N}, {"attention_output", Q, N}};
  const int table = GENERATE(3, 8, 9);
  CAPTURE(table);
  const MaximalUpdate policy{.table = table};
  const Plan adam = make_plan<MaximalUpdate, adamw>(target, base, policy);
  const Plan descent = make_plan<MaximalUpdate, sgd>(target, base, policy);

  SECTION("hidden") {
    for (const Matrix& m : hidden) {
      const std::string name = "layer.4." + m.name;
      const double epsilon = 1 / std::sqrt(m.out * N);
      check(adam, name,
            {.variance = 1 / m.in, .rate = 1 / m.in, .decay = m.in, .epsilon = epsilon});
      check(
          descent, name,
          {.variance = 1 / m.in, .rate = m.out / m.in, .decay = m.in / m.out, .epsilon = epsilon});
    }
  }
  SECTION("input") {
    const Numbers a = table == 9 ? Numbers{.variance = 1 / N,
                                           .multiplier = std::sqrt(N),
                                           .rate = 1 / std::sqrt(N),
                                           .decay = std::sqrt(N),
                                           .epsilon = 1 / std::sqrt(N)}
                                 : Numbers{.variance = 1, .epsilon = 1 / N};
    Numbers d = a;
    d.rate = table == 9 ? 1 : N;
    d.decay = 1 / d.rate;
    check(adam, "token_embedding", a);
    check(adam, "position_embedding", a);
    check(descent, "token_embedding", d);
    check(descent, "position_embedding", d);
    CHECK(near(adam.model.embedding_multiplier.value, a.multiplier));
    const Entry& gain = adam.at("layer.0.mlp_norm_gain");
    CHECK(near(gain.init_mean.value * gain.multiplier.value, 1));
    CHECK(near(gain.multiplier.value, a.multiplier));
    CHECK(near(gain.learning_rate.value, a.rate));
    CHECK(near(gain.epsilon.value, a.epsilon));
  }
  SECTION("output") {
    const std::map<int, Numbers> rows{{3, {.variance = 1 / (N * N), .rate = 1 / N, .decay = N}},
                                      {8, {.variance = 1, .multiplier = 1 / N, .epsilon = 1 / N}},
                                      {9,
                                       {.variance = 1 / N,
                                        .multiplier = 1 / std::sqrt(N),
                                        .rate = 1 / std::sqrt(N),
                                        .decay = std::sqrt(N),
                                        .epsilon = 1 / std::sqrt(N)}}};
    const std::map<int, double> rates{{3, 1 / N}, {8, N}, {9, 1}};
    check(adam, "head", rows.at(table));
    Numbers d = rows.at(table);
    d.rate = rates.at(table);
    d.decay = 1 / d.rate;
    check(descent, "head", d);
    CHECK(near(adam.model.logit_multiplier.value, rows.at(table).multiplier));
  }
  SECTION("attention scale sqrt(C0)/C") {
    CHECK(near(adam.model.attention_scale.value, std::sqrt(8.0) / 24));
    const Plan at_base = make_plan<MaximalUpdate, adamw>(base, base, policy);
    CHECK(near(at_base.model.attention_scale.value, 1 / std::sqrt(8.0)));
  }
  SECTION("a tied head is an input weight whose logits are divided") {
    Shape tied = target;
    Shape tied_base = base;
    tied.tied_head = tied_base.tied_head = true;
    const Plan plan = make_plan<MaximalUpdate, adamw>(tied, tied_base, policy);
    CHECK(plan.of(Group::head).empty());
    CHECK(near(plan.model.logit_multiplier.value, table == 9 ? 1 / std::sqrt(N) : 1 / N));
    CHECK(near(plan.at("token_embedding").init_variance.value, table == 9 ? 1 / N : 1));
  }
  SECTION("decay in the independent form does not depend on width") {
    for (const Entry& entry :
         make_plan<MaximalUpdate, adamw>(target, base, policy, DecayForm::independent).entries) {
      INFO(entry.name);
      CHECK(entry.weight_decay.value == 1);
    }
  }
  SECTION("zero initialization") {
    const MaximalUpdate zero{.table = table, .zero_head = true, .zero_query = true};
    const Plan plan = make_plan<MaximalUpdate, adamw>(target, base, zero);
    CHECK(plan.at("head").init_variance.value == 0);
    CHECK(plan.at("layer.1.query").init_variance.value == 0);
    CHECK(near(plan.at("layer.1.key").init_variance.value, 1 / N));
    CHECK(near(plan.at("head").learning_rate.value, adam.at("head").learning_rate.value));
  }
}

TEST_CASE("the three tables of maximal update are one rule") {
  // With t the ratio of multipliers: std/t, Adam rate/t, SGD rate/t², epsilon t, shrink per step.
  const int other = GENERATE(3, 9);
  const bool adam = GENERATE(true, false);
  const auto plan_of = [&](int table) {
    Shape target = decoder();
    Shape base = decoder_base();
    target.tied_head = base.tied_head = false;
    const MaximalUpdate policy{.table = table};
    return adam ? make_plan<MaximalUpdate, adamw>(target, base, policy)
                : make_plan<MaximalUpdate, sgd>(target, base, policy);
  };
  const Plan a = plan_of(8);
  const Plan b = plan_of(other);
  REQUIRE(a.entries.size() == b.entries.size());
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    const Entry& x = a.entries[i];
    const Entry& y = b.entries[i];
    INFO(x.name << ", table " << other);
    const double t = y.multiplier.value / x.multiplier.value;
    CHECK(near(y.init_variance.value * t * t, x.init_variance.value));
    CHECK(near(y.init_mean.value * t, x.init_mean.value));
    CHECK(near(y.learning_rate.value * (adam ? t : t * t), x.learning_rate.value));
    CHECK(near(y.epsilon.value, x.epsilon.value * t));
    CHECK(near(y.learning_rate.value * y.weight_decay.value,
               x.learning_rate.value * x.weight_decay.value));
  }
}

TEST_CASE("Epsilon of shared heads that stay as many while the width grows") {
  // llama-3-70b over llama-3-8b: n 8192/4096, kv_heads * head_dim 1024/1024, d_ff 2 as well.
  const Shape target = preset_shape("llama-3-70b");
  const Shape base = preset_shape("llama-3-8b");
  const Plan plan = make_plan<MaximalUpdate, adamw>(target, base);
  for (const char* name : {"key", "value"}) {
    CHECK(near(plan.at(std::string("layer.0.") + name).epsilon.value, 1 / std::sqrt(2.0)));
  }
  CHECK(near(plan.at("layer.0.query").epsilon.value, 0.5));
  CHECK(near(plan.at("layer.0.mlp_up").epsilon.value, 0.5));
}

TEST_CASE("CompleteP and Depth-muP numbers") {
  const double alpha = GENERATE(1.0, 0.5, 0.8);
  const double N = 3;
  const double F = 2.5;
  const double Q = 4.5;
  const double K = 3;
  const double L = 2.5;
  const double rate = std::pow(L, alpha - 1);
  const double epsilon = std::pow(L, -alpha) / N;
  Shape target = decoder();
  Shape base = decoder_base();
  const CompleteP policy{.alpha = alpha};
  const Plan plan = make_plan<CompleteP, adamw>(target, base, policy);
  const auto hidden = [&](const std::string& name, double in, double out) {
    check(plan, "layer.3." + name,
          {.variance = 1 / in,
           .rate = rate / in,
           .decay = in,
           .epsilon = std::pow(L, -alpha) / std::sqrt(out * N)});
  };
  hidden("query", N, Q);
  hidden("key", N, K);
  hidden("value", N, K);
  hidden("mlp_up", N, F);
  hidden("mlp_gate", N, F);
  hidden("mlp_down", F, N);
  hidden("attention_output", Q, N);
  check(plan, "token_embedding", {.variance = 1, .epsilon = 1 / N});
  check(plan, "position_embedding", {.variance = 1, .epsilon = 1 / N});
  check(plan, "head", {.variance = 1, .multiplier = 1 / N, .epsilon = 1 / N});
  check(plan, "layer.0.attention_norm_gain", {.rate = rate, .decay = 0, .epsilon = epsilon});
  check(plan, "layer.0.mlp_up_bias", {.rate = rate, .decay = 0, .epsilon = epsilon});
  check(plan, "final_norm_gain", {.decay = 0, .epsilon = 1 / N});
  REQUIRE(plan.model.residuals.size() == 5);
  for (const Residual& residual : plan.model.residuals) {
    CHECK(residual.skip.value == 1);
    CHECK(near(residual.branch.value, std::pow(L, -alpha)));
  }
  CHECK(near(plan.model.logit_multiplier.value, 1 / N));
  CHECK(near(plan.model.attention_scale.value, std::sqrt(8.0) / 24));

  // Shrink per step under an optimizer with the independent form.
  const Plan independent =
      make_plan<CompleteP, adamw>(target, base, policy, DecayForm::independent);
  CHECK(near(independent.at("layer.3.query").weight_decay.value, rate));
  CHECK(near(independent.at("head").weight_decay.value, 1));

  target.tied_head = base.tied_head = true;
  const Plan tied = make_plan<CompleteP, adamw>(target, base, policy);
  CHECK(near(tied.model.logit_multiplier.value, 1 / N));

  if (alpha == 0.5) {
    const Plan depth = make_plan<DepthMup, adamw>(target, base);
    CHECK(depth.entries == tied.entries);
    CHECK(depth.model.residuals == tied.model.residuals);
  }
}

TEST_CASE("the legend has the size or the ratio of every letter") {
  const Plan plan = make_plan<MaximalUpdate, adamw>(decoder(), decoder_base());
  std::map<std::string, double> values;
  for (const Symbol& symbol : plan.symbols) values[symbol.text] = symbol.value;
  // Sizes over those of the base: 96/32, 200/80, 6/4, 2/2 and 24/8.
  const std::map<std::string, double> expected{{"C", 24},    {"m_N", 3}, {"m_F", 2.5},
                                               {"m_H", 1.5}, {"m_K", 1}, {"m_C", 3}};
  CHECK(values == expected);
}
