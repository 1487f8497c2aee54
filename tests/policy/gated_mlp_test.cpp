// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The two matrices into a gated MLP. In one tensor their halves have the same shape, so that names and shapes
// cannot show their order, and nor can gradients in general: the order must not matter to a plan.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/told.hpp"

using namespace scalewise;

namespace {

Shape gated(long scale) {
  Shape s{.d_model = 16 * scale, .depth = 2 * scale, .heads = 2 * scale, .kv_heads = scale};
  s.d_ff = 40 * scale * scale;  // unlike the width
  s.context = 8;
  s.vocab = 30;
  s.gated_mlp = true;
  s.iterations = 100 * scale;
  return s;
}

/// A plan, or nothing where the rule has no gates or does not state the optimizer.
std::optional<Plan> plan_of(const Rule& rule, const Optimizer& optimizer, bool two_stacks) {
  Shape target = gated(4), base = gated(1);
  if (two_stacks) target.encoder_depth = base.encoder_depth = 3;
  try {
    return make_plan(test::told(rule),
                     {.model = target,
                      .base = policy::needs_base(rule) ? std::optional(base) : std::nullopt,
                      .optimizer = optimizer});
  } catch (const InvalidInput&) {
    return {};
  }
}

/// The name of the other half: "layer.0.mlp_up" of "layer.0.mlp_gate".
std::string other_half(std::string name) {
  const std::size_t at = name.find("mlp_gate");
  return at == std::string::npos ? "" : name.replace(at, 8, "mlp_up");
}

/// All but what says which half it is.
Entry without_name(Entry entry) {
  entry.name.clear();
  entry.source.clear();
  entry.group = Group::mlp_up;
  return entry;
}

}  // namespace

TEST_CASE("Under no rule does it matter which half of a gated MLP comes first") {
  int rules_with_gates = 0;
  for (const Rule& rule : rules()) {
    bool planned = false;
    for (const Optimizer& optimizer : rule.optimizers) {
      for (const bool two_stacks : {false, true}) {
        const std::optional<Plan> plan = plan_of(rule, optimizer, two_stacks);
        if (!plan) continue;
        INFO(rule.id << ", " << optimizer.name);
        int pairs = 0;
        for (const Entry& entry : plan->entries) {
          const std::string other = other_half(entry.name);
          if (other.empty()) continue;
          INFO(entry.name);
          CHECK(without_name(entry) == without_name(plan->at(other)));
          ++pairs;
        }
        CHECK(pairs > 0);
        planned = true;
      }
    }
    rules_with_gates += planned ? 1 : 0;
  }
  // All but the three of the shallow encoder.
  CHECK(rules_with_gates == static_cast<int>(rules().size()) - 3);
}
