// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Moments of single components against quadrature, exact enumeration and simulation.

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "propagation/quadrature.hpp"
#include "propagation/statistics.hpp"
#include "scalewise/numeric/random.hpp"
#include "scalewise/propagation/activation.hpp"
#include "scalewise/propagation/attention.hpp"
#include "scalewise/propagation/dropout.hpp"
#include "scalewise/propagation/embedding.hpp"
#include "scalewise/propagation/layer_norm.hpp"
#include "scalewise/propagation/mlp.hpp"
#include "scalewise/propagation/softmax.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/sanitized.hpp"

using namespace scalewise;
using namespace scalewise::test;
using namespace scalewise::propagation;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

// Quadrature of smooth functions on sectors is good to rounding.
constexpr double quadrature_error = 1e-12;

double relu_at(double x) { return x > 0 ? x : 0; }
double relu_slope_at(double x) { return x > 0 ? 1 : 0; }
double normal_cdf(double x) { return std::erfc(-x * std::numbers::sqrt2 / 2) / 2; }
double gelu_at(double x) { return x * normal_cdf(x); }
double gelu_slope_at(double x) {
  return normal_cdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
}

double silu_at(double x) { return x / (1 + std::exp(-x)); }
double silu_slope_at(double x) {
  return (1 + std::exp(-x) + x * std::exp(-x)) / std::pow(1 + std::exp(-x), 2);
}
using Function = double (*)(double);
Function value_of(Activation a) {
  return a == Activation::relu ? relu_at : a == Activation::gelu ? gelu_at : silu_at;
}
Function slope_of(Activation a) {
  return a == Activation::relu   ? relu_slope_at
         : a == Activation::gelu ? gelu_slope_at
                                 : silu_slope_at;
}

/// E f(a) f(b) of normal a and b with variances v and w.
double product(double v, double w, double r, double (*f)(double)) {
  return normal_mean(r,
                     [&](double x, double y) { return f(std::sqrt(v) * x) * f(std::sqrt(w) * y); });
}

}  // namespace

TEST_CASE("Quadrature finds moments that are known") {
  CHECK_THAT(normal_mean(0.3, [](double, double) { return 1.0; }), WithinAbs(1, 1e-14));
  CHECK_THAT(normal_mean(0.3, [](double x, double y) { return x * y; }), WithinAbs(0.3, 1e-14));
  CHECK_THAT(normal_mean(-0.7, [](double x, double y) { return x * x * y * y; }),
             WithinAbs(1 + 2 * 0.49, 1e-13));
}

TEST_CASE("ReLU against quadrature") {
  for (const double r : {-0.95, -0.3, 0.0, 0.2, 0.5, 0.87, 0.999}) {
    CAPTURE(r);
    CHECK_THAT(relu_product(r), WithinAbs(2 * product(1, 1, r, relu_at), quadrature_error));
    CHECK_THAT(relu_slope_product(r),
               WithinAbs(2 * product(1, 1, r, relu_slope_at), quadrature_error));
    for (const double s : {0.1, 1.0, 10.0}) {
      const SignalMoments x = correlated(s, r);
      const SignalMoments y = relu(x);
      const double mean =
          normal_mean(0, [&](double a, double) { return relu_at(std::sqrt(s) * a); });
      CHECK_THAT(y.mean, WithinAbs(mean, s * quadrature_error));
      CHECK_THAT(y.covariance,
                 WithinAbs(product(s, s, r, relu_at) - mean * mean, s * quadrature_error));
      const double square =
          normal_mean(0, [&](double a, double) { return relu_at(a) * relu_at(a); });
      CHECK_THAT(y.variance, WithinAbs(s * square - mean * mean, s * quadrature_error));
      const SignalMoments g = relu_gradient(correlated(3, 0.4), x);
      CHECK_THAT(g.variance, WithinAbs(1.5, 1e-14));
      CHECK_THAT(g.covariance, WithinAbs(1.2 * product(s, s, r, relu_slope_at), quadrature_error));
    }
  }
  CHECK(relu_product(1) == 1.0);
  CHECK(relu_product(1 + 1e-15) == 1.0);                            // rounding of a correlation
  CHECK_THAT(relu_slope_product(-1 - 1e-15), WithinAbs(0, 1e-15));  // 1/2 - asin(1)/π, rounded
}

