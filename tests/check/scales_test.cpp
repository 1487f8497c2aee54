// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/scales.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/rule_families.hpp"

using namespace scalewise;
using namespace scalewise::test;

TEST_CASE("Factors on the variances of different bases are refused") {
  std::vector<check::Member> family = widths("maximal-update");
  CHECK_NOTHROW(check::scales_of(family));
  family.back().plan = make_plan(
      "maximal-update", {.model = family.back().plan.shape, .base = family.back().plan.shape});
  CHECK_THROWS_WITH(check::scales_of(family), Catch::Matchers::ContainsSubstring("another base"));
}

TEST_CASE(
    "A family of several rules, optimizers or parameters is refused, and one with a size twice") {
  const std::vector<check::Member> family = widths("maximal-update");
  REQUIRE(family.size() > 2);
  const auto refusal = [&](const Plan& middle) {
    std::vector<check::Member> other = family;
    other[1].plan = middle;
    return test::error_message([&] { check::scales_of(other); });
  };
  const Plan& plan = family[1].plan;
  using Catch::Matchers::ContainsSubstring;
  CHECK(refusal(plan) == "no error");
  CHECK_THAT(refusal(make_plan("gpt2", {.model = plan.shape})),
             ContainsSubstring("= gpt2: expected the rule of the other"));
  CHECK_THAT(refusal(make_plan("maximal-update",
                               {.model = plan.shape, .base = plan.base, .optimizer = sgd})),
             ContainsSubstring("= sgd: expected the optimizer of the other sizes"));
  CHECK_THAT(
      refusal(make_plan("maximal-update",
                        {.model = plan.shape, .base = plan.base, .parameters = {{"table", 3}}})),
      ContainsSubstring("expected the parameters of the other sizes"));
  CHECK_THAT(
      refusal(make_plan("maximal-update",
                        {.model = plan.shape, .base = plan.base, .decay = DecayForm::independent})),
      ContainsSubstring("expected the weight decay of the other sizes"));
  Plan absolute = plan;
  absolute.reference = Reference::absolute;
  CHECK_THAT(refusal(absolute),
             ContainsSubstring("= absolute: expected the reference of variances of the other"));

  std::vector<check::Member> twice = family;
  twice.insert(twice.begin(), family.front());
  CHECK_THAT(test::error_message([&] { check::scales_of(twice); }),
             ContainsSubstring("expected one plan of each size, the smallest first"));
}
