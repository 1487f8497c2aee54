// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Every rule plans exactly the tensors that a model has.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "support/catch.hpp"
#include "support/models.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::test;

struct Counted {
  long tensors = 0;
  long parameters = 0;
};

/// How many tensors and parameters of each group a model has, counted by hand.
std::map<Group, Counted> inventory(const Shape& s) {
  std::map<Group, Counted> all;
  const auto add = [&](Group group, long tensors, long parameters) {
    if (tensors > 0) all[group] = {tensors, tensors * parameters};
  };
  const long d = s.d_model;
  const long outputs = s.input == Input::token ? s.vocab : s.classes;
  if (s.blocks == Blocks::shallow_encoder) {
    for (const Group g : {Group::query, Group::key, Group::value}) add(g, 1, s.patch_dim * d);
    add(Group::head, 1, d);
    return all;
  }
  const bool both = s.encoder_depth > 0;
  const long stacks = both ? 2 : 1;
  const long layers = s.depth + s.encoder_depth;
  const long attentions = layers + (both ? s.depth : 0);  // the decoder's cross attention
  const long q = s.heads * s.head_dim;
  const long kv = s.kv_heads * s.head_dim;
  const bool norms = s.blocks == Blocks::residual;

  if (s.input == Input::token) {
    add(Group::token_embedding, 1, s.vocab * d);
  } else {
    add(Group::patch_embedding, 1, s.patch_dim * d);
    add(Group::patch_bias, s.biases ? 1 : 0, d);
    add(Group::class_token, s.class_token ? 1 : 0, d);
  }
  add(Group::position_embedding, s.learned_positions ? stacks : 0, s.context * d);
  add(Group::segment_embedding, s.segments > 0 ? 1 : 0, s.segments * d);
  add(Group::embedding_norm_gain, norms && s.embedding_norm && s.norm_gain ? stacks : 0, d);
  add(Group::embedding_norm_bias, norms && s.embedding_norm && s.norm_bias ? stacks : 0, d);

  add(Group::query, attentions, d * q);
  add(Group::key, attentions, d * kv);
  add(Group::value, attentions, d * kv);
  add(Group::attention_output, attentions, q * d);
  add(Group::mlp_up, layers, d * s.d_ff);
  add(Group::mlp_gate, s.gated_mlp ? layers : 0, d * s.d_ff);
  add(Group::mlp_down, layers, s.d_ff * d);
  // One before each branch, or two around it; of queries and keys, one for all heads or one for each.
  const bool qk = norms && s.qk_norm != QkNorm::none;
  const bool shared = s.qk_norm == QkNorm::head;
  const long around = (attentions + layers) * (s.branch_norm ? 2 : 1);
  const Counted norm{around + (qk ? 2 * attentions : 0),
                     around * d + (qk ? attentions * (shared ? 2 * s.head_dim : q + kv) : 0)};
  if (norms && s.norm_gain) all[Group::norm_gain] = norm;
  if (norms && s.norm_bias) all[Group::norm_bias] = norm;
  if (!s.biases && s.attention_biases != AttentionBiases::none) {
    const bool output = s.attention_biases == AttentionBiases::all;
    all[Group::hidden_bias] = {attentions * (output ? 4 : 3),
                               attentions * (q + 2 * kv + (output ? d : 0))};
  }
  if (s.biases) {
    const long gates = s.gated_mlp ? 1 : 0;
    all[Group::hidden_bias] = {attentions * 4 + layers * (2 + gates),
                               attentions * (q + 2 * kv + d) + layers * (s.d_ff * (1 + gates) + d)};
  }
  add(Group::relative_position, s.relative_buckets > 0 ? stacks : 0, s.relative_buckets * s.heads);
  add(Group::residual_gain, s.residual_gain == ResidualGain::none ? 0 : attentions + layers,
      s.residual_gain == ResidualGain::channel ? d : 1);

  add(Group::final_norm_gain, norms && s.final_norm && s.norm_gain ? stacks : 0, d);
  add(Group::final_norm_bias, norms && s.final_norm && s.norm_bias ? stacks : 0, d);
  add(Group::head, *s.tied_head ? 0 : 1, d * outputs);
  add(Group::head_bias, *s.head_bias ? 1 : 0, outputs);
  if (s.blocks == Blocks::normalized) {
    add(Group::attention_step, attentions, d);
    add(Group::mlp_step, layers, d);
    add(Group::qk_scale, attentions, q);
    add(Group::up_scale, layers, s.d_ff);
    add(Group::gate_scale, layers, s.d_ff);
    add(Group::logit_scale, 1, outputs);
  }
  return all;
}

}  // namespace

TEST_CASE("every tensor of every model has exactly one entry") {
  for_each_form([]<class P>(const P& policy) {
    int plans = 0;
    for (const Variant& variant : variants()) {
      const std::optional<Plan> plan = planned(variant.shape, policy);
      if (!plan) continue;
      ++plans;
      INFO(P::id << ", " << variant.name);
      std::set<std::string> names;
      std::map<Group, Counted> found;
      for (const Entry& entry : plan->entries) {
        names.insert(entry.name);
        found[entry.group].tensors += 1;
        found[entry.group].parameters += entry.rows * entry.columns;
      }
      CHECK(names.size() == plan->entries.size());  // names are unique
      const std::map<Group, Counted> expected = inventory(plan->shape);
      for (const auto& [group, count] : expected) {
        INFO(to_string(group));
        CHECK(found[group].tensors == count.tensors);
        CHECK(found[group].parameters == count.parameters);
      }
      CHECK(found.size() == expected.size());  // no group that the model lacks
      long total = 0;
      for (const auto& [group, count] : expected) total += count.parameters;
      CHECK(plan->parameter_count() == total);
    }
    INFO(P::id);
    CHECK(plans >= 3);
  });
}