TEST_CASE("The paper's polynomials for ReLU are as far off as is stated") {
  double worst_product = 0;
  double worst_correlation = 0;
  for (int i = 0; i <= 1000; ++i) {
    const double r = i / 1000.0;
    const SignalMoments x = correlated(1, r);
    worst_product =
        std::max(worst_product, std::abs(relu_product(r, Reading::paper_simple) - relu_product(r)));
    worst_correlation =
        std::max(worst_correlation,
                 std::abs(relu(x, Reading::paper_simple).correlation() - relu(x).correlation()));
  }
  CHECK_THAT(worst_product, WithinAbs(0.0075, 5e-5));
  CHECK_THAT(worst_correlation, WithinAbs(0.0060, 5e-5));
}

TEST_CASE("GELU against quadrature, variances equal or not") {
  for (const double v : {0.05, 1.0, 6.0}) {
    for (const double w : {0.2, 1.0, 3.0}) {
      for (const double r : {-0.8, 0.0, 0.3, 0.9}) {
        CAPTURE(v, w, r);
        const double c = r * std::sqrt(v * w);
        CHECK_THAT(gelu_product(v, w, c), WithinAbs(product(v, w, r, gelu_at), quadrature_error));
        CHECK_THAT(gelu_slope_product(v, w, c),
                   WithinAbs(product(v, w, r, gelu_slope_at), quadrature_error));
      }
    }
    const SignalMoments y = gelu(correlated(v, 0.6));
    const auto mean_of = [&](const auto& f) {
      return normal_mean(0, [&](double a, double) { return f(std::sqrt(v) * a); });
    };
    const double mean = mean_of(gelu_at);
    const double square = mean_of([](double a) { return gelu_at(a) * gelu_at(a); });
    CHECK_THAT(y.mean, WithinAbs(mean, quadrature_error));
    CHECK_THAT(y.variance, WithinAbs(square - mean * mean, quadrature_error));
    CHECK_THAT(y.covariance,
               WithinAbs(product(v, v, 0.6, gelu_at) - mean * mean, quadrature_error));
    const SignalMoments g = gelu_gradient(correlated(2, 0.25), correlated(v, 0.6));
    const double slope = mean_of([](double a) { return gelu_slope_at(a) * gelu_slope_at(a); });
    CHECK_THAT(g.variance, WithinAbs(2 * slope, quadrature_error));
    CHECK_THAT(g.covariance, WithinAbs(0.5 * product(v, v, 0.6, gelu_slope_at), quadrature_error));
  }
}

TEST_CASE("GELU of variances from 1e-300 to 1e100") {
  // By mpmath with 400 digits from the equation, which quadrature confirms above. The tolerance is
  // nine roundings of numbers of size √(vw), or 1.
  struct Case {
    double v, w, c, product, slopes;
  };
  const std::vector<Case> cases{
      {1e-300, 1e-300, 1e-300, 2.5000000000000001e-301, 0.25},
      {1e-300, 1e-300, -5e-301, -1.25e-301, 0.25},
      {1e-300, 4e-300, 1e-300, 2.5000000000000001e-301, 0.25},
      {1e-8, 1e-8, 1e-8, 2.5000000477464822e-9, 0.2500000063661976},
      {1e10, 1e10, 1e10, 4999999999.9999981, 0.50000056269769737},
      {1e16, 1e16, 1e16, 5e15, 0.5000000005626977},
      {1e20, 1e20, 1e20, 5e19, 0.50000000000562698},
      {1e100, 1e100, 1e100, 5.0000000000000001e99, 0.5},
      {1e12, 1e12, 999999e6, 499999500150.0525, 0.49977492101474356},
      {1e12, 4e12, 1e12, 608997781044.05707, 0.33333333333339076},
      {1e60, 1e-20, 5e19, 1.2500000001989437e19, 0.25000000001591549},
      {1e16, 1e16, -5e15, 544988905221146.65, 0.16666666666666666},
      {1e100, 1e100, -9e99, 4.7691994223360396e97, 0.071783146564353142},
  };
  for (const Case& k : cases) {
    CAPTURE(k.v, k.w, k.c);
    const double deviations = std::sqrt(k.v) * std::sqrt(k.w);
    CHECK_THAT(gelu_product(k.v, k.w, k.c), WithinAbs(k.product, 1e-15 * deviations));
    CHECK_THAT(gelu_slope_product(k.v, k.w, k.c), WithinAbs(k.slopes, 1e-15));
  }
  // A covariance that rounding makes exceed the variance is the variance.
  CHECK_THAT(gelu_product(1e20, 1e20, 1e20 * (1 + 1e-15)), WithinRel(5e19, 3e-15));
  CHECK_THAT(gelu_slope_product(1e20, 1e20, 1e20 * (1 + 1e-15)), WithinAbs(0.5, 1e-11));
}

