// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Numeric functions given numbers out of range.

#include <climits>
#include <cmath>
#include <string>
#include <vector>

#include "scalewise/numeric/line.hpp"
#include "scalewise/policy/relu_correlation.hpp"
#include "scalewise/propagation/cross_entropy.hpp"
#include "scalewise/propagation/depth_methods.hpp"
#include "scalewise/propagation/dropout.hpp"
#include "scalewise/propagation/embedding.hpp"
#include "scalewise/propagation/growth.hpp"
#include "scalewise/propagation/layer_norm.hpp"
#include "scalewise/propagation/softmax.hpp"
#include "scalewise/propagation/stable.hpp"
#include "scalewise/propagation/token_propagate.hpp"
#include "scalewise/scaling/formula.hpp"
#include "support/hostile.hpp"

using namespace scalewise;
using namespace scalewise::propagation;
using namespace scalewise::test;

TEST_CASE("Powers, roots and logarithms are total", "[total]") {
  for (const double x : hostile) {
    for (const int q : {INT_MIN, -1, 0, 1, 2, 3, 64, 1024, 1025, INT_MAX}) {
      call("root", [&] {
        const double y = numeric::root(x, q);
        if (x < 0 && q != 1) CHECK(std::isnan(y));
      });
      for (const int den : {INT_MIN, -3, 0, 1, 2, INT_MAX}) {
        call("power", [&] { numeric::power(x, Exponent(q, den)); });
        call("Exponent", [&] { Exponent(q, den) * Exponent(den, 7) + Exponent(q, 5) - q; });
      }
    }
    for (const double y : hostile) call("real_power", [&] { numeric::real_power(x, y); });
    call("exponent", [&] { numeric::power(2, exponent(x)); });
    call("exponential", [&] { numeric::exponential(x); });
    call("natural_log", [&] { numeric::natural_log(x); });
    call("arcsin", [&] { policy::arcsin(x); });
    call("relu_correlation", [&] { policy::relu_correlation(x); });
    call("number_text", [&] { numeric::number_text(x); });
    call("pow", [&] { to_text(pow(Scaling(x), Exponent(1, 2))); });
  }
  CHECK(numeric::root(4e-320, 2) == Approx(std::sqrt(4e-320)).epsilon(1e-14));
  CHECK(std::isnan(numeric::root(-1, 2)));
  CHECK(std::isnan(numeric::root(limit::quiet_NaN(), 3)));
  CHECK(numeric::root(limit::infinity(), 5) == limit::infinity());
  CHECK(numeric::natural_log(0) == -limit::infinity());
  CHECK(std::isnan(numeric::natural_log(-2)));
  CHECK(std::isnan(policy::relu_correlation(-2)));
  CHECK(std::isnan(policy::relu_correlation(2)));
  CHECK(policy::relu_correlation(-1 - 1e-15) == 0);
  CHECK_THROWS_AS(Exponent(1, 0), InvalidInput);
  CHECK(numeric::number_text(limit::denorm_min()) == "5e-324");
  CHECK(numeric::number_text(1e300) == "1e+300");
}

TEST_CASE("Lines and quantiles are total", "[total]") {
  for (const double x : hostile) {
    call("fit_line", [&] {
      numeric::fit_line(std::vector<double>{x, 1, x}, std::vector<double>{x, x, 2});
    });
  }
  CHECK(std::isnan(numeric::fit_line(std::vector<double>{}, std::vector<double>{}).slope));
  CHECK(std::isnan(numeric::fit_line(std::vector<double>{2, 2}, std::vector<double>{1, 3}).slope));
  CHECK_THROWS_AS(numeric::fit_line(std::vector<double>{1, 2}, std::vector<double>{1}),
                  InvalidInput);
  CHECK(numeric::t_quantile(0) == limit::infinity());
  CHECK(numeric::t_quantile(SIZE_MAX) == Approx(1.959964));
}

