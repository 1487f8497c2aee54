// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/standard.hpp"

namespace scalewise {

/// He (Kaiming) initialization: fan-in with the factor 2 that a ReLU takes away.
/// Equation: var W = 2/fi
/// Source:   He, Zhang, Ren, Sun 2015 (arXiv:1502.01852v1), eq. (10).
/// Units:    init_variance is a variance; rate and decay are 1 everywhere.
/// Differs:  used for every matrix, as is common, though only MLP down follows a ReLU; embeddings
///           as in the standard parametrization.
struct He {
  static constexpr std::string_view id = "he";
  static constexpr Source source{"Delving Deep into Rectifiers", "He, Zhang, Ren, Sun", "2015",
                                 "arXiv:1502.01852v1", "eq. (10)"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  constexpr Row row(Group group) const {
    using namespace symbols;
    if (architecture::reads_width(group) || group == Group::patch_embedding) {
      return {.init_variance = 2 / fi, .source = "eq. (10)"};
    }
    return Standard{}.row(group);
  }

  constexpr ModelRow model() const { return Standard{}.model(); }
};

static_assert(Policy<He>);

}  // namespace scalewise
