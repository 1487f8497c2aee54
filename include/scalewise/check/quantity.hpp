// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <tuple>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/architecture/tensor_name.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise::check {

/// The signal that is recorded: an activation's value, how far it has moved since step 0 on
/// the same batch, a parameter, its gradient, or what a step added to it.
enum class Signal { value, change, parameter, gradient, update };

inline constexpr messages::Spelling<Signal, 5> signal_words{{{Signal::value, "value"},
                                                             {Signal::change, "change"},
                                                             {Signal::parameter, "parameter"},
                                                             {Signal::gradient, "gradient"},
                                                             {Signal::update, "update"}}};

/// Of an activation, by its name in the list of observables; otherwise of a tensor of the plan.
constexpr bool is_activation(Signal signal) {
  return signal == Signal::value || signal == Signal::change;
}

/// A signal and the name of its place: "layer.0.mlp.output", "logits", or a tensor of the plan for
/// gradients and updates. Names do not contain the size.
struct Quantity {
  Signal signal = Signal::value;
  std::string name;

  friend bool operator==(const Quantity&, const Quantity&) = default;
  friend bool operator<(const Quantity& a, const Quantity& b) {
    return std::tie(a.signal, a.name) < std::tie(b.signal, b.name);
  }
};

/// The name without the layer: "layer.3.mlp.output" -> "mlp.output". Names of a list of tensors are its own, whatever they
/// begin with: each is a place.
inline std::string place_of(const Shape& shape, const std::string& name) {
  const architecture::TensorName parsed = architecture::tensor_name(name);
  return shape.blocks == Blocks::listed || parsed.layer < 0 ? name : parsed.part;
}

}  // namespace scalewise::check
