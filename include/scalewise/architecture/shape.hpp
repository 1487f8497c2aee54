// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise {

/// The input of a model: tokens of a vocabulary, or patches of an image.
enum class Input { token, patch };

namespace architecture {

inline constexpr messages::Spelling<Input, 2> input_words{
    {{Input::token, "token"}, {Input::patch, "patch"}}};

}  // namespace architecture

/// Which part of the model a tensor belongs to; `main` is the only stack of a model with one.
enum class Stack { none, main, encoder, decoder };

namespace architecture {

inline constexpr messages::Spelling<Stack, 4> stack_words{{{Stack::none, "none"},
                                                           {Stack::main, "main"},
                                                           {Stack::encoder, "encoder"},
                                                           {Stack::decoder, "decoder"}}};

}  // namespace architecture

/// Which tensors the blocks have.
enum class Blocks {
  residual,         // the usual transformer, pre-norm or post-norm
  normalized,       // nGPT: no norms, learned rescalers
  shallow_encoder,  // one attention layer, ReLU, mean over tokens, linear head
  listed,  // none that a shape knows: all tensors of the model are extras, see from_descriptions()
};

namespace architecture {

inline constexpr messages::Spelling<Blocks, 4> blocks_words{
    {{Blocks::residual, "residual"},
     {Blocks::normalized, "normalized"},
     {Blocks::shallow_encoder, "shallow_encoder"},
     {Blocks::listed, "listed"}}};

}  // namespace architecture

/// The function that an MLP applies to its hidden features, or to its gate when it has one.
enum class Activation { relu, gelu, silu };

namespace architecture {

inline constexpr messages::Spelling<Activation, 3> activation_words{
    {{Activation::relu, "relu"}, {Activation::gelu, "gelu"}, {Activation::silu, "silu"}}};

}  // namespace architecture

/// Learned gain on every residual branch.
enum class ResidualGain { none, channel, scalar };

namespace architecture {

inline constexpr messages::Spelling<ResidualGain, 3> residual_gain_words{
    {{ResidualGain::none, "none"},
     {ResidualGain::channel, "channel"},
     {ResidualGain::scalar, "scalar"}}};

}  // namespace architecture

/// Which projections of the attention have biases where the rest of the blocks has none.
enum class AttentionBiases { none, qkv, all };

namespace architecture {

inline constexpr messages::Spelling<AttentionBiases, 3> attention_biases_words{
    {{AttentionBiases::none, "none"},
     {AttentionBiases::qkv, "qkv"},
     {AttentionBiases::all, "all"}}};

}  // namespace architecture

/// Norms of queries and keys: one gain for all heads, or one over the whole projection.
enum class QkNorm { none, head, full };

namespace architecture {

inline constexpr messages::Spelling<QkNorm, 3> qk_norm_words{
    {{QkNorm::none, "none"}, {QkNorm::head, "head"}, {QkNorm::full, "full"}}};

}  // namespace architecture

/// A transformer's shape: the sizes that rules scale with and the choices that decide which tensors
/// there are. Sizes left at 0 and flags left unset take the usual value, see resolved().
struct Shape {
  Input input = Input::token;
  long d_model = 0;
  long depth = 0;          // layers, each one attention and one MLP block; the decoder's if both
  long encoder_depth = 0;  // > 0: encoder-decoder with cross attention
  long heads = 0;
  long kv_heads = 0;  // heads
  long head_dim = 0;  // d_model / heads
  long d_ff = 0;      // 4 d_model
  long context = 0;
  long vocab = 0;
  long patch_dim = 0;
  long classes = 0;
  long segments = 0;          // segment embedding rows, as in BERT
  long relative_buckets = 0;  // relative position table per head, as in T5
  long iterations = 0;
  long experts = 0;            // > 0: in place of an MLP, with a router
  long experts_per_token = 0;  // of a listed model 0: not known
  long expert_ff = 0;          // the hidden features of one; d_ff

  std::optional<bool> tied_head = {};  // unset: as in the rule's own paper
  std::optional<bool> head_bias = {};  // with patch input
  bool gated_mlp = false;
  bool biases = true;
  bool norm_gain = true;
  bool norm_bias = true;
  bool learned_positions = true;
  bool class_token = false;
  bool embedding_norm = false;
  bool final_norm = true;
  bool branch_norm = false;  // of the output of each branch as well, as in Gemma 2

