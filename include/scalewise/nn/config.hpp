// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "scalewise/architecture/norm_placement.hpp"
#include "scalewise/architecture/shape_fields.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/nn/activation.hpp"
#include "scalewise/nn/norm.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::nn {

/// The weights of experts' outputs: the softmax over all experts, that over the active ones, or the mean of the active
/// ones' sigmoids.
enum class Gates { softmax, renormalized, sigmoid };

inline constexpr messages::Spelling<Gates, 3> gates_words{{{Gates::softmax, "softmax"},
                                                           {Gates::renormalized, "renormalized"},
                                                           {Gates::sigmoid, "sigmoid"}}};

/// The choices of an architecture that decide no tensor and so are in no shape.
struct Config {
  NormPlacement placement = NormPlacement::pre;  // of Blocks::residual
  Norm norm = Norm::layer;
  Activation activation = Activation::gelu;  // of the gate when the MLP is gated
  bool causal = true;                        // of the main stack; a decoder's always is
  bool rotary = false;
  bool parallel = false;  // both branches read the stream that enters the layer, as in GPT-NeoX
  double score_cap = 0;   // c of c tanh(x/c), for attention scores x, as in Gemma 2; 0: none
  double logit_cap = 0;   // the same of the logits
  Gates gates = Gates::softmax;  // of experts
  double norm_epsilon = 1e-5;
  double dropout = 0;  // of embeddings, attention probabilities and outputs of blocks
  std::uint64_t dropout_seed = 0;
};

/// The configuration of a rule's text: the field text of Rule and of its struct. What the text leaves open is as in
/// Config{}.
inline Config config_of(const policy::TextModel& text) {
  Config config;
  config.activation = text.activation.value_or(config.activation);
  config.rotary = text.rotary.value_or(config.rotary);
  config.placement = text.placement.value_or(config.placement);
  return config;
}

/// The fields in which a configuration differs from a rule's text, as "activation = gelu (silu there)", with commas.
inline std::string differences(const Config& config, const policy::TextModel& text) {
  std::string all;
  const auto compare = [&](const char* name, const auto& words, auto here, const auto& there) {
    if (!there || *there == here) return;
    all += (all.empty() ? "" : ", ") + std::string(name) + " = " + std::string(word(words, here)) +
           " (" + std::string(word(words, *there)) + " there)";
  };
  constexpr messages::Spelling<bool, 2> positions{{{false, "learned"}, {true, "rotary"}}};
  compare("activation", architecture::activation_words, config.activation, text.activation);
  compare("positions", positions, config.rotary, text.rotary);
  compare("placement", architecture::norm_placement_words, config.placement, text.placement);
  return all;
}

/// Throws:   InvalidInput for a combination that the reference transformer does not have.
inline void check(const Config& config, const Shape& shape) {
  if (!(config.norm_epsilon >= 0 && config.norm_epsilon < 1)) {
    throw InvalidInput("norm_epsilon", numeric::number_text(config.norm_epsilon),
                       "a number from 0 to 1");
  }
  if (!(config.dropout >= 0 && config.dropout < 1)) {
    throw InvalidInput("dropout", numeric::number_text(config.dropout), "a probability below 1");
  }
  for (const auto& [name, cap] :
       {std::pair{"score_cap", config.score_cap}, std::pair{"logit_cap", config.logit_cap}}) {
    if (!(cap >= 0 && cap < 1e30)) {
      throw InvalidInput(name, numeric::number_text(cap), "a positive number, or 0 for none");
    }
  }
  if (config.parallel && (config.placement != NormPlacement::pre || shape.encoder_depth > 0 ||
                          shape.blocks != Blocks::residual)) {
    throw InvalidInput("parallel", "true",
                       "false with norms after the branches, with two stacks "
                       "and in the normalized transformer");
  }
  const bool one_weight = config.gates == Gates::softmax        ? shape.experts == 1
                          : config.gates == Gates::renormalized ? shape.experts_per_token == 1
                                                                : false;
  if (one_weight) {
    throw InvalidInput("gates", std::string(word(gates_words, config.gates)),
                       "sigmoid, or more experts",
                       "the weight of a single expert is 1, so that its router has no gradient");
  }
  if (config.placement == NormPlacement::none) {
    throw InvalidInput("placement", "none", "pre or post",
                       "blocks without norms are those of a plan with Blocks::normalized");
  }
  if (shape.activation && *shape.activation != config.activation) {
    throw InvalidInput("activation",
                       std::string(word(architecture::activation_words, config.activation)),
                       std::string(word(architecture::activation_words, *shape.activation)),
                       "the plan was made for it");
  }
  if (shape.input == Input::patch && shape.encoder_depth > 0) {
    throw InvalidInput("encoder_depth", std::to_string(shape.encoder_depth), "0 with patch input");
  }
  if (shape.class_token && config.causal)
    throw InvalidInput("causal", "true", "false where a class token comes first");
  if (config.rotary && shape.head_dim % 2 != 0) {
    throw InvalidInput("head_dim", std::to_string(shape.head_dim), "an even number",
                       "rotary positions turn pairs of features");
  }
  architecture::require_plain(shape,
                              {"attention_biases", "class_token", "qk_norm", "branch_norm",
                               "experts", "experts_per_token", "expert_ff"},
                              "the reference transformer has no other");
  if (shape.blocks == Blocks::shallow_encoder || shape.blocks == Blocks::listed) {
    throw InvalidInput("blocks", std::string(word(architecture::blocks_words, shape.blocks)),
                       "residual or normalized");
  }
  if (shape.blocks == Blocks::normalized && shape.kv_heads != shape.heads) {
    throw InvalidInput("kv_heads", std::to_string(shape.kv_heads), "heads",
                       "the normalized transformer scales queries and keys by one vector");
  }
}

}  // namespace scalewise::nn
