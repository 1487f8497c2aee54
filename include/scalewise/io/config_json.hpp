// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"

namespace scalewise::inline io {

namespace detail {

/// Reads the keys of one configuration. A key that is null counts as absent.
class ConfigReader {
 public:
  using Json = nlohmann::json;

  ConfigReader(const Json& config, std::string name) : config_(config), name_(std::move(name)) {
    if (!config_.is_object()) {
      throw InvalidInput(name_, value_text(config_), "a JSON object");
    }
  }

  Shape shape() const {
    using Read = Shape (ConfigReader::*)() const;
    static constexpr std::pair<std::string_view, Read> models[] = {
        {"bart", &ConfigReader::bart},       {"bert", &ConfigReader::bert},
        {"gpt2", &ConfigReader::gpt2},       {"llama", &ConfigReader::llama},
        {"mistral", &ConfigReader::mistral}, {"t5", &ConfigReader::t5},
        {"vit", &ConfigReader::vit}};
    const Json* value = find("model_type");
    const std::string type =
        value != nullptr && value->is_string() ? value->get<std::string>() : "";
    Nearest known(type);
    std::string list;
    for (const auto& [id, read] : models) {
      if (type == id) return (this->*read)();
      known.offer(id);
      list += (list.empty() ? "" : ", ") + std::string(id);
    }
    throw error("model_type", "one of " + list, type.empty() ? "" : known.hint());
  }

 private:
  // Models, each with the defaults that transformers has. A size is required when its default is
  // the size of some model.

  Shape gpt2() const {
    Shape shape;
    shape.d_model = size("n_embd");
    shape.depth = layers("n_layer");
    shape.heads = heads("n_head", "n_embd");
    shape.d_ff = size_or("n_inner", 0);  // 4 n_embd
    shape.context = size("n_positions");
    shape.vocab = size("vocab_size");
    shape.tied_head = flag("tie_word_embeddings", true);
    shape.activation = activation("activation_function", "gelu_new");
    only("add_cross_attention", false);
    return shape;
  }

  Shape llama() const {
    Shape shape = llama_sizes(2048);
    shape.kv_heads = size_or("num_key_value_heads", shape.heads);
    check_kv_heads(shape);
    shape.biases = flag("attention_bias", false);
    if (flag("mlp_bias", false) != shape.biases) {
      throw error("mlp_bias", std::string("attention_bias = ") + (shape.biases ? "true" : "false"),
                  "a shape has all biases or none");
    }
    return shape;
  }

  Shape mistral() const {
    Shape shape = llama_sizes(131072);
    // transformers: 8 when there is no such key, as many as heads when it is null.
    shape.kv_heads =
        size_or("num_key_value_heads", config_.contains("num_key_value_heads") ? shape.heads : 8);
    check_kv_heads(shape);
    shape.biases = false;
    return shape;
  }

  Shape bert() const {
    Shape shape;
    shape.d_model = size("hidden_size");
    shape.depth = layers("num_hidden_layers");
    shape.heads = heads("num_attention_heads", "hidden_size");
    shape.d_ff = size("intermediate_size");
    shape.context = size("max_position_embeddings");
    shape.vocab = size("vocab_size");
    shape.segments = size_or("type_vocab_size", 2);
    shape.tied_head = flag("tie_word_embeddings", true);
    shape.head_bias = true;
    shape.embedding_norm = true;
    shape.final_norm = false;
    shape.activation = activation("hidden_act", "gelu");
    only("add_cross_attention", false);
    const std::string positions = text("position_embedding_type", "absolute");
    if (positions != "absolute") throw error("position_embedding_type", "\"absolute\"");
    return shape;
  }

