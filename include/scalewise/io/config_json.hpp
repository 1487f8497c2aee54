// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "scalewise/files/read_file.hpp"
#include "scalewise/io/config_encoders.hpp"
#include "scalewise/io/config_gpt.hpp"
#include "scalewise/io/config_llama.hpp"
#include "scalewise/messages/nearest.hpp"

namespace scalewise::inline io {

namespace detail {

struct ConfigModel {
  std::string_view type;
  Shape (*read)(const ConfigReader&);
};

inline constexpr ConfigModel config_models[] = {{"bart", &bart_shape},
                                                {"bert", &bert_shape},
                                                {"gemma", &gemma_shape},
                                                {"gpt2", &gpt2_shape},
                                                {"gpt_neox", &gpt_neox_shape},
                                                {"llama", &llama_shape},
                                                {"mistral", &mistral_shape},
                                                {"olmo2", &olmo2_shape},
                                                {"opt", &opt_shape},
                                                {"phi3", &phi3_shape},
                                                {"qwen2", &qwen2_shape},
                                                {"qwen3", &qwen3_shape},
                                                {"t5", &t5_shape},
                                                {"vit", &vit_shape}};

/// Models that a shape cannot describe, with the reason.
inline constexpr std::pair<std::string_view, std::string_view> other_models[] = {
    {"deepseek_v2", "a mixture of experts: a shape has one MLP per layer"},
    {"deepseek_v3", "a mixture of experts: a shape has one MLP per layer"},
    {"falcon", "its layers have one norm for both branches"},
    {"gemma2", "its layers have four norms: a shape has two"},
    {"gemma3", "its layers have four norms: a shape has two"},
    {"gemma3_text", "its layers have four norms: a shape has two"},
    {"gpt_oss", "a mixture of experts: a shape has one MLP per layer"},
    {"jamba", "not only of attention and MLPs"},
    {"mamba", "a state-space model: a shape is of a transformer"},
    {"mamba2", "a state-space model: a shape is of a transformer"},
    {"mixtral", "a mixture of experts: a shape has one MLP per layer"},
    {"olmoe", "a mixture of experts: a shape has one MLP per layer"},
    {"phi", "its layers have one norm for both branches"},
    {"qwen2_moe", "a mixture of experts: a shape has one MLP per layer"},
    {"qwen3_moe", "a mixture of experts: a shape has one MLP per layer"},
    {"rwkv", "a recurrent network: a shape is of a transformer"}};

}  // namespace detail

/// The shape that a Hugging Face `config.json` describes; docs/shape.md lists the model types.
/// `name` is what errors call the file.
/// Source:   transformers, the configuration classes of these models, for keys and their defaults.
/// Throws:   InvalidInput for a key that is missing, of the wrong type or out of range, and for a
///           model that a shape cannot describe.
/// Differs:  A size whose default is that of one model, such as n_embd, is required. A BERT is one
///           with a language model head, but without the layer before it; a ViT has a head of
///           id2label's length; the two unused rows of positions of BART and OPT are not counted.
inline Shape shape_from_config(const nlohmann::json& config,
                               const std::string& name = "config.json") {
  const detail::ConfigReader reader(config, name);
  const std::string type = reader.model_type();
  Nearest known(type);
  std::string list;
  for (const detail::ConfigModel& model : detail::config_models) {
    if (type == model.type) return model.read(reader);
    known.offer(model.type);
    list += (list.empty() ? "" : ", ") + std::string(model.type);
  }
  for (const auto& [other, reason] : detail::other_models) {
    if (type == other) throw reader.error("model_type", "one of " + list, std::string(reason));
  }
  throw reader.error("model_type", "one of " + list, type.empty() ? "" : known.hint());
}

/// The shape that a Hugging Face `config.json` describes, read from a file.
/// Throws:   InvalidInput as shape_from_config, read_file and parse_json; at most 16 MiB.
inline Shape shape_from_config_file(const std::string& path) {
  constexpr std::size_t limit = std::size_t{1} << 24;
  return shape_from_config(parse_json(read_file(path, limit), path), path);
}

}  // namespace scalewise::inline io
