// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Plans at concrete shapes against numbers computed here from the papers' formulas.

#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "scalewise/registry.hpp"
#include "support/catch.hpp"

namespace {

using namespace scalewise;

constexpr Optimizer sgd = Optimizer::sgd;
constexpr Optimizer adamw = Optimizer::adamw;

bool near(double a, double b) {
  return std::abs(a - b) <= 1e-13 * std::max(std::abs(a), std::abs(b));
}

/// Grouped queries, heads wider than the model, d_ff = 25/12 n, gated.
Shape decoder() {
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
Shape decoder_base() {
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
Shape vision() {
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

Shape encoder_decoder() {
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

void check(const Plan& plan, const std::string& name, const Numbers& expected) {
  const Entry& entry = plan.at(name);
  INFO(plan.rule << ", " << name);
  CHECK(near(entry.init_variance.value, expected.variance));
  CHECK(near(entry.multiplier.value, expected.multiplier));
  CHECK(near(entry.learning_rate.value, expected.rate));
  CHECK(near(entry.weight_decay.value, expected.decay));
  CHECK(near(entry.epsilon.value, expected.epsilon));
}

/// Of a rule that scales the initialization alone.
void check_variance(const Plan& plan, const std::string& name, double variance) {
  check(plan, name, {.variance = variance});
}

}  // namespace

TEST_CASE("neural-tangent numbers") {
  const double n = 96;
  const double F = 200;
  const double V = 101;

  SECTION("AdamW, untied: rates, and decays that undo them") {
    Shape shape = decoder();
    shape.tied_head = false;
    const Plan plan = make_plan<NeuralTangent, adamw>(shape);
    const auto row = [&](const std::string& name, double variance, double rate, double epsilon) {
      check(plan, name,
            {.variance = variance, .rate = rate, .decay = 1 / rate, .epsilon = epsilon});
    };
    row("token_embedding", 1, std::pow(n, -0.5), std::pow(n, -0.5));
    row("position_embedding", 1, std::pow(n, -0.5), std::pow(n, -0.5));
    row("layer.3.mlp_up", 1 / n, 1 / (n * std::sqrt(F)), 1 / std::sqrt(F));
    row("layer.3.mlp_gate", 1 / n, 1 / (n * std::sqrt(F)), 1 / std::sqrt(F));
    row("layer.4.mlp_down", 1 / F, 1 / (F * std::sqrt(n)), 1 / std::sqrt(n));
    row("head", 1 / n, 1 / (n * std::sqrt(V)), 1 / std::sqrt(V));
    CHECK(near(plan.model.attention_scale.value, 1 / std::sqrt(24.0)));
    CHECK(plan.model.logit_multiplier.value == 1);
    CHECK(plan.model.embedding_multiplier.value == 1);
    CHECK(plan.at("final_norm_gain").init_mean.value == 1);
  }
  SECTION("SGD, heads that fill the width, M = 4") {
    Shape shape = decoder();
    shape.heads = shape.kv_heads = 4;
    shape.d_ff = 0;
    const Plan plan = make_plan<NeuralTangent, sgd>(shape);
    for (const char* name : {"query", "key", "value", "attention_output", "mlp_up"}) {
      check(plan, std::string("layer.0.") + name,
            {.variance = 1 / n,
             .rate = 1 / n,
             .decay = n,
             .epsilon = plan.at(std::string("layer.0.") + name).epsilon.value});
    }
    CHECK(near(plan.at("layer.0.mlp_down").learning_rate.value, 1 / (4 * n)));
    CHECK(plan.at("token_embedding").learning_rate.value == 1);
  }
  SECTION("the tied head is the default; its logits are divided by the root of the width") {
    const Plan plan = make_plan<NeuralTangent, adamw>(decoder());
    CHECK(plan.of(Group::head).empty());
    CHECK(near(plan.model.logit_multiplier.value, 1 / std::sqrt(n)));
  }
  SECTION("decay in the independent form is one") {
    const Plan plan = make_plan<NeuralTangent, adamw>(decoder(), {}, {}, DecayForm::independent);
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
    const Plan plan = make_plan<NeuralTangent, adamw>(vision(), {}, policy);
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

TEST_CASE("meta-principled numbers") {
  const double s = GENERATE(0.0, 0.3, 0.5, 0.7071, 1.0);
  const double n = 192;
  const MetaPrincipled policy{.s = s};

  const Plan plan = make_plan<MetaPrincipled, adamw>(vision(), {}, policy);
  const double up = std::pow(n, s / 2);
  CHECK(near(plan.at("head").init_variance.value, std::pow(n, -1 - s)));
  CHECK(near(plan.at("head").learning_rate.value, 1 / (n * std::sqrt(10.0))));
  CHECK(near(plan.at("patch_embedding").learning_rate.value, up / (48 * std::sqrt(n))));
  CHECK(near(plan.at("position_embedding").learning_rate.value, up / std::sqrt(n)));
  CHECK(near(plan.at("layer.2.value").learning_rate.value, up * std::pow(n, -1.5)));
  CHECK(near(plan.at("layer.2.mlp_up").learning_rate.value, up / (n * std::sqrt(4 * n))));
  CHECK(near(plan.at("layer.2.mlp_down").learning_rate.value, up / (4 * n * std::sqrt(n))));
  CHECK(near(plan.at("layer.2.mlp_down").weight_decay.value, 4 * n * std::sqrt(n) / up));

  const Plan descent = make_plan<MetaPrincipled, sgd>(vision(), {}, policy);
  CHECK(near(descent.at("layer.2.value").learning_rate.value, std::pow(n, s - 1)));
  CHECK(near(descent.at("head").learning_rate.value, 1 / n));
  CHECK(near(descent.at("head_bias").learning_rate.value, 1));

  const Plan tied = make_plan<MetaPrincipled, adamw>(decoder(), {}, policy);
  CHECK(near(tied.model.logit_multiplier.value, std::pow(96.0, -(1 + s) / 2)));
  CHECK(near(tied.at("token_embedding").learning_rate.value, std::pow(96.0, (s - 1) / 2)));
}

TEST_CASE("between standard and neural-tangent tuning") {
  using symbols::n;
  Shape base = vision();
  base.d_model = 768;
  base.heads = 12;
  Shape large = base;
  large.d_model = 1024;
  large.heads = 16;
  const double vision_rate = at(20 * pow(n, {-3, 2}), base);
  CHECK(near(vision_rate, 20 * std::pow(768.0, -1.5)));
  CHECK(std::abs(vision_rate - 9.4e-4) < 0.05e-4);
  CHECK(near(at(1e-3 * pow(n, {3, 2}), large), 32.768));
  // (lr, wd) -> (n^{3/2} lr, n^{-3/2} wd): their product does not change.
  const Scaling there = pow(n, {3, 2});
  const Scaling back = pow(n, {-3, 2});
  CHECK(there * back == Scaling(1));
  // The rate factor of a hidden matrix, under which (lr, wd) becomes (n^{3/2} lr, n^{-3/2} wd).
  CHECK(NeuralTangent{.mlp_ratio_in_rates = false}.rule(Group::mlp_down).adamw_rate == Rate(back));
}

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
      check(adam, name, {.variance = 1 / m.in, .rate = 1 / m.in, .decay = m.in, .epsilon = 1 / N});
      check(descent, name,
            {.variance = 1 / m.in, .rate = m.out / m.in, .decay = m.in / m.out, .epsilon = 1 / N});
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

TEST_CASE("CompleteP and Depth-muP numbers") {
  const double alpha = GENERATE(1.0, 0.5, 0.8);
  const double N = 3;
  const double F = 2.5;
  const double Q = 4.5;
  const double L = 2.5;
  const double rate = std::pow(L, alpha - 1);
  const double epsilon = std::pow(L, -alpha) / N;
  Shape target = decoder();
  Shape base = decoder_base();
  const CompleteP policy{.alpha = alpha};
  const Plan plan = make_plan<CompleteP, adamw>(target, base, policy);
  const auto hidden = [&](const std::string& name, double m) {
    check(plan, name, {.variance = 1 / m, .rate = rate / m, .decay = m, .epsilon = epsilon});
  };
  for (const char* name : {"query", "key", "value", "mlp_up", "mlp_gate"}) {
    hidden(std::string("layer.3.") + name, N);
  }
  hidden("layer.3.mlp_down", F);
  hidden("layer.3.attention_output", Q);
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

TEST_CASE("normalized transformer numbers") {
  const double n = 96;
  const double N = 3;
  const double L = 2.5;
  const double D = 8;
  const Shape target = decoder();
  const Shape base = decoder_base();
  const auto effective = [](const Entry& e) { return e.init_mean.value * e.multiplier.value; };
  /// One column: rates of input, hidden, output, rescalers; step at init; stored scale; s_z at
  /// init.
  const auto column = [&](const Plan& plan, std::vector<double> rates, double step, double scale,
                          double logits) {
    CAPTURE(plan.rule);
    CHECK(near(plan.at("token_embedding").learning_rate.value, rates[0]));
    for (const char* name :
         {"query", "key", "value", "attention_output", "mlp_up", "mlp_gate", "mlp_down"}) {
      CHECK(near(plan.at(std::string("layer.4.") + name).learning_rate.value, rates[1]));
    }
    CHECK(near(plan.at("head").learning_rate.value, rates[2]));
    for (const Group g : {Group::attention_step, Group::mlp_step}) {
      for (const Entry* entry : plan.of(g)) {
        CHECK(near(entry->init_mean.value, scale));
        CHECK(near(effective(*entry), step));
      }
    }
    for (const Entry* entry : plan.of(Group::qk_scale)) {
      CHECK(near(entry->init_mean.value, scale));
      CHECK(near(effective(*entry), 1));
    }
    for (const Group g : {Group::up_scale, Group::gate_scale}) {
      for (const Entry* entry : plan.of(g)) CHECK(entry->init_mean.value == 1);
    }
    CHECK(near(plan.at("logit_scale").init_mean.value, scale));
    CHECK(near(effective(plan.at("logit_scale")), logits));
    CHECK(near(plan.model.attention_scale.value, std::sqrt(24.0)));
    for (const Entry& entry : plan.entries) {
      INFO(entry.name);
      CHECK(entry.weight_decay.value == 0);
      if (role_of(entry.group) == Role::rescaler) {
        CHECK(near(entry.learning_rate.value, rates[3]));
        CHECK(entry.init_variance.value == 0);
      }
    }
  };
  column(make_plan<NGpt, adamw>(target), {1, 1, 1, 1}, 0.05, 1 / std::sqrt(n), 1);
  column(make_plan<NGptDepthMup, adamw>(target, base),
         {1 / std::sqrt(N), 1 / (N * std::sqrt(L)), 1 / N, 1}, 0.05 / std::sqrt(L), 0.03, 1);
  column(make_plan<NGptCompleteP, adamw>(target, base), {1 / std::sqrt(N), 1 / N, 1 / N, 1},
         0.05 / L, 0.03, 1);
  const double horizon = std::pow(D, -1.0 / 3);  // 1/2
  const double mid = std::pow(N, -0.75);
  column(make_plan<NuGpt, adamw>(target, base),
         {horizon / std::sqrt(N), horizon * mid, horizon * mid, horizon}, 0.05 / L, 0.03,
         std::sqrt(N));
  column(make_plan<NuGptFullAlign, adamw>(target, base),
         {horizon / std::sqrt(N), horizon / N, horizon / N, horizon}, 0.05 / L, 0.03, std::sqrt(N));
  const double a = 0.6180339887;  // no simple fraction
  const double align = std::pow(N, -a);
  column(make_plan<NuGpt, adamw>(target, base, {.alignment = a, .output_rate = 0.5}),
         {horizon / std::sqrt(N), horizon * align, 0.5 * horizon * align, horizon}, 0.05 / L, 0.03,
         std::sqrt(N));
}

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

TEST_CASE("baseline numbers") {
  Shape shape = decoder();
  const double bound = 1 / std::sqrt(96.0);
  const Plan pytorch = make_plan<PyTorch, sgd>(shape);
  check_variance(pytorch, "layer.2.mlp_up", bound * bound / 3);
  check_variance(pytorch, "layer.2.mlp_up_bias", bound * bound / 3);
  check_variance(pytorch, "layer.2.mlp_down_bias", 1 / (3 * 200.0));
  check_variance(pytorch, "layer.2.attention_output", 1 / (3 * 144.0));
  check_variance(pytorch, "token_embedding", 1);

  Plan gpt2 = make_plan<Gpt2, adamw>(shape);
  const double residual = 0.02 / std::sqrt(10.0);
  check_variance(gpt2, "layer.2.attention_output", residual * residual);
  check_variance(gpt2, "layer.2.mlp_down", residual * residual);
  check_variance(gpt2, "layer.2.mlp_up", 0.0004);
  check_variance(gpt2, "token_embedding", 0.0004);
  CHECK(near(gpt2.model.attention_scale.value, 1 / std::sqrt(24.0)));
  CHECK(gpt2.at("layer.2.mlp_up_bias").weight_decay.value == 0);

  check_variance(make_plan<Bert, adamw>(shape), "layer.2.attention_output", 0.0004);
  check_variance(make_plan<Standard, adamw>(shape), "layer.2.attention_output", 1 / 144.0);
  check_variance(make_plan<He, adamw>(shape), "layer.2.mlp_down", 2 / 200.0);

  const Plan xavier = make_plan<Xavier, adamw>(shape);
  check_variance(xavier, "layer.2.key", 2.0 / (96 + 48));
  check(xavier, "token_embedding", {.variance = 1 / 96.0, .multiplier = std::sqrt(96.0)});
  CHECK(near(xavier.model.embedding_multiplier.value, std::sqrt(96.0)));
  CHECK(xavier.model.logit_multiplier.value == 1);

  shape.tied_head = true;
  CHECK(near(make_plan<Standard, adamw>(shape).model.logit_multiplier.value, bound));
  CHECK(make_plan<Gpt2, adamw>(shape).model.logit_multiplier.value == 1);
}

TEST_CASE("shallow encoder numbers") {
  const Shape shape = vision();
  const double w = 192;
  const auto row = [&](const Plan& plan, double o, double qkv, double tau1, double tau0) {
    check_variance(plan, "layer.0.query", qkv);
    check_variance(plan, "layer.0.key", qkv);
    check_variance(plan, "layer.0.value", qkv);
    check(plan, "head", {.variance = o, .multiplier = tau1});
    CHECK(near(plan.model.attention_scale.value, tau0));
    CHECK(near(plan.model.logit_multiplier.value, tau1));
  };
  const double root = 1 / std::sqrt(w);
  row(make_plan<ShallowLeCun, sgd>(shape), 1 / w, 1 / 48.0, 1, root);
  row(make_plan<ShallowHe, sgd>(shape), 2 / w, 2 / 48.0, 1, root);
  row(make_plan<ShallowNtk, sgd>(shape), 1, 1, root, root);
  row(make_plan<ShallowNtk, sgd>(shape, {}, {.tau0 = 1}), 1, 1, root, 1 / w);
  CHECK_THROWS_AS((make_plan<ShallowNtk, sgd>(shape, {}, {.tau0 = 0.7})), InvalidInput);
}

namespace {

/// No biases, no gains, no class token: what the paper counts.
Shape counted(Shape shape) {
  shape.biases = false;
  shape.norm_gain = false;
  shape.norm_bias = false;
  shape.class_token = false;
  shape.embedding_norm = false;
  return shape;
}

}  // namespace

TEST_CASE("parameter counts of the effective theory's models") {
  SECTION("ViT-B") {
    Shape shape;
    shape.input = Input::patch;
    shape.d_model = 768;
    shape.depth = 12;
    shape.heads = 12;
    shape.context = 196;
    shape.patch_dim = 768;
    shape.classes = 1000;
    shape.head_bias = true;
    CHECK(make_plan<NeuralTangent, adamw>(counted(shape)).parameter_count() ==
          768L * 768 + 196L * 768 + 768L * 768 * 12 * 12 + 768L * 1000 + 1000);
  }
  // Encoder: 12 n² a layer; decoder with cross attention: 16 n²; a position table each.
  const auto language = [](long d_model, long layers, long heads) {
    Shape shape;
    shape.d_model = d_model;
    shape.depth = layers;
    shape.encoder_depth = layers;
    shape.heads = heads;
    shape.context = 514;
    shape.vocab = 50265;
    shape.tied_head = true;
    return make_plan<NeuralTangent, adamw>(counted(shape)).parameter_count();
  };
  SECTION("BART-large") {
    CHECK(language(1024, 12, 16) == 50265L * 1024 + 514L * 1024 + 1024L * 1024 * 12 * 12 +
                                        514L * 1024 + 1024L * 1024 * 16 * 12);
  }
  SECTION("R2C2") {
    CHECK(language(2048, 22, 32) == 50265L * 2048 + 514L * 2048 + 2048L * 2048 * 12 * 22 +
                                        514L * 2048 + 2048L * 2048 * 16 * 22);
  }
}
