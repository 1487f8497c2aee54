// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/policy.hpp"

namespace scalewise {

/// Xavier (Glorot) initialization, the plain baseline of the deep-transformer papers.
/// Equation: W ~ U(±√(6/(fi+fo))), variance 2/(fi+fo)
/// Source:   Glorot, Bengio 2010, eq. (16); embeddings N(0, 1/n) times √n as in Vaswani et al. 2017
///           (arXiv:1706.03762), section 3.4.
/// Units:    init_variance is a variance; rate and decay are 1 everywhere.
/// Differs:  Xavier's rule says nothing about one-hot inputs, hence the second source; position
///           and segment embeddings have variance 1/n and no multiplier.
struct Xavier {
  static constexpr std::string_view id = "xavier";
  static constexpr Source source{
      "Understanding the difficulty of training deep feedforward neural networks", "Glorot, Bengio",
      "2010", "AISTATS 9", "eq. (16)"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  constexpr Row row(Group group) const {
    using namespace symbols;
    if (group == Group::token_embedding) {
      return {
          .init_variance = 1 / n, .multiplier = sqrt(n), .source = "Vaswani et al., section 3.4"};
    }
    switch (role_of(group)) {
      case Role::input:
        if (group != Group::patch_embedding) return {.init_variance = 1 / n, .source = "derived"};
        [[fallthrough]];
      case Role::hidden:
      case Role::output:
        return {.init_variance = 2 / fi_plus_fo,
                .distribution = Distribution::uniform,
                .source = "eq. (16)"};
      case Role::input_vector:
      case Role::block_vector:
      case Role::final_vector:
      case Role::output_bias:
      case Role::rescaler:
        return vector_row(group);
    }
    return not_stated();  // no group is left
  }

  constexpr ModelRow model() const { return {.source = "Vaswani et al., eq. (1)"}; }
};

static_assert(Policy<Xavier>);

}  // namespace scalewise