TEST_CASE("MLP blocks are what their parts make of the second moments") {
  const double d = 48;
  const double hidden = 100;
  const double s = 1.7;
  const double r = 0.35;
  const double p = 0.2;
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::silu}) {
    const Mlp m{.width = d,
                .hidden = hidden,
                .up = 0.03,
                .down = 0.02,
                .activation = activation,
                .dropout = p};
    const auto f = value_of(activation);
    const auto slope = slope_of(activation);
    // The poles of SiLU are near: its quadrature in sectors is good to 1e-9.
    const double accuracy = activation == Activation::silu ? 1e-8 : 1e-11;
    const double in = d * 0.03 * s;
    const auto square_of = [&](double (*h)(double)) {
      return normal_mean(0, [&](double a, double) { return std::pow(h(std::sqrt(in) * a), 2); });
    };
    const SignalMoments y = mlp_block(correlated(s, r), m);
    CHECK_THAT(y.variance, WithinRel(hidden * 0.02 * square_of(f) / (1 - p), accuracy));
    CHECK_THAT(y.covariance, WithinRel(hidden * 0.02 * product(in, in, r, f), accuracy));
    const SignalMoments g = mlp_block_gradient(correlated(0.6, 0.5), correlated(s, r), m);
    const double power = d * 0.02 * hidden * 0.03;
    CHECK_THAT(g.variance, WithinRel(power * square_of(slope) * 0.6 / (1 - p), accuracy));
    CHECK_THAT(g.covariance, WithinRel(power * product(in, in, r, slope) * 0.3, accuracy));
  }
  const Mlp m{.width = d, .hidden = hidden, .up = 0.03, .down = 0.02};
  CHECK_THAT(mlp_block(correlated(s, r), m, Reading::paper_simple).correlation(),
             WithinRel(1 / std::numbers::pi + r / 2 + (0.5 - 1 / std::numbers::pi) * r * r, 1e-13));
}

TEST_CASE("SiLU's products are NumPy's and those of quadrature") {
  // Gauss-Hermite rules of 180 points.
  struct Case {
    double v, w, c, product, slopes;
  };
  const auto check = [](double v, double w, double c, double expected, double slopes,
                        double error) {
    CAPTURE(v, w, c);
    const policy::Preactivation x(Activation::silu, v), y(Activation::silu, w);
    CHECK_THAT(policy::activation_product(x, y, c), WithinAbs(expected, error));
    CHECK_THAT(policy::activation_slope_product(x, y, c), WithinAbs(slopes, error));
  };
  for (const Case& k : {Case{1, 1, 0.3, 0.12324303420843162, 0.28708353877884707},
                        Case{0.5, 2, -0.7, -0.10576349110850412, 0.16784199742906863},
                        Case{3, 3, 2.9, 1.2271813811690524, 0.4423391643230944}}) {
    check(k.v, k.w, k.c, k.product, k.slopes, 1e-13);
  }
  for (const double v : {1e-6, 0.05, 3.0, 25.0}) {
    for (const double r : {-0.9, 0.4, 0.999, 1 - 1e-16}) {
      check(v, 2, r * std::sqrt(v * 2), product(v, 2, r, silu_at), product(v, 2, r, silu_slope_at),
            1e-8);
    }
  }
  // Of large variances it is a ReLU's, whose arc cosines these are.
  for (const double r : {-0.5, 0.5, 1.0}) {
    const policy::Preactivation x(Activation::silu, 1e8);
    CHECK_THAT(policy::activation_product(x, x, 1e8 * r),
               WithinRel(1e8 * relu_product(r) / 2, 2e-3));
  }
  check(0, 0, 0, 0, 0.25, 1e-15);
}

