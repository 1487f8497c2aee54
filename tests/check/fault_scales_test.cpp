// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Mistakes in powers of the size, against the same mistakes in the numbers of the plans.

#include "scalewise/check/fault_scales.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/check/prediction.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"
#include "support/told.hpp"

using namespace scalewise;
using namespace scalewise::check;

namespace {

/// Plans of a rule at three sizes; none where it refuses such models.
std::vector<Member> family_of(const std::string& rule, const Optimizer& optimizer, bool depth) {
  Shape shape{.d_model = 64, .depth = 2, .heads = 4, .context = 8, .vocab = 16};
  shape.activation = Activation::relu;  // which every rule knows
  shape.tied_head = false;
  std::vector<Member> family;
  const Shape base = shape;
  try {
    for (const long size : depth ? std::vector<long>{1, 2, 4} : std::vector<long>{64, 128, 512}) {
      (depth ? shape.depth : shape.d_model) = size;
      family.push_back({size, make_plan(test::told(rule),
                                        {.model = shape, .base = base, .optimizer = optimizer})});
    }
  } catch (const InvalidInput&) {
    return {};
  }
  return family;
}

/// Powers are rounded to 1e-9 before they are doubled, or after.
bool alike(const Band& a, const Band& b) {
  return a == b || (std::abs(a.low - b.low) < 2e-9 && std::abs(a.high - b.high) < 2e-9);
}

bool alike(const GroupExponents& a, const GroupExponents& b) {
  return a.present == b.present && a.role == b.role && alike(a.multiplier, b.multiplier) &&
         alike(a.deviation, b.deviation) && alike(a.mean, b.mean) && alike(a.rate, b.rate) &&
         a.fan_in == b.fan_in && a.fan_out == b.fan_out && a.normalization == b.normalization;
}

bool alike(const Scales& a, const Scales& b) {
  bool all = alike(a.attention_scale, b.attention_scale) && alike(a.skip, b.skip) &&
             alike(a.branch, b.branch) && alike(a.logit_multiplier, b.logit_multiplier) &&
             alike(a.embedding_multiplier, b.embedding_multiplier);
  for (std::size_t g = 0; g < architecture::group_count; ++g)
    all = all && alike(a.groups[g], b.groups[g]);
  for (const auto& [name, row] : a.tensors) all = all && alike(row, b.tensors.at(name));
  return all && a.tensors.size() == b.tensors.size();
}

/// Experts under MSSP: as many at each width, or more, as wide as a quarter of the model or no wider.
std::vector<Member> mixtures(bool more, bool wider) {
  std::vector<Member> family;
  const auto shape_at = [&](long size) {
    Shape shape{.d_model = size, .depth = 2, .heads = 4, .context = 8, .vocab = 16};
    shape.experts = more ? size / 8 : 8;
    shape.experts_per_token = shape.experts / 4;
    shape.expert_ff = wider ? size / 4 : 16;
    shape.tied_head = false;
    return shape;
  };
  for (const long size : {64L, 128L, 512L}) {
    family.push_back({size, make_plan("maximal-update", {.model = shape_at(size),
                                                         .base = shape_at(64),
                                                         .parameters = {{"mssp", 1}}})});
  }
  return family;
}

bool is_visible(const Fault& fault) {
  return fault.ingredient != Ingredient::epsilon && fault.ingredient != Ingredient::weight_decay;
}

}  // namespace

TEST_CASE("A mistake in the powers is that in the plans, for every rule") {
  int families = 0;
  int mistakes = 0;
  for (const Rule& rule : rules()) {
    for (const Optimizer& optimizer : {adamw, sgd, muon_original, muon_match_adamw}) {
      for (const bool depth : {false, true}) {
        // Both for AdamW; rates of the others differ from its in either.
        if (optimizer == adamw ? test::sanitized && depth : depth == (optimizer == sgd)) continue;
        const std::vector<Member> family = family_of(std::string(rule.id), optimizer, depth);
        // Factors that differ from layer to layer are not a power of the depth.
        if (family.empty() || (depth && rule.id == "ds-init")) continue;
        ++families;
        const Scales scales = scales_of(family);
        const Blocks blocks = family.front().plan.shape.blocks;
        for (const auto& [ingredient, name] : ingredient_words) {
          for (const Fault& fault :
               {Fault{ingredient, false}, Fault{ingredient, true}, Fault{ingredient, false, 0.1}}) {
            if (!is_visible(fault)) continue;
            INFO(rule.id << ' ' << optimizer.name << (depth ? " depth " : " width ")
                         << to_string(fault));
            CHECK(alike(with_fault(scales, fault), scales_of(with_fault(family, fault))));
            // Not the other way round: rates of two sizes may differ by rounding.
            if (changes(scales, blocks, fault)) CHECK(changes(family, fault));
            const double backward =
                std::log(scaled_gradient(family.back().plan, family.front().plan, fault)) /
                std::log(ratio_of(family));
            CHECK(std::abs(backward_power(scales, fault) - backward) < 1e-9);
            if (changes(scales, blocks, fault)) ++mistakes;
          }
        }
      }
    }
  }
  CHECK(families >= (test::sanitized ? 20 : 40));
  CHECK(mistakes >= (test::sanitized ? 100 : 200));
}

