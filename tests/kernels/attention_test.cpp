// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Attention over Gaussian scores against sampling them, and by what must not change it; the
// effective theory of whole transformers.

#include <Eigen/Cholesky>
#include <cmath>

#include "kernels/random_kernel.hpp"
#include "scalewise/kernels/effective_scales.hpp"
#include "scalewise/kernels/softmax_monte_carlo.hpp"
#include "scalewise/kernels/softmax_quadrature.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/gpt2.hpp"
#include "scalewise/policy/maximal_update.hpp"
#include "scalewise/policy/meta_principled.hpp"
#include "support/catch.hpp"
#include "support/coverage.hpp"
#include "support/error_message.hpp"

using namespace scalewise;
using namespace scalewise::kernels;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using WeightFunction = SelfAttention::WeightFunction;

namespace {

SelfAttention over_root_d(WeightFunction weights, bool causal = false) {
  SelfAttention layer;
  layer.scores = SelfAttention::ScoreScale::over_root_d;
  layer.weights = weights;
  layer.causal = causal;
  layer.sigma_q = 1.3;
  layer.sigma_k = 0.8;
  layer.sigma_v = 0.9;
  layer.sigma_o = 1.2;
  layer.sigma_b = 0.4;
  return layer;
}

/// ζ of the scores of one input, and what a change of scores `d` changes of it.
Matrix<> weigh(const SelfAttention& layer, const Matrix<>& scores) {
  Matrix<> z = scores;
  for (Index a = 0; a < z.rows(); ++a) {
    const Index keys = layer.causal ? a + 1 : z.cols();
    auto row = z.row(a);
    if (layer.weights == WeightFunction::softmax) row = row.array().exp();
    if (layer.weights == WeightFunction::relu) row = row.cwiseMax(0);
    if (layer.weights == WeightFunction::abs) row = row.cwiseAbs();
    row.tail(z.cols() - keys).setZero();
    if (layer.weights == WeightFunction::softmax) row /= row.sum();
  }
  return z;
}

/// The NNGP and tangent kernels between x and x' for sampled scores: by their definition, with the
/// derivative of every weight by every score from central differences.
void sample_kernels(const SelfAttention& layer, const Kernel& k, Matrix<>& nngp, Matrix<>& ntk,
                    Matrix<>& nngp_error, Matrix<>& ntk_error) {
  const Index t = k.tokens.length(0);
  const Index u = k.tokens.length(1);
  const Matrix<> a = k.tokens.block(k.nngp, 0, 1);
  const Matrix<> theta = k.tokens.block(k.ntk, 0, 1);
  const double qk = std::pow(layer.sigma_q * layer.sigma_k, 2);
  const double ov = std::pow(layer.sigma_o * layer.sigma_v, 2);
  const double bias = layer.sigma_b * layer.sigma_b;
  const Index scores = t * t + u * u;
  Eigen::MatrixXd covariance(scores, scores);
  const auto token = [&](Index score, bool query) {
    const bool second = score >= t * t;
    const Index at = second ? score - t * t : score;
    const Index length = second ? u : t;
    return (second ? t : 0) + (query ? at / length : at % length);
  };
  for (Index i = 0; i < scores; ++i) {
    for (Index j = 0; j < scores; ++j) {
      covariance(i, j) =
          qk * k.nngp(token(i, true), token(j, true)) * k.nngp(token(i, false), token(j, false));
    }
  }
  covariance.diagonal().array() += 1e-12;
  const Eigen::MatrixXd root = covariance.llt().matrixL();
  const int samples = 6000;
  nngp = ntk = nngp_error = ntk_error = Matrix<>::Zero(t, u);
  numeric::RandomStream stream(11, "scores");
  const auto slopes = [&](Matrix<> g, Index query) {  // (weight, score), of one query
    Matrix<> j(g.cols(), g.cols());
    const double h = 1e-6;
    for (Index d = 0; d < g.cols(); ++d) {
      g(query, d) += h;
      const Eigen::RowVectorXd up = weigh(layer, g).row(query);
      g(query, d) -= 2 * h;
      j.col(d) = ((up - weigh(layer, g).row(query)) / (2 * h)).transpose();
      g(query, d) += h;
    }
    return j;
  };
  for (int n = 0; n < samples; ++n) {
    Eigen::VectorXd z(scores);
    for (double& x : z) x = stream.normal();
    z = root * z;
    const Matrix<> g = Eigen::Map<const Matrix<>>(z.data(), t, t);
    const Matrix<> h = Eigen::Map<const Matrix<>>(z.data() + t * t, u, u);
    const Matrix<> p = weigh(layer, g);
    const Matrix<> q = weigh(layer, h);
    const Matrix<> value = ov * p * a * q.transpose();
    Matrix<> tangent = 2 * value + ov * p * theta * q.transpose();
    for (Index i = 0; i < t; ++i) {
      const Matrix<> left = slopes(g, i);
      for (Index j = 0; j < u; ++j) {
        // Values' kernel, once through the weights of both inputs; keys' kernel through the scores.
        const Matrix<> both = left.transpose() * a * slopes(h, j);
        tangent(i, j) += ov * qk *
                         ((2 * a(i, j) + theta(i, j)) * both.cwiseProduct(a).sum() +
                          a(i, j) * both.cwiseProduct(theta).sum());
      }
    }
    nngp += value;
    ntk += tangent;
    nngp_error += value.cwiseAbs2();
    ntk_error += tangent.cwiseAbs2();
  }
  for (auto [sum, squares] : {std::pair{&nngp, &nngp_error}, {&ntk, &ntk_error}}) {
    *sum /= samples;
    *squares = ((*squares / samples - sum->cwiseAbs2()) / samples).cwiseMax(0).cwiseSqrt();
    sum->array() += bias;
  }
}

}  // namespace