TEST_CASE("MLP blocks with gates against networks that are drawn") {
  constexpr std::size_t d = 48, hidden = 60;
  const double r = 0.4, s = 1.3, rg = 0.5;
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::silu}) {
    CAPTURE(activation);
    const Mlp m{.width = d,
                .hidden = hidden,
                .up = 0.02,
                .down = 0.03,
                .activation = activation,
                .gate = 0.015};
    Average square, both, gradient, gradients;
    numeric::RandomStream stream(17, "gated");
    const auto pair_of = [&](double variance, double correlation) {
      const double shared = std::sqrt(correlation) * stream.normal();
      const double rest = std::sqrt(1 - correlation);
      return std::array{std::sqrt(variance) * (shared + rest * stream.normal()),
                        std::sqrt(variance) * (shared + rest * stream.normal())};
    };
    for (int network = 0; network < (sanitized ? 1000 : 3000); ++network) {
      std::array<std::array<double, 2>, d> x{}, g{}, y{}, back{};
      for (auto& feature : x) feature = pair_of(s, r);
      for (auto& feature : g) feature = pair_of(0.7, rg);
      for (std::size_t h = 0; h < hidden; ++h) {
        std::array<double, d> up{}, gate{}, down{};
        std::array<double, 2> u{}, v{}, handed{};
        for (std::size_t i = 0; i < d; ++i) {
          up[i] = std::sqrt(m.up) * stream.normal();
          gate[i] = std::sqrt(*m.gate) * stream.normal();
          down[i] = std::sqrt(m.down) * stream.normal();
          for (std::size_t t = 0; t < 2; ++t) {
            u[t] += up[i] * x[i][t];
            v[t] += gate[i] * x[i][t];
            handed[t] += down[i] * g[i][t];
          }
        }
        for (std::size_t t = 0; t < 2; ++t) {
          const double f = value_of(activation)(v[t]);
          const double slope = slope_of(activation)(v[t]);
          for (std::size_t i = 0; i < d; ++i) {
            y[i][t] += down[i] * u[t] * f;
            back[i][t] += handed[t] * (up[i] * f + gate[i] * u[t] * slope);
          }
        }
      }
      double sums[4] = {};
      for (std::size_t i = 0; i < d; ++i) {
        sums[0] += (y[i][0] * y[i][0] + y[i][1] * y[i][1]) / (2 * d);
        sums[1] += y[i][0] * y[i][1] / d;
        sums[2] += (back[i][0] * back[i][0] + back[i][1] * back[i][1]) / (2 * d);
        sums[3] += back[i][0] * back[i][1] / d;
      }
      square.add(sums[0]), both.add(sums[1]), gradient.add(sums[2]), gradients.add(sums[3]);
    }
    const SignalMoments out = mlp_block(correlated(s, r), m);
    const SignalMoments in = mlp_block_gradient(correlated(0.7, rg), correlated(s, r), m);
    // Of order 1/d are the scatter of the inputs' own sizes, and what a gradient shares with its weights.
    CHECK(agrees(square, out.variance, 2.0 / d));
    CHECK(agrees(both, out.covariance, 4.0 / d));
    CHECK(agrees(gradient, in.variance, 2.0 / d));
    CHECK(agrees(gradients, in.covariance, 4.0 / d));
    CHECK(square.error() < 0.035 * out.variance);  // of 1000
    CHECK(gradients.error() < 0.07 * in.covariance);
  }
}

