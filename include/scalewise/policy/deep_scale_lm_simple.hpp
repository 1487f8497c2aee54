// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/deep_scale_lm.hpp"

namespace scalewise {

/// DeepScaleLM, simple version: one variance for every layer instead of one per layer.
/// Equation: value and attention output √((1-p)/2)/n in every layer; the rest as DeepScaleLM
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), appendix M, simplified initialization.
/// Units:    as DeepScaleLM.
/// Differs:  as DeepScaleLM. It takes a correlation of the input, but does not use it.
struct DeepScaleLMSimple {
  static constexpr std::string_view id = "deep-scale-lm-simple";
  static constexpr Source source = DeepScaleLM::source;
  static constexpr Reference reference = Reference::absolute;
  static constexpr policy::TextModel text = DeepScaleLM::text;
  static constexpr std::array optimizers{sgd, adamw};

  DeepScaleLM full{};

  constexpr Row row(Group group, const policy::Context& context) const {
    return full.row(group, sqrt(Scaling(DeepScaleLM::keep_probability)) / sqrt(Scaling(2)),
                    context.shape);
  }
  constexpr ModelRow model() const { return full.model(); }

  std::vector<policy::OwnValues> own_values(const policy::Context& context) const {
    return full.constant_values(context);
  }
  constexpr Shape adapt(Shape shape) const { return full.adapt(shape); }
  /// Throws:   InvalidInput as DeepScaleLM, but not for a missing correlation.
  constexpr void validate(const Shape& shape) const { full.validate_all_but_correlation(shape); }
  static void parameters(auto& self, auto&& visit) { DeepScaleLM::parameters(self.full, visit); }
};

static_assert(Policy<DeepScaleLMSimple>);

}  // namespace scalewise
