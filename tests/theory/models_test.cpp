// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Whole models: numbers retyped from the theory's derivations, plans, refusals and warnings.

#include <cmath>
#include <string>
#include <vector>

#include "scalewise/make_plan.hpp"
#include "scalewise/nn/random.hpp"
#include "scalewise/policy/complete_p.hpp"
#include "scalewise/policy/deep_norm.hpp"
#include "scalewise/policy/deep_scale_lm.hpp"
#include "scalewise/policy/ds_init.hpp"
#include "scalewise/policy/layer_scale.hpp"
#include "scalewise/policy/ngpt.hpp"
#include "scalewise/policy/pytorch.hpp"
#include "scalewise/policy/rezero.hpp"
#include "scalewise/policy/xavier.hpp"
#include "scalewise/theory/depth_methods.hpp"
#include "scalewise/theory/model.hpp"
#include "scalewise/theory/stable.hpp"
#include "scalewise/theory/warnings.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "theory/quadrature.hpp"
#include "theory/statistics.hpp"

using namespace scalewise;
using namespace scalewise::test;
using namespace scalewise::theory;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

/// The models of the derivation: d = 1024, L = 256, and the paper's dropout or none.
DepthModel model(Placement placement, double dropout) {
  DepthModel m;
  m.placement = placement;
  m.dropout = dropout;
  return m;
}

Profile profile_of(DepthMethod method, const DepthModel& m, long depth, double rg = 0.8) {
  const Moments input = correlated(1, m.input_correlation * (1 - m.dropout));
  return propagate(depth_layers(method, m, depth), input, correlated(1, rg));
}

double correlation_behind(const Profile& p, std::size_t layer) {
  return p.forward_at(layer).correlation();
}

Shape small_shape() {
  Shape s;
  s.d_model = 32;
  s.depth = 4;
  s.heads = 2;
  s.d_ff = 96;
  s.context = 16;
  s.vocab = 50;
  s.biases = false;
  return s;
}

Conditions conditions(double length = 16) {
  Conditions c;
  c.length = length;
  c.dropout = 0.1;
  return c;
}

template <class P>
Plan plan_of(const Shape& shape, const P& policy = {}) {
  return make_plan<P, Optimizer::adamw>(shape, {}, policy);
}

const Attention& attention_at(const Layers& layers, std::size_t block) {
  return std::get<Attention>(layers.blocks[block].inner);
}

const Mlp& mlp_at(const Layers& layers, std::size_t block) {
  return std::get<Mlp>(layers.blocks[block].inner);
}

}  // namespace

// ---- stable correlations, rates, exponents ----------------------------------------------------

TEST_CASE("Stable correlations of a vanilla stack") {
  const LayerGains printed{.attention = 2.2, .mlp = 0.4};
  const LayerGains exact{.attention = 2 / 0.9, .mlp = 0.32 / 0.9};
  const Reading simple = Reading::paper_simple;
  CHECK_THAT(paper_stable_correlations(printed, simple).forward, WithinAbs(0.8868, 5e-5));
  CHECK_THAT(paper_stable_correlations(printed, simple).gradient, WithinAbs(0.8627, 5e-5));
  CHECK_THAT(paper_stable_correlations(exact, simple).forward, WithinAbs(0.8883, 5e-5));
  CHECK_THAT(paper_stable_correlations(exact, simple).gradient, WithinAbs(0.8672, 5e-5));
  const LayerGains wide{.attention = 2 * 1024.0 / (1024 + 64) / 0.9, .mlp = 0.32 / 0.9};
  CHECK_THAT(wide.attention, WithinAbs(2.0915, 5e-5));
  CHECK_THAT(pre_norm_correlation(exact), WithinAbs(0.8859, 5e-5));
  CHECK_THAT(post_norm_correlations(exact).attention_input, WithinAbs(0.8686, 5e-5));
  CHECK_THAT(post_norm_correlations(exact).mlp_input, WithinAbs(0.8893, 5e-5));
  CHECK_THAT(mlp_stable_correlation(0.1), WithinAbs(0.6271, 5e-5));
  CHECK_THAT(mlp_stable_correlation(0.1, simple), WithinAbs(0.6443, 5e-5));
}

