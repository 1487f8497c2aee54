// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "scalewise/scalewise.hpp"
#include "scalewise/testing.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/made_up_records.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::testing;
using Catch::Matchers::ContainsSubstring;

Entry entry_of(long rows, long columns, Distribution distribution, double variance,
               double mean = 0) {
  Entry entry;
  entry.name = "layer.0.query";
  entry.rows = rows;
  entry.columns = columns;
  entry.distribution = distribution;
  entry.init_variance.value = variance;
  entry.init_mean.value = mean;
  return entry;
}

std::vector<float> drawn(const Entry& entry, std::uint64_t seed, double base_deviation = 1) {
  InitialValues values(entry, seed, base_deviation);
  std::vector<float> all;
  for (std::int64_t i = 0; i < entry.size(); ++i) all.push_back(static_cast<float>(values.next()));
  return all;
}

}  // namespace

TEST_CASE("A tensor that starts as planned is refused as seldom as the matcher says") {
  // 4000 tensors each at 1 %: 40 expected, 55 of 8 uniform numbers (see StartsAs), with a standard error of
  // 6.3 to 7.4.
  for (const Distribution distribution :
       {Distribution::normal, Distribution::truncated_normal, Distribution::uniform}) {
    for (const long count : {8L, 64L, 512L}) {
      if (test::sanitized && count > 64) continue;
      const Entry entry = entry_of(count / 8, 8, distribution, 0.04, 0.5);
      const StartsAs one_percent(entry, 3, 0.01);
      const StartsAs usual(entry, 3);
      int refused = 0;
      for (std::uint64_t seed = 0; seed < 4000; ++seed) {
        const std::vector<float> values = drawn(entry, seed, 3);
        refused += one_percent.match(values) ? 0 : 1;
        if (!usual.match(values)) CHECK_THAT(values, usual);
      }
      INFO(word(policy::distribution_words, distribution) << ", " << count << ": " << refused);
      CHECK(refused <= 80);
      CHECK(refused >= 25);
    }
  }
}

