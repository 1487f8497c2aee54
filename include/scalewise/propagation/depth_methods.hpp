// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/policy/deep_scale_lm.hpp"
#include "scalewise/propagation/layers.hpp"
#include "scalewise/propagation/propagate.hpp"

namespace scalewise::propagation {

/// Ways to make a transformer deep, as Tables 3 and 11 of Kedia et al. compare them.
enum class DepthMethod {
  vanilla,
  ds_init,        // weights of values, outputs and MLPs over the layer's number
  ds_init_total,  // the same over the number of layers
  layer_scale,    // a gain of 0.01 on the branch
  deep_norm,
  admin,
  skip_init,  // a gain of zero, which ReZero has too
  deep_scale_lm,
  deep_scale_lm_simple,
};

inline constexpr messages::Spelling<DepthMethod, 9> depth_method_words{
    {{DepthMethod::vanilla, "vanilla"},
     {DepthMethod::ds_init, "ds-init"},
     {DepthMethod::ds_init_total, "ds-init-total"},
     {DepthMethod::layer_scale, "layer-scale"},
     {DepthMethod::deep_norm, "deep-norm"},
     {DepthMethod::admin, "admin"},
     {DepthMethod::skip_init, "skip-init"},
     {DepthMethod::deep_scale_lm, "deep-scale-lm"},
     {DepthMethod::deep_scale_lm_simple, "deep-scale-lm-simple"}}};

/// A model that all methods start from: matrices as Xavier has them, those of values head by head
/// in the limit of many heads, where C1 = 2/(1-p) is the 2.2 of the source.
/// Equation: sq = sk = so = 1/d, sv = 2/d, s1 = s2 = 2/5d, d_ff = 4d
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), E.1.
/// Differs:  queries and keys are those of one matrix for all heads, 1/d. Head by head their limit
///           is 2/d as well, whose scores of variance 4 are out of the formulas' range.
struct DepthModel {
  NormPlacement placement = NormPlacement::pre;
  double width = 1024;
  double length = 256;
  double dropout = 0.1;
  double input_correlation = 0.221;  // before the dropout of embeddings
  double k = 2;                      // of DeepScaleLM: β² = k/N
};

namespace detail {

/// Throws:   InvalidInput for what no model has.
inline void check_depth_model(const DepthModel& m) {
  const auto positive = [](const char* field, double value) {
    if (!(value > 0 && std::isfinite(value)))
      throw InvalidInput(field, numeric::number_text(value), "a positive number");
  };
  positive("width", m.width);
  positive("length", m.length);
  positive("k", m.k);
  check_dropout("dropout", m.dropout);
  if (!(m.input_correlation >= 0 && m.input_correlation <= 1)) {
    throw InvalidInput("input_correlation", numeric::number_text(m.input_correlation),
                       "a number from 0 to 1");
  }
}

/// Layers of attention and an MLP, one after another; blocks may change in between.
struct DepthStack {
  Block attention, mlp;
  Layers layers;

  explicit DepthStack(const DepthModel& m) {
    const double d = m.width;
    attention.inner = Attention{.width = d,
                                .heads = d,
                                .length = m.length,
                                .query = 1 / d,
                                .key = 1 / d,
                                .value = 2 / d,
                                .output = 1 / d,
                                .dropout = m.dropout,
                                .probability_dropout = m.dropout};
    mlp.inner =
        Mlp{.width = d, .hidden = 4 * d, .up = 0.4 / d, .down = 0.4 / d, .dropout = m.dropout};
    layers.placement = m.placement;
  }

