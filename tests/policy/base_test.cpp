// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The meaning of a base model under every rule.

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/models.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::test;

/// The problem with an entry that must leave a base model as it is, or empty.
std::string problem_at_base(const Entry& e) {
  if (e.learning_rate.value != 1) return "rate";
  if (e.epsilon.value != 1) return "epsilon";
  if (e.multiplier.value != 1) return "multiplier";
  if (e.init_variance.value != 0 && e.init_variance.value != 1) return "variance";
  if (e.weight_decay.value != 0 && e.weight_decay.value != 1) return "decay";
  if (e.init_mean.value != 0 && e.init_mean.value != 1) return "mean";
  return {};
}

}  // namespace

TEST_CASE("a base model is left exactly as it is") {
  int checked = 0;
  for (const Rule& rule : forms()) {
    if (rule.reference != Reference::base && !policy::needs_base(rule)) continue;
    for (const Variant& variant : variants()) {
      const std::optional<Plan> plan = planned(variant.shape, rule);
      if (!plan) continue;
      ++checked;
      INFO(rule.id << ", " << variant.name);
      for (const Entry& entry : plan->entries) {
        INFO(entry.name);
        const bool tuned = !plan->parameters.empty() && rule.id == "nu-gpt";
        if (rule.reference == Reference::base) {
          CHECK(problem_at_base(entry) == "");
        } else if (!tuned) {
          CHECK(entry.learning_rate.value == 1);
        }
      }
      if (rule.reference == Reference::base) {
        CHECK(plan->model.logit_multiplier.value == 1);
        CHECK(plan->model.embedding_multiplier.value == 1);
        for (const Residual& residual : plan->model.residuals) {
          CHECK(residual.skip.value == 1);
          CHECK(residual.branch.value == 1);
        }
      }
    }
  }
  CHECK(checked > 100);
  // The scores of a base model are scaled as usual, whatever the rule.
  const double usual = 1 / std::sqrt(4.0);
  CHECK(make_plan(MaximalUpdate{}, {.model = tokens(), .base = tokens()})
            .model.attention_scale.value == usual);
  CHECK(make_plan(CompleteP{}, {.model = tokens(), .base = tokens()}).model.attention_scale.value ==
        usual);
  const Plan nu = make_plan(NuGpt{}, {.model = tokens(), .base = tokens()});
  for (const Entry& entry : nu.entries) CHECK(entry.learning_rate.value == 1);
}

TEST_CASE("an absolute rule ignores the base, a relative one asks for it") {
  Shape base = tokens();
  base.d_model = 12;
  base.depth = 4;
  Shape patch_base = patches();
  patch_base.d_model = 12;
  for (const Rule& rule : rules()) {
    INFO(rule.id);
    const bool shallow = rule.id.starts_with("shallow");
    const Shape target = shallow ? patches() : tokens();
    if (policy::needs_base(rule)) {
      try {
        make_plan(told(rule), {.model = target});
        FAIL_CHECK("planned without a base");
      } catch (const InvalidInput& error) {
        CHECK(error.field() == "base");
        CHECK(std::string(error.what()).find("base") != std::string::npos);
      }
      CHECK(make_plan(told(rule), {.model = target, .base = base}) !=
            make_plan(told(rule), {.model = target, .base = target}));
    } else {
      const Plan without = make_plan(told(rule), {.model = target});
      Plan with = make_plan(told(rule), {.model = target, .base = shallow ? patch_base : base});
      CHECK(with.entries == without.entries);
      CHECK(with.model == without.model);
    }
  }
}

TEST_CASE("a base has the input and the stacks of the target") {
  const auto refused = [](const Shape& target, const Shape& base) {
    return refused_field([&] { make_plan(MaximalUpdate{}, {.model = target, .base = base}); });
  };
  Shape two_stacks = tokens();
  two_stacks.encoder_depth = 2;
  CHECK(refused(tokens(), tokens()) == "accepted");
  CHECK(refused(two_stacks, two_stacks) == "accepted");
  CHECK(refused(tokens(), two_stacks) == "base.encoder_depth");
  CHECK(refused(two_stacks, tokens()) == "base.encoder_depth");
  CHECK(refused(patches(), tokens()) == "base.input");
  CHECK(refused(tokens(), patches()) == "base.input");
}