TEST_CASE("The theory of components is total", "[total]") {
  for (const double x : hostile) {
    for (const double y : hostile) {
      const SignalMoments m{0, x, y};
      const SignalMoments g{0, y, x};
      for (const Reading reading :
           {Reading::corrected, Reading::paper_full, Reading::paper_simple}) {
        call("layer_norm", [&] { layer_norm(m, y, reading); });
        call("layer_norm_gradient", [&] { layer_norm_gradient(g, m, x, reading); });
        call("softmax", [&] { softmax(m, y, reading); });
        call("softmax_gradient_variance", [&] { softmax_gradient_variance(g, m, x, reading); });
        call("relu", [&] { relu(m, reading); });
        call("mlp_stable_correlation", [&] { mlp_stable_correlation(x, reading); });
      }
      call("gelu", [&] { gelu(m), gelu_gradient(g, m), relu_gradient(g, m); });
      call("dropout",
           [&] { propagation::dropout(m, y), dropout_gradient(g, x), check_dropout("p", x); });
      call("stable", [&] {
        const LayerGains gains{x, y, x, y};
        post_norm_rate(gains), pre_norm_exponent(gains);
        paper_stable_correlations(gains, Reading::corrected);
      });
    }
    for (const long n : whole) {
      call("squared_probabilities", [&] { squared_probabilities(n, x); });
      call("cross_entropy_gradient", [&] { cross_entropy_gradient(n, {0, x, x}, x); });
      call("token_repeats", [&] { token_repeats(n, x); });
      if (n == 7 || n < 1 || n > 1'000'000) {
        for (const auto& spelled : depth_method_words) {
          const DepthModel bad{.width = x, .length = x, .dropout = x, .k = x};
          call(std::string(spelled.text), [&] { depth_layers(spelled.value, bad, n); });
        }
      }
    }
  }
}

TEST_CASE("The theory of blocks and stacks is total", "[total]") {
  using enum Reading;
  for (const double x : hostile) {
    for (const double y : hostile) {
      const SignalMoments m{0, x, y};
      const SignalMoments g{0, y, x};
      for (const Reading reading : {corrected, paper_full, paper_simple}) {
        const Attention a{.width = x,
                          .heads = y,
                          .length = x,
                          .query = y,
                          .key = x,
                          .value = y,
                          .output = x,
                          .score_scale = y,
                          .dropout = x,
                          .probability_dropout = y};
        call("attention_block", [&] { attention_block(m, a, reading); });
        call("attention_block_gradient", [&] { attention_block_gradient(g, m, a, reading); });
        call("attention_validity", [&] { attention_validity(m, a); });
        const Mlp mlp{.width = x, .hidden = y, .up = x, .down = y, .dropout = x};
        call("mlp_block", [&] { mlp_block(m, mlp, reading); });
        call("mlp_block_gradient", [&] { mlp_block_gradient(g, m, mlp); });
        for (const NormPlacement placement :
             {NormPlacement::pre, NormPlacement::post, NormPlacement::none}) {
          Layers layers;
          layers.placement = placement;
          layers.norm_epsilon = x;
          layers.blocks = {{x, y, a}, {y, x, mlp}, {x, x, a}, {y, y, mlp}};
          call("propagate", [&] {
            const Profile profile = propagate(layers, m, g, reading);
            median_sensitivity(profile), mean_sensitivity(profile);
            const std::vector<DepthPoint> points{depth_point(profile), depth_point(profile)};
            growth_orders(points);
          });
        }
      }
    }
    const std::vector<DepthPoint> points{{1, x, x, x, x, x, x, x}, {2, 1, x, 1, x, 1, x, 1}};
    call("growth_orders", [&] { growth_orders(points); });
  }
  Layers none;
  CHECK_THROWS_AS(depth_point(propagate(none, {}, {})), InvalidInput);
  CHECK_THROWS_AS(depth_point(Profile{}), InvalidInput);
  none.blocks_per_layer = 0;
  CHECK_THROWS_AS(propagate(none, {}, {}), InvalidInput);
  Profile unordered;
  for (int i = 0; i < 100; ++i) unordered.relative.push_back(i % 3 == 0 ? limit::quiet_NaN() : i);
  CHECK(std::isnan(median_sensitivity(unordered)));
  CHECK(std::isnan(growth_orders({}).forward));
}
