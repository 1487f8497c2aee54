// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Rules for depth, cell by cell, retyped: DeepScaleLM (arXiv:2403.09635), DeepNorm
// (arXiv:2203.00555), DS-Init (arXiv:1908.11365), LayerScale (arXiv:2103.17239), ReZero
// (arXiv:2003.04887), SkipInit (arXiv:2002.10444). Compiling this file is the test.

#include <initializer_list>

#include "scalewise/policy/all.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::symbols;

constexpr Scaling keep{Axis::keep_probability};  // 1 - p
constexpr Scaling r{Axis::token_correlation};    // r_l
constexpr Scaling lambda2{Axis::skip_power};     // 1 - beta²
constexpr Scaling l{Axis::layer};
constexpr Scaling N_e{Axis::encoder_depth};
constexpr Scaling N_d{Axis::decoder_depth};

constexpr Row bound(Row rule, const Scaling& in, const Scaling& out) {
  const auto put = [&](Scaling& cell) {
    cell = substitute(substitute(cell, Axis::fan_in, in), Axis::fan_out, out);
  };
  put(rule.init_variance.scaling);
  put(rule.multiplier.scaling);
  return rule;
}

/// One rate for every tensor.
constexpr bool row(const Row& rule, const Scaling& variance, const Scaling& multiplier = 1) {
  return rule.init_variance == Variance(variance) && rule.multiplier == Multiplier(multiplier) &&
         rule.init_mean == Mean(0) && rule.sgd_rate == Rate(1) && rule.adamw_rate == Rate(1) &&
         rule.epsilon == Epsilon(1) && !rule.source.empty();
}
constexpr bool starts_at(const Row& rule, double value) {
  return rule.init_variance == Variance(0) && rule.init_mean == Mean(value) &&
         rule.multiplier == Multiplier(1) && rule.distribution == Distribution::constant;
}

// DeepScaleLM: all are variances.
constexpr Context embeddings(bool positions, long segments) {
  Context context;
  context.shape.learned_positions = positions;
  context.shape.segments = segments;
  return context;
}
constexpr Row dslm(const auto& p, Group g, const Context& context = embeddings(false, 0)) {
  const Row rule = row_of(p, g, context);
  return g == Group::mlp_up || g == Group::mlp_gate ? bound(rule, n, F)
         : g == Group::mlp_down                     ? bound(rule, F, n)
                                                    : bound(rule, n, n);
}
constexpr Scaling mlp_variance = sqrt(2 * keep / (F * n));
constexpr bool shared_rows(const auto& p) {
  return row(dslm(p, Group::query), 1 / n) && row(dslm(p, Group::key), 1 / n) &&
         row(dslm(p, Group::mlp_up), mlp_variance) && row(dslm(p, Group::mlp_down), mlp_variance) &&
         row(dslm(p, Group::token_embedding), keep) && starts_at(dslm(p, Group::norm_gain), 1) &&
         starts_at(dslm(p, Group::hidden_bias), 0);
}
static_assert(shared_rows(DeepScaleLM{}));
static_assert(row(dslm(DeepScaleLM{}, Group::value), sqrt(keep / r) / n));
static_assert(row(dslm(DeepScaleLM{}, Group::attention_output), sqrt(keep / r) / n));
static_assert(shared_rows(DeepScaleLMSimple{}));
static_assert(row(dslm(DeepScaleLMSimple{}, Group::value), sqrt(keep / 2) / n));
static_assert(row(dslm(DeepScaleLMSimple{}, Group::attention_output), sqrt(keep / 2) / n));

// At F = 4n the MLP variance is the paper's (1/n) sqrt((1-p)/2).
static_assert(substitute(mlp_variance, Axis::d_ff, 4 * n) == sqrt(keep / 2) / n);

// (1-p) over the number of embedding tables: as told, or as many as the shape has.
constexpr bool tables(const DeepScaleLM& p, const Context& context, const Scaling& variance) {
  return row(dslm(p, Group::token_embedding, context), variance) &&
         row(dslm(p, Group::position_embedding, context), variance) &&
         row(dslm(p, Group::segment_embedding, context), variance);
}
static_assert(tables({.embedding_tables = 3}, embeddings(true, 0), keep / 3));
static_assert(tables({.embedding_tables = 1}, embeddings(true, 2), keep));
static_assert(tables({}, embeddings(false, 0), keep));
static_assert(tables({}, embeddings(true, 0), keep / 2));
static_assert(tables({}, embeddings(false, 2), keep / 2));
static_assert(tables({}, embeddings(true, 2), keep / 3));

// lambda² = 1 - k/N^a, beta² = k/N^a; logits 1/sqrt(n); scores 1/sqrt(C).
constexpr bool model(const ModelRow& m, const Scaling& beta) {
  return m.residual_skip == Multiplier(sqrt(lambda2)) && m.residual_branch == Multiplier(beta) &&
         m.attention_scale == Multiplier(1 / sqrt(C)) &&
         m.logit_multiplier.scaling * m.tied_logit_multiplier.scaling == 1 / sqrt(n);
}
static_assert(model(DeepScaleLM{}.model(), sqrt(2 / L)));
static_assert(model(DeepScaleLMSimple{}.model(), sqrt(2 / L)));
static_assert(model(DeepScaleLM{.k = 3, .a = 1.5}.model(), sqrt(3 / pow(L, {3, 2}))));
static_assert(DeepScaleLM{}.k == 2 && DeepScaleLM{}.a == 1);

