// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/files/file_cursor.hpp"
#include "scalewise/io/gguf_metadata.hpp"
#include "scalewise/io/stored_tensor.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/sizes_text.hpp"

namespace scalewise::detail {

/// The shape that GGUF's metadata describe, with its vocabulary, biases and head from the tensors.
/// Keys that a shape cannot describe become notes.
class GgufShape {
 public:
  /// `by_name`: the places of the tensors, sorted by name.
  GgufShape(const files::FileCursor& file, const GgufMetadata& metadata,
            const std::vector<std::uint32_t>& by_name, TensorFile& result)
      : file_(file), metadata_(metadata), by_name_(by_name), result_(result) {}

  void read() {
    const GgufValue* architecture = find("general.architecture");
    if (architecture == nullptr) return no_shape("general.architecture is missing");
    const std::string& name = architecture->text;
    if (architecture->form != GgufValue::Form::text ||
        (name != "llama" && name != "qwen2" && name != "qwen3" && name != "gemma" &&
         name != "gpt2")) {
      return no_shape("general.architecture = " + to_text(*architecture) +
                      " is none of llama, qwen2, qwen3, gemma and gpt2");
    }
    prefix_ = name + ".";
    if (!read_sizes() || !read_heads() || !read_vocabulary()) return;
    if (name != "gpt2") {
      shape_.gated_mlp = true;
      shape_.activation = name == "gemma" ? Activation::gelu : Activation::silu;
      shape_.norm_bias = false;
      shape_.learned_positions = false;
    } else {
      shape_.activation = Activation::gelu;
    }
    if (name == "gemma") result_.code.embedding = sqrt(symbols::n);
    read_head(name);
    read_biases();
    result_.shape = shape_;
  }

 private:
  bool read_sizes() {
    const GgufValue* experts = find(prefix_ + "expert_count");
    if (experts != nullptr && (experts->form != GgufValue::Form::natural || experts->natural > 0)) {
      no_shape(prefix_ + "expert_count = " + to_text(*experts) +
               ": for a mixture of experts give its config.json to plan --config");
      return false;
    }
    // GPT-2's files need not have feed_forward_length: four times the width.
    const bool gpt2 = prefix_ == "gpt2.";
    if (!set(shape_.d_model, "embedding_length") ||
        !set(shape_.depth, "block_count", architecture::most_layers) ||
        !set(shape_.d_ff, "feed_forward_length", architecture::largest_size, gpt2) ||
        !set(shape_.context, "context_length")) {
      return false;
    }
    if (shape_.d_ff > 0) return true;
    if (shape_.d_model > architecture::largest_size / 4)
      throw error("embedding_length", "at most 2^28");
    shape_.d_ff = 4 * shape_.d_model;
    return true;
  }

  bool read_heads() {
    if (!set(shape_.heads, "attention.head_count") ||
        !set(shape_.kv_heads, "attention.head_count_kv", architecture::largest_size, true) ||
        !set(shape_.head_dim, "attention.key_length", architecture::largest_size, true)) {
      return false;
    }
    long value_length = 0;
    if (!set(value_length, "attention.value_length", architecture::largest_size, true))
      return false;
    if (shape_.kv_heads == 0) shape_.kv_heads = shape_.heads;
    if (shape_.heads % shape_.kv_heads != 0) {
      throw error("attention.head_count_kv",
                  "a divisor of head_count = " + std::to_string(shape_.heads));
    }
    if (shape_.head_dim == 0 && shape_.d_model % shape_.heads != 0) {
      throw error("attention.head_count",
                  "a divisor of embedding_length = " + std::to_string(shape_.d_model));
    }
    const long head_dim = shape_.head_dim > 0 ? shape_.head_dim : shape_.d_model / shape_.heads;
    if (head_dim > architecture::largest_size / shape_.heads) {
      throw error("attention.key_length", "at most 2^30 in all heads");
    }
    if (value_length == 0 || value_length == head_dim) return true;
    no_shape(prefix_ + "attention.value_length = " + std::to_string(value_length) +
             ", and a shape has one size for keys and values");
    return false;
  }