TEST_CASE("attention over the root of d is an expectation over Gaussian scores") {
  const Kernel k = random_kernel({3, 2}, 5);
  for (const auto& [weights, causal] : {std::pair{WeightFunction::softmax, false},
                                        {WeightFunction::softmax, true},
                                        {WeightFunction::identity, true},
                                        {WeightFunction::relu, false},
                                        {WeightFunction::abs, true}}) {
    CAPTURE(static_cast<int>(weights), causal);
    const SelfAttention layer = over_root_d(weights, causal);
    const Kernel out = propagate(layer, k);
    Matrix<> nngp, ntk, nngp_error, ntk_error;
    sample_kernels(layer, k, nngp, ntk, nngp_error, ntk_error);
    CHECK(((k.tokens.block(out.nngp, 0, 1) - nngp).array().abs() <= 5 * nngp_error.array() + 1e-9)
              .all());
    CHECK(((k.tokens.block(out.ntk, 0, 1) - ntk).array().abs() <= 5 * ntk_error.array() + 1e-9)
              .all());
  }
}

TEST_CASE("quadrature of softmax agrees with quasi-Monte Carlo") {
  const Kernel k = random_kernel({4, 3}, 6);
  const Matrix<> left = k.tokens.block(k.nngp, 0, 0);
  const Matrix<> right = k.tokens.block(k.nngp, 1, 1);
  const Matrix<> a = k.tokens.block(k.nngp, 0, 1);
  const Matrix<> theta = k.tokens.block(k.ntk, 0, 1);
  const ScoreKernels s{left, right, a, theta, a, theta, 0.7, true};
  const ScoreMoments exact = SoftmaxQuadrature(s).moments();
  QuasiMonteCarlo sample;
  sample.points = 512;
  const std::vector<ScoreMoments> estimates = softmax_monte_carlo(s, sample);
  const ScoreMoments average = mean(estimates);
  const auto agree = [&](auto moment) {
    Matrix<> squares = Matrix<>::Zero(4, 3);
    for (const ScoreMoments& m : estimates) squares += (m.*moment - average.*moment).cwiseAbs2();
    const Matrix<> error = (squares / (16 * 15)).cwiseSqrt();
    // Twelve entries of four moments on 15 degrees of freedom: 6 errors have a chance of 1e-3.
    CHECK(((exact.*moment - average.*moment).array().abs() <= 6 * error.array() + 1e-14).all());
    CHECK(error.maxCoeff() < 1e-3 * (exact.*moment).cwiseAbs().maxCoeff());
  };
  agree(&ScoreMoments::value);
  agree(&ScoreMoments::value_ntk);
  agree(&ScoreMoments::slope);
  agree(&ScoreMoments::slope_ntk);
  sample.shifts = 1;
  CHECK_THAT(error_message([&] { softmax_monte_carlo(s, sample); }), ContainsSubstring("shifts"));
}