TEST_CASE("Gradients of a vanilla post-norm stack shrink by the known rate") {
  const auto rate = [](double C1) { return post_norm_rate({.attention = C1, .mlp = 0.32 / 0.9}); };
  CHECK_THAT(rate(2 / 0.9), WithinAbs(0.96043, 5e-6));
  CHECK_THAT(rate(2 * 1024.0 / (1024 + 64) / 0.9), WithinAbs(0.96029, 5e-6));
  CHECK_THAT(rate(2 * 256.0 / (256 + 64) / 0.9), WithinAbs(0.95988, 5e-6));
  // The recursion itself, far from both ends. It has the 1/L that the closed form leaves out, so
  // it tends to the rate with the length.
  DepthModel m = model(Placement::post, 0.1);
  m.length = 1e5;
  const Profile p = profile_of(DepthMethod::vanilla, m, 120);
  CHECK_THAT(p.gradient_at(50).variance / p.gradient_at(51).variance, WithinAbs(0.96043, 1e-4));
  CHECK_THAT(p.gradient_at(50).correlation(), WithinAbs(0.774, 5e-3));  // d² sq sk = 1 …
}

TEST_CASE("Gradients settle at correlations that depend on queries and keys") {
  const auto stable = [](double C1, double score) {
    return post_norm_correlations({.attention = C1, .mlp = 0.32 / 0.9, .score = score}).gradient;
  };
  CHECK_THAT(stable(2 / 0.9, 0), WithinAbs(0.967, 5e-4));
  CHECK_THAT(stable(2 / 0.9, 1), WithinAbs(0.774, 5e-4));
  CHECK_THAT(stable(1.6 / 0.9, 2.56), WithinAbs(0.549, 5e-4));
  CHECK_THAT(stable(2 * 1024.0 / 1088 / 0.9, 3.54), WithinAbs(0.457, 5e-4));
}

