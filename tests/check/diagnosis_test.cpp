// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/diagnosis.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/made_up_records.hpp"

using namespace scalewise;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

namespace {

const std::vector<Member>& family() {
  static const std::vector<Member> all = test::family_of("maximal-update");
  return all;
}

std::vector<Member> wrong(std::vector<Member> members, Ingredient ingredient, double off = 0) {
  return with_fault(std::move(members), Fault{ingredient, false, off});
}

}  // namespace

TEST_CASE("Of two mistakes one is named, with a failure that it explains and one that it leaves") {
  const Report report = coordinate_check(
      follow(wrong(wrong(family(), Ingredient::all_rates), Ingredient::output_multiplier)),
      family());
  CHECK(report.cause == Cause::mistake);
  CHECK_THAT(report.diagnosis, ContainsSubstring("(update) +0.0") &&
                                   ContainsSubstring(", expected -1.00: hidden rate missing or one "
                                                     "global rate, and more: logits (value) +0.5"));
  const Report variance = coordinate_check(
      follow(wrong(wrong(family(), Ingredient::all_rates), Ingredient::hidden_variance)), family());
  CHECK_THAT(variance.diagnosis, ContainsSubstring(", and more: "));
}

TEST_CASE("A mistake that an exact quantity contradicts is not named") {
  const Records all = follow(wrong(family(), Ingredient::hidden_variance));
  CHECK_THAT(coordinate_check(all, family()).diagnosis, EndsWith(": hidden variance missing"));
  // The queries alone, as in a fused matrix: the variance of mlp_down is as planned.
  const Report some =
      coordinate_check(with(all, {Signal::parameter, "mlp_down"}, 0, -0.5), family());
  CHECK(some.cause == Cause::unknown);
  CHECK_THAT(some.diagnosis, EndsWith(": no single part of the rule could be named"));
}

TEST_CASE("An exponent that is off by a root is named exactly") {
  using enum Ingredient;
  for (const auto& [ingredient, off] :
       {std::pair{hidden_rate, 0.5}, std::pair{input_rate, -0.5}, std::pair{head_variance, -0.5},
        std::pair{head_rate, 0.5}}) {
    const Fault fault{ingredient, false, off};
    INFO(to_string(fault));
    CHECK_THAT(coordinate_check(follow(wrong(family(), ingredient, off)), family()).diagnosis,
               EndsWith(": " + to_string(fault)));
  }
}

TEST_CASE("First updates whose entries differ in size are those of another optimizer") {
  // As SGD's, by a gradient that falls with the width. Σ|x| is √(2/π) n times the root mean square of normal entries.
  const auto check_of = [](double sum_abs) {
    const Records all = follow(wrong(family(), Ingredient::all_rates, -1));
    Records records;
    all.for_each([&](const Quantity& quantity, long step, const Run& run, const Moments& m) {
      const bool update = quantity.signal == Signal::update;
      const Plan& plan = check::detail::member_of(family(), run.size)->plan;
      const std::uint64_t count = update ? check::detail::entries_of(plan, quantity.name) : 1;
      const auto n = static_cast<double>(count);
      records.add(quantity, step, run,
                  {(update ? sum_abs : 1) * n * m.sum_abs, n * m.sum_squares, count});
    });
    return coordinate_check(records, family());
  };
  const Report unlike_adam = check_of(0.798);
  CHECK(unlike_adam.cause == Cause::unknown);
  CHECK_THAT(unlike_adam.diagnosis,
             EndsWith("as Adam's are: another optimizer, or a large epsilon"));
  CHECK_THAT(check_of(1).diagnosis, EndsWith(": exponent of all rates off by -1.00"));
}

TEST_CASE("Models that were recorded on batches of several sizes have no verdict") {
  Records records = follow(family());
  const auto add_hidden = [](Records all, long tokens_of_largest) {
    for (const Member& member : family()) {
      const auto n =
          static_cast<std::uint64_t>(member.size * (member.size == 512 ? tokens_of_largest : 32));
      for (const std::uint64_t seed : {1U, 2U, 3U}) {
        const double sum =
            static_cast<double>(n) *
            (1 + 1e-7 * (static_cast<double>(seed) + static_cast<double>(member.size)));
        all.add({Signal::value, "final_hidden"}, 0, {member.size, seed}, {sum, sum, n});
      }
    }
    return all;
  };
  CHECK(coordinate_check(add_hidden(records, 32), family()).verdict == Verdict::pass);
  const Report report = coordinate_check(add_hidden(records, 8), family());
  CHECK(report.verdict == Verdict::inconclusive);
  CHECK(report.missing ==
        std::vector<std::string>{"one batch at all sizes: final_hidden has the entries of 8 tokens "
                                 "at size 512 and of 32 at size 64"});
}