TEST_CASE("Hidden units of variances that differ, from 1e-300 to 1e300") {
  const Mlp m{.width = 1, .up = 1};
  const auto relu_of = [](double v) { return policy::Preactivation(Activation::relu, v); };
  for (const double v : {1e-300, 1e-170, 1.0, 1e170, 1e299}) {
    CAPTURE(v);  // √(v 4v) = 2v
    for (const double r : {0.3, 1.0}) {
      CHECK_THAT(propagation::detail::hidden_product(m, relu_of(v), relu_of(4 * v), r * 2 * v,
                                                     Reading::corrected) /
                     v,
                 WithinRel(relu_product(r), 1e-15));
      // Rounding of the two roots moves r by 2^-52, and asin by the root of twice that at one.
      CHECK_THAT(
          propagation::detail::hidden_slope_product(m, relu_of(v), relu_of(4 * v), r * 2 * v),
          WithinAbs(relu_slope_product(r) / 2, 4e-9));
    }
  }
}

TEST_CASE("A dropout that is not a probability below 1 is refused") {
  CHECK_THAT(error_message([] { check_dropout("dropout", 1); }),
             ContainsSubstring("dropout = 1: expected a probability below 1"));
  CHECK_THAT(error_message([] { check_dropout("dropout", -0.1); }), ContainsSubstring("dropout"));
  CHECK_THAT(error_message([] { check_dropout("dropout", std::nan("")); }),
             ContainsSubstring("dropout"));
}

namespace {

/// The chance that two tokens of a sentence are the same, from all sentences of the vocabulary.
double repeats_of_sentences(int vocab, int length) {
  std::vector<double> chances;
  double total = 0;
  for (int i = 1; i <= vocab; ++i) total += 1.0 / i;
  for (int i = 1; i <= vocab; ++i) chances.push_back(1.0 / i / total);
  const auto sentences = static_cast<int>(std::lround(std::pow(vocab, length)));
  double mean = 0;
  for (int sentence = 0; sentence < sentences; ++sentence) {
    std::vector<int> words;
    double chance = 1;
    for (int t = 0, rest = sentence; t < length; ++t, rest /= vocab) {
      words.push_back(rest % vocab);
      chance *= chances[static_cast<std::size_t>(rest % vocab)];
    }
    int same = 0;
    for (int t = 0; t < length; ++t) {
      for (int u = 0; u < t; ++u) {
        const auto a = static_cast<std::size_t>(t);
        const auto b = static_cast<std::size_t>(u);
        same += words[a] == words[b] ? 1 : 0;
      }
    }
    mean += chance * same / (length * (length - 1) / 2.0);
  }
  return mean;
}

/// The share of pairs in the same segment, the first of two being first … last tokens long.
double same_segment(int length, int first, int last) {
  double mean = 0;
  for (int a = first; a <= last; ++a) {
    const int b = length - a;
    mean += (a * (a - 1.0) + b * (b - 1.0)) / (length * (length - 1.0));
  }
  return mean / (last - first + 1);
}

}  // namespace