// DeepNorm: Xavier's variance times beta² on value, output, up, down; normal in its Figure 2.
constexpr Context layers(long depth, long encoder_depth = 0, Stack stack = Stack::main) {
  Context context;
  context.shape.depth = depth;
  context.shape.encoder_depth = encoder_depth;
  context.stack = stack;
  return context;
}
constexpr Context one_stack = layers(12);
constexpr Context encoder = layers(6, 18, Stack::encoder);
constexpr Context decoder = layers(6, 18, Stack::decoder);

constexpr bool deep_norm(const Context& context, const Scaling& alpha, const Scaling& beta) {
  const Scaling small = beta * beta * 2 / fi_plus_fo;
  const auto of = [&](Group g) { return DeepNorm{}.row(g, context); };
  const ModelRow m = DeepNorm{}.model(context);
  return row(of(Group::query), 2 / fi_plus_fo) && row(of(Group::key), 2 / fi_plus_fo) &&
         row(of(Group::value), small) && row(of(Group::attention_output), small) &&
         row(of(Group::mlp_up), small) && row(of(Group::mlp_down), small) &&
         starts_at(of(Group::norm_gain), 1) && starts_at(of(Group::hidden_bias), 0) &&
         m.residual_skip == Multiplier(alpha) && m.residual_branch == Multiplier(1) &&
         m.attention_scale == Multiplier(1 / sqrt(C));
}
static_assert(deep_norm(one_stack, pow(2 * L, {1, 4}), pow(8 * L, {-1, 4})));
static_assert(deep_norm(encoder, 0.81 * pow(pow(N_e, 4) * N_d, {1, 16}),
                        0.87 * pow(pow(N_e, 4) * N_d, {-1, 16})));
static_assert(deep_norm(decoder, pow(3 * N_d, {1, 4}), pow(12 * N_d, {-1, 4})));
static_assert(DeepNorm{}.row(Group::mlp_up, one_stack).distribution == Distribution::normal);
static_assert(DeepNorm{}.row(Group::query, one_stack).distribution == Distribution::normal);

// DS-Init: Xavier's bound over sqrt(l), l from 1.
constexpr bool ds_init(Group g) {
  return row(DsInit{}.row(g), 2 / (l * fi_plus_fo)) &&
         DsInit{}.row(g).distribution == Distribution::uniform;
}
static_assert(ds_init(Group::query) && ds_init(Group::key) && ds_init(Group::value));
static_assert(ds_init(Group::attention_output) && ds_init(Group::mlp_up));
static_assert(ds_init(Group::mlp_gate) && ds_init(Group::mlp_down));
static_assert(row(DsInit{}.row(Group::head), 2 / fi_plus_fo));
static_assert(row(DsInit{}.row(Group::token_embedding), 1 / n, sqrt(n)));
static_assert(DsInit{}.model().residual_skip == Multiplier(1));
static_assert(DsInit{}.model().residual_branch == Multiplier(1));
static_assert(DsInit{}.model().attention_scale == Multiplier(1 / sqrt(C)));

// LayerScale: per-channel gain 0.1 (<= 18 layers), 1e-5 (<= 24), 1e-6 (deeper).
constexpr bool layer_scale(long depth, double gain) {
  const Context context = layers(depth);
  return starts_at(LayerScale{}.row(Group::residual_gain, context), gain) &&
         LayerScale{}.row(Group::query, context).init_variance == Variance(0.02 * 0.02) &&
         LayerScale{}.row(Group::mlp_down, context).init_variance == Variance(0.02 * 0.02);
}
static_assert(layer_scale(1, 0.1) && layer_scale(12, 0.1) && layer_scale(18, 0.1));
static_assert(layer_scale(19, 1e-5) && layer_scale(24, 1e-5));
static_assert(layer_scale(25, 1e-6) && layer_scale(36, 1e-6) && layer_scale(96, 1e-6));
// The rest as in facebookresearch/deit, cait_models.py: trunc_normal_(std=.02) cuts at ±2, no cut;
// the convolution stays U(±1/√fi); pos_embed, cls_token and what has one dimension do not decay.
constexpr bool released(Group g, Distribution distribution, const Scaling& variance, int decay) {
  const Row rule = LayerScale{}.row(g, Context{});
  return rule.distribution == distribution && rule.init_variance == Variance(variance) &&
         rule.init_mean == Mean(is_norm_gain(g) ? 1 : 0) && rule.weight_decay == Decay(decay) &&
         rule.multiplier == Multiplier(1) && rule.adamw_rate == Rate(1);
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

// ReZero and SkipInit: one gain per branch, zero at first; Xavier's and He's matrices.
static_assert(starts_at(ReZero{}.row(Group::residual_gain), 0));
static_assert(row(ReZero{}.row(Group::query), 2 / fi_plus_fo));
static_assert(row(ReZero{}.row(Group::mlp_down), 2 / fi_plus_fo));
static_assert(ReZero{}.adapt(Shape{}).residual_gain == ResidualGain::scalar);
static_assert(starts_at(SkipInit{}.row(Group::residual_gain), 0));
static_assert(row(SkipInit{}.row(Group::query), 2 / fi));
static_assert(row(SkipInit{}.row(Group::mlp_down), 2 / fi));
static_assert(SkipInit{}.adapt(Shape{}).residual_gain == ResidualGain::scalar);
static_assert(ReZero{}.model().residual_branch == Multiplier(1));
static_assert(SkipInit{}.model().residual_branch == Multiplier(1));
static_assert(ReZero{}.model().residual_skip == Multiplier(1));
static_assert(SkipInit{}.model().residual_skip == Multiplier(1));

}  // namespace
