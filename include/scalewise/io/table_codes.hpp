// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "scalewise/io/config_encoders.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/io/config_llama.hpp"
#include "scalewise/io/config_reader.hpp"
#include "scalewise/plan/code_factors.hpp"

namespace scalewise::detail {

// The factors of types that have a table of tensors and no shape, with the defaults that transformers has.

inline plan::CodeFactors cohere_code(const ConfigReader& c) {
  plan::CodeFactors code;
  code.logits = code.tied_logits = c.factor("logit_scale", 0.0625);
  return code;
}

/// Scores are divided by √(k C): of k products, those with positions that pos_att_type names, and one without.
inline plan::CodeFactors deberta_v2_code(const ConfigReader& c) {
  const auto* kinds = c.find("pos_att_type");
  const std::string names = kinds == nullptr ? "" : kinds->dump();  // "c2p|p2c", or an array
  int products = 1;
  for (const char* kind : {"c2p", "p2c"}) products += names.find(kind) != std::string::npos ? 1 : 0;
  return {.scores = 1 / sqrt(products * symbols::C)};
}

/// Scores are multiplied by m^2/√C, m = 0.1 mscale_all_dim ln(factor) + 1, where YaRN stretches positions.
inline plan::CodeFactors deepseek_v3_code(const ConfigReader& c) {
  plan::CodeFactors code;
  for (const std::string key : {"rope_scaling", "rope_parameters"}) {
    const auto* all = c.find((key + ".mscale_all_dim").c_str());
    if (all == nullptr || *all == 0) continue;
    const double scale = c.factor((key + ".mscale_all_dim").c_str(), 1);
    const double factor = c.factor((key + ".factor").c_str(), 1);
    const double m = factor > 1 ? 0.1 * scale * std::log(factor) + 1 : 1;
    code.scores = m * m / sqrt(symbols::C);
  }
  return code;
}

/// Scores are divided by the square root of a number of their own, which mostly is the size of a head.
inline plan::CodeFactors gemma2_code(const ConfigReader& c) {
  plan::CodeFactors code{.embedding = sqrt(symbols::n)};
  const double divisor = c.factor("query_pre_attn_scalar", 256);
  if (divisor != static_cast<double>(c.size("head_dim", 256))) code.scores = 1 / std::sqrt(divisor);
  return code;
}

inline plan::CodeFactors gpt_neo_code(const ConfigReader&) { return {.scores = 1}; }

inline plan::CodeFactors mpt_code(const ConfigReader& c) {
  plan::CodeFactors code;
  if (c.find("attn_config.softmax_scale") != nullptr)
    code.scores = c.factor("attn_config.softmax_scale", 1);
  return code;
}

inline plan::CodeFactors mt5_code(const ConfigReader&) { return {.scores = 1}; }

inline plan::CodeFactors umt5_code(const ConfigReader& c) {
  plan::CodeFactors code{.scores = 1};
  if (c.flag("tie_word_embeddings", true)) code.tied_logits = 1 / sqrt(symbols::n);
  return code;
}

struct TableCode {
  std::string_view type;
  plan::CodeFactors (*code)(const ConfigReader&);
};

/// Source:   transformers, models/<type>/modeling_<type>.py or modular_<type>.py (cohere: 03ea97a; deberta-v2: 0038a3c;
///           deepseek_v3: 000c33f; gemma2: 006e869; gemma3: 0033204; gpt_neo: 002fb3e; granitemoe: 023633d; mpt: 4352620;
///           mt5: c0ce2e4); T5 and BART as their dialects.
inline constexpr TableCode table_codes[] = {
    {"cohere", &cohere_code},
    {"cohere2", &cohere_code},
    {"deberta-v2", &deberta_v2_code},
    {"deepseek_v3", &deepseek_v3_code},
    {"gemma2", &gemma2_code},
    {"gemma3_text", &gemma2_code},
    {"gpt_neo", &gpt_neo_code},
    {"granitemoe", &granite_code},
    {"marian", &bart_code},
    {"mbart", &bart_code},
    {"mpt", &mpt_code},
    {"mt5", &mt5_code},
    {"pegasus", &bart_code},
    {"umt5", &umt5_code},
};

/// The factors of the code of any type that is read.
inline plan::CodeFactors code_of_config(const ConfigReader& config) {
  const std::string type = config.model_type();
  for (const ConfigModel& model : config_models) {
    if (model.type == type) return model.code(config);
  }
  for (const TableCode& table : table_codes) {
    if (table.type == type) return table.code(config);
  }
  return {};
}

}  // namespace scalewise::detail
