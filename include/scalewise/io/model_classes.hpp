// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/io/config_reader.hpp"
#include "scalewise/messages/utf8.hpp"

namespace scalewise::detail {

/// The class whose tensors the shape or the table of a model type has.
struct ModelClass {
  std::string_view type;
  std::string_view name;
  std::string_view same = {};  // other names for it, and a class with the same tensors
  bool head = true;            // whether it has one
};

/// Source:   transformers, models/<type>/modeling_<type>.py at the revisions that the tables name; names of older files are
///           those of code on the Hub (RWForCausalLM, StableLMEpochForCausalLM) and of release 2 (T5WithLMHeadModel).
inline constexpr ModelClass model_classes[] = {
    {"apertus", "ApertusForCausalLM"},
    {"bart", "BartForConditionalGeneration", "BartModel"},  // whose head is the embedding
    {"bert", "BertForMaskedLM"},
    {"bloom", "BloomForCausalLM"},
    {"camembert", "CamembertForMaskedLM"},
    {"cohere", "CohereForCausalLM"},
    {"cohere2", "Cohere2ForCausalLM"},
    {"deberta-v2", "DebertaV2Model", "", false},
    {"deepseek_v2", "DeepseekV2ForCausalLM"},
    {"deepseek_v3", "DeepseekV3ForCausalLM"},
    {"deit", "DeiTForImageClassification"},
    {"dinov2", "Dinov2Model", "", false},
    {"distilbert", "DistilBertForMaskedLM"},
    {"electra", "ElectraForPreTraining"},
    {"exaone4", "Exaone4ForCausalLM"},
    {"falcon", "FalconForCausalLM", "RWForCausalLM"},
    {"gemma", "GemmaForCausalLM"},
    {"gemma2", "Gemma2ForCausalLM"},
    {"gemma3", "Gemma3ForConditionalGeneration"},
    {"gemma3_text", "Gemma3ForCausalLM"},
    {"glm", "GlmForCausalLM"},
    {"glm4", "Glm4ForCausalLM"},
    {"glm4_moe", "Glm4MoeForCausalLM"},
    {"gpt2", "GPT2LMHeadModel"},
    {"gpt_neo", "GPTNeoForCausalLM"},
    {"gpt_neox", "GPTNeoXForCausalLM"},
    {"gpt_oss", "GptOssForCausalLM"},
    {"gptj", "GPTJForCausalLM"},
    {"granite", "GraniteForCausalLM"},
    {"granitemoe", "GraniteMoeForCausalLM"},
    {"helium", "HeliumForCausalLM"},
    {"llama", "LlamaForCausalLM"},
    {"marian", "MarianMTModel"},
    {"mbart", "MBartForConditionalGeneration"},
    {"ministral", "MinistralForCausalLM"},
    {"mistral", "MistralForCausalLM"},
    {"mixtral", "MixtralForCausalLM"},
    {"modernbert", "ModernBertForMaskedLM"},
    {"mpt", "MptForCausalLM"},
    {"mt5", "MT5ForConditionalGeneration", "T5ForConditionalGeneration"},
    {"nemotron", "NemotronForCausalLM"},
    {"olmo", "OlmoForCausalLM"},
    {"olmo2", "Olmo2ForCausalLM"},
    {"olmo3", "Olmo3ForCausalLM"},
    {"olmoe", "OlmoeForCausalLM"},
    {"opt", "OPTForCausalLM"},
    {"pegasus", "PegasusForConditionalGeneration"},
    {"phi", "PhiForCausalLM"},
    {"phi3", "Phi3ForCausalLM"},
    {"phimoe", "PhimoeForCausalLM"},
    {"qwen2", "Qwen2ForCausalLM"},
    {"qwen2_moe", "Qwen2MoeForCausalLM"},
    {"qwen3", "Qwen3ForCausalLM"},
    {"qwen3_moe", "Qwen3MoeForCausalLM"},
    {"roberta", "RobertaForMaskedLM"},
    {"seed_oss", "SeedOssForCausalLM"},
    {"smollm3", "SmolLM3ForCausalLM"},
    {"stablelm", "StableLmForCausalLM", "StableLMEpochForCausalLM"},
    {"starcoder2", "Starcoder2ForCausalLM"},
    {"t5", "T5ForConditionalGeneration", "T5WithLMHeadModel"},
    {"umt5", "UMT5ForConditionalGeneration"},
    {"vit", "ViTForImageClassification"},
    {"whisper", "WhisperForConditionalGeneration"},
    {"xlm-roberta", "XLMRobertaForMaskedLM"}};

/// The class of a model type, or nullptr where none is read.
inline const ModelClass* class_of(std::string_view type) {
  for (const ModelClass& model : model_classes) {
    if (model.type == type) return &model;
  }
  return nullptr;
}

/// Notes that a configuration is of another class than the one whose tensors are read. Names on the Hub differ in case
/// (MPTForCausalLM, LLaMAForCausalLM).
inline void note_other_class(const ConfigReader& config, std::vector<std::string>& notes) {
  const ModelClass* model = class_of(config.model_type());
  if (model == nullptr) return;
  const std::string read = "the tensors are those of " + std::string(model->name);
  const nlohmann::ordered_json* given = config.find("architectures");
  std::string other;
  if (given != nullptr && given->is_array()) {
    for (const nlohmann::ordered_json& one : *given) {
      if (!one.is_string()) continue;
      const std::string name = messages::in_lower_case(one.get<std::string>());
      if (name == messages::in_lower_case(model->name) ||
          name == messages::in_lower_case(model->same))
        return;
      if (other.empty()) other = messages::printable(one.get<std::string>());
    }
  }
  if (!other.empty()) {
    notes.push_back(config.name() + ": architectures = " + other + ": " + read +
                    ", which may differ, as in the head");
  } else if (!model->head) {
    notes.push_back(read + ": the head of your task is not in the list");
  }
}

}  // namespace scalewise::detail
