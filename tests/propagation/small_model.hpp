// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A small model for tests of plans, and what is read from its layers.
#pragma once

#include <cstddef>
#include <variant>

#include "scalewise/plan/make_plan.hpp"
#include "scalewise/propagation/plan_layers.hpp"
#include "support/told.hpp"

namespace scalewise::test {

/// Four layers of width 32.
inline Shape small_shape() {
  Shape s{.d_model = 32, .depth = 4, .heads = 2, .d_ff = 96, .context = 16, .vocab = 50};
  s.biases = false;
  return s;
}

inline propagation::Conditions conditions(double length = 16) {
  propagation::Conditions c;
  c.length = length;
  c.dropout = 0.1;
  return c;
}

template <class P>
Plan plan_of(const Shape& shape, const P& policy = {}) {
  return make_plan(told(policy), {.model = shape});
}

inline const propagation::Attention& attention_at(const propagation::Layers& layers,
                                                  std::size_t block) {
  return std::get<propagation::Attention>(layers.blocks[block].inner);
}

inline const propagation::Mlp& mlp_at(const propagation::Layers& layers, std::size_t block) {
  return std::get<propagation::Mlp>(layers.blocks[block].inner);
}

}  // namespace scalewise::test