TEST_CASE(
    "Estimates of an input with itself are symmetric, and those of two inputs that are alike") {
  const Kernel k = random_kernel({6}, 6);
  const Matrix<> other = k.nngp;
  QuasiMonteCarlo sample;
  sample.points = 64;
  for (const bool causal : {false, true}) {
    const ScoreMoments m = mean(
        softmax_monte_carlo({k.nngp, k.nngp, k.nngp, k.ntk, k.nngp, k.ntk, 0.7, causal}, sample));
    const ScoreMoments two = mean(
        softmax_monte_carlo({k.nngp, other, k.nngp, k.ntk, k.nngp, k.ntk, 0.7, causal}, sample));
    for (const auto moment : {&ScoreMoments::value, &ScoreMoments::value_ntk, &ScoreMoments::slope,
                              &ScoreMoments::slope_ntk}) {
      CHECK((m.*moment - (m.*moment).transpose()).norm() == 0);
      const Matrix<> lower = (two.*moment).triangularView<Eigen::Lower>();
      CHECK((Matrix<>((m.*moment).triangularView<Eigen::Lower>()) - lower).norm() == 0);
    }
  }
}

TEST_CASE("a layer of many tokens states its standard error") {
  // Of 400 sets of random shifts, Student's interval on 7 degrees of freedom holds the mean of all
  // sets, which knows the truth 20 times better, in 95 %; a right one fails once in a million. Six
  // tokens are more than quadrature takes; of each set one entry counts, since entries depend on
  // one another.
  SelfAttention layer = over_root_d(WeightFunction::softmax);
  layer.sample.points = 4;
  layer.sample.shifts = 8;
  const Matrix<> x = random_matrix(6, 5, 8);
  const Matrix<> y = random_matrix(1, 5, 9);
  PairKernel own_x;
  PairKernel own_y;
  PairKernel pair;
  input_kernel(x, x, own_x);
  input_kernel(y, y, own_y);
  input_kernel(x, y, pair);
  const SelfAttention::Own left = layer.prepare(own_x);
  const SelfAttention::Own right = layer.prepare(own_y);
  constexpr int draws = 400;
  std::vector<SelfAttention::Sampled> estimates;
  Matrix<> nngp = Matrix<>::Zero(6, 1);
  Matrix<> ntk = nngp;
  for (int draw = 0; draw < draws; ++draw) {
    layer.sample.seed = static_cast<std::uint64_t>(draw);
    estimates.push_back(layer.estimate(pair, left, right));
    nngp += estimates.back().nngp / draws;
    ntk += estimates.back().ntk / draws;
  }
  int nngp_held = 0;
  int ntk_held = 0;
  for (const SelfAttention::Sampled& e : estimates) {
    nngp_held += std::abs(e.nngp(2) - nngp(2)) <= 2.3646 * e.nngp_error(2);
    ntk_held += std::abs(e.ntk(3) - ntk(3)) <= 2.3646 * e.ntk_error(3);
  }
  CAPTURE(nngp_held, ntk_held);
  CHECK(Coverage(draws, 0.95).accepts(nngp_held));
  CHECK(Coverage(draws, 0.95).accepts(ntk_held));
  // Of two shifts, half their difference: the means of shifts one by one, from their sum.
  layer.sample.shifts = 2;
  const ScoreKernels s{own_x.nngp.read(), own_y.nngp.read(), pair.nngp.read(),      pair.ntk.read(),
                       pair.nngp.read(),  pair.ntk.read(),   1.3 * 1.3 * 0.8 * 0.8, false};
  const std::vector<ScoreMoments> both = softmax_monte_carlo(s, layer.sample);
  const Matrix<> half = (both[0].value - both[1].value).cwiseAbs() / 2 * std::pow(0.9 * 1.2, 2);
  const SelfAttention::Sampled of_two = layer.estimate(pair, left, right);
  CHECK((of_two.nngp_error - half).norm() <= 1e-12 * half.norm());
}