  void add(double skip, double branch) {
    attention.skip = mlp.skip = skip;
    attention.branch = mlp.branch = branch;
    layers.blocks.push_back(attention);
    layers.blocks.push_back(mlp);
  }
};

/// Adds layer l of `depth` with the λ² and β² of a method that keeps the weights of the others.
inline void add_layer(DepthStack& stack, DepthMethod method, double l, double depth) {
  switch (method) {
    case DepthMethod::ds_init:
      return stack.add(1, 1 / (l * l));
    case DepthMethod::ds_init_total:
      return stack.add(1, 1 / (depth * depth));
    case DepthMethod::layer_scale:
      return stack.add(1, 1e-4);
    case DepthMethod::deep_norm:
      return stack.add(std::sqrt(2 * depth), 1 / (8 * depth));
    case DepthMethod::skip_init:
      return stack.add(1, 0);
    default:
      return stack.add(1, 1);
  }
}

/// Adds all layers of DeepScaleLM, with weights of its own.
inline void add_deep_scale_lm(DepthStack& stack, const DepthModel& m, long depth, bool simple) {
  DeepScaleLM rule;
  rule.dropout = m.dropout;
  rule.input_correlation = m.input_correlation;
  rule.k = m.k;
  if (!simple && !(m.input_correlation > 0)) {
    throw InvalidInput("input_correlation", "0", "above 0, as DeepScaleLM divides by it");
  }
  if (!(rule.branch_power(depth) < 1)) {
    throw InvalidInput("depth", std::to_string(depth), "more layers than k");
  }
  const auto N = static_cast<double>(depth);
  auto& a = std::get<Attention>(stack.attention.inner);
  auto& f = std::get<Mlp>(stack.mlp.inner);
  f.up = f.down = std::sqrt((1 - m.dropout) / 2) / m.width;
  std::vector<double> correlations = rule.token_correlations(depth);
  correlations.pop_back();  // the one after the last layer
  for (const double r : correlations) {
    a.value = a.output = std::sqrt((1 - m.dropout) / (simple ? 2 : r)) / m.width;
    stack.add(1 - m.k / N, m.k / N);
  }
}

/// Sets ADMIN's λ², block after block, from the variances of the blocks before.
inline void set_admin_skips(Layers& layers, const DepthModel& m) {
  const Inner inner{Reading::corrected};
  SignalMoments x = correlated(1, m.input_correlation * (1 - m.dropout));
  double before = 1;
  for (Block& block : layers.blocks) {
    block.skip = before;
    const SignalMoments f = inner.forward(block, x);
    before += f.variance;
    x = residual_sum(block, x, f);
    x = scaled(1 / x.variance, x);
  }
}

}  // namespace detail

/// The layers of a model under a method.
/// Equation: λ² and β² of layer l = 1 … N: ds_init 1, 1/l²; ds_init_total 1, 1/N²; layer_scale 1, 1e-4;
///           deep_norm √(2N), 1/(8N); skip_init 1, 0; admin 1 + Σ of the block variances before, 1;
///           deep_scale_lm 1 - k/N, k/N with weights of its own
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), Tables 3 and 11 and the methods' papers.
/// Throws:   InvalidInput for a depth of zero, or up to k of DeepScaleLM, where the method's placement is another, and
///           for what no model has.
/// Differs:  gains on both matrices of a branch are written as one β². ADMIN measures block variances
///           on a batch; here they are predicted.
inline Layers depth_layers(DepthMethod method, const DepthModel& m, long depth) {
  constexpr long most = 1'000'000;
  if (depth < 1 || depth > most) {
    throw InvalidInput("depth", std::to_string(depth),
                       "a whole number from 1 to " + std::to_string(most));
  }
  detail::check_depth_model(m);
  const bool of_post = method == DepthMethod::deep_norm || method == DepthMethod::admin;
  if (of_post && m.placement != NormPlacement::post) {
    throw InvalidInput("placement",
                       std::string(word(architecture::norm_placement_words, m.placement)), "post",
                       std::string(word(depth_method_words, method)) + " is for post-norm models");
  }
  detail::DepthStack stack(m);
  if (method == DepthMethod::deep_scale_lm || method == DepthMethod::deep_scale_lm_simple) {
    detail::add_deep_scale_lm(stack, m, depth, method == DepthMethod::deep_scale_lm_simple);
    return stack.layers;
  }
  for (long l = 1; l <= depth; ++l) {
    detail::add_layer(stack, method, static_cast<double>(l), static_cast<double>(depth));
  }
  if (method == DepthMethod::admin) detail::set_admin_skips(stack.layers, m);
  return stack.layers;
}

}  // namespace scalewise::propagation
