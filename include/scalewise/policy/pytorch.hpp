// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/policy.hpp"

namespace scalewise {

/// PyTorch's defaults: the values of a model without an initialization of its own.
/// Equation: Linear: W, b ~ U(-1/√fi, 1/√fi), variance 1/(3fi); Embedding ~ N(0, 1)
/// Source:   PyTorch documentation (2.x) of nn.Linear, nn.Embedding and nn.LayerNorm.
/// Units:    init_variance is a variance; rate and decay are 1 everywhere.
/// Differs:  nn.MultiheadAttention instead draws its fused input projection by Xavier's rule; here
///           query, key and value are nn.Linear.
struct PyTorch {
  static constexpr std::string_view id = "pytorch";
  static constexpr Source source{"PyTorch documentation", "PyTorch contributors", "2.x", "torch.nn",
                                 "Linear, Embedding, LayerNorm"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  constexpr Row row(Group group) const {
    using namespace symbols;
    constexpr auto uniform = Distribution::uniform;
    const Row linear{.init_variance = 1 / (3 * fi), .distribution = uniform, .source = "nn.Linear"};
    switch (group) {
      case Group::token_embedding:
      case Group::position_embedding:
      case Group::segment_embedding:
      case Group::relative_position:
        return {.init_variance = 1, .source = "nn.Embedding"};
      case Group::class_token:
        return vector_row(group, {.source = "derived, zeros"});
      case Group::embedding_norm_gain:
      case Group::norm_gain:
      case Group::final_norm_gain:
      case Group::embedding_norm_bias:
      case Group::norm_bias:
      case Group::final_norm_bias:
        return vector_row(group, {.source = "nn.LayerNorm"});
      case Group::residual_gain:
        return vector_row(group);
      case Group::patch_embedding:
      case Group::patch_bias:
      case Group::hidden_bias:
      case Group::head:
      case Group::head_bias:
        return linear;
      default:
        return architecture::reads_width(group) ? linear : not_stated();
    }
  }

  constexpr ModelRow model() const { return {.source = "nn.MultiheadAttention"}; }
};

static_assert(Policy<PyTorch>);

}  // namespace scalewise
