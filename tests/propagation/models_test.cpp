// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Whole models from a plan: embeddings, the loss' gradient, final norms, two stacks.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <variant>
#include <vector>

#include "propagation/small_model.hpp"
#include "propagation/statistics.hpp"
#include "scalewise/numeric/random.hpp"
#include "scalewise/policy/deep_scale_lm.hpp"
#include "scalewise/policy/rezero.hpp"
#include "scalewise/policy/xavier.hpp"
#include "scalewise/propagation/depth_methods.hpp"
#include "scalewise/propagation/model.hpp"
#include "scalewise/propagation/warnings.hpp"
#include "support/catch.hpp"

using namespace scalewise;
using namespace scalewise::test;
using namespace scalewise::propagation;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

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
    const SignalMoments x = embedding(plan, c, data);
    CHECK_THAT(x.variance, WithinRel(power * (token + 2.0 / 32) / 0.8, 1e-12));
    CHECK_THAT(x.covariance, WithinRel(power * (0.3 * token + 2.0 / 3 / 32), 1e-12));
    if (norm) continue;
    Average square, product;
    numeric::RandomStream stream(4, "embedding");
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
  const Plan plan = plan_of<DeepScaleLM>(patches, {.input_correlation = 0.46});
  const SignalMoments x =
      embedding(plan, conditions(), {.patch_power = 0.5, .patch_correlation = 0.6});
  CHECK_THAT(x.variance, WithinRel((0.5 * 0.45 + 0.45) / 0.9, 1e-12));  // two tables: (1-p)/2 each
  CHECK_THAT(x.covariance, WithinRel(0.6 * 0.5 * 0.45, 1e-12));
}

