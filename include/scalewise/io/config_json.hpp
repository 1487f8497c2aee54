// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/dialect/llama_dialects.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/config_encoders.hpp"
#include "scalewise/io/config_gpt.hpp"
#include "scalewise/io/config_llama.hpp"
#include "scalewise/io/model_classes.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/plan/code_factors.hpp"

namespace scalewise {

namespace detail {

inline plan::CodeFactors usual_code(const ConfigReader&) { return {}; }

struct ConfigModel {
  std::string_view type;
  Shape (*read)(const ConfigReader&);
  plan::CodeFactors (*code)(const ConfigReader&) = &usual_code;
  std::string_view note = {};
};

inline constexpr ConfigModel config_models[] = {
    {"bart", &bart_shape, &bart_code},
    {"bert", &bert_shape},
    {"gemma", &gemma_shape, &gemma_code, dialect::gemma.note},
    {"gpt2", &gpt2_shape, &gpt2_code},
    {"gpt_neox", &gpt_neox_shape},
    {"granite", &llama_shape, &granite_code},
    {"llama", &llama_shape},
    {"mistral", &mistral_shape},
    {"olmo2", &olmo2_shape},
    {"opt", &opt_shape},
    {"phi3", &phi3_shape},
    {"qwen2", &qwen2_shape},
    {"qwen3", &qwen3_shape},
    {"t5", &t5_shape, &t5_code},
    {"vit", &vit_shape}};

/// Whether a model type has a reader of its shape.
inline bool has_shape(std::string_view type) {
  return any_of(config_models, [&](const ConfigModel& model) { return model.type == type; });
}

/// Whether a model type is read by a table of its tensors alone.
inline bool has_table_alone(std::string_view type) {
  return class_of(type) != nullptr && !has_shape(type);
}

inline constexpr std::string_view has_experts = "a mixture of experts";
inline constexpr std::string_view has_four_norms = "its layers have four norms: a shape has two";
inline constexpr std::string_view has_one_norm = "its layers have one norm for both branches";
inline constexpr std::string_view is_two_models = "two models, of texts and of images";
inline constexpr std::string_view is_no_transformer =
    "not of attention and MLPs alone: a shape is of a transformer";

/// Models that a shape cannot describe, with the reason.
inline constexpr std::pair<std::string_view, std::string_view> other_models[] = {
    {"albert", "its layers share one set of tensors"},
    {"beit", "its positions are biases of each layer, and it has gains on its branches"},
    {"bloom", "its positions are in the scores, and a norm follows the embedding"},
    {"clip", is_two_models},
    {"cohere",
     "its layers have one norm for both branches, and logits are multiplied by logit_scale"},
    {"cohere2",
     "its layers have one norm for both branches, and logits are multiplied by logit_scale"},
    {"deepseek", has_experts},
    {"deepseek_v2", has_experts},
    {"deepseek_v3", has_experts},
    {"deit", "it has a second token next to the class token"},
    {"falcon", "one or two norms, biases and groups of keys as its flags say"},
    {"gemma2", "its layers have four norms, and scores and logits are capped"},
    {"gemma3", has_four_norms},
    {"gemma3_text", has_four_norms},
    {"gpt_oss", has_experts},
    {"gptj", has_one_norm},
    {"jamba", is_no_transformer},
    {"llama4", has_experts},
    {"llama4_text", has_experts},
    {"mamba", is_no_transformer},
    {"mamba2", is_no_transformer},
    {"minicpm",
     "embeddings, branches and logits are multiplied by scale_emb, scale_depth and dim_model_base"},
    {"mixtral", has_experts},
    {"nemotron", "its activation is the square of ReLU: a shape knows no such"},
    {"olmoe", has_experts},
    {"phi", has_one_norm},
    {"phi-msft", has_one_norm},
    {"phimoe", has_experts},
    {"qwen2_moe", has_experts},
    {"qwen3_moe", has_experts},
    {"rwkv", is_no_transformer},
    {"rwkv5", is_no_transformer},
    {"siglip", is_two_models}};

/// The way to plan a model whose tensors are in a table.
inline constexpr std::string_view way_by_table =
    "plan --config reads it by a table of its tensors, and inspect --describe lists them";

/// The way to plan a model whose configuration has no reader.
inline constexpr std::string_view way_on =
    "describe the model (docs/any_model.md), or give the nearest one by --preset and --set, its "
    "names by --names FILE";

/// Where a configuration has its language model in an object that is read, the way to it.
inline std::string nested_hint(const nlohmann::ordered_json& config) {
  for (const char* key : {"text_config", "language_config", "llm_config", "thinker_config"}) {
    const auto found = config.find(key);
    if (found == config.end() || !found->is_object()) continue;
    if (class_of(ConfigReader(*found, key).model_type()) != nullptr) {
      return "its language model is under " + std::string(key) + ": give that object as a file";
    }
  }
  return "";
}

/// The options that say what a params.json says, which has the number of rows of the MLP as a rule.
inline std::string params_hint(const nlohmann::ordered_json& config) {
  const auto has = [&](const char* key) {
    const auto found = config.find(key);
    return found != config.end() && found->is_number_integer() && *found > 0 && *found <= 1 << 20;
  };
  if (config.contains("model_type") || !has("dim") || !has("n_layers") || !has("n_heads"))
    return "";
  const long dim = config["dim"].get<long>();
  const long two_thirds = 2 * 4 * dim / 3;  // rounded down, as LLaMA's code does
  auto rows = static_cast<double>(two_thirds);
  if (config.contains("ffn_dim_multiplier") && config["ffn_dim_multiplier"].is_number())
    rows = std::floor(rows * config["ffn_dim_multiplier"].get<double>());
  const long step = has("multiple_of") ? config["multiple_of"].get<long>() : 256;
  const long d_ff = rows < 1e9 ? (static_cast<long>(rows) + step - 1) / step * step : 0;
  std::string hint =
      "this is Meta's params.json: give --preset llama-2-7b --set d_model=" + std::to_string(dim) +
      " --set depth=" + std::to_string(config["n_layers"].get<long>()) +
      " --set heads=" + std::to_string(config["n_heads"].get<long>());
  if (has("n_kv_heads"))
    hint += " --set kv_heads=" + std::to_string(config["n_kv_heads"].get<long>());
  else
    hint += " --set kv_heads=" + std::to_string(config["n_heads"].get<long>());
  hint += " --set d_ff=" + std::to_string(d_ff);
  if (has("vocab_size")) hint += " --set vocab=" + std::to_string(config["vocab_size"].get<long>());
  return hint + ", with --names meta-llama";
}

/// Why no reader fits, and what to do instead.
inline std::string no_reader(const nlohmann::ordered_json& config, const std::string& type) {
  const bool table = has_table_alone(type);
  if (!table) {
    for (const std::string& hint : {nested_hint(config), params_hint(config)}) {
      if (!hint.empty()) return hint;
    }
  }
  if (type.empty()) return "which model is it? " + std::string(way_on);
  const std::string way(table ? way_by_table : way_on);
  for (const auto& [other, reason] : other_models) {
    if (type == other) return std::string(reason) + "; " + way;
  }
  return "there is no " + std::string(table ? "shape" : "reader") + " for " +
         messages::printable(type) + ": " + way;
}

}  // namespace detail

namespace io {

/// A model as a Hugging Face `config.json` describes it.
struct ModelConfig {
  Shape shape;
  plan::CodeFactors code;                 // what the model's own code multiplies
  std::optional<double> initializer_std;  // where it is given
  std::string initializer_key;            // "initializer_range" or "init_std"
  std::vector<std::string> notes;  // what the code adds, and keys that the reader does not know
};

/// The model that a Hugging Face `config.json` describes; docs/shape.md lists the model types.
/// `name` is what errors call the file.
/// Source:   transformers, the configuration classes of these models, for keys and their defaults.
/// Throws:   InvalidInput for a key that is missing, of the wrong type or out of range, for one that may change
///           the model and is not known, and for a model that a shape cannot describe.
/// Differs:  A size whose default is that of one model, such as n_embd, is required. A BERT is one
///           with a language model head, but without the layer before it; a ViT has a head of
///           id2label's length; the tables of positions of BART and OPT have two rows more than there are
///           positions, as their code has.
inline ModelConfig model_config(const nlohmann::ordered_json& config,
                                const std::string& name = "config.json") {
  const detail::ConfigReader reader(config, name);
  const std::string type = reader.model_type();
  std::string list;
  for (const detail::ConfigModel& model : detail::config_models) {
    list += (list.empty() ? "" : ", ") + std::string(model.type);
    if (type != model.type) continue;
    ModelConfig read{model.read(reader), model.code(reader), {}, {}, {}};
    for (const char* key : {"initializer_range", "init_std"}) {
      if (reader.find(key) == nullptr) continue;
      read.initializer_std = reader.factor(key, 0);
      read.initializer_key = key;
    }
    if (!model.note.empty()) read.notes.emplace_back(model.note);
    detail::note_other_class(reader, read.notes);
    reader.require_no_other_keys(type, read.notes);
    return read;
  }
  throw reader.error("model_type", "one of " + list, detail::no_reader(config, type));
}

/// A `config.json`.
/// Throws:   InvalidInput as read_file and parse_json; at most 16 MiB.
inline nlohmann::ordered_json read_config_file(const std::string& path) {
  constexpr std::size_t limit = std::size_t{1} << 24;
  return parse_json(files::read_file(path, limit), path);
}

/// The model of a `config.json`, read from a file.
/// Throws:   InvalidInput as model_config and read_config_file.
inline ModelConfig model_config_file(const std::string& path) {
  return model_config(read_config_file(path), path);
}

}  // namespace io

/// The shape alone of model_config().
/// Throws:   InvalidInput as model_config.
inline Shape shape_from_config(const nlohmann::ordered_json& config,
                               const std::string& name = "config.json") {
  return io::model_config(config, name).shape;
}

/// The shape alone of model_config_file().
/// Throws:   InvalidInput as model_config_file.
inline Shape shape_from_config_file(const std::string& path) {
  return io::model_config_file(path).shape;
}

}  // namespace scalewise
