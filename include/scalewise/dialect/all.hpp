// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "scalewise/dialect/decoder_dialects.hpp"
#include "scalewise/dialect/dialect.hpp"
#include "scalewise/dialect/encoder_decoder_dialects.hpp"
#include "scalewise/dialect/encoder_dialects.hpp"
#include "scalewise/dialect/gpt2_dialects.hpp"
#include "scalewise/dialect/llama_dialects.hpp"
#include "scalewise/dialect/torch_nn_dialect.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"

namespace scalewise::dialect {

/// Every dialect of the library, in the order of their families.
inline constexpr const Dialect* all_dialects[] = {
    &hf_gpt2,    &nanogpt, &llm_c,    &gguf_gpt2, &ggml_gpt2, &hf_llama, &meta_llama, &torchtitan,
    &gguf_llama, &olmo2,   &phi3,     &gpt_neox,  &neox,      &opt,      &megatron,   &ngpt,
    &hf_bert,    &hf_vit,  &timm_vit, &hf_t5,     &hf_bart,   &fairseq,  &marian,     &torch_nn};

/// Models that have the names of others; what a file's names cannot tell apart is not detected.
inline constexpr std::pair<std::string_view, const Dialect*> other_ids[] = {
    {"mistral", &hf_llama}, {"qwen2", &hf_llama},        {"qwen3", &hf_llama},   {"gemma", &gemma},
    {"granite", &hf_llama}, {"gpt-neox-5", &gpt_neox_5}, {"hf-vit-5", &hf_vit_5}};

/// The dialect of an id.
/// Throws:   InvalidInput naming the field and the closest id.
inline const Dialect& dialect_named(const std::string& field, std::string_view id) {
  messages::Nearest known(id);
  for (const Dialect* dialect : all_dialects) {
    if (dialect->id == id) return *dialect;
    known.offer(dialect->id);
  }
  for (const auto& [other, dialect] : other_ids) {
    if (other == id) return *dialect;
    known.offer(other);
  }
  throw InvalidInput(field, messages::printable(id), "the id of a dialect",
                     known.empty() ? "plan --list-names prints them" : known.hint());
}

}  // namespace scalewise::dialect