TEST_CASE("Vanilla pre-norm stacks grow by a slope forward and a power backward") {
  const LayerGains gains{.attention = 2 / 0.9, .mlp = 0.32 / 0.9};
  CHECK_THAT(pre_norm_exponent(gains), WithinAbs(0.977, 5e-4));
  const LayerGains xavier{.attention = 2 * 1024.0 / 1088 / 0.9, .mlp = 0.32 / 0.9};
  const double slope = xavier.attention * pre_norm_correlation(xavier) + xavier.mlp;
  CHECK_THAT(slope, WithinAbs(2.207, 5e-4));
  // The recursion: the covariance grows like 1/n^a between layers n and 2n of a deep stack.
  // The recursion comes to it like 1/n; without the 1/L of short sequences.
  DepthModel m = model(Placement::pre, 0.1);
  m.length = 1e9;
  const Profile p = profile_of(DepthMethod::vanilla, m, 60'000);
  const double seen = std::log(p.gradient_at(20'000).covariance / p.gradient_at(40'000).covariance);
  CHECK_THAT(seen / std::log(2.0), WithinAbs(0.977, 5e-4));
}

TEST_CASE("Rank collapses without dropout and stops with it") {
  const Profile pre = profile_of(DepthMethod::vanilla, model(Placement::pre, 0), 192);
  CHECK_THAT(correlation_behind(pre, 48), WithinAbs(0.985, 5e-4));
  CHECK_THAT(correlation_behind(pre, 192), WithinAbs(0.9955, 5e-5));
  const Profile post = profile_of(DepthMethod::vanilla, model(Placement::post, 0), 12);
  CHECK_THAT(correlation_behind(post, 12), WithinAbs(1.0000, 5e-5));
  const auto settled = [](Placement placement) {
    return correlation_behind(profile_of(DepthMethod::vanilla, model(placement, 0.1), 192), 192);
  };
  CHECK_THAT(settled(Placement::pre), WithinAbs(0.88, 6e-3));
  CHECK_THAT(settled(Placement::post), WithinAbs(0.87, 6e-3));
}

// ---- DeepScaleLM ---------------------------------------------------------------------------------

TEST_CASE("DeepScaleLM keeps variances and ends at known correlations") {
  const auto final_correlation = [](long depth, double r0, double p) {
    DeepScaleLM rule;
    rule.dropout = p;
    rule.input_correlation = r0;
    double last = 0;
    rule.token_correlations(depth, [&](double r) { last = r; });
    return last;
  };
  const double r0 = 0.2041150579352331 / 0.9;
  CHECK_THAT(final_correlation(12, r0, 0.1), WithinAbs(0.7948, 5e-5));
  CHECK_THAT(final_correlation(48, r0, 0.1), WithinAbs(0.7907, 5e-5));
  CHECK_THAT(final_correlation(192, r0, 0.1), WithinAbs(0.7896, 5e-5));
  // "Below 1 - e^-2 after N layers" is true with dropout, and false without.
  const double claimed = 1 - std::exp(-2.0);
  CHECK(final_correlation(192, r0, 0.1) < claimed);
  CHECK_THAT(final_correlation(192, 0.227, 0), WithinAbs(0.924, 5e-4));
  CHECK_THAT(final_correlation(192, 1e-9, 0), WithinAbs(0.906, 5e-4));

  for (const Placement placement : {Placement::pre, Placement::post}) {
    DepthModel m = model(placement, 0.1);
    m.width = 256;
    m.input_correlation = r0;
    const Profile p = profile_of(DepthMethod::deep_scale_lm, m, 192);
    CHECK_THAT(p.forward_at(192).variance, WithinAbs(1.003, 0.003));  // 1.000 to 1.006
    // Simulated: 2.67 ± 0.11, 2.64 ± 0.12 at N = 192; the theory 2.48.
    CHECK_THAT(p.gradient_at(0).variance, WithinAbs(2.48, 0.02));
    CHECK_THAT(profile_of(DepthMethod::deep_scale_lm, m, 12).gradient_at(0).variance,
               WithinAbs(2.51, 0.03));
  }
}

TEST_CASE("DeepScaleLM simple has the limits of its forward bounds") {
  // Without correlation in the attention's output its variance vanishes: the stream's goes from 1 by
  // s <- λ² s + β² (0 or 1/2) and by λ² s + β², so that it ends between 1/2 + e^-4/2 and 3/4 + e^-4/4.
  const auto limit = [](double r) {
    const double N = 1e6;
    Layers layers;
    layers.placement = Placement::none;
    const double d = 64;
    const double p = 0.1;
    const double gain = std::sqrt((1 - p) / 2) / d;
    double s = 1;
    for (int l = 0; l < 1'000'000; ++l) {
      // One block of each kind at unit variance, as pre-norm reads it.
      const Attention a{
          .width = d, .heads = d, .length = 1e12, .value = gain, .output = gain, .dropout = p};
      const Mlp m{.width = d, .hidden = 4 * d, .up = gain, .down = gain, .dropout = p};
      if (l == 0) {
        CHECK_THAT(attention_block(correlated(1, r), a).variance, WithinRel(r / 2, 1e-5));
        CHECK_THAT(mlp_block(correlated(1, r), m).variance, WithinRel(1, 1e-12));
      }
      s = (1 - 2 / N) * s + 2 / N * (r / 2);
      s = (1 - 2 / N) * s + 2 / N;
    }
    return s;
  };
  CHECK_THAT(limit(1e-6), WithinAbs(0.5092, 5e-5));
  CHECK_THAT(limit(1), WithinAbs(0.7546, 5e-5));
  DepthModel m = model(Placement::pre, 0.1);
  m.width = 256;
  m.input_correlation = 0.2041150579352331 / 0.9;
  const Profile pre = profile_of(DepthMethod::deep_scale_lm_simple, m, 192);
  CHECK_THAT(pre.forward_at(192).variance, WithinAbs(0.6532, 1e-3));
  CHECK_THAT(pre.gradient_at(0).variance, WithinAbs(0.926, 5e-3));
  m.placement = Placement::post;
  CHECK_THAT(profile_of(DepthMethod::deep_scale_lm_simple, m, 192).gradient_at(0).variance,
             WithinAbs(1.446, 8e-3));
}

// ---- token by token ------------------------------------------------------------------------------

TEST_CASE("A stack token by token is the stack of averages where there is no mask") {
  for (const Placement placement : {Placement::pre, Placement::post, Placement::none}) {
    for (const Activation activation : {Activation::relu, Activation::gelu}) {
      Layers layers = depth_layers(DepthMethod::deep_scale_lm, model(Placement::pre, 0.1), 5);
      layers.placement = placement;
      layers.norm_epsilon = 0.01;
      for (Block& block : layers.blocks) {
        if (auto* a = std::get_if<Attention>(&block.inner)) a->length = 7, a->query *= 0.05;
        if (auto* m = std::get_if<Mlp>(&block.inner)) m->activation = activation;
      }
      const Moments input = correlated(1.2, 0.3);
      const Moments top = correlated(0.5, 0.4);
      const Profile averages = propagate(layers, input, top);
      const Profile tokens = propagate_tokens(
          layers, {7, input}, [&](const TokenCovariance&) { return TokenCovariance(7, top); });
      REQUIRE(tokens.forward.size() == averages.forward.size());
      for (std::size_t i = 0; i < averages.forward.size(); ++i) {
        CHECK_THAT(tokens.forward[i].variance, WithinRel(averages.forward[i].variance, 1e-12));
        CHECK_THAT(tokens.forward[i].covariance, WithinRel(averages.forward[i].covariance, 1e-12));
        CHECK_THAT(tokens.gradient[i].variance, WithinRel(averages.gradient[i].variance, 1e-12));
        CHECK_THAT(tokens.gradient[i].covariance,
                   WithinRel(averages.gradient[i].covariance, 1e-12));
      }
      for (std::size_t i = 0; i < averages.relative.size(); ++i) {
        CHECK_THAT(tokens.relative[i], WithinRel(averages.relative[i], 1e-12));
        CHECK_THAT(tokens.scores[i], WithinAbs(averages.scores[i], 1e-12));
      }
    }
  }
}

TEST_CASE("One token is a stack of linear layers and MLPs") {
  // It attends to itself with probability one: attention is value times output, kept twice.
  const double p = 0.1;
  Layers layers = depth_layers(DepthMethod::vanilla, model(Placement::none, p), 3);
  for (Block& block : layers.blocks) {
    block.skip = 0.7, block.branch = 0.4;
    if (auto* a = std::get_if<Attention>(&block.inner)) a->causal = true, a->length = 1;
  }
  const Profile profile = propagate_tokens(
      layers, {1, correlated(1.5, 0)},
      [](const TokenCovariance&) { return TokenCovariance(1, correlated(0.9, 0)); });
  const double attention = 0.7 + 0.4 * 2 / (1 - p) / (1 - p);  // d² so sv = 2
  const double mlp = 0.7 + 0.4 * 0.32 / (1 - p);               // d d_ff s1 s2/2 = 0.32
  CHECK_THAT(profile.forward_at(3).variance, WithinRel(1.5 * std::pow(attention * mlp, 3), 1e-13));
  CHECK_THAT(profile.gradient_at(0).variance, WithinRel(0.9 * std::pow(attention * mlp, 3), 1e-13));
  CHECK_THAT(error_message([&] {
               propagate_tokens(layers, TokenCovariance(),
                                [](const TokenCovariance&) { return TokenCovariance(); });
             }),
             ContainsSubstring("input = no tokens"));
  CHECK_THAT(error_message([&] {
               propagate_tokens(layers, {1, correlated(1, 0)},
                                [](const TokenCovariance&) { return TokenCovariance(2); });
             }),
             ContainsSubstring("gradient = 2 tokens: expected as many as the input has: 1"));
}

TEST_CASE("MLP blocks of tokens with different variances") {
  const double v = 0.5;
  const double w = 2;
  const double c = 0.6;
  TokenCovariance x(2);
  x.at(0, 0) = v, x.at(1, 1) = w, x.at(0, 1) = x.at(1, 0) = c;
  TokenCovariance g(2);
  g.at(0, 0) = 1, g.at(1, 1) = 3, g.at(0, 1) = g.at(1, 0) = 0.7;
  const double up = 1.5;   // variances of hidden units are those of x times this
  const double down = 40;  // d_ff s2
  const double p = 0.25;
  Layers layers;
  layers.placement = Placement::none;
  layers.blocks_per_layer = 1;
  layers.blocks = {
      {.skip = 0,
       .branch = 1,
       .inner = Mlp{.width = 10, .hidden = 20, .up = up / 10, .down = down / 20, .dropout = p}}};
  const auto relu_at = [](double a) { return a > 0 ? a : 0; };
  const auto product = [&](double a, double b, double r, const auto& f) {
    return normal_mean(
        r, [&](double i, double j) { return f(std::sqrt(a) * i) * f(std::sqrt(b) * j); });
  };
  const Profile profile = propagate_tokens(layers, x, [&](const TokenCovariance&) { return g; });
  const double r = c / std::sqrt(v * w);
  CHECK_THAT(profile.forward[1].variance, WithinRel(down * up * (v + w) / 4 / (1 - p), 1e-12));
  CHECK_THAT(profile.forward[1].covariance,
             WithinRel(down * product(up * v, up * w, r, relu_at), 1e-11));
  const double power = 10 * down / 20 * 20 * up / 10;
  CHECK_THAT(profile.gradient[0].variance, WithinRel(power * (1 + 3) / 4 / (1 - p), 1e-12));
  const auto slope = [](double a) { return a > 0 ? 1.0 : 0.0; };
  CHECK_THAT(profile.gradient[0].covariance,
             WithinRel(power * 0.7 * product(1, 1, r, slope), 1e-11));
}

// ---- plans ---------------------------------------------------------------------------------------

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
  const Moments x = correlated(1, 0.5);
  CHECK_THAT(attention_validity(x, attention_at(layers, 2)).value,
             WithinRel(std::exp(4 * 0.5) / 16, 1e-12));
}