  Blocks blocks = Blocks::residual;
  ResidualGain residual_gain = ResidualGain::none;
  std::optional<Activation> activation = {};                 // unset: as in the rule's own paper
  AttentionBiases attention_biases = AttentionBiases::none;  // where `biases` is false
  QkNorm qk_norm = QkNorm::none;

  friend bool operator==(const Shape&, const Shape&) = default;
};

/// How many logits a model has for each prediction.
constexpr long outputs(const Shape& shape) {
  return shape.input == Input::token ? shape.vocab : shape.classes;
}

namespace architecture {

/// Calls visit(name, field) for every size of a shape, in a fixed order.
template <class AnyShape, class Visitor>
constexpr void for_each_size(AnyShape& shape, Visitor&& visit) {
  visit("d_model", shape.d_model);
  visit("depth", shape.depth);
  visit("encoder_depth", shape.encoder_depth);
  visit("heads", shape.heads);
  visit("kv_heads", shape.kv_heads);
  visit("head_dim", shape.head_dim);
  visit("d_ff", shape.d_ff);
  visit("context", shape.context);
  visit("vocab", shape.vocab);
  visit("patch_dim", shape.patch_dim);
  visit("classes", shape.classes);
  visit("segments", shape.segments);
  visit("relative_buckets", shape.relative_buckets);
  visit("iterations", shape.iterations);
  visit("experts", shape.experts);
  visit("experts_per_token", shape.experts_per_token);
  visit("expert_ff", shape.expert_ff);
}

/// Calls visit(name, field) for every yes-or-no choice of a shape; two may be unset.
template <class AnyShape, class Visitor>
constexpr void for_each_flag(AnyShape& shape, Visitor&& visit) {
  visit("tied_head", shape.tied_head);
  visit("head_bias", shape.head_bias);
  visit("gated_mlp", shape.gated_mlp);
  visit("biases", shape.biases);
  visit("norm_gain", shape.norm_gain);
  visit("norm_bias", shape.norm_bias);
  visit("learned_positions", shape.learned_positions);
  visit("class_token", shape.class_token);
  visit("embedding_norm", shape.embedding_norm);
  visit("final_norm", shape.final_norm);
  visit("branch_norm", shape.branch_norm);
}

/// The words of each kind of choice.
constexpr const auto& words_of(Input) { return input_words; }
constexpr const auto& words_of(Blocks) { return blocks_words; }
constexpr const auto& words_of(ResidualGain) { return residual_gain_words; }
constexpr const auto& words_of(Activation) { return activation_words; }
constexpr const auto& words_of(AttentionBiases) { return attention_biases_words; }
constexpr const auto& words_of(QkNorm) { return qk_norm_words; }

/// Calls visit(name, field) for every field of a shape, in the order of its JSON.
template <class AnyShape, class Visitor>
constexpr void for_each_field(AnyShape& shape, Visitor&& visit) {
  visit("input", shape.input);
  for_each_size(shape, visit);
  for_each_flag(shape, visit);
  visit("blocks", shape.blocks);
  visit("residual_gain", shape.residual_gain);
  visit("activation", shape.activation);
  visit("attention_biases", shape.attention_biases);
  visit("qk_norm", shape.qk_norm);
}

/// True for sizes of what a model need not have: 0 says that it has none.
constexpr bool may_be_zero(std::string_view size) {
  return size == "encoder_depth" || size == "segments" || size == "relative_buckets" ||
         size == "iterations" || size.starts_with("expert");
}

/// The most layers that a model may have, encoder and decoder together: five times as many as the
/// deepest published one. A plan of that size takes less than 1 GB as JSON.
inline constexpr long most_layers = 5000;

/// The largest size, so that a matrix has fewer than 2^63 entries.
inline constexpr long largest_size = 1L << 30;

}  // namespace architecture

