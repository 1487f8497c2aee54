// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The normalized transformer's rules against numbers computed here from the papers' tables.

#include <cmath>
#include <string>
#include <vector>

#include "scalewise/policy/all.hpp"
#include "support/catch.hpp"
#include "support/numbers.hpp"

using namespace scalewise;
using namespace scalewise::test;

TEST_CASE("normalized transformer numbers") {
  const double n = 96;
  const double N = 3;
  const double L = 2.5;
  const double D = 8;
  const Shape target = decoder();
  const Shape base = decoder_base();
  const auto effective = [](const Entry& e) { return e.init_mean.value * e.multiplier.value; };
  /// One column: rates of input, hidden, output, rescalers; step at init; stored scale; s_z at
  /// init.
  const auto column = [&](const Plan& plan, std::vector<double> rates, double step, double scale,
                          double logits) {
    CAPTURE(plan.rule);
    CHECK(near(plan.at("token_embedding").learning_rate.value, rates[0]));
    for (const char* name :
         {"query", "key", "value", "attention_output", "mlp_up", "mlp_gate", "mlp_down"}) {
      CHECK(near(plan.at(std::string("layer.4.") + name).learning_rate.value, rates[1]));
    }
    CHECK(near(plan.at("head").learning_rate.value, rates[2]));
    for (const Group g : {Group::attention_step, Group::mlp_step}) {
      for (const Entry* entry : plan.of(g)) {
        CHECK(near(entry->init_mean.value, scale));
        CHECK(near(effective(*entry), step));
      }
    }
    for (const Entry* entry : plan.of(Group::qk_scale)) {
      CHECK(near(entry->init_mean.value, scale));
      CHECK(near(effective(*entry), 1));
    }
    for (const Group g : {Group::up_scale, Group::gate_scale}) {
      for (const Entry* entry : plan.of(g)) CHECK(entry->init_mean.value == 1);
    }
    CHECK(near(plan.at("logit_scale").init_mean.value, scale));
    CHECK(near(effective(plan.at("logit_scale")), logits));
    CHECK(near(plan.model.attention_scale.value, std::sqrt(24.0)));
    for (const Entry& entry : plan.entries) {
      INFO(entry.name);
      CHECK(entry.weight_decay.value == 0);
      if (role_of(entry.group) == Role::rescaler) {
        CHECK(near(entry.learning_rate.value, rates[3]));
        CHECK(entry.init_variance.value == 0);
      }
    }
  };
  column(make_plan<NGpt, adamw>(target), {1, 1, 1, 1}, 0.05, 1 / std::sqrt(n), 1);
  column(make_plan<NGptDepthMup, adamw>(target, base),
         {1 / std::sqrt(N), 1 / (N * std::sqrt(L)), 1 / N, 1}, 0.05 / std::sqrt(L), 0.03, 1);
  column(make_plan<NGptCompleteP, adamw>(target, base), {1 / std::sqrt(N), 1 / N, 1 / N, 1},
         0.05 / L, 0.03, 1);
  const double horizon = std::pow(D, -1.0 / 3);  // 1/2
  const double mid = std::pow(N, -0.75);
  column(make_plan<NuGpt, adamw>(target, base),
         {horizon / std::sqrt(N), horizon * mid, horizon * mid, horizon}, 0.05 / L, 0.03,
         std::sqrt(N));
  column(make_plan<NuGptFullAlign, adamw>(target, base),
         {horizon / std::sqrt(N), horizon / N, horizon / N, horizon}, 0.05 / L, 0.03, std::sqrt(N));
  const double a = 0.6180339887;  // no simple fraction
  const double align = std::pow(N, -a);
  column(make_plan<NuGpt, adamw>(target, base, {.alignment = a, .output_rate = 0.5}),
         {horizon / std::sqrt(N), horizon * align, 0.5 * horizon * align, horizon}, 0.05 / L, 0.03,
         std::sqrt(N));
}