TEST_CASE("symmetries of attention") {
  const Kernel k = random_kernel({3, 2}, 7);
  for (const auto scores :
       {SelfAttention::ScoreScale::tied_over_d, SelfAttention::ScoreScale::over_root_d}) {
    for (const WeightFunction weights : {WeightFunction::softmax, WeightFunction::identity,
                                         WeightFunction::relu, WeightFunction::abs}) {
      CAPTURE(static_cast<int>(scores), static_cast<int>(weights));
      SelfAttention layer = over_root_d(weights);
      layer.scores = scores;
      const Kernel out = propagate(layer, k);
      // Tokens without positions have no order.
      const std::vector<Index> order{2, 0, 1, 3, 4};
      const Kernel moved = propagate(
          layer, {k.tokens, Matrix<>(k.nngp(order, order)), Matrix<>(k.ntk(order, order))});
      CHECK((moved.ntk - Matrix<>(out.ntk(order, order))).norm() < 1e-10 * out.ntk.norm());
      // A causal layer does not see later tokens.
      layer.causal = true;
      const std::vector<Index> first{0, 1, 3};
      const Kernel whole = propagate(layer, k);
      const Kernel prefix = propagate(
          layer, {Tokens({2, 1}), Matrix<>(k.nngp(first, first)), Matrix<>(k.ntk(first, first))});
      CHECK((prefix.nngp - Matrix<>(whole.nngp(first, first))).norm() < 1e-10 * out.nngp.norm());
      CHECK((prefix.ntk - Matrix<>(whole.ntk(first, first))).norm() < 1e-10 * out.ntk.norm());
    }
  }
}

TEST_CASE("softmax of one token, of no scores and of independent scores over d") {
  SelfAttention layer = over_root_d(WeightFunction::softmax);
  const double ov = std::pow(layer.sigma_o * layer.sigma_v, 2);
  const Kernel one = random_kernel({1, 1}, 9);
  const Kernel out = propagate(layer, one);
  const Matrix<> k = ov * one.nngp;
  CHECK_THAT((out.nngp.array() - k.array() - 0.16).matrix().norm(), WithinAbs(0, 1e-12));
  CHECK_THAT((out.ntk - (2 * k + ov * one.ntk)).array().maxCoeff(), WithinAbs(0.16, 1e-12));
  layer.sigma_q = 0;  // weights are uniform
  const Kernel many = random_kernel({3, 2}, 9);
  const Kernel uniform = propagate(layer, many);
  layer.scores = SelfAttention::ScoreScale::over_d;
  layer.sigma_q = 1;
  const Kernel independent = propagate(layer, many);
  CHECK((uniform.ntk - independent.ntk).norm() < 1e-11 * uniform.ntk.norm());
  CHECK_THAT(independent.nngp(0, 4),
             WithinAbs(ov * many.nngp.block(0, 3, 3, 2).mean() + 0.16, 1e-13));
}

TEST_CASE("an attention block is an attention layer behind LayerNorm") {
  const Kernel k = random_kernel({3, 2}, 10);
  EffectiveScales scales;
  scales.epsilon = 1e-3;
  scales.query = {1.7, 1.7};
  scales.key = {0.6, 0.6};
  scales.value = {0.8, 0.8};
  scales.attention_output = {1.4, 1.4};
  const EffectiveBlock block = attention_block(k, scales, true);
  SelfAttention layer = over_root_d(WeightFunction::softmax, true);
  layer.sigma_q = std::sqrt(1.7);
  layer.sigma_k = std::sqrt(0.6);
  layer.sigma_v = std::sqrt(0.8);
  layer.sigma_o = std::sqrt(1.4);
  layer.sigma_b = 0;
  const Kernel out = propagate(layer, propagate(LayerNorm{1e-3}, k));
  CHECK((block.kernel.nngp - k.nngp - out.nngp).norm() < 1e-12 * out.nngp.norm());
  CHECK((block.kernel.ntk - k.ntk - out.ntk).norm() < 1e-12 * out.ntk.norm());
}

TEST_CASE("a head's tangent kernel does not depend on s, its covariance falls by n^-s") {
  EffectiveScales scales;
  scales.head = {0.7, 0.4};
  scales.head_bias_rate = 0.3;
  const Kernel k = language_stem({{3, 1}, {1, 1, 4}}, scales);
  const Kernel at_zero = EffectiveHead{}(k, scales);
  const Kernel at_one = EffectiveHead{false, 1.0 / 64}(k, scales);
  CHECK(at_one.ntk == at_zero.ntk);
  CHECK((64 * at_one.nngp - at_zero.nngp).norm() < 1e-14);
  // The embedding of the same token at the same place: F = 1, Θˢ = (Λ_WE + Λ_PE)/(C_WE + C_PE) = 1.
  CHECK_THAT(at_zero.ntk(1, 3), WithinAbs(0.3 + 0.4 + 0.7, 1e-15));
  CHECK_THAT(EffectiveHead{true}(k, scales).ntk(1, 3), WithinAbs(2, 1e-15));
}

