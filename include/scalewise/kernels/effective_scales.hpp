// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "scalewise/architecture/shape_fields.hpp"
#include "scalewise/kernels/effective_theory.hpp"
#include "scalewise/plan/check_plan.hpp"

namespace scalewise::kernels {

namespace detail {

/// Variance and rate of a tensor whose constants C and Λ are 1.
inline GroupScale unit_scale(const Entry& entry, bool normalized, double n, double s) {
  const double fi = entry.fan_in;
  const double fo = entry.fan_out;
  const double power = std::pow(n, normalized ? s / 2 : s);  // of all groups but the head
  switch (entry.group) {
    case Group::token_embedding:
    case Group::position_embedding:
    case Group::class_token:
      return {1, power * (normalized ? 1 / std::sqrt(n) : 1)};
    case Group::mlp_up:
      return {1 / fi, power / (normalized ? fi * std::sqrt(fo) : fi)};
    case Group::head:
      return {1 / (fi * std::pow(n, s)), 1 / (normalized ? fi * std::sqrt(fo) : fi)};
    case Group::head_bias:
      return {1, normalized ? 1 / std::sqrt(fo) : 1};
    default:
      return {1 / fi, power / (normalized ? fi * std::sqrt(n) : fi)};
  }
}

/// Throws:   InvalidInput for a tensor whose part in the kernels the theory lacks.
inline void check_covered(const Plan& plan) {
  const char* hint = "the effective theory is of blocks of LayerNorm, attention and a plain MLP";
  architecture::require_plain(plan.shape, {"class_token", "attention_biases"}, hint);
  for (const Entry& e : plan.entries) {
    switch (e.group) {
      case Group::patch_embedding:
      case Group::token_embedding:
      case Group::position_embedding:
      case Group::class_token:
      case Group::query:
      case Group::key:
      case Group::value:
      case Group::attention_output:
      case Group::mlp_up:
      case Group::mlp_down:
      case Group::head:
      case Group::head_bias:
        break;
      // The theory holds gains at 1 and other biases at 0, whatever their learning rates.
      case Group::patch_bias:
      case Group::norm_gain:
      case Group::norm_bias:
      case Group::hidden_bias:
      case Group::final_norm_gain:
      case Group::final_norm_bias: {
        const double start = architecture::is_norm_gain(e.group) ? 1 : 0;
        if (std::abs(e.init_mean.value * e.multiplier.value - start) > 1e-12 ||
            e.init_variance.value > 0) {
          throw InvalidInput(e.name,
                             numeric::number_text(e.init_mean.value) + " with variance " +
                                 numeric::number_text(e.init_variance.value),
                             numeric::number_text(start) + " with variance 0", hint);
        }
        break;
      }
      default:
        throw InvalidInput(e.name, std::string(to_string(e.group)), "no such tensor", hint);
    }
  }
}

/// Throws:   InvalidInput for factors of the model that the theory has as 1, and scores over another number than √C.
inline void check_factors(const Plan& plan) {
  const auto require = [](const std::string& name, double value, double expected) {
    if (std::abs(value - expected) <= 1e-12) return;
    throw InvalidInput(
        name, numeric::number_text(value), numeric::number_text(expected),
        "the effective theory adds blocks to the stream as they are, and divides scores by √C");
  };
  for (const Residual& residual : plan.model.residuals) {
    require("skip multiplier", residual.skip.value, 1);
    require("branch multiplier", residual.branch.value, 1);
  }
  require("attention_scale", plan.model.attention_scale.value,
          1 / std::sqrt(static_cast<double>(plan.shape.head_dim)));
}

/// C_G and Λ_G of a group; nothing where the plan has no such tensor.
inline std::optional<GroupScale> group_scale(const Plan& plan, Group group, double s) {
  const bool normalized = plan.optimizer.normalization == policy::Normalization::by_entry;
  const auto width = static_cast<double>(plan.shape.d_model);
  const auto differs = [](double a, double b) { return std::abs(a - b) > 1e-12 * std::abs(b); };
  std::optional<GroupScale> found;
  for (const Entry* entry : plan.of(group)) {
    const GroupScale unit = unit_scale(*entry, normalized, width, s);
    const double m = entry->multiplier.value;
    const GroupScale now{m * m * entry->init_variance.value / unit.variance,
                         (normalized ? m : m * m) * entry->learning_rate.value / unit.rate};
    if (found && (differs(now.variance, found->variance) || differs(now.rate, found->rate))) {
      throw InvalidInput("plan", std::string(to_string(group)) + " that differs between layers",
                         "the same in every layer", "take the blocks one by one");
    }
    found = now;
  }
  return found;
}

}  // namespace detail

/// The order-one constants C_G and Λ_G of a plan under any rule, for its optimizer.
/// Equation: C_G = variance · multiplier² over the table's variance; Λ_G = rate · multiplier² (SGD)
///           or rate · multiplier (AdamW) over the table's rate, the table being meta-principled
///           scaling with all constants 1. A tensor that the plan lacks keeps 1, a head bias 0. Norm
///           gains stay 1 and other biases 0: their learning rates do not count.
/// Source:   Dinan, Yaida, Zhang 2023 (arXiv:2304.02034v1), (1.25)-(1.34), (1.99)-(1.116).
/// Units:    s is that of the table, 0 neural-tangent, 1 maximal-update.
/// Throws:   InvalidInput for a plan relative to a base, s outside [0, 1], a group whose layers
///           differ, an optimizer that normalizes whole matrices, a tensor that the theory lacks,
///           such as a gate, a gain or bias that starts elsewhere than at 1 or 0, factors of residuals other than 1,
///           and scores over another number than √C.
/// Differs:  The multiplier of tied logits is not part of it: see EffectiveHead::shrinkage.
inline EffectiveScales effective_scales(const Plan& plan, double s = 0, double epsilon = 0) {
  check_plan(plan);
  plan::require_no_extras(plan, "the theory does not know where it is");
  detail::check_covered(plan);
  if (plan.reference == Reference::base) {
    throw InvalidInput("plan", plan.rule, "a rule with variances of its own",
                       "this one multiplies a base model's");
  }
  detail::check_factors(plan);
  if (!(s >= 0 && s <= 1)) throw InvalidInput("s", numeric::number_text(s), "a number in [0, 1]");
  if (plan.optimizer.normalization == policy::Normalization::by_matrix) {
    throw InvalidInput("optimizer", std::string(plan.optimizer.name),
                       "one that divides no gradient, or each entry by itself");
  }
  EffectiveScales scales;
  scales.epsilon = epsilon;
  const auto take = [&](Group group, GroupScale& scale) {
    scale = detail::group_scale(plan, group, s).value_or(scale);
  };
  take(Group::patch_embedding, scales.patch_embedding);
  take(Group::token_embedding, scales.token_embedding);
  take(Group::position_embedding, scales.position_embedding);
  take(Group::class_token, scales.class_token);
  take(Group::query, scales.query);
  take(Group::key, scales.key);
  take(Group::value, scales.value);
  take(Group::attention_output, scales.attention_output);
  take(Group::mlp_up, scales.mlp_up);
  take(Group::mlp_down, scales.mlp_down);
  take(Group::head, scales.head);
  GroupScale bias{0, 0};
  take(Group::head_bias, bias);
  scales.head_bias_rate = bias.rate;
  return scales;
}

}  // namespace scalewise::kernels