TEST_CASE("Plans that the theory does not cover are refused, and why") {
  const auto refusal = [](const Plan& plan, const Conditions& c = conditions()) {
    return error_message([&] { plan_layers(plan, c); });
  };
  Shape shape = small_shape();
  const Plan relative = make_plan<CompleteP, Optimizer::adamw>(shape, shape);
  CHECK_THAT(refusal(relative),
             ContainsSubstring("rule = complete-p: expected a rule whose variances are absolute"));
  CHECK_THAT(refusal(relative),
             ContainsSubstring("the theory of signal propagation covers no other"));
  CHECK_THAT(error_message([&] { embedding(relative, conditions(), Data{}); }),
             ContainsSubstring("absolute"));
  CHECK_THAT(refusal(plan_of<NGpt>(shape)),
             ContainsSubstring("blocks = not residual: expected residual blocks"));
  Shape gated = shape;
  gated.gated_mlp = true;
  CHECK_THAT(refusal(plan_of<Xavier>(gated)),
             ContainsSubstring("gated_mlp = true: expected an MLP of two matrices"));
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
  CHECK_THAT(error_message([&] {
               loss_gradient(plan_of<Xavier>(classes), conditions(), Data{}, correlated(1, 0));
             }),
             ContainsSubstring("class_token = true: expected the mean over patches"));
  CHECK_THAT(error_message([] { depth_layers(DepthMethod::deep_scale_lm, DepthModel{}, 2); }),
             ContainsSubstring("depth = 2: expected more layers than k"));
  CHECK_THAT(error_message([] { depth_layers(DepthMethod::vanilla, DepthModel{}, 0); }),
             ContainsSubstring("depth = 0: expected a positive integer"));
  CHECK_THAT(error_message([] { depth_layers(DepthMethod::deep_norm, DepthModel{}, 4); }),
             ContainsSubstring("deep-norm is for post-norm models"));

  const Moments m;
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
                 [&] { predict_encoder_decoder(plan_of<Xavier>(gated), conditions(), m, m, m); }),
             ContainsSubstring("encoder_depth"));
}