TEST_CASE("a stem with a class token is that of drawn embeddings") {
  EffectiveScales scales;
  scales.patch_embedding = {1.3, 0.7};
  scales.position_embedding = {0.4, 0.2};
  scales.class_token = {0.9, 0.6};
  const std::vector<Matrix<>> images{random_matrix(2, 5, 1), random_matrix(3, 5, 2)};
  const Kernel stem = vision_stem(images, scales, /*class_token=*/true);
  REQUIRE(stem.tokens.total() == 3 + 4);
  // (1.8) for one feature, whose gradient in its weights needs no draw.
  numeric::RandomStream random(7, "class token");
  const int draws = 50'000;
  Matrix<> covariance = Matrix<>::Zero(7, 7);
  for (int draw = 0; draw < draws; ++draw) {
    const double token = std::sqrt(0.9) * random.normal();
    Eigen::VectorXd patch(5), position(4), z(7);
    for (double& w : patch) w = std::sqrt(1.3 / 5) * random.normal();
    for (double& b : position) b = std::sqrt(0.4) * random.normal();
    z << token + position(0), images[0] * patch + position.segment(1, 2), token + position(0),
        images[1] * patch + position.segment(1, 3);
    covariance += z * z.transpose() / draws;
  }
  CHECK((covariance - stem.nngp).cwiseAbs().maxCoeff() < 5 * 3 / std::sqrt(draws));
  // Λ_class + Λ_PE; nothing is shared by class token and patches; Λ_PE and x x'/5 Λ_patch.
  CHECK_THAT(stem.ntk(0, 3), WithinAbs(0.6 + 0.2, 1e-15));
  CHECK(stem.ntk(0, 4) == 0);
  CHECK_THAT(stem.ntk(1, 4),
             WithinAbs(0.2 + 0.7 * images[0].row(0).dot(images[1].row(0)) / 5, 1e-15));
  const Kernel read = class_token_readout(stem);
  CHECK(read.tokens.total() == 2);
  CHECK(read.nngp(0, 1) == stem.nngp(0, 3));
  CHECK(read.ntk(1, 1) == stem.ntk(3, 3));
}

TEST_CASE("scores whose slopes sampling does not see are refused") {
  const auto refusal = [](double size) {
    Matrix<> x(3, 2);
    x << 1, 0, 0.5, 0.5, 0, 1;
    x *= size;
    const SelfAttention layer = over_root_d(WeightFunction::softmax);
    PairKernel pair;
    input_kernel(x, x, pair);
    pair.ntk.shape(3, 3) = pair.nngp.read();
    return error_message([&] {
      const auto own = layer.prepare(pair);
      layer.estimate(pair, own, own);
    });
  };
  CHECK(refusal(30) == "no error");  // sampled, with an error of 0.5 %
  CHECK_THAT(refusal(100), ContainsSubstring("standard deviation of scores = 3676.9") &&
                               ContainsSubstring(": expected at most 1000 (hint: normalize"));
}

