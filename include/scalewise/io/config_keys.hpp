// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace scalewise::detail {

/// The meaning of a key of a config.json that the reader of its type has not looked at.
enum class UnreadKey {
  harmless,  // changes neither tensors nor what the forward pass multiplies
  unknown,   // probably so
  telling,   // its name says that it changes the model
};

template <class Words>
bool any_of(const Words& words, auto&& holds) {
  return std::any_of(std::begin(words), std::end(words), holds);
}

/// Keys of configuration classes of transformers 4 and 5, and of programs that write such files: about
/// tokens, generation, dropout, positions, precision, training, heads for other tasks and the file itself.
inline constexpr std::string_view harmless_keys[] = {"architectures",
                                                     "attention_sink_size",
                                                     "attention_softmax_in_fp32",
                                                     "attn_implementation",
                                                     "auto_map",
                                                     "begin_suppress_tokens",
                                                     "cache_implementation",
                                                     "chunk_size_feed_forward",
                                                     "classif_dropout",
                                                     "context_length",
                                                     "context_window_size",
                                                     "dense_act_fn",
                                                     "directionality",
                                                     "diversity_penalty",
                                                     "do_sample",
                                                     "dtype",
                                                     "early_stopping",
                                                     "encoder_no_repeat_ngram_size",
                                                     "encoder_stride",
                                                     "exponential_decay_length_penalty",
                                                     "finetuning_task",
                                                     "force_bos_token_to_be_generated",
                                                     "full_attn_mod",
                                                     "gradient_checkpointing",
                                                     "id2label",
                                                     "interpolate_factor",
                                                     "is_decoder",
                                                     "is_gated_act",
                                                     "is_llama_config",
                                                     "keys_to_ignore_at_inference",
                                                     "label2id",
                                                     "layer_norm_eps",
                                                     "layer_norm_epsilon",
                                                     "length_penalty",
                                                     "mask_token",
                                                     "max_length",
                                                     "max_sequence_length",
                                                     "max_window_layers",
                                                     "min_length",
                                                     "model_max_length",
                                                     "model_type",
                                                     "model_version",
                                                     "n_ctx",
                                                     "n_special",
                                                     "no_repeat_ngram_size",
                                                     "norm_eps",
                                                     "norm_epsilon",
                                                     "num_beam_groups",
                                                     "num_beams",
                                                     "num_labels",
                                                     "num_return_sequences",
                                                     "original_max_position_embeddings",
                                                     "output_attentions",
                                                     "output_hidden_states",
                                                     "output_past",
                                                     "output_scores",
                                                     "predict_special_tokens",
                                                     "prefill_chunk_size",
                                                     "prefix",
                                                     "pretraining_tp",
                                                     "problem_type",
                                                     "quantization_config",
                                                     "relative_attention_max_distance",
                                                     "remove_invalid_values",
                                                     "reorder_and_upcast_attn",
                                                     "repetition_penalty",
                                                     "return_dict",
                                                     "return_dict_in_generate",
                                                     "rms_norm_eps",
                                                     "scale_attention_softmax_in_fp32",
                                                     "seq_length",
                                                     "suppress_tokens",
                                                     "task_specific_params",
                                                     "temperature",
                                                     "tf_legacy_loss",
                                                     "top_k",
                                                     "top_p",
                                                     "torch_dtype",
                                                     "torchscript",
                                                     "transformers.js_config",
                                                     "typical_p",
                                                     "use_bfloat16",
                                                     "use_bidirectional_attention",
                                                     "use_cache"};

/// Whether a key is one of harmless_keys, or like them.
inline bool is_harmless_key(std::string_view key) {
  static constexpr std::string_view begins[] = {
      "_",         "rope_",     "rotary",         "partial_rotary",     "flash_",
      "summary_",  "pooler_",   "sliding_window", "use_sliding_window", "use_flash",
      "tokenizer", "bad_words", "initializer_",   "init_std",           "unsloth"};
  static constexpr std::string_view ends[] = {"_token_id",     "_token_ids", "dropout",
                                              "_dropout_prob", "drop",       "_dropout_rate",
                                              "dropout_rate",  "_version",   "_token_index"};
  return any_of(harmless_keys, [&](auto word) { return key == word; }) ||
         any_of(begins, [&](auto word) { return key.starts_with(word); }) ||
         any_of(ends, [&](auto word) { return key.ends_with(word); });
}

/// Words in the names of keys that change tensors or the forward pass.
inline bool is_telling_key(std::string_view key) {
  static constexpr std::string_view words[] = {
      "act",      "alibi",   "bias",     "block",    "channel", "compress", "conv",    "cross",
      "depth",    "dim",     "emb",      "expert",   "factor",  "ffn",      "gat",     "group",
      "head",     "hidden",  "inner",    "kv",       "latent",  "layer",    "logit",   "lora",
      "mixture",  "mlp",     "moe",      "mtp",      "multipl", "mup",      "norm",    "n_embd",
      "parallel", "patch",   "position", "proj",     "prun",    "qk",       "query",   "rank",
      "ratio",    "recur",   "relative", "residual", "router",  "scal",     "segment", "shar",
      "size",     "softcap", "sparse",   "stat",     "tie",     "tying",    "width"};
  return any_of(words, [&](auto word) { return key.find(word) != std::string_view::npos; });
}

/// Factors in place of another one, so that 1 changes something.
inline constexpr std::string_view replacing_factors[] = {"attention_multiplier", "mscale_all_dim",
                                                         "query_pre_attn_scalar", "softmax_scale"};

/// A value that switches nothing on: null, false, 0, nothing in it, and of factors 1.
inline bool is_neutral(std::string_view key, const nlohmann::ordered_json& value) {
  if (value.is_null()) return true;
  if (value.is_boolean()) {
    static constexpr std::string_view denials[] = {"no_",    "non_", "disable",
                                                   "remove", "skip", "without"};
    return !value.get<bool>() &&
           !any_of(denials, [&](auto word) { return key.find(word) != std::string_view::npos; });
  }
  static constexpr std::string_view factors[] = {"multipl", "scal", "factor"};
  const bool factor =
      any_of(factors, [&](auto word) { return key.find(word) != std::string_view::npos; }) &&
      !any_of(replacing_factors, [&](auto other) { return key.ends_with(other); });
  if (value.is_number()) return value.get<double>() == (factor ? 1 : 0);
  if (value.is_string()) return value.get<std::string>().empty();
  return value.empty();
}

/// Layers that attend to everything, or to a window, have the same tensors.
inline bool are_attention_layers(const nlohmann::ordered_json& types) {
  if (!types.is_array()) return false;
  return any_of(types, [](const nlohmann::ordered_json& type) {
           return type != "full_attention" && type != "sliding_attention" &&
                  type != "chunked_attention";
         }) == false;
}

inline UnreadKey unread_key(std::string_view key, const nlohmann::ordered_json& value) {
  if (key == "layer_types" && are_attention_layers(value)) return UnreadKey::harmless;
  if (is_harmless_key(key) || is_neutral(key, value)) return UnreadKey::harmless;
  return is_telling_key(key) ? UnreadKey::telling : UnreadKey::unknown;
}

}  // namespace scalewise::detail