// ---- both ends -----------------------------------------------------------------------------------

TEST_CASE("What enters the first layer, against embeddings that are drawn") {
  Shape shape = small_shape();
  shape.segments = 2;
  for (const bool norm : {false, true}) {
    shape.embedding_norm = norm;
    const Plan plan = plan_of<Xavier>(shape);
    Conditions c = conditions();
    c.dropout = 0.2;
    // Two tokens: the same with the chance 0.3; in the same segment with 2/3.
    const Data data{.repeats = 0.3};
    const double token = 32 * (1.0 / 32);  // the multiplier √n
    const double power = norm ? 1 / (token + 2.0 / 32) : 1;
    const Moments x = embedding(plan, c, data);
    CHECK_THAT(x.variance, WithinRel(power * (token + 2.0 / 32) / 0.8, 1e-12));
    CHECK_THAT(x.covariance, WithinRel(power * (0.3 * token + 2.0 / 3 / 32), 1e-12));
    if (norm) continue;
    Average square, product;
    nn::Stream stream(4, "embedding");
    for (int i = 0; i < 40'000; ++i) {
      const auto row = [&](double variance) { return std::sqrt(variance) * stream.normal(); };
      const double first = row(token);
      const double second = stream.uniform() < 0.3 ? first : row(token);
      const double segment = row(1.0 / 32);
      const double other = stream.uniform() < 2.0 / 3 ? segment : row(1.0 / 32);
      const auto kept = [&](double v) { return stream.uniform() < 0.2 ? 0 : v / 0.8; };
      const double a = kept(first + segment + row(1.0 / 32));
      const double b = kept(second + other + row(1.0 / 32));
      square.add((a * a + b * b) / 2);
      product.add(a * b);
    }
    CHECK(agrees(square, x.variance));
    CHECK(agrees(product, x.covariance));
  }
  Shape patches = small_shape();
  patches.input = Input::patch;
  patches.vocab = 0;
  patches.patch_dim = 10;
  patches.classes = 4;
  const Plan plan = plan_of<DeepScaleLM>(patches);
  const Moments x = embedding(plan, conditions(), {.patch_power = 0.5, .patch_correlation = 0.6});
  CHECK_THAT(x.variance, WithinRel((0.5 * 0.45 + 0.45) / 0.9, 1e-12));  // two tables: (1-p)/2 each
  CHECK_THAT(x.covariance, WithinRel(0.6 * 0.5 * 0.45, 1e-12));
}

