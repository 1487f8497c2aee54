// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/layer_scale.hpp"

#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

namespace {

// arXiv:2103.17239, retyped: per-channel gain 0.1 (<= 18 layers), 1e-5 (<= 24), 1e-6 (deeper).
constexpr bool layer_scale(long depth, double gain) {
  const policy::Context context{.shape = {.depth = depth}};
  return starts_at(LayerScale{}.row(Group::residual_gain, context), gain, 0) &&
         LayerScale{}.row(Group::query, context).init_variance == Variance(0.02 * 0.02) &&
         LayerScale{}.row(Group::mlp_down, context).init_variance == Variance(0.02 * 0.02);
}
static_assert(layer_scale(1, 0.1) && layer_scale(12, 0.1) && layer_scale(18, 0.1));
static_assert(layer_scale(19, 1e-5) && layer_scale(24, 1e-5));
static_assert(layer_scale(25, 1e-6) && layer_scale(36, 1e-6) && layer_scale(96, 1e-6));

// The rest as in facebookresearch/deit, cait_models.py: trunc_normal_(std=.02) cuts at ±2, no cut;
// the convolution stays U(±1/√fi); pos_embed, cls_token and what has one dimension do not decay.
constexpr bool released(Group g, Distribution distribution, const Scaling& variance, int decay) {
  const Row rule = LayerScale{}.row(g, policy::Context{});
  return rule.distribution == distribution && rule.init_variance == Variance(variance) &&
         rule.init_mean == Mean(architecture::is_norm_gain(g) ? 1 : 0) &&
         rule.weight_decay == Decay(decay) && rule.multiplier == Multiplier(1) &&
         rule.rate(adamw) == Rate(1);
}
constexpr bool weight(Group g) { return released(g, Distribution::normal, 0.02 * 0.02, 1); }
constexpr bool constant(Group g) { return released(g, Distribution::constant, 0, 0); }
static_assert(weight(Group::query) && weight(Group::key) && weight(Group::value) &&
              weight(Group::attention_output) && weight(Group::mlp_up) && weight(Group::mlp_down) &&
              weight(Group::head));
static_assert(released(Group::patch_embedding, Distribution::uniform, 1 / (3 * fi), 1));
static_assert(released(Group::patch_bias, Distribution::uniform, 1 / (3 * fi), 0));
static_assert(released(Group::position_embedding, Distribution::normal, 0.02 * 0.02, 0));
static_assert(released(Group::class_token, Distribution::normal, 0.02 * 0.02, 0));
static_assert(constant(Group::norm_gain) && constant(Group::norm_bias) &&
              constant(Group::hidden_bias) && constant(Group::final_norm_gain) &&
              constant(Group::final_norm_bias) && constant(Group::head_bias));
static_assert(LayerScale{}.adapt(Shape{}).residual_gain == ResidualGain::channel);
static_assert(LayerScale{}.model().residual_skip == Multiplier(1));
static_assert(LayerScale{}.model().residual_branch == Multiplier(1));

}  // namespace
