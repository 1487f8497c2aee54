// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/rule.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/models.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::test;

/// Takes the variances of groups from a list, which only a copy of the policy keeps alive.
struct Listed : Standard {
  std::vector<double> variances;
  Row row(Group group) const {
    Row row = Standard::row(group);
    if (architecture::is_matrix(group))
      row.init_variance = variances.at(static_cast<std::size_t>(group));
    return row;
  }
};

}  // namespace

TEST_CASE("A rule keeps a copy of its policy") {
  const Rule rule = [] {
    Listed listed;
    listed.variances.assign(architecture::group_count, 0.25);
    return Rule(listed);
  }();
  CHECK(make_plan(rule, {.model = tokens()}).at("layer.1.query").init_variance.value == 0.25);
}

TEST_CASE("A plan is the same by a policy, by its name in any text, and by a rule") {
  const PlanRequest request{.model = tokens(), .base = tokens(), .optimizer = sgd};
  const Plan plan = make_plan(MaximalUpdate{}, request);
  CHECK(make_plan("mup", request) == plan);
  CHECK(make_plan(std::string("maximal-update"), request) == plan);
  CHECK(make_plan(std::string_view("maximal_update"), request) == plan);
  CHECK(make_plan(Rule("mup"), request) == plan);
}

TEST_CASE(
    "A request's parameters change a policy as they change a name, and leave the rule alone") {
  const auto planned = [](const Rule& rule, const std::vector<Parameter>& parameters) {
    return make_plan(rule, {.model = tokens(), .base = tokens(), .parameters = parameters});
  };
  const Plan plan = planned(MaximalUpdate{.table = 9, .zero_query = true}, {});
  CHECK(plan.parameters != Rule("mup").parameters);
  CHECK(planned("mup", {{"table", 9}, {"zero_query", 1}}) == plan);
  const Rule rule = MaximalUpdate{.table = 9};
  CHECK(planned(rule, {{"zero_query", 1}}) == plan);
  CHECK(rule.parameters == Rule(MaximalUpdate{.table = 9}).parameters);
  CHECK(error_message([&] {
          static_cast<void>(planned(Listed{}, {{"variances", 1}}));
        }) == "parameter = variances: expected a parameter of standard (hint: it has none)");
}