TEST_CASE("The loss' gradient against heads that are drawn") {
  Shape shape = small_shape();
  shape.vocab = 7;
  const auto check = [](const Moments& predicted, double scale, int outputs, double repeats,
                        bool pooled) {
    // At logits of zero: rows of the head, weighted by 1/V minus one-hot of the target.
    Average square, product;
    nn::Stream stream(8, "head");
    for (int i = 0; i < 60'000; ++i) {
      std::vector<double> head;
      for (int v = 0; v < outputs; ++v) head.push_back(scale * stream.normal());
      const auto any = [&] { return static_cast<std::size_t>(stream.uniform() * outputs); };
      // Targets are the same with the chance `repeats`; else they differ.
      const std::size_t first = any();
      std::size_t second = first;
      if (!pooled && stream.uniform() >= repeats) {
        while (second == first) second = any();
      }
      double mean = 0;
      for (const double w : head) mean += w / outputs;
      const double a = mean - head[first];
      const double b = mean - head[second];
      square.add((a * a + b * b) / 2);
      product.add(a * b);
    }
    CHECK(agrees(square, predicted.variance));
    CHECK(agrees(product, predicted.covariance));
  };
  const Data data{.repeats = 0.4};
  const Plan plan = plan_of<Xavier>(shape);
  const double head = plan.at("head").init_variance.value;
  const Moments none = correlated(1e-12, 0);  // so that logits are
  check(loss_gradient(plan, conditions(), data, none), std::sqrt(head), 7, 0.4, false);
  // A tied head of DeepScaleLM: variance (1-p)/2 of the table, logits over √n.
  Shape tied = shape;
  tied.tied_head = true;
  check(loss_gradient(plan_of<DeepScaleLM>(tied), conditions(), data, none), std::sqrt(0.45 / 32),
        7, 0.4, false);
  Shape patches = shape;
  patches.input = Input::patch;
  patches.vocab = 0;
  patches.patch_dim = 10;
  patches.classes = 4;
  const Plan images = plan_of<Xavier>(patches);
  const Moments pooled = loss_gradient(images, conditions(), data, none);
  check(scaled(16 * 16, pooled), std::sqrt(images.at("head").init_variance.value), 4, 1, true);
}

