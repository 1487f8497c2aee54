// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>

#include "scalewise/architecture/shape_fields.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/plan/check_plan.hpp"
#include "scalewise/propagation/layers.hpp"

namespace scalewise::propagation {

/// Properties of a model and of its input that a plan leaves open.
struct Conditions {
  NormPlacement placement = NormPlacement::pre;
  Activation activation = Activation::relu;
  double length = 0;         // tokens per sequence, of the encoder too unless source_length is set
  double source_length = 0;  // 0: as many
  bool causal = false;       // of the only stack; a decoder's always is
  double dropout = 0;        // of embeddings, attention probabilities and outputs of blocks
  double norm_epsilon = 0;
};

namespace detail {

/// The effective variance of a tensor's entries where it is applied: variance times multiplier².
inline double entry_power(const Entry& entry) {
  const double m = entry.multiplier.value;
  return entry.init_variance.value * m * m;
}

[[noreturn]] inline void refuse(const std::string& field, const std::string& value,
                                const std::string& expectation) {
  throw InvalidInput(field, value, expectation, "the theory of signal propagation covers no other");
}

/// The groups that the theory knows.
inline bool is_covered(Group group) {
  switch (group) {
    case Group::token_embedding:
    case Group::patch_embedding:
    case Group::position_embedding:
    case Group::segment_embedding:
    case Group::class_token:
    case Group::patch_bias:
    case Group::embedding_norm_gain:
    case Group::embedding_norm_bias:
    case Group::query:
    case Group::key:
    case Group::value:
    case Group::attention_output:
    case Group::mlp_up:
    case Group::mlp_gate:
    case Group::mlp_down:
    case Group::norm_gain:
    case Group::norm_bias:
    case Group::hidden_bias:
    case Group::residual_gain:
    case Group::final_norm_gain:
    case Group::final_norm_bias:
    case Group::head:
    case Group::head_bias:
      return true;
    default:
      return false;
  }
}

inline void check_covered(const Plan& plan) {
  check_plan(plan);
  plan::require_no_extras(plan, "the theory does not know where it is");
  if (plan.reference != Reference::absolute) {
    refuse("rule", plan.rule, "a rule whose variances are absolute");
  }
  if (plan.shape.blocks != Blocks::residual) refuse("blocks", "not residual", "residual blocks");
  architecture::require_plain(plan.shape, {"class_token", "attention_biases"},
                              "the theory of signal propagation covers no other");
  for (const Entry& e : plan.entries) {
    if (!is_covered(e.group)) refuse(e.name, std::string(to_string(e.group)), "no such tensor");
    const bool bias = e.group == Group::patch_bias || e.group == Group::hidden_bias ||
                      e.group == Group::norm_bias || e.group == Group::embedding_norm_bias ||
                      e.group == Group::final_norm_bias || e.group == Group::head_bias;
    if (bias && entry_power(e) > 0) {
      refuse(e.name, numeric::number_text(e.init_variance.value), "biases that start at zero");
    }
    if (architecture::is_norm_gain(e.group) && e.init_mean.value * e.multiplier.value != 1) {
      refuse(e.name, numeric::number_text(e.init_mean.value), "norm gains that start at one");
    }
  }
}

/// Throws:   InvalidInput where the plan was made for another activation.
inline void check_activation(const Plan& plan, Activation activation) {
  if (plan.shape.activation.value_or(activation) == activation) return;
  throw InvalidInput("activation", std::string(word(architecture::activation_words, activation)),
                     std::string(word(architecture::activation_words, *plan.shape.activation)),
                     "the plan was made for it");
}

/// Throws:   InvalidInput for a probability or a length out of range, or a negative epsilon.
inline void check_conditions(const Conditions& c) {
  check_dropout("dropout", c.dropout);
  if (!(c.norm_epsilon >= 0 && std::isfinite(c.norm_epsilon))) {
    throw InvalidInput("norm_epsilon", numeric::number_text(c.norm_epsilon),
                       "a finite number that is not negative");
  }
  if (!(c.source_length == 0 || (c.source_length >= 1 && std::isfinite(c.source_length)))) {
    throw InvalidInput("source_length", numeric::number_text(c.source_length),
                       "at least one token, or 0 for as many as length");
  }
}

/// Throws:   InvalidInput for a length of no sequence; where tokens are followed one by one, for a fraction of a token.
inline void check_length(const Conditions& c) {
  if (!(c.length >= 1 && std::isfinite(c.length)))
    throw InvalidInput("length", numeric::number_text(c.length), "at least one token");
  if (c.causal && c.length != std::floor(c.length))
    throw InvalidInput("length", numeric::number_text(c.length), "a whole number of tokens");
}

/// The layers of a shape, whose weights are yet to be set.
inline Layers layers_of(const Plan& plan, const Conditions& c, Stack stack) {
  const Shape& s = plan.shape;
  const auto width = static_cast<double>(s.d_model);
  const double source = c.source_length > 0 ? c.source_length : c.length;
  const Attention attention{
      .width = width,
      .heads = static_cast<double>(s.heads * s.head_dim),
      .length = stack == Stack::encoder ? source : c.length,
      .score_scale = plan.model.attention_scale.value * std::sqrt(static_cast<double>(s.head_dim)),
      .dropout = c.dropout,
      .probability_dropout = c.dropout,
      .causal = stack == Stack::decoder || (stack == Stack::main && c.causal),
      .head_features = static_cast<double>(s.head_dim)};
  Layers layers;
  layers.placement = c.placement;
  layers.norm_epsilon = c.norm_epsilon;
  layers.blocks_per_layer = stack == Stack::decoder ? 3 : 2;
  const auto depth = static_cast<std::size_t>(stack == Stack::encoder ? s.encoder_depth : s.depth);
  for (std::size_t l = 0; l < depth; ++l) {
    layers.blocks.push_back({.inner = attention});
    if (stack == Stack::decoder) {
      CrossAttention cross{attention, c.length, {}};
      cross.attention.length = source;
      cross.attention.causal = false;
      layers.blocks.push_back({.inner = cross});
    }
    layers.blocks.push_back({.inner = Mlp{.width = width,
                                          .hidden = static_cast<double>(s.d_ff),
                                          .activation = c.activation,
                                          .dropout = c.dropout}});
  }
  return layers;
}

/// Gives the block that has a tensor the tensor's power. Gains and biases change no moment:
/// check_covered() has seen that they are 1 and 0.
inline void set_weight(Block& block, const Entry& e) {
  const double power = entry_power(e);
  if (e.group == Group::residual_gain) {
    const double gain = e.init_mean.value * e.multiplier.value;
    block.branch *= gain * gain + power;
  } else if (e.group == Group::mlp_up) {
    std::get<Mlp>(block.inner).up = power;
  } else if (e.group == Group::mlp_gate) {
    std::get<Mlp>(block.inner).gate = power;
  } else if (e.group == Group::mlp_down) {
    std::get<Mlp>(block.inner).down = power;
  } else {
    auto* cross = std::get_if<CrossAttention>(&block.inner);
    auto* self = std::get_if<Attention>(&block.inner);
    Attention* a = cross != nullptr ? &cross->attention : self;
    if (a == nullptr) return;
    if (e.group == Group::query) a->query = power;
    if (e.group == Group::key) a->key = power;
    if (e.group == Group::value) a->value = power;
    if (e.group == Group::attention_output) a->output = power;
  }
}

}  // namespace detail

/// The layers of one stack of a plan.
/// Equation: variances of weights times multiplier²; λ² and β² from the residual multipliers and the
///           gain on the branch; score_scale = attention_scale √head_dim
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), appendix E.
/// Throws:   InvalidInput for a plan that check_plan() refuses, and for what the theory does not
///           cover: variances relative to a base, normalized blocks, another activation than the plan's,
///           biases or norm gains that start elsewhere than at 0 and 1.
/// Cross-attention blocks still need the moments of the memory.
inline Layers plan_layers(const Plan& plan, const Conditions& c, Stack stack = Stack::main) {
  detail::check_covered(plan);
  detail::check_conditions(c);
  detail::check_activation(plan, c.activation);
  detail::check_length(c);
  Layers layers = detail::layers_of(plan, c, stack);
  const auto per_layer = static_cast<std::size_t>(layers.blocks_per_layer);
  auto entry = plan.entries.begin();  // in the order of the tensors, or check_plan() had thrown
  architecture::for_each_tensor(plan.shape, plan.shape, [&](const Tensor& tensor) {
    const Entry& e = *entry++;
    if (tensor.stack != stack || tensor.block == BlockKind::none) return;
    const std::size_t first = static_cast<std::size_t>(tensor.layer) * per_layer;
    const std::size_t at = tensor.block == BlockKind::cross_attention ? first + 1
                           : tensor.block == BlockKind::mlp           ? first + per_layer - 1
                                                                      : first;
    detail::set_weight(layers.blocks[at], e);
  });
  for (const Residual& r : plan.model.residuals) {
    if (r.stack != stack) continue;
    for (std::size_t i = 0; i < per_layer; ++i) {
      Block& block = layers.blocks[static_cast<std::size_t>(r.layer) * per_layer + i];
      block.skip *= r.skip.value * r.skip.value;
      block.branch *= r.branch.value * r.branch.value;
    }
  }
  return layers;
}

}  // namespace scalewise::propagation