  bool read_vocabulary() {
    const StoredTensor* embedding = tensor("token_embd.weight");
    if (embedding == nullptr) {
      no_shape("token_embd.weight is missing");
      return false;
    }
    const std::vector<std::int64_t>& sizes = embedding->shape;
    if (sizes.size() != 2 || sizes[1] != shape_.d_model || sizes[0] < 1 ||
        sizes[0] > architecture::largest_size) {
      throw file_.error(
          "token_embd.weight: dims", messages::sizes_text(sizes),
          "[vocabulary, " + prefix_ + "embedding_length = " + std::to_string(shape_.d_model) + "]");
    }
    shape_.vocab = static_cast<long>(sizes[0]);
    return true;
  }

  /// Converters before 2025 wrote GPT-2's token embedding a second time, as the head.
  void read_head(const std::string& name) {
    if (tensor("output.weight") == nullptr) {
      shape_.tied_head = true;
    } else if (name == "gpt2") {
      note("output.weight may be a copy of token_embd.weight, so tied_head is open");
    } else {
      shape_.tied_head = false;
    }
  }

  /// From the first block.
  void read_biases() {
    const auto biased = [&](std::string_view name) {
      return tensor("blk.0." + std::string(name) + ".bias") != nullptr;
    };
    const bool qkv = biased("attn_qkv") || biased("attn_q");
    const bool output = biased("attn_output");
    shape_.biases = qkv && output && biased("ffn_up") && biased("ffn_down");
    if (!shape_.biases && qkv) {
      shape_.attention_biases = output ? AttentionBiases::all : AttentionBiases::qkv;
    }
    if (tensor("blk.0.attn_q_norm.weight") != nullptr) shape_.qk_norm = QkNorm::head;
  }

  // Helpers

  void note(const std::string& text) { result_.notes.push_back(text); }
  void no_shape(const std::string& why) { note("no shape: " + why); }

  const GgufValue* find(std::string_view key) const {
    const auto found = metadata_.find(key);
    return found == metadata_.end() ? nullptr : &found->second;
  }

  const StoredTensor* tensor(std::string_view name) const {
    const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                        [&](std::uint32_t place, std::string_view sought) {
                                          return result_.tensors[place].name < sought;
                                        });
    if (found == by_name_.end() || result_.tensors[*found].name != name) return nullptr;
    return &result_.tensors[*found];
  }

  InvalidInput error(const std::string& key, const std::string& expectation) const {
    const GgufValue* value = find(prefix_ + key);
    return file_.error(prefix_ + key, value == nullptr ? "(missing)" : to_text(*value),
                       expectation);
  }

  /// A whole number; empty where there is none, or one for each layer.
  std::optional<std::int64_t> size(const std::string& key, long most) const {
    const GgufValue* value = find(prefix_ + key);
    if (value == nullptr) return {};
    if (value->form == GgufValue::Form::array) return {};
    if (value->form != GgufValue::Form::natural || value->natural < 1 ||
        value->natural > static_cast<std::uint64_t>(most)) {
      throw error(key, "a whole number from 1 to " + std::to_string(most));
    }
    return static_cast<std::int64_t>(value->natural);
  }

  /// Sets a size; false, with a note, where it cannot be set.
  bool set(long& field, const std::string& key, long most = architecture::largest_size,
           bool optional = false) {
    const std::optional<std::int64_t> value = size(key, most);
    if (value) field = static_cast<long>(*value);
    if (value || (optional && find(prefix_ + key) == nullptr)) return true;
    no_shape(prefix_ + key +
             (find(prefix_ + key) == nullptr
                  ? " is missing"
                  : " is an array, and a shape has one number for all layers"));
    return false;
  }

  const files::FileCursor& file_;
  const GgufMetadata& metadata_;
  const std::vector<std::uint32_t>& by_name_;
  TensorFile& result_;
  std::string prefix_;  // of the architecture's keys
  Shape shape_;
};

}  // namespace scalewise::detail
