// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include "scalewise/policy/policy.hpp"

namespace scalewise {

namespace policy {

/// One column of the normalized-transformer tables: what differs between nGPT and its extensions.
/// Equation: h <- Norm(h + (init/scale) |a| * (Norm(f(h)) - h)), a the stored vector, a = scale at
///           first; logits (init/scale) s_z * (W h)
/// Source:   Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2), section 2, Tables 1 and 2.
struct NormalizedColumn {
  Rate base_rate = 1;           // on top of every other rate
  Rate input_rate = 1;          // token embedding
  Rate hidden_rate = 1;         // matrices of the blocks
  Rate output_rate = 1;         // head
  Multiplier step_init = 0.05;  // alpha_A and alpha_M at initialization
  Mean scale = 0.03;            // stored initial value of alpha_A, alpha_M, s_qk and s_z
  Multiplier logit_init = 1;    // s_z at initialization
};

/// The rows that all columns share.
/// Source:   as NormalizedColumn; the source of a row names its line of the tables.
/// Units:    a rescaler's stored value starts at init_mean; times the multiplier it acts as init.
/// Differs:  the variance of matrices is arbitrary in the source, since they are normalized before
///           the first step; 1/n is nGPT's. Every rescaler has the global rate. The √n on the gate
///           branch belongs to the model's equation and is not a multiplier of the plan; so do the skip and branch of h <- Norm(h + …).
constexpr Row normalized_row(Group group, const NormalizedColumn& column) {
  using namespace symbols;
  const auto matrix = [&](const Rate& rate, std::string_view source) {
    return Row{.init_variance = 1 / n,
               .rates = {{adamw, column.base_rate.scaling * rate.scaling}},
               .weight_decay = 0,
               .source = source};
  };
  const auto rescaler = [&](const Multiplier& init, const Mean& scale, std::string_view source) {
    return Row{.init_mean = scale,
               .multiplier = init.scaling / scale.scaling,
               .rates = {{adamw, column.base_rate}},
               .weight_decay = 0,
               .distribution = Distribution::constant,
               .source = source};
  };
  switch (group) {
    case Group::token_embedding:
      return matrix(column.input_rate, "eta_input");
    case Group::query:
    case Group::key:
    case Group::value:
    case Group::attention_output:
    case Group::mlp_up:
    case Group::mlp_gate:
    case Group::mlp_down:
      return matrix(column.hidden_rate, "eta_hidden");
    case Group::head:
      return matrix(column.output_rate, "eta_output");
    case Group::attention_step:
      return rescaler(column.step_init, column.scale, "alpha_A,init, alpha_A,scale");
    case Group::mlp_step:
      return rescaler(column.step_init, column.scale, "alpha_M,init, alpha_M,scale");
    case Group::qk_scale:
      return rescaler(1, column.scale, "s_qk,init, s_qk,scale");
    case Group::up_scale:
      return rescaler(1, 1, "s_u,init, s_u,scale");
    case Group::gate_scale:
      return rescaler(1, 1, "s_v,init, s_v,scale");
    case Group::logit_scale:
      return rescaler(column.logit_init, column.scale, "s_z,init, s_z,scale");
    default:
      return not_stated();
  }
}

/// Queries and keys have unit norm, hence the scale √C.
/// Source:   as NormalizedColumn, eqs. (2), (4) and section 2.
constexpr ModelRow normalized_model() {
  return {.attention_scale = sqrt(symbols::C), .source = "eqs. (2), (4) and section 2"};
}

/// The model of the source, besides normalized_shape(): SiLU of the gate, rotary positions.
inline constexpr TextModel normalized_text{.activation = Activation::silu, .rotary = true};

/// Refuses a parameter outside of what a column can take.
/// Throws:   InvalidInput.
constexpr void require_between(const char* name, double value, double least, double most) {
  if (value >= least && value <= most) return;
  throw InvalidInput(
      name, numeric::number_text(value),
      "a number from " + numeric::number_text(least) + " to " + numeric::number_text(most));
}

/// Refuses constants of the rates at the ends that are not positive.
/// Throws:   InvalidInput.
constexpr void require_end_rates(double input_rate, double output_rate) {
  for (const auto& [name, rate] :
       {std::pair("input_rate", input_rate), std::pair("output_rate", output_rate)}) {
    if (!(rate > 0)) throw InvalidInput(name, numeric::number_text(rate), "a positive number");
  }
}

/// Token input, gated MLP, no learned positions, untied head, no norms, no biases.
/// Throws:   InvalidInput for patch input, and for a model with an encoder.
constexpr Shape normalized_shape(Shape shape) {
  if (shape.input != Input::token || shape.encoder_depth > 0) {
    throw InvalidInput(shape.input != Input::token ? "input" : "encoder_depth",
                       shape.input != Input::token ? "patch" : std::to_string(shape.encoder_depth),
                       "a decoder with token input", "the normalized transformer is a decoder");
  }
  shape.blocks = Blocks::normalized;
  shape.gated_mlp = true;
  shape.tied_head = false;
  shape.head_bias = false;
  shape.biases = false;
  shape.learned_positions = false;
  shape.embedding_norm = false;
  shape.segments = 0;
  shape.relative_buckets = 0;
  shape.residual_gain = ResidualGain::none;
  shape.attention_biases = AttentionBiases::none;
  shape.qk_norm = QkNorm::none;
  shape.branch_norm = false;
  return shape;
}

}  // namespace policy

namespace detail {

constexpr Source normalized_source(std::string_view column) {
  return {"Learning Rate Transfer in Normalized Transformers", "Shigida, Hanin, Gromov", "2026",
          "arXiv:2604.27077v2", column};
}

}  // namespace detail

}  // namespace scalewise