  Shape vit() const {
    const long image = size_or("image_size", 224);
    const long patch = size_or("patch_size", 16);
    const long side = image / patch;
    if (side == 0) {
      throw error("patch_size", "at most image_size = " + std::to_string(image));
    }
    Shape shape;
    shape.input = Input::patch;
    shape.d_model = size("hidden_size");
    shape.depth = layers("num_hidden_layers");
    shape.heads = heads("num_attention_heads", "hidden_size");
    shape.d_ff = size("intermediate_size");
    shape.context = product("image_size", side, side) + 1;
    shape.patch_dim =
        product("num_channels", size_or("num_channels", 3), product("patch_size", patch, patch));
    shape.classes = classes();
    shape.tied_head = false;
    shape.head_bias = true;
    shape.class_token = true;
    shape.activation = activation("hidden_act", "gelu");
    only("qkv_bias", true);
    return shape;
  }

  Shape t5() const {
    Shape shape;
    shape.d_model = size("d_model");
    shape.encoder_depth = layers("num_layers");
    shape.depth = layers("num_decoder_layers", shape.encoder_depth);
    shape.heads = size("num_heads");
    shape.head_dim = size_or("d_kv", 64);
    product("d_kv", shape.heads, shape.head_dim);
    shape.d_ff = size("d_ff");
    shape.context = size_or("n_positions", 0);  // no tensor has that size
    shape.vocab = size("vocab_size");
    shape.relative_buckets = size_or("relative_attention_num_buckets", 32);
    shape.tied_head = flag("tie_word_embeddings", true);
    shape.gated_mlp = text("feed_forward_proj", "relu").starts_with("gated-");
    shape.activation = activation("feed_forward_proj", "relu");
    shape.biases = false;
    shape.norm_bias = false;
    shape.learned_positions = false;
    only("is_encoder_decoder", true);
    return shape;
  }

  Shape bart() const {
    Shape shape;
    shape.d_model = size("d_model");
    shape.encoder_depth = layers("encoder_layers");
    shape.depth = layers("decoder_layers");
    shape.heads = heads("encoder_attention_heads", "d_model");
    same("decoder_attention_heads", "encoder_attention_heads", shape.heads);
    shape.d_ff = size("encoder_ffn_dim");
    same("decoder_ffn_dim", "encoder_ffn_dim", shape.d_ff);
    shape.context = size("max_position_embeddings");
    shape.vocab = size("vocab_size");
    shape.tied_head = flag("tie_word_embeddings", true);
    shape.embedding_norm = true;
    shape.final_norm = false;
    shape.activation = activation("activation_function", "gelu");
    only("is_encoder_decoder", true);
    return shape;
  }

  Shape llama_sizes(long context) const {
    Shape shape;
    shape.d_model = size("hidden_size");
    shape.depth = layers("num_hidden_layers");
    shape.head_dim = size_or("head_dim", 0);
    shape.heads = shape.head_dim == 0 ? heads("num_attention_heads", "hidden_size")
                                      : size("num_attention_heads");
    if (shape.head_dim > 0) product("head_dim", shape.heads, shape.head_dim);
    shape.d_ff = size("intermediate_size");
    shape.context = size_or("max_position_embeddings", context);
    shape.vocab = size("vocab_size");
    shape.tied_head = flag("tie_word_embeddings", false);
    shape.gated_mlp = true;
    shape.activation = activation("hidden_act", "silu");
    shape.norm_bias = false;
    shape.learned_positions = false;
    return shape;
  }

  // Checks

  InvalidInput error(const char* key, const std::string& expectation,
                     const std::string& hint = {}) const {
    const auto found = config_.find(key);
    return InvalidInput(name_ + ": " + key,
                        found == config_.end() ? "(missing)" : value_text(*found), expectation,
                        hint);
  }

  const Json* find(const char* key) const {
    const auto found = config_.find(key);
    return found == config_.end() || found->is_null() ? nullptr : &*found;
  }

  /// A required size, or one whose default is given; a default of 0 leaves it open.
  long size(const char* key, std::optional<long> otherwise = {}) const {
    constexpr const char* expectation = "a whole number from 1 to 2^30";
    const Json* value = find(key);
    if (value == nullptr) {
      if (!otherwise) throw error(key, expectation);
      return *otherwise;
    }
    if (!value->is_number_integer()) throw error(key, expectation);
    const auto number = value->get<std::int64_t>();  // negative when it does not fit
    if (number < 1 || number > largest_size) throw error(key, expectation);
    return static_cast<long>(number);
  }

