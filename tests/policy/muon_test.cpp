// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Muon under maximal update: the rate of hidden matrices, what the optimizer multiplies by itself, and the
// AdamW of all other tensors.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/models.hpp"
#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {

// arXiv:2512.05620: the rate of a hidden matrix under Muon is √(fo/fi), whatever the table.
template <class P>
constexpr bool has_muon_rate(const P& policy) {
  return hidden_matrices([&](Group g, const Scaling& in, const Scaling& out) {
    const Row row = bound(policy.row(g), in, out);
    return row.rate(muon) == Rate(sqrt(ratio(out) / ratio(in))) &&
           row.rate(muon_original) == row.rate(muon);
  });
}
static_assert(has_muon_rate(MaximalUpdateTable3{}));
static_assert(has_muon_rate(MaximalUpdateTable8{}));
static_assert(has_muon_rate(MaximalUpdateTable9{}));

const std::array variants_of_muon{muon, muon_fan_ratio, muon_original, muon_match_adamw};

Shape uneven(long scale) {
  Shape s = tokens();
  s.d_model = 24 * scale;
  s.head_dim = 8 * scale;
  s.heads = 6;
  s.kv_heads = 2;
  s.d_ff = 60 * scale * scale;
  s.gated_mlp = true;
  return s;
}

/// As uneven(3), but that MLPs narrow the stream, which those of the base widen.
Shape turned() {
  Shape s = uneven(3);
  s.d_ff = 50;
  return s;
}

/// As the pages of the four optimizers say, of a matrix with so many inputs and outputs.
double own(const Optimizer& optimizer, double in, double out) {
  if (optimizer == muon_fan_ratio) return std::sqrt(out / in);
  if (optimizer == muon_original) return std::sqrt(std::max(1.0, out / in));
  if (optimizer == muon_match_adamw) return 0.2 * std::sqrt(std::max(in, out));
  return 1;
}

Plan plan_for(const Optimizer& optimizer, DecayForm decay = DecayForm::coupled) {
  return make_plan("maximal-update", optimizer, uneven(3), uneven(1), {}, decay);
}

}  // namespace

TEST_CASE(
    "Whatever a Muon multiplies by itself, its steps grow as the root of fan-out over fan-in") {
  const Plan base = make_plan("maximal-update", muon, uneven(1), uneven(1));
  for (const Optimizer& optimizer : variants_of_muon) {
    for (const Shape& shape : {uneven(3), turned()}) {
      const Plan plan = make_plan("maximal-update", optimizer, shape, uneven(1));
      CHECK(plan.optimizer == optimizer);
      for (std::size_t i = 0; i < plan.entries.size(); ++i) {
        const Entry& entry = plan.entries[i];
        const Entry& small = base.entries[i];
        if (role_of(entry.group) != Role::hidden) continue;
        INFO(optimizer.name << ", " << entry.name << ", " << entry.learning_rate.formula);
        const double step = entry.learning_rate.value *
                            own(optimizer, entry.fan_in, entry.fan_out) /
                            own(optimizer, small.fan_in, small.fan_out);
        const double wanted =
            std::sqrt(entry.fan_out / entry.fan_in) / std::sqrt(small.fan_out / small.fan_in);
        CHECK(std::abs(step - wanted) <= 1e-14 * wanted);
        CHECK(entry.optimizer == optimizer);
        CHECK(entry.epsilon.value == 1);
      }
    }
  }
}

TEST_CASE("Rates of Muons that multiply by themselves, by hand") {
  // Width 24 to 72, d_ff 60 to 540; query 24 x 48 to 72 x 144, mlp_up 24 x 60 to 72 x 540.
  const std::map<std::string, std::map<std::string, double>> expected{
      {"muon-plain",
       {{"layer.0.query", 1},
        {"layer.0.mlp_up", std::sqrt(3)},
        {"layer.0.mlp_down", 1 / std::sqrt(3)}}},
      {"muon-fan-ratio", {{"layer.0.query", 1}, {"layer.0.mlp_up", 1}, {"layer.0.mlp_down", 1}}},
      {"muon-original",
       {{"layer.0.query", 1}, {"layer.0.mlp_up", 1}, {"layer.0.mlp_down", 1 / std::sqrt(3)}}},
      {"muon-match-adamw",
       {{"layer.0.query", 1 / std::sqrt(3)},
        {"layer.0.mlp_up", std::sqrt(3) / 3},
        {"layer.0.mlp_down", 1 / std::sqrt(27)}}}};
  for (const Optimizer& optimizer : variants_of_muon) {
    const Plan plan = plan_for(optimizer);
    for (const auto& [name, rate] : expected.at(std::string(optimizer.name))) {
      INFO(optimizer.name << ", " << name);
      CHECK(std::abs(plan.at(name).learning_rate.value - rate) <= 1e-14);
    }
  }
}

TEST_CASE("All but hidden matrices have AdamW's numbers under Muon") {
  for (const DecayForm decay : {DecayForm::coupled, DecayForm::independent}) {
    const Plan by_adamw = plan_for(adamw, decay);
    for (const Optimizer& optimizer : variants_of_muon) {
      const Plan plan = plan_for(optimizer, decay);
      REQUIRE(plan.entries.size() == by_adamw.entries.size());
      for (std::size_t i = 0; i < plan.entries.size(); ++i) {
        const Entry& entry = plan.entries[i];
        INFO(optimizer.name << ", " << entry.name);
        if (role_of(entry.group) != Role::hidden) {
          CHECK(entry == by_adamw.entries[i]);
          continue;
        }
        CHECK(entry.init_variance == by_adamw.entries[i].init_variance);
        // The shrink per step does not depend on the width.
        const double shrink = entry.weight_decay.value *
                              (decay == DecayForm::coupled ? entry.learning_rate.value : 1);
        CHECK(std::abs(shrink - 1) <= 1e-14);
      }
      CHECK(plan.model == by_adamw.model);
    }
  }
}

TEST_CASE("Muon is refused where its rate or decay is not known") {
  CHECK_THAT(error_message([] { make_plan("complete-p", muon_original, tokens(), tokens()); }),
             Catch::Matchers::StartsWith("optimizer = muon-original: expected adamw"));
  CHECK_THAT(error_message([] { plan_for(muon_fan_ratio, DecayForm::l2); }),
             Catch::Matchers::StartsWith("decay = l2"));
}
