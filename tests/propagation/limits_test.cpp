// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Inputs that the theory refuses, and where it ends.

#include <cmath>
#include <limits>
#include <string>

#include "scalewise/scalewise.hpp"
#include "scalewise/theory.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

using namespace scalewise;
using namespace scalewise::propagation;
using Catch::Matchers::ContainsSubstring;
using scalewise::test::error_message;

namespace {

Plan plan_of(long width, long heads) {
  const Shape shape{.d_model = width,
                    .depth = 2,
                    .heads = heads,
                    .context = 256,
                    .vocab = 100,
                    .activation = Activation::relu};
  return make_plan(Xavier{}, {.model = shape});
}

std::string warnings_of(const Plan& plan, double length) {
  const Conditions conditions{.length = length};
  const Profile profile = predict(plan, conditions, correlated(1, 0.2), correlated(1, 0.2));
  std::string all;
  for (const Warning& warning : warnings(plan_layers(plan, conditions), profile)) {
    all += warning.text + "\n";
  }
  return all;
}

}  // namespace

TEST_CASE("Data and conditions that nothing has are refused") {
  const Plan plan = plan_of(64, 1);
  const auto says = [&](Conditions c, const Data& data = {}) {
    c.length = c.length == 0 ? 16 : c.length;
    return error_message([&] { predict(plan, c, data); });
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  CHECK_THAT(says({}, {.repeats = -1}),
             ContainsSubstring("repeats = -1: expected a number from 0"));
  CHECK_THAT(says({}, {.repeats = std::nan("")}), ContainsSubstring("repeats = nan"));
  CHECK_THAT(says({}, {.segment_repeats = 7}), ContainsSubstring("segment_repeats = 7"));
  CHECK_THAT(says({}, {.patch_power = inf}), ContainsSubstring("patch_power = inf"));
  CHECK_THAT(says({}, {.patch_correlation = 2}), ContainsSubstring("from -1 to 1"));
  CHECK_THAT(says({.length = inf}), ContainsSubstring("length = inf"));
  CHECK_THAT(says({.length = 2.5, .causal = true}), ContainsSubstring("a whole number of tokens"));
  CHECK_THAT(says({.norm_epsilon = inf}), ContainsSubstring("norm_epsilon = inf"));
  CHECK_THAT(error_message([] { embedding(Embeddings{.vocab = 9, .length = 4, .dropout = 1}, 1); }),
             ContainsSubstring("dropout = 1"));
  CHECK_THAT(error_message([] { squared_probabilities(1L << 31, 1); }),
             ContainsSubstring("outputs = 2147483648"));
}

TEST_CASE("Models that nothing is are refused") {
  const auto says = [](const DepthModel& m, DepthMethod method = DepthMethod::vanilla) {
    return error_message([&] { depth_layers(method, m, 12); });
  };
  CHECK_THAT(says({.width = -4}), ContainsSubstring("width = -4"));
  CHECK_THAT(says({.length = 0}), ContainsSubstring("length = 0"));
  CHECK_THAT(says({.dropout = 1.5}), ContainsSubstring("dropout = 1.5"));
  CHECK_THAT(says({.input_correlation = 1.5}), ContainsSubstring("input_correlation = 1.5"));
  CHECK_THAT(says({.k = -1}), ContainsSubstring("k = -1"));
  CHECK_THAT(says({.input_correlation = 0}, DepthMethod::deep_scale_lm),
             ContainsSubstring("as DeepScaleLM divides by it"));
  CHECK(depth_layers(DepthMethod::vanilla, {.input_correlation = 0}, 2).blocks.size() == 4);
}

TEST_CASE("What has no variance stays without") {
  for (const Activation f : {Activation::relu, Activation::gelu, Activation::silu}) {
    const Mlp silent{.width = 8, .hidden = 32, .up = 0, .down = 0.1, .activation = f};
    const Mlp mlp{.width = 8, .hidden = 32, .up = 0.1, .down = 0.1, .activation = f};
    CHECK(mlp_block(correlated(1, 0.5), silent).variance == 0);
    CHECK(mlp_block(correlated(1, 0.5), silent).covariance == 0);
    CHECK(mlp_block(correlated(0, 0), mlp).variance == 0);
    CHECK(mlp_block(correlated(0, 0), mlp).covariance == 0);
  }
  CHECK(relu(correlated(0, 0)).covariance == 0);
  CHECK(layer_norm(correlated(0, 0), 64).covariance == 0);
}

TEST_CASE("A profile of narrow heads is less certain, one of a single token is not") {
  CHECK_THAT(warnings_of(plan_of(64, 4), 200), ContainsSubstring("tokens of 16 features"));
  CHECK_THAT(warnings_of(plan_of(16, 1), 200), ContainsSubstring("tokens of 16 features"));
  CHECK_THAT(warnings_of(plan_of(64, 1), 200), !ContainsSubstring("features"));
  CHECK_THAT(warnings_of(plan_of(64, 1), 20), ContainsSubstring("a token attends to about"));
  CHECK_THAT(warnings_of(plan_of(64, 4), 1), !ContainsSubstring("less certain"));
}