TEST_CASE("Repeated tokens and segments by enumeration") {
  for (const auto& [vocab, length] :
       {std::array{2, 2}, std::array{3, 4}, std::array{5, 3}, std::array{1, 3}}) {
    CAPTURE(vocab, length);
    CHECK_THAT(token_repeats(vocab, length), WithinRel(repeats_of_sentences(vocab, length), 1e-13));
  }
  for (const int length : {2, 5, 12}) {
    CAPTURE(length);
    CHECK_THAT(segment_repeats(length), WithinRel(same_segment(length, 0, length), 1e-14));
    CHECK_THAT(segment_repeats_of_two(length),
               WithinAbs(same_segment(length, 1, length - 1), 1e-14));
  }
  // The numbers of appendix A.1 and of its errors, at a vocabulary of 32000 and length 256.
  CHECK_THAT(token_repeats(32000, 256), WithinAbs(0.0137169, 5e-8));
  CHECK_THAT(token_repeats(32000, 256, Repeats::plug_in), WithinAbs(0.00985, 5e-6));
  CHECK_THAT(token_repeats(32000, 256, Repeats::printed), WithinAbs(0.015286, 5e-7));
  const Embeddings bert{.vocab = 32000, .length = 256, .segments = true};
  CHECK_THAT(embedding_correlation(bert), WithinAbs(0.226795, 5e-7));
  CHECK_THAT(embedding_correlation(bert, Repeats::printed), WithinAbs(0.227318, 5e-7));
  CHECK_THAT(segment_repeats_of_two(256), WithinAbs(0.66405, 5e-6));
}

TEST_CASE("Embedded sentences by enumeration of words, segments and dropout") {
  const int vocab = 3;
  const int length = 3;
  const double p = 0.25;
  const double variance = 0.4;
  for (const bool segments : {false, true}) {
    for (const bool positions : {false, true}) {
      CAPTURE(segments, positions);
      const Embeddings e{.vocab = vocab,
                         .length = length,
                         .segments = segments,
                         .positions = positions,
                         .dropout = p};
      // Over independent tables, the product of two tokens' sums is one variance per table in which
      // both read the same row; of both masks, both are kept with the chance (1-p)².
      double same = repeats_of_sentences(vocab, length);
      if (segments) same += same_segment(length, 0, length);
      const double kept = (1 - p) * (1 - p) / ((1 - p) * (1 - p));
      const int tables = 1 + (segments ? 1 : 0) + (positions ? 1 : 0);
      const SignalMoments x = embedding(e, variance);
      CHECK_THAT(x.covariance, WithinRel(variance * same * kept, 1e-13));
      CHECK_THAT(x.variance, WithinRel(variance * tables * (1 - p) / ((1 - p) * (1 - p)), 1e-13));
      CHECK_THAT(x.correlation(), WithinRel(embedding_correlation(e), 1e-14));
    }
  }
  CHECK_THAT(error_message([] { embedding_correlation({.vocab = 0, .length = 4}); }),
             ContainsSubstring("vocab = 0: expected a positive integer"));
  CHECK_THAT(error_message([] { embedding_correlation({.vocab = 4, .length = 1}); }),
             ContainsSubstring("length = 1: expected 2 or more tokens"));
}

TEST_CASE("LayerNorm's covariance in closed form for two and three features") {
  const GaussLegendre rule = gauss_legendre(60);
  for (const double r : {0.0, 0.2, 0.5, 0.9, -0.4}) {
    CAPTURE(r);
    // Two features: the outputs are the signs of differences, of correlation r.
    CHECK_THAT(layer_norm(correlated(3, r), 2).covariance,
               WithinAbs(2 / std::numbers::pi * std::asin(r), 1e-12));
    // Three: the mean cosine of two normal vectors of the plane, r ∫ cos²/√(1 - r² sin²).
    const double plane =
        r * integral(rule, 0, std::numbers::pi / 2, [&](double t) {
          return std::cos(t) * std::cos(t) / std::sqrt(1 - r * r * std::sin(t) * std::sin(t));
        });
    CHECK_THAT(layer_norm(correlated(3, r), 3).covariance, WithinAbs(plane, 1e-12));
    CHECK_THAT(layer_norm(correlated(3, r), 10, Reading::paper_full).covariance,
               WithinAbs(0.9 * r, 1e-14));
    const double d = 4000;
    CHECK_THAT(layer_norm(correlated(3, r), d).covariance,
               WithinAbs(r * (1 - (1 - r * r) / (2 * d)), 1 / (d * d)));
  }
  CHECK(layer_norm({2, 5, 1}, 7).mean == 0);
  CHECK(layer_norm({2, 5, 1}, 7).variance == 1);
}

