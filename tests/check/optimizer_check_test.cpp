// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/optimizer_check.hpp"

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/made_up_records.hpp"

using namespace scalewise;
using namespace scalewise::test;

TEST_CASE("An optimizer is read back against the plan") {
  const Plan plan = make_plan("maximal-update", {.model = shape_of(256), .base = shape_of(64)});
  const OptimizerSetting global{"", 0.01, 0.1, 1e-8};
  std::vector<OptimizerSetting> live;
  for (const Entry& entry : plan.entries) {
    // Table 8 retyped: hidden matrices have the rate over the ratio of fan-ins, here 4, and their
    // coupled decay times it; epsilon is over the ratio of widths for all.
    const bool hidden = role_of(entry.group) == Role::hidden;
    live.push_back({entry.name, hidden ? 0.0025 : 0.01, hidden ? 0.4 : 0.1, 0.25e-8});
  }
  // The decay of vectors comes from the plan, not from the table.
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (role_of(plan.entries[i].group) == Role::hidden) continue;
    live[i].weight_decay = 0.1 * plan.entries[i].weight_decay.value;
  }
  CHECK(check_optimizer(plan, global, live).empty());

  const auto broken = [&](auto&& change) {
    std::vector<OptimizerSetting> copy = live;
    change(copy);
    return check_optimizer(plan, global, copy);
  };
  const std::string& name = live[3].name;
  using Live = std::vector<OptimizerSetting>;
  CHECK(broken([](Live& l) { l[3].rate *= 4; }).size() == 1);
  CHECK(broken([](Live& l) { l[3].epsilon *= 4; }).front().starts_with(name + ": epsilon"));
  CHECK(
      broken([](Live& l) { l[3].weight_decay += 1; }).front().starts_with(name + ": weight_decay"));
  // A relative 1e-5 is what rounding to float may do, and NaN is not a rounding.
  for (double OptimizerSetting::*what :
       {&OptimizerSetting::rate, &OptimizerSetting::weight_decay, &OptimizerSetting::epsilon}) {
    REQUIRE(live[3].*what > 0);
    CHECK(broken([&](Live& l) { l[3].*what *= 1 + 0.9e-5; }).empty());
    CHECK(broken([&](Live& l) { l[3].*what *= 1 + 1.1e-5; }).size() == 1);
    CHECK(broken([&](Live& l) { l[3].*what *= 1 - 1.1e-5; }).size() == 1);
    CHECK(broken([&](Live& l) { l[3].*what = std::nan(""); }).size() == 1);
  }
  CHECK(broken([](Live& l) { l.pop_back(); }).front().ends_with("not in the optimizer"));
  CHECK(broken([](Live& l) { l[3].name = "w"; }).size() == 2);
  CHECK(broken([](Live& l) { l.push_back(l[3]); }).front() == name + ": given twice");

  // One mistake in all layers is one line.
  REQUIRE(plan.at("layer.1.query").learning_rate.value == 0.25);
  const auto without_factors = [](Live& l) {
    for (OptimizerSetting& setting : l) {
      if (setting.name.ends_with(".query")) setting.rate = 0.01;
    }
  };
  CHECK(broken(without_factors) ==
        std::vector<std::string>{"layer.*.query (2 tensors): rate = 0.01: expected 0.0025"});
}
