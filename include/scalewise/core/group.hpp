// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace scalewise {

/// What a tensor is, as far as any rule can tell tensors apart.
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

inline constexpr std::array<std::string_view, 30> group_names{"token_embedding",
                                                              "patch_embedding",
                                                              "position_embedding",
                                                              "segment_embedding",
                                                              "class_token",
                                                              "embedding_norm_gain",
                                                              "embedding_norm_bias",
                                                              "patch_bias",
                                                              "query",
                                                              "key",
                                                              "value",
                                                              "attention_output",
                                                              "mlp_up",
                                                              "mlp_gate",
                                                              "mlp_down",
                                                              "norm_gain",
                                                              "norm_bias",
                                                              "hidden_bias",
                                                              "relative_position",
                                                              "residual_gain",
                                                              "final_norm_gain",
                                                              "final_norm_bias",
                                                              "head",
                                                              "head_bias",
                                                              "attention_step",
                                                              "mlp_step",
                                                              "qk_scale",
                                                              "up_scale",
                                                              "gate_scale",
                                                              "logit_scale"};

inline constexpr std::size_t group_count = group_names.size();

/// The id of a group, as plans and golden files spell it.
constexpr std::string_view to_string(Group group) {
  return group_names[static_cast<std::size_t>(group)];
}

/// How a tensor meets the width: what most tables have as their rows or columns.
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

constexpr Role role_of(Group group) {
  switch (group) {
    case Group::token_embedding:
    case Group::patch_embedding:
    case Group::position_embedding:
    case Group::segment_embedding:
    case Group::class_token:
      return Role::input;
    case Group::embedding_norm_gain:
    case Group::embedding_norm_bias:
    case Group::patch_bias:
      return Role::input_vector;
    case Group::query:
    case Group::key:
    case Group::value:
    case Group::attention_output:
    case Group::mlp_up:
    case Group::mlp_gate:
    case Group::mlp_down:
      return Role::hidden;
    case Group::norm_gain:
    case Group::norm_bias:
    case Group::hidden_bias:
    case Group::relative_position:
    case Group::residual_gain:
      return Role::block_vector;
    case Group::final_norm_gain:
    case Group::final_norm_bias:
      return Role::final_vector;
    case Group::head:
      return Role::output;
    case Group::head_bias:
      return Role::output_bias;
    case Group::attention_step:
    case Group::mlp_step:
    case Group::qk_scale:
    case Group::up_scale:
    case Group::gate_scale:
    case Group::logit_scale:
      return Role::rescaler;
  }
  return Role::hidden;  // unreachable: the switch is exhaustive
}

/// True for norm gains, which start at 1.
constexpr bool is_norm_gain(Group group) {
  return group == Group::norm_gain || group == Group::embedding_norm_gain ||
         group == Group::final_norm_gain;
}

}  // namespace scalewise