TEST_CASE("A mistake in the powers of experts is that in their plans") {
  for (const auto& [more, wider] : {std::pair{false, true}, {true, true}, {true, false}}) {
    const std::vector<Member> family = mixtures(more, wider);
    const Scales scales = scales_of(family);
    CHECK(scales.active_experts == (more ? 1 : 0));
    for (const auto& [ingredient, name] : ingredient_words) {
      for (const Fault& fault :
           {Fault{ingredient, false}, Fault{ingredient, true}, Fault{ingredient, false, 0.1}}) {
        if (!is_visible(fault)) continue;
        INFO(name << (fault.doubled ? " twice " : " ") << fault.off << more << wider);
        CHECK(alike(with_fault(scales, fault), scales_of(with_fault(family, fault))));
      }
    }
    // A router of more experts has the variance and the rate of hidden matrices.
    CHECK(changes(scales, Blocks::residual, {Ingredient::router_row}) != more);
    CHECK_FALSE(changes(scales, Blocks::residual, {Ingredient::router_row, true}));
    CHECK(changes(scales, Blocks::residual, {Ingredient::expert_factor}) == more);
    CHECK(changes(scales, Blocks::residual, {Ingredient::expert_factor, true}) == more);
  }
  CHECK(to_string(Fault{Ingredient::router_row}) == "router as a hidden matrix");
  CHECK(to_string(Fault{Ingredient::expert_factor, true}) == "expert factor applied twice");
}

TEST_CASE("Slopes of experts are those of their tables") {
  // Derived by hand with full alignment; n the width, as many experts as n, a fixed share of them active.
  const auto predicted = [](bool more, bool wider, const Fault* fault) {
    std::vector<Member> family = mixtures(more, wider);
    if (fault != nullptr) family = with_fault(std::move(family), *fault);
    return Prediction(scales_of(family), family.front().plan.shape, {.alignment = Band(1)});
  };
  const Prediction fixed = predicted(false, true, nullptr), all = predicted(true, true, nullptr),
                   narrow = predicted(true, false, nullptr);
  CHECK(*fixed.value("mlp.router", 0) == Band(-0.5));  // entries 1/n, over n inputs
  CHECK(*all.value("mlp.router", 0) == Band(0));
  CHECK(*narrow.value("mlp.router", 0) == Band(0));
  for (const Prediction* p : {&fixed, &all, &narrow}) CHECK(*p->change("mlp.router", 1) == Band(0));
  CHECK(*fixed.value("mlp.output", 0) == Band(0));
  CHECK(*all.value("mlp.output", 0) == Band(-0.5));  // a mean of independent ones
  CHECK(*narrow.value("mlp.output", 0) == Band(0));
  for (const Prediction* p : {&all, &narrow}) CHECK(p->change("mlp.output", 1)->high == 0);
  const Fault hidden{Ingredient::router_row}, ignored{Ingredient::expert_factor},
      twice{Ingredient::expert_factor, true};
  CHECK(*predicted(false, true, &hidden).value("mlp.router", 0) == Band(0));
  CHECK(*predicted(true, true, &ignored).value("mlp.output", 0) == Band(0.5));
  CHECK(*predicted(true, false, &ignored).value("mlp.output", 0) == Band(1));
  CHECK(predicted(true, true, &ignored).change("mlp.output", 1)->high == 1);
  CHECK(*predicted(true, false, &twice).value("mlp.output", 0) == Band(-1));
}

TEST_CASE(
    "A decoder's layers that the first model lacks are spoilt as its decoder's, not its "
    "encoder's") {
  Shape shape;
  shape.d_model = shape.context = shape.vocab = 16;
  shape.heads = 2;
  shape.depth = shape.encoder_depth = 1;
  Plan first = make_plan("standard", {.model = shape});
  for (Entry& entry : first.entries) {
    if (entry.stack == Stack::encoder) entry.learning_rate.value = 7;
  }
  shape.depth = shape.encoder_depth = 2;
  const Plan deep =
      with_fault(make_plan("standard", {.model = shape}), first, Fault{Ingredient::hidden_rate}, 2);
  CHECK(deep.at("encoder.1.query").learning_rate.value == 7);
  CHECK(deep.at("decoder.1.query").learning_rate.value == 1);
}

TEST_CASE("Possible are mistakes that change a power") {
  const std::vector<Member> family = family_of("maximal-update", adamw, false);
  const Scales scales = scales_of(family);
  std::string faults;
  for (const Fault& fault : possible_faults(scales, Blocks::residual)) {
    faults += to_string(fault) + "; ";
  }
  CHECK(faults ==
        "output multiplier missing; output multiplier applied twice; attention scale missing; "
        "attention scale applied twice; hidden variance missing; hidden variance applied twice; "
        "hidden rate missing; hidden rate applied twice; "
        "one global rate; all rates applied twice; backward scale missing; "
        "backward scale applied twice; ");
  // Fourteen of each of four rates and three variances, without those of the hidden rate (±1) and the hidden standard
  // deviation (±1/2) that are its factor missing or applied twice; eight of each of three multipliers.
  CHECK(possible_slips(scales, Blocks::residual).size() == 98 - 4 + 24);
  CHECK(multiplier_slips(scales, Blocks::residual).size() == 18);
  for (const Fault& fault : possible_faults(scales, Blocks::normalized)) {
    CHECK(fault.ingredient != Ingredient::hidden_variance);
  }
}
