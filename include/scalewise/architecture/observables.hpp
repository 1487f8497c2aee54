// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "scalewise/architecture/tensor_name.hpp"
#include "scalewise/messages/nearest.hpp"

namespace scalewise::architecture {

/// An intermediate of a transformer under the name by which it is observed, recorded and predicted.
/// Inside the blocks the name follows the layer: "layer.3.mlp.output", "encoder.0.attention.input".
/// Shapes:   B sequences of T tokens, S keys, C = d_model, H heads, F = d_ff, V outputs
struct Observable {
  std::string_view name;
  std::string_view shape;
  std::string_view meaning;
};

inline constexpr std::array observables{
    Observable{"embedding", "(B T, C)", "the input of the first layer"},
    Observable{"attention.input", "(B T, C)", "the input of the block"},
    Observable{"attention.scores", "(B H T, S)",
               "scale times q·k, before softmax and before a cap"},
    Observable{"attention.probabilities", "(B H T, S)", "after softmax"},
    Observable{"attention.heads", "(B T, H head_dim)", "the input of the output projection"},
    Observable{"attention.output", "(B T, C)",
               "the output of the block, before the residual multiplier"},
    Observable{"attention.stream", "(B T, C)",
               "the residual stream after the block; of parallel branches without the MLP"},
    Observable{"mlp.input", "(B T, C)", "the input of the block"},
    Observable{"mlp.router", "(B T, E)", "of experts: their scores before softmax or sigmoid"},
    Observable{"mlp.hidden", "(B T, F)", "the input of the down projection; not of experts"},
    Observable{"mlp.output", "(B T, C)", "the output of the block, before the residual multiplier"},
    Observable{"mlp.stream", "(B T, C)", "the residual stream after the block"},
    Observable{"final_hidden", "(B T, C)", "after the final norm"},
    Observable{"logits", "(B T, V)",
               "with all their multipliers, capped; (B, classes) with patch input"},
};

/// The name of an observable, for expressions that must not misspell it: observable("mlp.output").
/// Throws:   a name that is none does not compile.
consteval std::string_view observable(std::string_view name) {
  for (const Observable& known : observables) {
    if (known.name == name) return known.name;
  }
  throw "no observable has this name";
}

/// True for the name of an observable, in any layer and stack or in none. Cross attention has the observables
/// of attention.
inline bool is_observable(std::string_view name) {
  const std::string part = tensor_name(name).part;
  const std::string_view own = std::string_view(part).substr(part.starts_with("cross_") ? 6 : 0);
  return std::any_of(observables.begin(), observables.end(),
                     [&](const Observable& known) { return known.name == own; });
}

/// The observable that is nearest to a name that is none.
inline messages::Nearest nearest_observable(std::string_view role) {
  messages::Nearest nearest(role);
  for (const Observable& known : observables) nearest.offer(known.name);
  return nearest;
}

}  // namespace scalewise::architecture