TEST_CASE("What is wrong with the start of a tensor is said") {
  const Entry entry = entry_of(64, 64, Distribution::normal, 0.0004);
  const std::vector<float> right = drawn(entry, 1);
  REQUIRE_THAT(right, StartsAs(entry));
  REQUIRE_THAT(numbers(right), StartsAs(entry));
  const auto problem = [&](std::vector<float> values) { return StartsAs(entry).problem(values); };

  // PyTorch's default of a linear layer, another scale, an offset.
  CHECK_THAT(problem(drawn(entry_of(64, 64, Distribution::uniform, 1.0 / 192), 1)),
             ContainsSubstring("variance 0.005") && ContainsSubstring("expected 0.000"));
  std::vector<float> changed = right;
  for (float& x : changed) x *= 1.1F;
  CHECK_THAT(problem(changed), ContainsSubstring("variance 0.0004"));
  changed = right;
  for (float& x : changed) x += 0.003F;
  CHECK_THAT(problem(changed), ContainsSubstring("mean 0.00"));
  changed = right;
  changed[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(problem(changed) == "number 7 is nan");
  changed = right;
  changed.pop_back();
  CHECK(problem(changed) == "4095 numbers, where layer.0.query has 4096");
  CHECK_THAT(problem(std::vector<float>(4096, 0.0F)),
             ContainsSubstring("variance 0, expected 0.000"));

  // Of its parent's variance a cut normal has 0.774; nothing lies beyond two deviations.
  const Entry cut = entry_of(64, 64, Distribution::truncated_normal, 0.0004);
  CHECK_THAT(drawn(cut, 3), StartsAs(cut));
  CHECK_THAT(StartsAs(cut).problem(right), ContainsSubstring("number "));
  CHECK_THAT(StartsAs(entry).problem(drawn(cut, 3)), ContainsSubstring("variance 0.0003"));
  const Entry flat = entry_of(64, 64, Distribution::uniform, 0.0004);
  CHECK_THAT(drawn(flat, 3), StartsAs(flat));
  CHECK_THAT(StartsAs(flat).problem(right), ContainsSubstring("number "));

  const Entry gain = entry_of(1, 64, Distribution::normal, 0, 1);
  CHECK_THAT(std::vector<float>(64, 1.0F), StartsAs(gain));
  std::vector<float> zero(64, 1.0F);
  zero[3] = 0;
  CHECK(StartsAs(gain).problem(zero) == "number 3 is 0");
  CHECK(StartsAs(gain).expectation() == "is layer.0.query = 1");
  CHECK(StartsAs(entry).expectation() ==
        "starts as layer.0.query: normal of mean 0 and variance 0.0004");
}

TEST_CASE("A deviation of the base that is none is refused") {
  const Plan plan = make_plan("gpt2", {.model = preset_shape("gpt2")});
  for (const double wrong : {-0.25, std::nan("")}) {
    CHECK_THAT(test::error_message([&] { StartsAs(plan.entries[0], wrong); }),
               ContainsSubstring("base_deviation = ") &&
                   ContainsSubstring(": expected a finite number, 0 or greater"));
  }
}

TEST_CASE("Matchers say what was wrong in the words of each framework") {
  const Entry gain = entry_of(1, 2, Distribution::constant, 0, 1);
  const std::vector<double> wrong{1, 2};
  const StartsAs matcher(gain);
  const StartsAs copy = matcher;  // Catch2 2 keeps one
  CHECK_FALSE(matcher.match(wrong));
  CHECK(copy.toString() == "is layer.0.query = 1\nnumber 1 is 2");
  std::ostringstream found, is, is_not;
  CHECK_FALSE(matcher.MatchAndExplain(wrong, &found));
  CHECK_FALSE(matcher.MatchAndExplain(wrong, nullptr));
  CHECK(matcher.MatchAndExplain(std::vector<double>{1, 1}, &found));
  matcher.DescribeTo(&is);
  matcher.DescribeNegationTo(&is_not);
  CHECK(found.str() == "number 1 is 2");
  CHECK(is.str() == "is layer.0.query = 1");
  CHECK(is_not.str() == "not: is layer.0.query = 1");
}

TEST_CASE("An optimizer that was read back follows its plan or is told tensor by tensor") {
  Shape shape{.d_model = 32, .depth = 1, .heads = 2, .context = 8, .vocab = 50};
  Shape base = shape;
  base.d_model = 16;
  const Plan plan = make_plan("maximal-update", {.model = shape, .base = base});
  const check::OptimizerSetting global{
      .name = "", .rate = 0.01, .weight_decay = 0.1, .epsilon = 1e-8};
  std::vector<check::OptimizerSetting> live;
  for (const Entry& entry : plan.entries) {
    live.push_back({entry.name, 0.01 * entry.learning_rate.value, 0.1 * entry.weight_decay.value,
                    1e-8 * entry.epsilon.value});
  }
  CHECK_THAT(live, FollowsPlan(plan, global));
  live[2].rate *= 2;
  const std::string text = FollowsPlan(plan, global).problem(live);
  CHECK_THAT(text, ContainsSubstring(live[2].name + ": rate = "));
  const check::OptimizerSetting endless{"", HUGE_VAL, 0.1, 1e-8};
  CHECK_THAT(FollowsPlan(plan, endless).problem(live),
             ContainsSubstring("global value = inf: expected a finite number"));
}

TEST_CASE("Two optimizers follow a plan by their own global values") {
  const Shape base = base_like(preset_shape("gpt2"), {.width = 384});
  const Plan plan =
      make_plan("mup", {.model = preset_shape("gpt2"), .base = base, .optimizer = muon_original});
  const std::vector<check::OptimizerSetting> globals{{"muon-original", 0.02, 0.1, 0},
                                                     {"adamw", 0.001, 0.1, 1e-8}};
  std::vector<check::OptimizerSetting> live;
  for (const Entry& entry : plan.entries) {
    const check::OptimizerSetting& of =
        globals[role_of(entry.group) == Role::hidden ? 0 : 1];  // matrices in the layers
    live.push_back({entry.name, of.rate * entry.learning_rate.value,
                    of.weight_decay * entry.weight_decay.value, of.epsilon * entry.epsilon.value});
  }
  CHECK(FollowsPlan(plan, globals).problem(live).empty());
  CHECK_THAT(FollowsPlan(plan, globals[1]).problem(live),
             ContainsSubstring("query (12 tensors): rate = "));
  const std::vector<check::OptimizerSetting> other{globals[0], {"adam", 0.001, 0.1, 1e-8}};
  CHECK_THAT(FollowsPlan(plan, other).problem(live),
             ContainsSubstring("token_embedding: no global values of adamw"));
  CHECK_THAT(FollowsPlan(plan, other).problem(live),
             ContainsSubstring("global values of adam: no tensor of the plan has it"));
  CHECK_THAT(FollowsPlan(plan, std::vector{globals[0], globals[1], globals[1]}).problem(live),
             ContainsSubstring("global values of adamw: given twice"));
}

TEST_CASE("A matcher of initial values refuses an error rate that is none") {
  const Entry& query = make_plan("he", {.model = preset_shape("gpt2")}).at("layer.0.query");
  for (const double rate : {std::nan(""), 0.0, -1.0, 1.0, 5.0}) {
    CHECK_THAT(test::error_message([&] { StartsAs(query, 1, rate); }),
               ContainsSubstring("error_rate = "));
  }
  const std::vector<double> zeros(static_cast<std::size_t>(query.size()));
  CHECK(StartsAs(query, 0).problem(zeros).empty());
}
