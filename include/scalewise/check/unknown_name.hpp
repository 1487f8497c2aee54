// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "scalewise/architecture/observables.hpp"
#include "scalewise/check/expectation.hpp"
#include "scalewise/check/quantity.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::check::detail {

/// A recorded name that stands for nothing.
struct UnknownName {
  std::string name;
  std::string reason;   // empty: it stands for something
  std::string nearest;  // that does; empty when none is near
};

inline UnknownName unknown_name(const Quantity& quantity, const Plan& plan) {
  const std::string place = place_of(plan.shape, quantity.name);
  if (is_activation(quantity.signal)) {
    const bool listed =
        plan.shape.blocks == Blocks::listed;  // activations have the names of tensors
    const bool known = listed ? place == architecture::observable("logits") ||
                                    entry_of(plan, quantity.name) != nullptr
                              : architecture::is_observable(place);
    if (known) return {};
    if (listed)
      return {quantity.name, "not judged of a list: outputs have the names of tensors", ""};
    return {quantity.name, "no observable", architecture::nearest_observable(place).word()};
  }
  if (entry_of(plan, quantity.name) != nullptr) return {};
  if (quantity.signal == Signal::gradient && place == architecture::observable("logits")) return {};
  messages::Nearest nearest(place);
  for (const Entry& entry : plan.entries) nearest.offer(place_of(plan.shape, entry.name));
  return {quantity.name, "no tensor of the plan", nearest.word()};
}

}  // namespace scalewise::check::detail
