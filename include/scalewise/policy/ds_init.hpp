// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/xavier.hpp"

namespace scalewise {

/// DS-Init: Xavier's bound divided by the square root of the layer's number.
/// Equation: layer l, from 1: W ~ U(±√(6/(fi+fo))/√l), variance 2/(l (fi+fo))
/// Source:   Zhang, Titov, Sennrich 2019 (arXiv:1908.11365v1), section 4.1, with its α = 1.
/// Units:    init_variance is a variance.
/// Differs:  embeddings and head as Xavier.
struct DsInit {
  static constexpr std::string_view id = "ds-init";
  static constexpr Source source{
      "Improving Deep Transformer with Depth-Scaled Initialization and Merged Attention",
      "Zhang, Titov, Sennrich", "2019", "arXiv:1908.11365v1", "section 4.1"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr policy::TextModel text{.placement = NormPlacement::post};
  static constexpr std::array optimizers{sgd, adamw};

  constexpr Row row(Group group) const {
    Row row = Xavier{}.row(group);
    if (role_of(group) == Role::hidden) {
      row.init_variance = row.init_variance.scaling / Scaling(symbols::layer);
      row.source = "section 4.1";
    }
    return row;
  }

  constexpr ModelRow model() const { return Xavier{}.model(); }
};

static_assert(Policy<DsInit>);

}  // namespace scalewise
