// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The optimizer and the form of decay under every rule.

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "support/catch.hpp"
#include "support/entry_problem.hpp"
#include "support/models.hpp"

using namespace scalewise;
using namespace scalewise::test;

TEST_CASE("SGD is refused by rules that are published for AdamW") {
  for (const Rule& rule : rules()) {
    INFO(rule.id);
    const Shape shape = rule.id.starts_with("shallow") ? patches() : tokens();
    CHECK(policy::states(rule, adamw));
    CHECK(policy::states(rule, sign_sgd));  // a case of AdamW
    if (!policy::states(rule, sgd)) {
      try {
        make_plan(told(rule), {.model = shape, .base = shape, .optimizer = sgd});
        FAIL_CHECK("planned for SGD");
      } catch (const InvalidInput& error) {
        CHECK(error.field() == "optimizer");
      }
    } else {
      const Plan plan = make_plan(told(rule), {.model = shape, .base = shape, .optimizer = sgd});
      CHECK(plan.optimizer == sgd);
      for (const Entry& entry : plan.entries) {
        INFO(entry.name);
        const std::string wrong = problem(entry);
        if (!wrong.empty()) CHECK(wrong == "");
      }
    }
  }
}

namespace {

constexpr Optimizer unstated{.name = "unstated", .normalization = policy::Normalization::by_entry};

}  // namespace

TEST_CASE("An optimizer that a rule does not state is refused, never treated as another") {
  for (const Rule& rule : rules()) {
    INFO(rule.id);
    const Shape shape = rule.id.starts_with("shallow") ? patches() : tokens();
    CHECK(!policy::states(rule, unstated));
    CHECK_THROWS_WITH(make_plan(told(rule), {.model = shape, .base = shape, .optimizer = unstated}),
                      Catch::Matchers::StartsWith("optimizer = unstated"));
  }
  constexpr Row row{.rates = {{adamw, 2}}};
  CHECK(row.rate(sign_sgd) == Rate(2));
  CHECK_THROWS_AS(row.rate(sgd), InvalidInput);
  CHECK(
      make_plan(Standard{}, {.model = tokens(), .optimizer = sign_sgd}).entries.front().optimizer ==
      sign_sgd);
}

TEST_CASE("a penalty in Adam's gradient is refused where rates are scaled") {
  const DecayForm l2 = DecayForm::l2;
  Shape base = tokens();
  base.d_model = 12;
  for (const int table : {3, 8, 9}) {
    INFO(table);
    const MaximalUpdate policy{.table = table};
    CHECK_THROWS_AS(make_plan(policy, {.model = tokens(), .base = base, .decay = l2}),
                    InvalidInput);
    const Plan accepted =
        make_plan(policy, {.model = tokens(), .base = base, .optimizer = sgd, .decay = l2});
    const Plan coupled = make_plan(policy, {.model = tokens(), .base = base, .optimizer = sgd});
    CHECK(accepted.entries == coupled.entries);  // under SGD they are the same
  }
  CHECK_THROWS_AS(make_plan(NeuralTangent{}, {.model = tokens(), .decay = l2}), InvalidInput);
  CHECK_THROWS_AS(make_plan(CompleteP{}, {.model = tokens(), .base = base, .decay = l2}),
                  InvalidInput);
  CHECK(make_plan(Standard{}, {.model = tokens(), .decay = l2}).at("head").weight_decay.value == 1);
  CHECK(make_plan(Gpt2{}, {.model = tokens(), .decay = l2})
            .at("final_norm_gain")
            .weight_decay.value == 0);
}

TEST_CASE("shrink per step is the same in both forms of decay") {
  Shape base = tokens();
  base.d_model = 12;
  base.depth = 2;
  for (const Rule& rule : rules()) {
    const bool shallow = rule.id.starts_with("shallow");
    const Shape target = shallow ? patches() : tokens();
    std::optional<Shape> from;
    if (!shallow) from = base;
    // An absolute rule is evaluated at the target, so that a base too shallow for it does not matter.
    if (!policy::needs_base(rule)) from = {};
    const Plan coupled = make_plan(told(rule), {.model = target, .base = from});
    const Plan independent =
        make_plan(told(rule), {.model = target, .base = from, .decay = DecayForm::independent});
    REQUIRE(coupled.entries.size() == independent.entries.size());
    for (std::size_t i = 0; i < coupled.entries.size(); ++i) {
      const Entry& entry = coupled.entries[i];
      INFO(rule.id << ", " << entry.name);
      const double shrink = entry.learning_rate.value * entry.weight_decay.value;
      CHECK(std::abs(independent.entries[i].weight_decay.value - shrink) <= 1e-14 * shrink);
    }
  }
}

namespace {

/// States the matrices of the blocks alone.
struct MatricesAlone : Standard {
  static constexpr std::string_view id = "matrices-alone";
  constexpr Row row(Group group) const {
    return role_of(group) == Role::hidden ? Standard::row(group) : not_stated();
  }
};

}  // namespace

TEST_CASE("A tensor of a group that a rule says nothing on is refused by name") {
  CHECK_THROWS_WITH(make_plan(MatricesAlone{}, {.model = tokens()}),
                    Catch::Matchers::StartsWith("token_embedding = a tensor of the group "
                                                "token_embedding: expected one of those that "
                                                "matrices-alone states"));
}