TEST_CASE("constants of a plan") {
  Shape shape{.d_model = 96, .depth = 2, .heads = 4, .d_ff = 288, .context = 10, .vocab = 50};
  MetaPrincipled policy;
  policy.s = 0.3;
  double next = 0.5;
  for (const Group g : {Group::token_embedding, Group::position_embedding, Group::query, Group::key,
                        Group::value, Group::attention_output, Group::mlp_up, Group::mlp_down}) {
    policy.neural_tangent.init_constant[g] = next += 0.1;
    policy.neural_tangent.rate_constant[g] = next += 0.1;
  }
  const auto check = [](const EffectiveScales& s) {
    double want = 0.5;
    for (const GroupScale& g : {s.token_embedding, s.position_embedding, s.query, s.key, s.value,
                                s.attention_output, s.mlp_up, s.mlp_down}) {
      CHECK_THAT(g.variance, WithinAbs(want += 0.1, 1e-13));
      CHECK_THAT(g.rate, WithinAbs(want += 0.1, 1e-13));
    }
    CHECK(s.head_bias_rate == 0);
  };
  check(effective_scales(make_plan(policy, {.model = shape, .optimizer = sgd}), 0.3));
  check(effective_scales(make_plan(policy, {.model = shape}), 0.3));
  SECTION("the documentation's transformer") {
    const Plan plan = make_plan(NeuralTangent{}, {.model = shape});
    const EffectiveScales scales = effective_scales(plan, /*s=*/0, /*epsilon=*/1e-5);
    Kernel k = language_stem({{3, 1}, {2, 1}}, scales);
    for (int layer = 0; layer < 2; ++layer) {
      k = attention_block(k, scales, /*causal=*/true).kernel;
      k = mlp_block(k, scales, Function::gelu).kernel;
    }
    const Kernel logits = EffectiveHead{.tied = true}(k, scales);
    CHECK_THAT(logits.nngp(1, 1), WithinAbs(1, 5e-6));  // 1 - ε/G, and G is over 2
    CHECK(logits.ntk(1, 3) < logits.ntk(1, 1));
  }
  SECTION("vision has a head and its bias") {
    shape.input = Input::patch;
    shape.patch_dim = 12;
    shape.classes = 7;
    shape.head_bias = true;
    for (const double s : {0.0, 1.0}) {
      policy = {};
      policy.s = s;
      const EffectiveScales scales = effective_scales(make_plan(policy, {.model = shape}), s);
      CHECK_THAT(scales.head.variance, WithinAbs(1, 1e-14));
      CHECK_THAT(scales.head.rate, WithinAbs(1, 1e-14));
      CHECK_THAT(scales.head_bias_rate, WithinAbs(1, 1e-14));
      CHECK_THAT(scales.patch_embedding.rate, WithinAbs(1, 1e-14));
    }
    shape.class_token = true;
    NeuralTangent with_token;
    with_token.init_constant[Group::class_token] = 0.3;
    with_token.rate_constant[Group::class_token] = 0.8;
    const EffectiveScales scales = effective_scales(make_plan(with_token, {.model = shape}));
    CHECK_THAT(scales.class_token.variance, WithinAbs(0.3, 1e-14));
    CHECK_THAT(scales.class_token.rate, WithinAbs(0.8, 1e-14));
  }
  SECTION("tensors that the theory lacks") {
    const auto refusal = [&](const Plan& plan) {
      return error_message([&] { effective_scales(plan); });
    };
    Plan plan = make_plan(Gpt2{}, {.model = shape});
    CHECK(refusal(plan) == "no error");
    for (Entry& e : plan.entries) {
      if (e.group == Group::hidden_bias) e.init_variance.value = 0.25;
    }
    CHECK_THAT(refusal(plan),
               ContainsSubstring("= 0 with variance 0.25: expected 0 with variance"));
    // DeepNorm's skip of (2 · 2 layers)^¼ and more.
    CHECK_THAT(
        refusal(make_plan(DeepNorm{}, {.model = shape})),
        ContainsSubstring("skip multiplier = ") && ContainsSubstring(": expected 1 (hint: "));
    plan = make_plan(Gpt2{}, {.model = shape});
    plan.model.residuals.back().branch.value = 0.5;
    CHECK_THAT(refusal(plan), ContainsSubstring("branch"));
    plan = make_plan(Gpt2{}, {.model = shape});
    plan.model.attention_scale.value = 1 / static_cast<double>(plan.shape.head_dim);
    CHECK_THAT(refusal(plan), ContainsSubstring("attention_scale = ") &&
                                  ContainsSubstring("divides scores by √C"));
    shape.gated_mlp = true;
    CHECK_THAT(refusal(make_plan(Gpt2{}, {.model = shape})),
               ContainsSubstring("layer.0.mlp_gate = mlp_gate: expected no such tensor (hint: "));
  }
  SECTION("other rules") {
    // GPT-2's 0.02² times the width; its rates are one: n√n over AdamW's table.
    const EffectiveScales gpt2 = effective_scales(make_plan(Gpt2{}, {.model = shape}));
    CHECK_THAT(gpt2.query.variance, WithinAbs(0.0004 * 96, 1e-14));
    CHECK_THAT(gpt2.query.rate, WithinAbs(96 * std::sqrt(96), 1e-9));
    CHECK_THAT(error_message([&] {
                 Shape base = shape;
                 base.d_model = 48;
                 base.d_ff = 144;
                 effective_scales(make_plan(MaximalUpdate{}, {.model = shape, .base = base}));
               }),
               ContainsSubstring("base"));
  }
}