  long size_or(const char* key, long otherwise) const { return size(key, otherwise); }

  long layers(const char* key, std::optional<long> otherwise = {}) const {
    const long count = size(key, otherwise);
    if (count > most_layers) throw error(key, "at most " + std::to_string(most_layers));
    return count;
  }

  /// The number of heads, when together they are as wide as the model.
  long heads(const char* key, const char* width_key) const {
    const long count = size(key);
    const long width = size(width_key);
    if (width % count != 0) {
      throw error(key, "a divisor of " + std::string(width_key) + " = " + std::to_string(width));
    }
    return count;
  }

  void check_kv_heads(const Shape& shape) const {
    if (shape.heads % shape.kv_heads == 0) return;
    throw error("num_key_value_heads",
                "a divisor of num_attention_heads = " + std::to_string(shape.heads),
                find("num_key_value_heads") == nullptr
                    ? "it is " + std::to_string(shape.kv_heads) + " when it is missing"
                    : "");
  }

  void same(const char* key, const char* encoder_key, long value) const {
    if (size(key) == value) return;
    throw error(key, std::string(encoder_key) + " = " + std::to_string(value),
                "a shape has one such size for both stacks");
  }

  long product(const char* key, long a, long b) const {
    if (b > (largest_size - 1) / a) {
      throw error(key, "a smaller number", "a size that follows from it would reach 2^30");
    }
    return a * b;
  }

  bool flag(const char* key, bool otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) throw error(key, "true or false");
    return value->get<bool>();
  }

  /// A flag that the shape has no place for, so that its default is the one value possible.
  void only(const char* key, bool value) const {
    if (flag(key, value) == value) return;
    throw error(key, value ? "true" : "false", "a shape cannot tell such a model");
  }

  std::string text(const char* key, const std::string& otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) throw error(key, "a string");
    return value->get<std::string>();
  }

  /// The name of an activation, in T5 perhaps after "gated-"; the forms of GELU count as one.
  Activation activation(const char* key, const std::string& otherwise) const {
    std::string name = text(key, otherwise);
    if (name.starts_with("gated-")) name.erase(0, 6);
    if (name == "relu") return Activation::relu;
    if (name == "silu" || name == "swish") return Activation::silu;
    if (name == "gelu" || name.starts_with("gelu_")) return Activation::gelu;
    throw error(key, "relu, gelu or silu", "a shape knows no other activation");
  }

  long classes() const {
    const Json* labels = find("id2label");
    if (labels == nullptr) return size_or("num_labels", 2);
    if (!labels->is_object() || labels->empty()) {
      throw error("id2label", "an object with one key for each class");
    }
    return static_cast<long>(labels->size());
  }

  const Json& config_;
  std::string name_;
};

}  // namespace detail

/// The shape that a Hugging Face `config.json` describes; model_type is one of bart, bert, gpt2,
/// llama, mistral, t5 and vit, and `name` is what errors call the file.
/// Source:   transformers, the configuration classes of these models, for keys and their defaults.
/// Throws:   InvalidInput for a key that is missing, of the wrong type or out of range, and for a
///           model that a shape cannot describe.
/// Differs:  A size whose default is that of one model, such as n_embd, is required. A BERT is one
///           with a language model head, but without the layer before it; a ViT has a head of
///           id2label's length; BART's two unused rows of positions are not counted.
inline Shape shape_from_config(const nlohmann::json& config,
                               const std::string& name = "config.json") {
  return detail::ConfigReader(config, name).shape();
}

/// The shape that a Hugging Face `config.json` describes, read from a file.
/// Throws:   InvalidInput as shape_from_config, read_file and parse_json; at most 16 MiB.
inline Shape shape_from_config_file(const std::string& path) {
  constexpr std::size_t limit = std::size_t{1} << 24;
  return shape_from_config(parse_json(read_file(path, limit), path), path);
}

}  // namespace scalewise::inline io