namespace detail {

constexpr void require_positive(const char* field, long value) {
  if (value <= 0) throw InvalidInput(field, std::to_string(value), "a positive integer");
}

/// Throws:   InvalidInput for a negative size, or one that is too large.
constexpr void check_limits(const Shape& shape) {
  architecture::for_each_size(shape, [&](const char* field, const long& value) {
    if (value < 0) throw InvalidInput(field, std::to_string(value), "a positive integer");
    if (value > architecture::largest_size && &value != &shape.iterations) {
      throw InvalidInput(field, std::to_string(value), "at most 2^30");
    }
  });
  const std::int64_t layers = std::int64_t{shape.depth} + shape.encoder_depth;
  if (layers > architecture::most_layers) {
    throw InvalidInput(shape.encoder_depth > 0 ? "depth + encoder_depth" : "depth",
                       std::to_string(layers),
                       "at most " + std::to_string(architecture::most_layers) + " layers");
  }
}

/// Fills in kv_heads and head_dim.
constexpr void resolve_heads(Shape& shape) {
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  if (shape.heads % shape.kv_heads != 0) {
    throw InvalidInput("kv_heads", std::to_string(shape.kv_heads),
                       "a divisor of heads = " + std::to_string(shape.heads));
  }
  if (shape.head_dim == 0) {
    if (shape.d_model % shape.heads != 0) {
      throw InvalidInput("heads", std::to_string(shape.heads),
                         "a divisor of d_model = " + std::to_string(shape.d_model),
                         "or give head_dim");
    }
    shape.head_dim = shape.d_model / shape.heads;
  }
  if (shape.head_dim > architecture::largest_size / shape.heads) {
    throw InvalidInput("head_dim", std::to_string(shape.head_dim), "heads * head_dim at most 2^30");
  }
}

/// Fills in expert_ff.
constexpr void resolve_experts(Shape& shape) {
  if (shape.experts > 0 && shape.blocks != Blocks::residual) {
    throw InvalidInput("experts", std::to_string(shape.experts), "0",
                       "only residual blocks have experts");
  }
  const long active = shape.experts_per_token;
  if (active > shape.experts || (active == 0 && shape.experts > 0)) {
    throw InvalidInput("experts_per_token", std::to_string(active),
                       shape.experts > 0 ? "from 1 to experts = " + std::to_string(shape.experts)
                                         : "0 without experts");
  }
  if (shape.experts > 0 && shape.expert_ff == 0) shape.expert_ff = shape.d_ff;
  for (const long size : {shape.d_model, shape.expert_ff}) {
    if (shape.experts == 0 || size <= architecture::largest_size / shape.experts) continue;
    throw InvalidInput("experts", std::to_string(shape.experts),
                       "experts times d_model, and times expert_ff, at most 2^30");
  }
}

}  // namespace detail

namespace architecture {

/// True for models whose output projection of the attention has a bias.
constexpr bool has_attention_output_bias(const Shape& shape) {
  return shape.biases || shape.attention_biases == AttentionBiases::all;
}

/// False for a list of tensors that does not say how wide its heads are, if it has any.
constexpr bool has_heads(const Shape& shape) {
  return shape.blocks != Blocks::listed || shape.head_dim > 0;
}

}  // namespace architecture

/// Fills in what was left open: kv_heads = heads, head_dim = d_model / heads, d_ff = 4 d_model,
/// a bias on the head of a patch model. A listed model has only the sizes that it is given.
/// Throws:   InvalidInput when a size is missing, not positive, too large, or does not divide.
constexpr Shape resolved(Shape shape) {
  using detail::require_positive;
  detail::check_limits(shape);
  require_positive("d_model", shape.d_model);
  require_positive("depth", shape.depth);
  if (shape.blocks == Blocks::listed) {
    if (!shape.tied_head) shape.tied_head = false;
    if (!shape.head_bias) shape.head_bias = false;
    return shape;
  }
  require_positive("heads", shape.heads);
  detail::resolve_heads(shape);
  if (shape.d_ff == 0) shape.d_ff = 4 * shape.d_model;
  detail::resolve_experts(shape);
  if (shape.input == Input::token) {
    require_positive("vocab", shape.vocab);
  } else {
    require_positive("patch_dim", shape.patch_dim);
    require_positive("classes", shape.classes);
  }
  if (shape.learned_positions && shape.blocks != Blocks::shallow_encoder) {
    require_positive("context", shape.context);
  }
  if (!shape.head_bias) shape.head_bias = shape.input == Input::patch;
  if (shape.biases) shape.attention_biases = AttentionBiases::none;  // said by `biases`
  if (shape.input == Input::patch) {
    if (shape.tied_head.value_or(false)) {
      throw InvalidInput("tied_head", "true", "false with patch input",
                         "only a token embedding can be tied to the head");
    }
    shape.tied_head = false;
  }
  return shape;
}

}  // namespace scalewise