TEST_CASE("LayerNorm's covariance from few features to many, near correlations of one") {
  // By mpmath with 40 digits from the equation, 2F1 and gammas of its own. The tolerance is twice the
  // largest error over many more correlations and widths.
  struct Case {
    double features, r, covariance;
  };
  const std::vector<Case> cases{
      {2, 0.3, 0.193973368041356573},      {2, 0.9, 0.712867413742587490},
      {2, 0.999, 0.971527125187520677},    {2, 0.999999, 0.999099683608803572},
      {3, 0.3, 0.238364069288274632},      {3, 0.9, 0.820436351645875366},
      {3, 0.999, 0.996003716486706074},    {3, 0.999999, 0.999992552518676866},
      {4, 0.3, 0.257008948707312037},      {4, 0.9, 0.853980628776935978},
      {4, 0.999, 0.998073027561221771},    {4, 0.999999, 0.999998002397846929},
      {6, 0.3, 0.273411280927964131},      {6, 0.9, 0.876618602456570946},
      {6, 0.999, 0.998668513586691609},    {6, 0.999999, 0.999998666668661515},
      {8, 0.3, 0.280808546492225523},      {8, 0.9, 0.884662890068147749},
      {8, 0.999, 0.998800597110563907},    {8, 0.999999, 0.999998800000599962},
      {16, 0.3, 0.290948395474311360},     {16, 0.9, 0.893659153993371181},
      {16, 0.999, 0.998923223645850425},   {16, 0.999999, 0.999998923077069898},
      {64, 0.3, 0.297835246782241918},     {64, 0.9, 0.898608378448064039},
      {64, 0.999, 0.998983632387010145},   {64, 0.999999, 0.999998983606583188},
      {1024, 0.3, 0.299866575176865240},   {1024, 0.9, 0.899916293674667013},
      {1024, 0.999, 0.998999022041045279}, {1024, 0.999999, 0.999998999020569515},
      {1e6, 0.3, 0.299999863499869972},    {1e6, 0.9, 0.899999914499780072},
      {1e6, 0.999, 0.998999999001496508},  {1e6, 0.999999, 0.999998999998999969},
      {1e8, 0.3, 0.299999998634999975},    {1e8, 0.9, 0.899999999145000000},
      {1e8, 0.999, 0.998999999990014993},  {1e8, 0.999999, 0.999998999999989971},
      {1e10, 0.3, 0.299999999986349988},   {1e10, 0.9, 0.899999999991450022},
      {1e10, 0.999, 0.998999999999900149}, {1e10, 0.999999, 0.999998999999999871},
  };
  for (const Case& k : cases) {
    CAPTURE(k.features, k.r);
    CHECK_THAT(layer_norm(correlated(1, k.r), k.features).covariance,
               WithinAbs(k.covariance, 3e-15));
  }
  for (const double d : {2.0, 3.0, 5.0, 31.0, 32.0, 1e3, 1e4, 1e6, 1e10}) {
    CAPTURE(d);
    CHECK(layer_norm(correlated(1, 1), d).covariance == 1);
    CHECK(layer_norm(correlated(1, 1 + 1e-15), d).covariance == 1);
    CHECK(layer_norm(correlated(1, -1), d).covariance == -1);
    for (const double r : {1 - 1e-9, 1 - 1e-13}) {
      CHECK(layer_norm(correlated(1, r), d).covariance <= r);
    }
  }
}

