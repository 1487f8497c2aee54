// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "scalewise/architecture/extra.hpp"
#include "scalewise/architecture/shape.hpp"
#include "scalewise/policy/optimizer.hpp"
#include "scalewise/policy/parameter.hpp"
#include "scalewise/policy/row.hpp"
#include "scalewise/policy/rule.hpp"

namespace scalewise {

/// The model that a plan is asked for, and how it is trained.
///
///     make_plan(CompleteP{}, {.model = model, .base = base_like(model, {.width = 256, .depth = 2})})
///     make_plan("mup", {.model = model, .base = base, .optimizer = muon, .start = "gpt2"})
struct PlanRequest {
  Shape model;
  std::optional<Shape> base = {};  // the model whose rates were tuned, for rules that need one
  Optimizer optimizer = adamw;
  DecayForm decay = DecayForm::coupled;    // the form that the optimizer at hand has
  std::vector<Parameter> parameters = {};  // of the rule, by name; others keep their values
  std::vector<Parameter> constants = {};   // tuned on the base: {{"logits", 1.8}, …}
  std::vector<Extra> extras = {};          // tensors that the shape does not have
  // How the base is initialized, where the rule only says factors on it (Reference::base): by a rule that says
  // deviations themselves (Reference::absolute), such as "gpt2".
  std::optional<Rule> start = {};
};

}  // namespace scalewise
