// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Numeric functions given numbers out of range: they return or throw InvalidInput, in time. Under the
// sanitizers of CI, an overflow or a conversion that does not fit ends the test.

#include <chrono>
#include <climits>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "scalewise/core/correlation.hpp"
#include "scalewise/core/line.hpp"
#include "scalewise/core/print.hpp"
#include "scalewise/theory/cross_entropy.hpp"
#include "scalewise/theory/depth_methods.hpp"
#include "scalewise/theory/dropout.hpp"
#include "scalewise/theory/embedding.hpp"
#include "scalewise/theory/layer_norm.hpp"
#include "scalewise/theory/softmax.hpp"
#include "scalewise/theory/stable.hpp"
#include "support/catch.hpp"

using namespace scalewise;
using namespace scalewise::theory;

namespace {

using limit = std::numeric_limits<double>;
const std::vector<double> hostile{limit::quiet_NaN(),
                                  limit::infinity(),
                                  -limit::infinity(),
                                  -1,
                                  0,
                                  1e308,
                                  -1e308,
                                  limit::denorm_min(),
                                  0.5,
                                  2};
const std::vector<long> whole{LONG_MIN, INT_MIN, -1, 0, 1, 7, INT_MAX, LONG_MAX};

/// Calls f and gives it a second; the slowest of them sums 2^20 terms.
template <class F>
void call(const std::string& name, F&& f) {
  INFO(name);
  const auto start = std::chrono::steady_clock::now();
  try {
    f();
  } catch (const InvalidInput&) {
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(seconds.count() < 10);  // a loaded machine is not a hang
}

}  // namespace

TEST_CASE("Powers, roots and logarithms are total", "[total]") {
  for (const double x : hostile) {
    for (const int q : {INT_MIN, -1, 0, 1, 2, 3, 64, 1024, 1025, INT_MAX}) {
      call("root", [&] {
        const double y = root(x, q);
        if (x < 0 && q != 1) CHECK(std::isnan(y));
      });
      for (const int den : {INT_MIN, -3, 0, 1, 2, INT_MAX}) {
        call("power", [&] { power(x, Exponent(q, den)); });
        call("Exponent", [&] { Exponent(q, den) * Exponent(den, 7) + Exponent(q, 5) - q; });
      }
    }
    for (const double y : hostile) call("real_power", [&] { real_power(x, y); });
    call("exponent", [&] { power(2, exponent(x)); });
    call("exponential", [&] { exponential(x); });
    call("natural_log", [&] { natural_log(x); });
    call("arcsin", [&] { arcsin(x); });
    call("relu_correlation", [&] { relu_correlation(x); });
    call("number_text", [&] { number_text(x); });
    call("pow", [&] { to_text(pow(Scaling(x), Exponent(1, 2))); });
  }
  CHECK(root(4e-320, 2) == Approx(std::sqrt(4e-320)).epsilon(1e-14));
  CHECK(std::isnan(root(-1, 2)));
  CHECK(std::isnan(root(limit::quiet_NaN(), 3)));
  CHECK(root(limit::infinity(), 5) == limit::infinity());
  CHECK(natural_log(0) == -limit::infinity());
  CHECK(std::isnan(natural_log(-2)));
  CHECK(std::isnan(relu_correlation(-2)));
  CHECK(std::isnan(relu_correlation(2)));
  CHECK(relu_correlation(-1 - 1e-15) == 0);
  CHECK_THROWS_AS(Exponent(1, 0), InvalidInput);
  CHECK(number_text(limit::denorm_min()) == "5e-324");
  CHECK(number_text(1e300) == "1e+300");
}

TEST_CASE("Lines and quantiles are total", "[total]") {
  for (const double x : hostile) {
    call("fit_line", [&] { fit_line(std::vector<double>{x, 1, x}, std::vector<double>{x, x, 2}); });
  }
  CHECK(std::isnan(fit_line(std::vector<double>{}, std::vector<double>{}).slope));
  CHECK(std::isnan(fit_line(std::vector<double>{2, 2}, std::vector<double>{1, 3}).slope));
  CHECK_THROWS_AS(fit_line(std::vector<double>{1, 2}, std::vector<double>{1}), InvalidInput);
  CHECK(t_quantile(0) == limit::infinity());
  CHECK(t_quantile(SIZE_MAX) == Approx(1.959964));
}

TEST_CASE("The theory of components is total", "[total]") {
  for (const double x : hostile) {
    for (const double y : hostile) {
      const Moments m{0, x, y};
      const Moments g{0, y, x};
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
           [&] { theory::dropout(m, y), dropout_gradient(g, x), check_dropout("p", x); });
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
          call(std::string(spelled.second), [&] { depth_layers(spelled.first, bad, n); });
        }
      }
    }
  }
}
