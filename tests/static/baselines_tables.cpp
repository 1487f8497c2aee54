// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The baselines, cell by cell, retyped from their sources. Compiling this file is the test.

#include <initializer_list>

#include "scalewise/policy/all.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::symbols;

constexpr bool each(std::initializer_list<Group> groups, auto&& check) {
  for (const Group group : groups) {
    if (!check(group)) return false;
  }
  return true;
}

/// A random tensor under a rule that scales nothing but the initialization.
constexpr bool row(const Row& rule, const Scaling& variance, Distribution distribution,
                   const Scaling& multiplier = 1) {
  return rule.init_variance == Variance(variance) && rule.distribution == distribution &&
         rule.multiplier == Multiplier(multiplier) && rule.init_mean == Mean(0) &&
         rule.sgd_rate == Rate(1) && rule.adamw_rate == Rate(1) && rule.weight_decay == Decay(1) &&
         rule.epsilon == Epsilon(1) && !rule.source.empty();
}

/// A tensor that starts at one value everywhere.
constexpr bool starts_at(const Row& rule, double value, double decay) {
  return rule.init_variance == Variance(0) && rule.init_mean == Mean(value) &&
         rule.multiplier == Multiplier(1) && rule.sgd_rate == Rate(1) &&
         rule.adamw_rate == Rate(1) && rule.weight_decay == Decay(decay) &&
         rule.epsilon == Epsilon(1) && rule.distribution == Distribution::constant;
}

constexpr bool model(const ModelRow& m, const Scaling& tied_logits) {
  return m.attention_scale == Multiplier(1 / sqrt(C)) && m.residual_skip == Multiplier(1) &&
         m.residual_branch == Multiplier(1) && m.logit_multiplier == Multiplier(1) &&
         m.tied_logit_multiplier == Multiplier(tied_logits);
}

constexpr std::initializer_list<Group> matrices{
    Group::query,  Group::key,      Group::value,   Group::attention_output,
    Group::mlp_up, Group::mlp_gate, Group::mlp_down};
constexpr std::initializer_list<Group> tables{Group::token_embedding, Group::position_embedding,
                                              Group::segment_embedding};
constexpr std::initializer_list<Group> norm_gains{Group::norm_gain, Group::embedding_norm_gain,
                                                  Group::final_norm_gain};
constexpr std::initializer_list<Group> norm_biases{Group::norm_bias, Group::embedding_norm_bias,
                                                   Group::final_norm_bias};
constexpr std::initializer_list<Group> linear_biases{Group::hidden_bias, Group::head_bias,
                                                     Group::patch_bias};

template <class P>
constexpr bool gains_start_at_one(double decay) {
  return each(norm_gains, [&](Group g) { return starts_at(P{}.row(g), 1, decay); });
}
template <class P>
constexpr bool norm_biases_start_at_zero(double decay) {
  return each(norm_biases, [&](Group g) { return starts_at(P{}.row(g), 0, decay); });
}
template <class P>
constexpr bool linear_biases_start_at_zero(double decay) {
  return each(linear_biases, [&](Group g) { return starts_at(P{}.row(g), 0, decay); });
}

// Standard: LeCun, var W = 1/fi; one active row of a one-hot input, hence 1 for embeddings; a tied
// head needs 1/sqrt(n) to be of order one.
constexpr Row standard(Group g) { return Standard{}.row(g); }
constexpr bool standard_matrix(Group g) { return row(standard(g), 1 / fi, Distribution::normal); }
static_assert(each(matrices, standard_matrix));
static_assert(standard_matrix(Group::head));
static_assert(standard_matrix(Group::patch_embedding));
static_assert(each(tables, [](Group g) { return row(standard(g), 1, Distribution::normal); }));
static_assert(gains_start_at_one<Standard>(1));
static_assert(norm_biases_start_at_zero<Standard>(1));
static_assert(linear_biases_start_at_zero<Standard>(1));
static_assert(model(Standard{}.model(), 1 / sqrt(n)));
static_assert(!Standard{}.row(Group::query).init_variance.scaling.is_relative());