TEST_CASE("Final norms hand the gradient on over the stream's variance") {
  Shape shape = small_shape();
  const Moments input = correlated(1, 0.2);
  const Moments gradient = correlated(0.5, 0.3);
  Conditions c = conditions();
  const Profile with = predict(plan_of<Xavier>(shape), c, input, gradient);
  shape.final_norm = false;
  const Profile without = predict(plan_of<Xavier>(shape), c, input, gradient);
  const double top = with.forward_at(4).variance;
  CHECK(top > 1.5);
  CHECK_THAT(with.gradient_at(4).variance, WithinRel(0.5 / top, 1e-13));
  CHECK_THAT(without.gradient_at(4).variance, WithinRel(0.5, 1e-13));
  // A gain of zero leaves everything as it is.
  const Profile zero = predict(plan_of<ReZero>(small_shape()), c, input, gradient);
  CHECK_THAT(zero.forward_at(4).variance, WithinRel(1, 1e-15));
  CHECK_THAT(zero.gradient_at(0).variance, WithinRel(0.5, 1e-13));
  c.causal = true;
  const Profile causal = predict(plan_of<ReZero>(small_shape()), c, input, gradient);
  CHECK_THAT(causal.gradient_at(0).correlation(), WithinRel(0.3, 1e-13));
}

TEST_CASE("A model of one token attends to that token") {
  Shape shape = small_shape();
  shape.final_norm = false;
  Conditions c = conditions(1);
  c.dropout = 0;
  for (const bool causal : {false, true}) {
    c.causal = causal;
    // Four layers that add d² so sv = 1, then d d_ff s1 s2/2 = 32 · 96/64²/2 = 3/8 of the stream's unit.
    const Profile p = predict(plan_of<Xavier>(shape), c, correlated(1, 0), correlated(1, 0));
    CHECK_THAT(p.forward_at(4).variance, WithinRel(1 + 4 * (1 + 0.375), 1e-12));
  }
}

TEST_CASE("A backward pass that is repeated does not add up") {
  CrossAttention cross;
  cross.attention = attention_at(depth_layers(DepthMethod::vanilla, DepthModel{}, 1), 0);
  cross.queries = 256;
  cross.memory = correlated(1, 0.3);
  Layers layers;
  layers.blocks_per_layer = 1;
  layers.blocks = {{.inner = cross}};
  Profile p = propagate(layers, correlated(1, 0.3), correlated(1, 0.5));
  const double once = p.memory_gradient.variance;
  propagate_backward(layers, correlated(1, 0.5), p);
  CHECK(p.memory_gradient.variance == once);
}

TEST_CASE("An encoder gets its gradient from all layers of the decoder") {
  Shape shape = small_shape();
  shape.encoder_depth = 3;
  shape.depth = 2;
  const Plan plan = plan_of<DeepScaleLM>(shape, {.k = 1});
  const Conditions c = conditions(8);
  const Moments x = correlated(1, 0.2);
  const EncoderDecoderProfile both = predict_encoder_decoder(plan, c, x, x, correlated(1, 0.5));
  const Layers decoder = plan_layers(plan, c, Stack::decoder);
  CHECK(both.encoder.depth() == 3);
  CHECK(both.decoder.depth() == 2);
  // Put together by hand from the profiles' own averages: the memory is what the encoder's final
  // norm leaves. The decoder is causal, so that its averages only approximate its tokens.
  const Moments memory = correlated(1, both.encoder.forward_at(3).correlation());
  Moments sum{0, 0, 0};
  for (const std::size_t block : {std::size_t{1}, std::size_t{4}}) {
    CrossAttention cross = std::get<CrossAttention>(decoder.blocks[block].inner);
    cross.memory = memory;
    const Moments& s = both.decoder.forward[block];
    const Moments in = correlated(1, s.correlation());
    const Moments part = memory_gradient(both.decoder.gradient[block + 1], in, cross);
    sum.variance += decoder.blocks[block].branch * part.variance;
    sum.covariance += decoder.blocks[block].branch * part.covariance;
  }
  CHECK_THAT(both.decoder.memory_gradient.variance, WithinRel(sum.variance, 0.02));
  CHECK_THAT(both.decoder.memory_gradient.covariance, WithinRel(sum.covariance, 0.02));
  CHECK_THAT(both.encoder.gradient_at(3).variance,
             WithinRel(both.decoder.memory_gradient.variance / both.encoder.forward_at(3).variance,
                       1e-12));
}