TEST_CASE("The loss' gradient against heads that are drawn") {
  Shape shape = small_shape();
  shape.vocab = 7;
  const auto check = [](const SignalMoments& predicted, double scale, int outputs, double repeats,
                        bool pooled) {
    // At logits of zero: rows of the head, weighted by 1/V minus one-hot of the target.
    Average square, product;
    numeric::RandomStream stream(8, "head");
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
  const SignalMoments none = correlated(1e-12, 0);  // so that logits are
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
  const SignalMoments pooled = loss_gradient(images, conditions(), data, none);
  check(scaled(16 * 16, pooled), std::sqrt(images.at("head").init_variance.value), 4, 1, true);
}

TEST_CASE("The gradient of a tied head, against words that are drawn") {
  // What is left is x = √0.255 the token's own embedding + the rest, of length √n, and tokens have the correlation 0.37.
  constexpr std::size_t V = 256, n = 256, L = 64;
  constexpr double share = 0.255, together = 0.37;
  std::vector<double> up_to;  // of words, with the chances of Zipf's law
  double all = 0, repeats = 0;
  for (std::size_t v = 0; v < V; ++v) up_to.push_back(all += 1 / (static_cast<double>(v) + 2));
  for (std::size_t v = 0; v < V; ++v)
    repeats += std::pow((up_to[v] - (v == 0 ? 0 : up_to[v - 1])) / all, 2);
  numeric::RandomStream stream(5, "tied");
  const auto normals = [&](std::size_t count) {
    std::vector<double> values(count);
    for (double& x : values) x = stream.normal();
    return values;
  };
  Average variance, covariance;
  for (int draw = 0; draw < 10; ++draw) {
    const std::vector<double> table = normals(V * n), shared = normals(n);
    std::vector<std::size_t> words;
    for (std::size_t t = 0; t <= L; ++t) {
      const auto found = std::lower_bound(up_to.begin(), up_to.end(), stream.uniform() * all);
      words.push_back(static_cast<std::size_t>(found - up_to.begin()));
    }
    std::vector<double> sum(n);
    double squares = 0;
    for (std::size_t t = 0; t < L; ++t) {
      std::vector<double> x = normals(n), p(V), g(n);
      double length = 0, total = 0, along = 0;
      for (std::size_t i = 0; i < n; ++i) {
        x[i] = std::sqrt(share) * table[words[t] * n + i] + std::sqrt(together) * shared[i] +
               std::sqrt(1 - share - together) * x[i];
        length += x[i] * x[i] / n;
      }
      for (double& feature : x) feature /= std::sqrt(length);
      for (std::size_t v = 0; v < V; ++v) {
        double logit = 0;  // of variance 1
        for (std::size_t i = 0; i < n; ++i) logit += table[v * n + i] * x[i] / std::sqrt(1.0 * n);
        total += p[v] = std::exp(logit);
      }
      for (std::size_t v = 0; v < V; ++v) {
        const double error = p[v] / total - (v == words[t + 1] ? 1 : 0);
        for (std::size_t i = 0; i < n; ++i) g[i] += error * table[v * n + i];
      }
      for (std::size_t i = 0; i < n; ++i) along += g[i] * x[i] / n;
      for (std::size_t i = 0; i < n; ++i) {  // through the final norm
        const double out = g[i] - along * x[i];
        sum[i] += out;
        squares += out * out;
      }
    }
    double of_sum = 0;
    for (const double feature : sum) of_sum += feature * feature;
    variance.add(squares / (n * L));
    covariance.add((of_sum - squares) / (n * L * (L - 1)));
  }
  Shape shape = small_shape();
  shape.d_model = n;
  shape.d_ff = 4 * n;
  shape.vocab = V;
  shape.tied_head = true;
  const Plan plan = plan_of<Xavier>(shape);
  Conditions c = conditions();
  c.length = L;
  const double power = propagation::detail::head_power(plan);
  const SignalMoments left = correlated(1 / (power * n), share * repeats + together);
  const SignalMoments g = loss_gradient(plan, c, {.repeats = repeats}, left, share);
  INFO(variance.mean() << " " << covariance.mean());
  CHECK_THAT(g.variance / power, WithinRel(variance.mean(), 0.04));  // 2.5 % of 40 draws
  CHECK_THAT(g.covariance / power, WithinAbs(covariance.mean(), 0.01));
  // Without the own word the variance would be a third less.
  CHECK(loss_gradient(plan, c, {.repeats = repeats}, left).variance / power <
        0.7 * variance.mean());
}

TEST_CASE("The part of the stream that is a token's own embedding falls with what blocks add") {
  Shape shape = small_shape();
  shape.tied_head = true;
  const Plan plan = plan_of<Xavier>(shape);
  const Conditions c = conditions();
  const Data data{.repeats = 0.4};
  const Profile profile = predict(plan, c, data);
  double share = (1 - c.dropout) / (1 + 1.0 / 32);  // the table has √n, positions have not
  for (const double relative : profile.relative) share /= 1 + relative;
  CHECK_THAT(propagation::detail::own_share(plan, c, profile), WithinRel(share, 1e-12));
  shape.tied_head = false;
  CHECK(propagation::detail::own_share(plan_of<Xavier>(shape), c, profile) == 0);
}

TEST_CASE("The gradient of cross-entropy over many outputs is that of lognormal weights") {
  // p = e^z/Σe^z, and by the law of large numbers Σe^z = n e^(v/2): n E Σ p p' = e^rv, which is
  // also n P where r = 1. The next term is 3 (e^v - 1)/n of it, here 7e-6 at most.
  constexpr long n = 1'000'000;
  for (const double v : {1e-3, 0.3, 1.2}) {
    for (const double r : {0.0, 0.4, 1.0}) {
      const SignalMoments g = cross_entropy_gradient(n, correlated(v, r), 0);
      CHECK_THAT((g.variance - 1) * n, WithinRel(std::exp(v) - 2, 5e-5));
      CHECK_THAT(g.covariance * n, WithinAbs(std::exp(r * v) - 2, 5e-5));
      const SignalMoments same = cross_entropy_gradient(n, correlated(v, r), 0.25);
      CHECK_THAT(same.covariance - g.covariance, WithinRel(0.25, 1e-12));
    }
  }
  // Two predictions that are one, and two that are independent, over few outputs.
  const SignalMoments one = cross_entropy_gradient(3, correlated(0.8, 1), 1);
  CHECK_THAT(one.covariance, WithinRel(one.variance, 1e-14));
  CHECK_THAT(cross_entropy_gradient(3, correlated(0.8, 0), 0.5).covariance,
             WithinRel(0.5 - 1.0 / 3, 1e-14));
}

TEST_CASE("The covariance of cross-entropy's gradients is that of simulation") {
  // Mean Σ p p' and P = mean Σ p² of softmax over 256 pairs of normal logits of correlation 0.6, by
  // NumPy with 40,000 pairs of predictions each; the error is the standard error of Σ p p'.
  struct Case {
    double variance, simulated, error, power;
  };
  constexpr double n = 256;
  for (const Case& k : {Case{1, 0.0070218, 7e-6, 0.010334}, Case{2, 0.011947, 3.3e-5, 0.02411},
                        Case{4, 0.025648, 1.3e-4, 0.07298}, Case{9, 0.05619, 4.4e-4, 0.2155},
                        Case{20, 0.08539, 7.3e-4, 0.4118}}) {
    CAPTURE(k.variance);
    CHECK_THAT(squared_probabilities(256, k.variance), WithinRel(k.power, 0.01));
    const SignalMoments g = cross_entropy_gradient(256, correlated(k.variance, 0.6), 0);
    CHECK_THAT(g.covariance + 2 / n, WithinAbs(k.simulated, 3 * k.error));
  }
}

TEST_CASE("Products of probabilities of two softmaxes are those of closed forms") {
  for (const double v : {1e-3, 0.1, 1.0, 9.0, 25.0}) {
    for (const long n : {1L, 2L, 10L, 1000L, 100'000L}) {
      CAPTURE(v, n);
      // Two softmaxes that are one have E Σ p², by another integral, and independent ones 1/n.
      CHECK_THAT(shared_probabilities(n, v, v), WithinRel(squared_probabilities(n, v), 1e-6));
      CHECK(shared_probabilities(n, v, 0) == 1 / static_cast<double>(n));
      CHECK_THAT(shared_probabilities(n, v, 1e-9),  // the slope is below 1/n
                 WithinRel(1 / static_cast<double>(n), 1e-8));
      // Two outputs, z' = -z: p' has the probabilities in the other order, and Σ p p' = 1 - Σ p².
      if (n != 2) continue;
      CHECK_THAT(shared_probabilities(2, v, -v), WithinRel(1 - squared_probabilities(2, v), 1e-6));
    }
  }
  // Two outputs: Σ p p' = 1/2 + tanh(d/2) tanh(d'/2)/2, d the difference of the logits, of variance 2v; by
  // trapezoids over both in Python.
  CHECK_THAT(shared_probabilities(2, 4, 2.4), WithinRel(0.6432384733074521, 1e-6));
  CHECK_THAT(shared_probabilities(2, 4, -1), WithinRel(0.44206269173265017, 1e-6));
  CHECK_THROWS_AS(shared_probabilities(0, 1, 0.5), InvalidInput);
  CHECK_THROWS_AS(shared_probabilities(2, 26, 0.5), InvalidInput);
  CHECK_THROWS_AS(shared_probabilities(2, 1, std::nan("")), InvalidInput);
}

TEST_CASE("Final norms hand the gradient on over the stream's variance") {
  Shape shape = small_shape();
  const SignalMoments input = correlated(1, 0.2);
  const SignalMoments gradient = correlated(0.5, 0.3);
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

TEST_CASE("Each token of a causal stack has its own final norm") {
  const Plan plan = plan_of<Xavier>(small_shape());
  Conditions c = conditions();
  c.causal = true;
  c.norm_epsilon = 0.01;
  const SignalMoments input = correlated(1, 0.2);
  const SignalMoments gradient = correlated(0.5, 0.3);
  double variance = 0;  // of the gradient before the norm, by hand
  double covariance = 0;
  propagate_tokens(plan_layers(plan, c), {16, input}, [&](const TokenCovariance& stream) {
    CHECK(stream.at(0, 0) > 1.2 * stream.at(15, 15));  // one key is all that the first token reads
    for (std::size_t t = 0; t < 16; ++t) {
      const double norm = std::sqrt(stream.at(t, t) + 0.01);
      variance += 0.5 / (norm * norm) / 16;
      for (std::size_t u = 0; u < t; ++u) {
        covariance += 0.15 / (norm * std::sqrt(stream.at(u, u) + 0.01)) / 120;
      }
    }
    return stream;
  });
  const SignalMoments top = predict(plan, c, input, gradient).gradient_at(4);
  CHECK_THAT(top.variance, WithinRel(variance, 1e-13));
  CHECK_THAT(top.covariance, WithinRel(covariance, 1e-13));
}

TEST_CASE("Causal tokens may collapse onto one another") {
  // Without dropout a vanilla post-norm stack brings tokens together exponentially; from where
  // their difference is that of rounding, it is a stack of equal tokens.
  Shape shape = small_shape();
  shape.depth = 200;
  Conditions c = conditions(64);
  c.placement = NormPlacement::post;
  c.dropout = 0;
  c.causal = true;
  c.norm_epsilon = 1e-5;
  for (const Activation activation : {Activation::relu, Activation::gelu}) {
    shape.activation = c.activation = activation;
    const Plan plan = plan_of<Xavier>(shape);
    const Profile p = predict(plan, c, Data{.repeats = 0.1}, correlated(1, 0.1));
    for (std::size_t l = 0; l <= 200; ++l) {
      CAPTURE(l);
      CHECK(p.forward_at(l).variance > 0);
      CHECK(p.gradient_at(l).variance > 0);
      CHECK(std::isfinite(p.gradient_at(l).variance));
    }
    CHECK_THAT(p.forward_at(200).correlation(), WithinAbs(1, 1e-12));
    const std::vector<Warning> list = warnings(plan_layers(plan, c), p);
    REQUIRE_FALSE(list.empty());
    CHECK(list.front().text.starts_with("rank collapse: tokens have the correlation 1 after"));
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

TEST_CASE("The memory gets each block's gradient over its branch's share of the sum") {
  CrossAttention cross;
  cross.attention = attention_at(depth_layers(DepthMethod::vanilla, DepthModel{}, 1), 0);
  cross.queries = 256;
  cross.memory = correlated(1, 0.3);
  Layers layers;
  layers.placement = NormPlacement::pre;
  layers.blocks = {{.skip = 0.75, .branch = 0.25, .inner = cross},
                   {.skip = 0.4, .branch = 0.6, .inner = cross}};
  const Profile p = propagate(layers, correlated(2, 0.3), correlated(1, 0.5));
  double variance = 0;
  double covariance = 0;
  for (const std::size_t block : {std::size_t{0}, std::size_t{1}}) {
    const SignalMoments in = correlated(1, p.forward[block].correlation());  // a norm in front
    const SignalMoments part = memory_gradient(p.gradient[block + 1], in, cross);
    variance += (block == 0 ? 0.25 : 0.6) * part.variance;
    covariance += (block == 0 ? 0.25 : 0.6) * part.covariance;
  }
  CHECK_THAT(p.memory_gradient.variance, WithinRel(variance, 1e-13));
  CHECK_THAT(p.memory_gradient.covariance, WithinRel(covariance, 1e-13));
}

TEST_CASE("An encoder gets its gradient from all layers of the decoder") {
  Shape shape = small_shape();
  shape.encoder_depth = 3;
  shape.depth = 2;
  const Plan plan = plan_of<DeepScaleLM>(shape, {.k = 1});
  const Conditions c = conditions(8);
  const SignalMoments x = correlated(1, 0.2);
  const EncoderDecoderProfile both = predict_encoder_decoder(plan, c, x, x, correlated(1, 0.5));
  const Layers decoder = plan_layers(plan, c, Stack::decoder);
  CHECK(both.encoder.depth() == 3);
  CHECK(both.decoder.depth() == 2);
  // Put together by hand from the profiles' own averages: the memory is what the encoder's final
  // norm leaves. The decoder is causal, so that its averages only approximate its tokens.
  const SignalMoments memory = correlated(1, both.encoder.forward_at(3).correlation());
  SignalMoments sum{0, 0, 0};
  for (const std::size_t block : {std::size_t{1}, std::size_t{4}}) {
    CrossAttention cross = std::get<CrossAttention>(decoder.blocks[block].inner);
    cross.memory = memory;
    const SignalMoments& s = both.decoder.forward[block];
    const SignalMoments in = correlated(1, s.correlation());
    const SignalMoments part = memory_gradient(both.decoder.gradient[block + 1], in, cross);
    sum.variance += decoder.blocks[block].branch * part.variance;
    sum.covariance += decoder.blocks[block].branch * part.covariance;
  }
  CHECK_THAT(both.decoder.memory_gradient.variance, WithinRel(sum.variance, 0.02));
  CHECK_THAT(both.decoder.memory_gradient.covariance, WithinRel(sum.covariance, 0.02));
  CHECK_THAT(both.encoder.gradient_at(3).variance,
             WithinRel(both.decoder.memory_gradient.variance / both.encoder.forward_at(3).variance,
                       1e-12));
}