// PyTorch: Linear U(±1/sqrt(fi)), its bias too, variance 1/(3 fi); Embedding N(0, 1); LayerNorm 1,
// 0.
constexpr Row pytorch(Group g) { return PyTorch{}.row(g); }
constexpr bool pytorch_linear(Group g) {
  return row(pytorch(g), 1 / (3 * fi), Distribution::uniform);
}
static_assert(each(matrices, pytorch_linear));
static_assert(pytorch_linear(Group::head));
static_assert(pytorch_linear(Group::patch_embedding));
static_assert(each(linear_biases, pytorch_linear));
static_assert(each(tables, [](Group g) { return row(pytorch(g), 1, Distribution::normal); }));
static_assert(gains_start_at_one<PyTorch>(1));
static_assert(norm_biases_start_at_zero<PyTorch>(1));
static_assert(model(PyTorch{}.model(), 1));

// GPT-2: N(0, 0.02²); residual outputs 0.02/sqrt(2L); biases 0; no decay of gains and biases.
constexpr Row gpt2(Group g) { return Gpt2{}.row(g); }
constexpr bool gpt2_plain(Group g) { return row(gpt2(g), 0.02 * 0.02, Distribution::normal); }
constexpr bool gpt2_residual(Group g) {
  return row(gpt2(g), 0.02 * 0.02 / (2 * L), Distribution::normal);
}
static_assert(each({Group::query, Group::key, Group::value, Group::mlp_up, Group::mlp_gate},
                   gpt2_plain));
static_assert(gpt2_residual(Group::attention_output));
static_assert(gpt2_residual(Group::mlp_down));
static_assert(gpt2_plain(Group::token_embedding));
static_assert(gpt2_plain(Group::position_embedding));
static_assert(gpt2_plain(Group::head));
static_assert(gains_start_at_one<Gpt2>(0));
static_assert(norm_biases_start_at_zero<Gpt2>(0));
static_assert(linear_biases_start_at_zero<Gpt2>(0));
static_assert(model(Gpt2{}.model(), 1));

// BERT: a truncated normal of 0.02 everywhere; no decay of gains and biases.
constexpr Row bert(Group g) { return Bert{}.row(g); }
constexpr bool bert_plain(Group g) {
  return row(bert(g), 0.02 * 0.02, Distribution::truncated_normal);
}
static_assert(each(matrices, bert_plain));
static_assert(each(tables, bert_plain));
static_assert(bert_plain(Group::head));
static_assert(bert_plain(Group::patch_embedding));
static_assert(gains_start_at_one<Bert>(0));
static_assert(norm_biases_start_at_zero<Bert>(0));
static_assert(linear_biases_start_at_zero<Bert>(0));
static_assert(model(Bert{}.model(), 1));

// Xavier: U(±sqrt(6/(fi+fo))), variance 2/(fi+fo); Vaswani's embeddings N(0, 1/n) times sqrt(n).
constexpr Row xavier(Group g) { return Xavier{}.row(g); }
constexpr bool xavier_matrix(Group g) {
  return row(xavier(g), 2 / fi_plus_fo, Distribution::uniform);
}
static_assert(each(matrices, xavier_matrix));
static_assert(xavier_matrix(Group::head));
static_assert(xavier_matrix(Group::patch_embedding));
static_assert(row(xavier(Group::token_embedding), 1 / n, Distribution::normal, sqrt(n)));
static_assert(row(xavier(Group::position_embedding), 1 / n, Distribution::normal));
static_assert(row(xavier(Group::segment_embedding), 1 / n, Distribution::normal));
static_assert(gains_start_at_one<Xavier>(1));
static_assert(norm_biases_start_at_zero<Xavier>(1));
static_assert(linear_biases_start_at_zero<Xavier>(1));
static_assert(model(Xavier{}.model(), 1));

// He: var W = 2/fi; embeddings as in the standard parameterization.
constexpr Row he(Group g) { return He{}.row(g); }
constexpr bool he_matrix(Group g) { return row(he(g), 2 / fi, Distribution::normal); }
static_assert(each(matrices, he_matrix));
static_assert(he_matrix(Group::head));
static_assert(he_matrix(Group::patch_embedding));
static_assert(each(tables, [](Group g) { return row(he(g), 1, Distribution::normal); }));
static_assert(gains_start_at_one<He>(1));
static_assert(norm_biases_start_at_zero<He>(1));
static_assert(linear_biases_start_at_zero<He>(1));
static_assert(He{}.model().attention_scale == Multiplier(1 / sqrt(C)));
static_assert(He{}.model().logit_multiplier == Multiplier(1));
static_assert(He{}.model().tied_logit_multiplier.scaling.exponent_of(Axis::d_model) ==
              Exponent(-1, 2));

}  // namespace
