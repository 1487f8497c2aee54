// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"

namespace scalewise {

/// The kind of a tensor, as far as any rule distinguishes tensors.
enum class Group {
  token_embedding,
  patch_embedding,
  position_embedding,
  segment_embedding,
  class_token,
  embedding_norm_gain,
  embedding_norm_bias,
  patch_bias,

  query,
  key,
  value,
  attention_output,
  mlp_up,
  mlp_gate,
  mlp_down,
  hidden,       // any other matrix whose inputs and outputs grow
  router,       // of a mixture of experts: from the stream to a number for each of them
  expert_up,    // of experts side by side: from the stream
  expert_down,  // and back to it
  norm_gain,
  norm_bias,
  hidden_bias,        // of the matrices inside the blocks
  relative_position,  // one number per head and distance bucket
  residual_gain,      // on the branch: one per channel (LayerScale) or one (ReZero)

  final_norm_gain,
  final_norm_bias,
  head,
  head_bias,

  // Rescalers of the normalized transformer
  attention_step,  // alpha_A
  mlp_step,        // alpha_M
  qk_scale,
  up_scale,
  gate_scale,
  logit_scale,
};

/// Which sides of a tensor grow with the width: the rows or columns of most tables.
enum class Role {
  input,         // embeddings: a fixed number of inputs, outputs grow with the width
  input_vector,  // gains and biases next to the embeddings
  hidden,        // both sides grow
  block_vector,  // gains and biases inside the blocks
  final_vector,  // of the norm before the head
  output,        // the head: inputs grow, a fixed number of outputs
  output_bias,
  rescaler,  // of the normalized transformer
};

namespace architecture {

/// A group with its id in plans and golden files.
struct GroupInfo {
  Group group;
  std::string_view id;
  Role role;
};

inline constexpr auto group_table = std::to_array<GroupInfo>({
    {Group::token_embedding, "token_embedding", Role::input},
    {Group::patch_embedding, "patch_embedding", Role::input},
    {Group::position_embedding, "position_embedding", Role::input},
    {Group::segment_embedding, "segment_embedding", Role::input},
    {Group::class_token, "class_token", Role::input},
    {Group::embedding_norm_gain, "embedding_norm_gain", Role::input_vector},
    {Group::embedding_norm_bias, "embedding_norm_bias", Role::input_vector},
    {Group::patch_bias, "patch_bias", Role::input_vector},
    {Group::query, "query", Role::hidden},
    {Group::key, "key", Role::hidden},
    {Group::value, "value", Role::hidden},
    {Group::attention_output, "attention_output", Role::hidden},
    {Group::mlp_up, "mlp_up", Role::hidden},
    {Group::mlp_gate, "mlp_gate", Role::hidden},
    {Group::mlp_down, "mlp_down", Role::hidden},
    {Group::hidden, "hidden", Role::hidden},
    {Group::router, "router", Role::output},
    {Group::expert_up, "expert_up", Role::hidden},
    {Group::expert_down, "expert_down", Role::hidden},
    {Group::norm_gain, "norm_gain", Role::block_vector},
    {Group::norm_bias, "norm_bias", Role::block_vector},
    {Group::hidden_bias, "hidden_bias", Role::block_vector},
    {Group::relative_position, "relative_position", Role::block_vector},
    {Group::residual_gain, "residual_gain", Role::block_vector},
    {Group::final_norm_gain, "final_norm_gain", Role::final_vector},
    {Group::final_norm_bias, "final_norm_bias", Role::final_vector},
    {Group::head, "head", Role::output},
    {Group::head_bias, "head_bias", Role::output_bias},
    {Group::attention_step, "attention_step", Role::rescaler},
    {Group::mlp_step, "mlp_step", Role::rescaler},
    {Group::qk_scale, "qk_scale", Role::rescaler},
    {Group::up_scale, "up_scale", Role::rescaler},
    {Group::gate_scale, "gate_scale", Role::rescaler},
    {Group::logit_scale, "logit_scale", Role::rescaler},
});

inline constexpr std::size_t group_count = group_table.size();

constexpr const GroupInfo& info_of(Group group) {
  return group_table[static_cast<std::size_t>(group)];
}

}  // namespace architecture

/// The id of a group, such as "mlp_up".
constexpr std::string_view to_string(Group group) { return architecture::info_of(group).id; }
/// The role of a group's tensors.
constexpr Role role_of(Group group) { return architecture::info_of(group).role; }

static_assert([] {
  for (std::size_t g = 0; g < architecture::group_count; ++g) {
    if (architecture::group_table[g].group != static_cast<Group>(g)) return false;
  }
  return true;
}());  // the table has the order of the enumeration

namespace architecture {

/// The group of an id.
/// Throws:   InvalidInput naming the field and the closest id.
inline Group group_named(const std::string& field, std::string_view id) {
  messages::Nearest known(id);
  for (const GroupInfo& info : group_table) {
    if (info.id == id) return info.group;
    known.offer(info.id);
  }
  throw InvalidInput(field, messages::printable(id), "the id of a group", known.hint());
}

/// True for the matrices of a mixture of experts.
constexpr bool is_of_experts(Group group) {
  return group == Group::router || group == Group::expert_up || group == Group::expert_down;
}

/// True for groups whose tensors stand in the layers, unless somebody says otherwise of one.
constexpr bool is_in_layers(Group group) {
  const Role role = role_of(group);
  return role == Role::hidden || role == Role::block_vector || group == Group::router;
}

/// True for norm gains, which start at 1.
constexpr bool is_norm_gain(Group group) {
  return group == Group::norm_gain || group == Group::embedding_norm_gain ||
         group == Group::final_norm_gain;
}

/// True for embeddings, the class token among them, the matrices of the blocks and the head: what rules state a
/// variance for, where gains, biases and rescalers start as constants.
constexpr bool is_matrix(Group group) {
  const Role role = role_of(group);
  return role == Role::input || role == Role::hidden || role == Role::output;
}

/// True for matrices whose inputs grow with the width: those of the blocks and the head.
constexpr bool reads_width(Group group) {
  return role_of(group) == Role::hidden || role_of(group) == Role::output;
}

/// True for tensors with one axis: gains, biases, rescalers and the class token.
constexpr bool is_vector(Group group) {
  return group == Group::class_token || (!is_matrix(group) && group != Group::relative_position);
}

/// True for biases that belong to a matrix, not to a norm.
constexpr bool is_matrix_bias(Group group) {
  return group == Group::hidden_bias || group == Group::patch_bias || group == Group::head_bias;
}

/// True for gains and biases of norms.
constexpr bool is_norm(Group group) {
  return is_norm_gain(group) || group == Group::norm_bias || group == Group::embedding_norm_bias ||
         group == Group::final_norm_bias;
}

}  // namespace architecture

}  // namespace scalewise
