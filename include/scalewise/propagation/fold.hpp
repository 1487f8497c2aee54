// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scalewise/plan/check_plan.hpp"
#include "scalewise/propagation/layers.hpp"

namespace scalewise::propagation {

/// A number that a tensor's entries, or a norm's epsilon, are multiplied by.
struct TensorFactor {
  std::string name;  // of a tensor of the plan; of a norm without "_gain"
  double value = 1;
};

/// A model without residual weights that computes what one with them does.
struct Folded {
  Plan plan;  // residual weights one; without a final norm another logit multiplier
  std::vector<TensorFactor> tensors;
  std::vector<TensorFactor> epsilons;
};

namespace detail {

/// The blocks of one stack in order: prefix of their tensors, and the layer.
inline std::vector<std::pair<std::string, const Residual*>> residual_blocks(const Plan& plan,
                                                                            Stack stack) {
  std::vector<std::pair<std::string, const Residual*>> blocks;
  for (const Residual& r : plan.model.residuals) {
    if (r.stack != stack) continue;
    const std::string prefix = architecture::TensorName{stack, r.layer}.prefix();
    blocks.emplace_back(prefix + "attention", &r);
    if (stack == Stack::decoder) blocks.emplace_back(prefix + "cross_attention", &r);
    blocks.emplace_back(prefix + "mlp", &r);
  }
  return blocks;
}

/// Takes the scale Λ that a pre-norm stack ends with into what reads it.
inline void fold_end(Folded& folded, Stack stack, double scale) {
  if (scale == 1) return;
  if (folded.plan.shape.final_norm) {
    folded.epsilons.push_back(
        {architecture::TensorName{stack}.prefix() + "final_norm", 1 / (scale * scale)});
  } else if (stack == Stack::encoder) {
    throw InvalidInput("final_norm", "false", "true",
                       "a decoder reads the stream that the encoder leaves");
  } else {
    folded.plan.model.logit_multiplier.value *= scale;
  }
}

}  // namespace detail

/// Takes the residual weights λ and β into output matrices, for inference with code that has none.
/// Equation: pre:  x_j = Λ_j z_j, Λ_0 = 1, Λ_{j+1} = λ_j Λ_j, so z <- z + (β_j/Λ_{j+1}) f(norm z) with
///                 ε/Λ_j² in place of ε;
///           post: norm(λ x + β f; ε) = norm(x + (β/λ) f; ε/λ²)
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), section 3.5, which says that it can be done.
/// Units:    factors on the trained tensors, output matrices and their biases.
/// Accuracy: the same function to rounding when each norm gets its epsilon; with one epsilon for all,
///           what a norm returns is off by (factor - 1) ε/2 over the variance that it sees.
/// Throws:   InvalidInput for a residual weight λ that is not positive, for blocks without norms, and
///           for a pre-norm encoder without a final norm.
inline Folded fold_residuals(const Plan& plan, NormPlacement placement) {
  check_plan(plan);
  if (placement == NormPlacement::none || plan.shape.blocks != Blocks::residual) {
    throw InvalidInput("placement",
                       std::string(word(architecture::norm_placement_words, placement)),
                       "pre or post", "only what a norm follows can be rescaled");
  }
  const bool pre = placement == NormPlacement::pre;
  Folded folded;
  folded.plan = plan;
  for (const Stack stack : {Stack::main, Stack::encoder, Stack::decoder}) {
    double scale = 1;  // Λ
    for (const auto& [name, residual] : detail::residual_blocks(plan, stack)) {
      const double skip = residual->skip.value;
      if (!(skip > 0))
        throw InvalidInput("residual skip", numeric::number_text(skip), "a positive number");
      const double before = pre ? scale : 1 / skip;
      folded.epsilons.push_back({name + "_norm", pre ? 1 / (before * before) : before * before});
      scale *= skip;
      const double factor = residual->branch.value / (pre ? scale : skip);
      const bool mlp = name.ends_with("mlp");
      const std::string matrix = name + (mlp ? "_down" : "_output");
      folded.tensors.push_back({matrix, factor});
      if (mlp ? plan.shape.biases : architecture::has_attention_output_bias(plan.shape))
        folded.tensors.push_back({matrix + "_bias", factor});
    }
    if (pre) detail::fold_end(folded, stack, scale);
  }
  for (Residual& r : folded.plan.model.residuals) {
    r.skip = {1, 1};
    r.branch = {1, 1};
  }
  return folded;
}

}  // namespace scalewise::propagation