// ---- warnings ------------------------------------------------------------------------------------

namespace {

std::string warnings_of(const Layers& layers, const Profile& p) {
  std::string text;
  for (const Warning& w : warnings(layers, p)) text += (w.serious ? "! " : "? ") + w.text + "\n";
  return text;
}

std::string warnings_of(DepthMethod method, const DepthModel& m, long depth) {
  return warnings_of(depth_layers(method, m, depth), profile_of(method, m, depth));
}

}  // namespace

TEST_CASE("Warnings come where they should, and only there") {
  const DepthModel pre = model(Placement::pre, 0.1);
  CHECK(warnings_of(DepthMethod::deep_scale_lm, pre, 192).empty());
  CHECK(warnings_of(DepthMethod::deep_scale_lm, model(Placement::post, 0.1), 192).empty());
  CHECK(warnings_of(DepthMethod::vanilla, pre, 12).empty());

  const std::string collapsed = warnings_of(DepthMethod::vanilla, model(Placement::pre, 0), 192);
  CHECK_THAT(collapsed, ContainsSubstring("! rank collapse: tokens have the correlation 0.996"));
  CHECK_THAT(warnings_of(DepthMethod::vanilla, pre, 192), !ContainsSubstring("rank collapse"));

  const std::string explodes = warnings_of(DepthMethod::vanilla, pre, 192);
  CHECK_THAT(explodes, ContainsSubstring("! gradients explode"));
  CHECK_THAT(explodes, ContainsSubstring("in front of layer 0 is"));
  const std::string vanishes = warnings_of(DepthMethod::vanilla, model(Placement::post, 0.1), 192);
  CHECK_THAT(vanishes, ContainsSubstring("! gradients vanish"));
  CHECK_THAT(vanishes, ContainsSubstring("in front of layer 192 is"));

  const auto with_scores = [&](double power, double length) {
    DepthModel m = pre;
    m.length = length;
    Layers layers = depth_layers(DepthMethod::deep_scale_lm, m, 24);
    for (Block& block : layers.blocks) {
      if (auto* a = std::get_if<Attention>(&block.inner)) a->query *= power;
    }
    return warnings_of(layers, propagate(layers, correlated(1, 0.2), correlated(1, 0.5)));
  };
  CHECK(with_scores(1, 256).empty());
  CHECK_THAT(with_scores(6, 256), ContainsSubstring("! queries and keys are too large"));
  CHECK_THAT(with_scores(6, 1e6), ContainsSubstring("! queries and keys are too large"));
  CHECK_THAT(with_scores(6, 1e6), !ContainsSubstring("less sure"));
  CHECK_THAT(with_scores(2, 128), ContainsSubstring("? the profile is less sure: e^S/L"));
  CHECK_THAT(with_scores(2, 128), !ContainsSubstring("too large"));

  const Layers layers = depth_layers(DepthMethod::vanilla, pre, 12);
  const Profile p = profile_of(DepthMethod::vanilla, pre, 12);
  CHECK(warnings(layers, p, {.correlation = 0.5}).size() == 1);
  CHECK(warnings(layers, p, {.gradient = 1.5}).size() == 1);
  CHECK(warnings(layers, p, {.scores = 0.1}).size() == 1);
  CHECK(warnings(layers, p, {.probabilities = 0.001}).size() == 1);
}