TEST_CASE("Covariances over features, row by row of Table 19, against what is drawn") {
  // Ten tokens of six features: pairs of features of a token, over all pairs and tokens.
  constexpr std::size_t tokens = 10, d = 6;
  using Token = std::array<double, d>;
  using Input = std::array<Token, tokens>;
  numeric::RandomStream stream(23, "features");
  const double r = 0.3, p = 0.2;  // of features; of dropout
  const auto mean_product = [](const Input& x) {
    double sum = 0;
    for (const Token& t : x) {
      double all = 0, squares = 0;
      for (const double f : t) all += f, squares += f * f;
      sum += (all * all - squares) / (d * (d - 1)) / tokens;
    }
    return sum;
  };
  const auto each = [](Input x, const auto& f) {
    for (Token& t : x)
      for (double& entry : t) entry = f(entry);
    return x;
  };
  const auto linear_of = [&](const Input& x) {
    std::array<Token, d> w;
    for (Token& row : w)
      for (double& entry : row) entry = stream.normal();
    Input y{};
    for (std::size_t t = 0; t < tokens; ++t)
      for (std::size_t i = 0; i < d; ++i)
        for (std::size_t j = 0; j < d; ++j) y[t][j] += x[t][i] * w[i][j];
    return y;
  };
  const auto norm_of = [](Input x) {
    for (Token& t : x) {
      double mean = 0, square = 0;
      for (const double f : t) mean += f / d;
      for (double& f : t) f -= mean, square += f * f / d;
      for (double& f : t) f /= std::sqrt(square);
    }
    return x;
  };
  // Scores of queries and keys that are drawn, and dropout of probabilities.
  const auto attend = [&](const Input& x) {
    const Input q = linear_of(x), k = linear_of(x);
    Input y{};
    for (std::size_t t = 0; t < tokens; ++t) {
      std::array<double, tokens> weight{};
      double total = 0;
      for (std::size_t u = 0; u < tokens; ++u) {
        for (std::size_t i = 0; i < d; ++i) weight[u] += q[t][i] * k[u][i] / 10;
        weight[u] = std::exp(weight[u]);
        total += weight[u];
      }
      for (std::size_t u = 0; u < tokens; ++u) {
        if (stream.uniform() < p) continue;
        for (std::size_t i = 0; i < d; ++i) y[t][i] += weight[u] / total / (1 - p) * x[u][i];
      }
    }
    return y;
  };
  Average embedding, line, rectified, gelus, dropped, block, mlp;
  double norm = 0, attended = 0;
  for (int draw = 0; draw < 20'000; ++draw) {
    Input x;
    for (Token& t : x) {
      const double shared = std::sqrt(r) * stream.normal();
      for (double& f : t) f = shared + std::sqrt(1 - r) * stream.normal();
    }
    Input table;  // two words in turn
    for (double& f : table[0]) f = stream.normal();
    for (double& f : table[1]) f = stream.normal();
    for (std::size_t t = 2; t < tokens; ++t) table[t] = table[t % 2];
    embedding.add(mean_product(table));
    line.add(mean_product(linear_of(x)));
    rectified.add(mean_product(each(x, relu_at)));
    gelus.add(mean_product(each(x, gelu_at)));
    dropped.add(
        mean_product(each(x, [&](double f) { return stream.uniform() < p ? 0 : f / (1 - p); })));
    const Input normed = norm_of(x);
    const Input mixed = attend(normed);
    block.add(mean_product(linear_of(mixed)));
    mlp.add(mean_product(linear_of(each(linear_of(normed), relu_at))));
    if (draw > 0) continue;
    norm = mean_product(normed);
    attended = mean_product(mixed);
    double variance = 0;
    for (const Token& t : mixed)
      for (const double f : t) variance += f * f / (d * tokens);
    CHECK_THAT(attended, WithinRel(attended_feature_covariance(
                                       {.covariance = layer_norm_feature_covariance(d)},
                                       {.variance = variance}),
                                   1e-12));
  }
  const SignalMoments x = correlated(1, r);
  const auto second = [](const SignalMoments& y) { return y.covariance + y.mean * y.mean; };
  CHECK(agrees(embedding, 0));
  CHECK(agrees(line, 0));
  CHECK(agrees(rectified, second(relu(x))));
  CHECK(agrees(gelus, second(gelu(x))));
  CHECK(agrees(dropped, dropout(x, p).covariance));
  CHECK_THAT(norm, WithinRel(layer_norm_feature_covariance(d), 1e-12));
  CHECK(agrees(block, 0));
  CHECK(agrees(mlp, 0));
  CHECK(dropped.error() < 0.01 * r);
}
