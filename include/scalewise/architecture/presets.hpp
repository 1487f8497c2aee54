// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string_view>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"

namespace scalewise {

/// The shape of a published model and the code or configuration that it was read from.
struct Preset {
  std::string_view id;
  Shape shape;
  std::string_view source;
};

namespace detail {

// One function per architecture. Sizes that have the usual value are left open.

constexpr Shape gpt_preset(long d_model, long depth, long heads, long context) {
  Shape shape;
  shape.d_model = d_model;
  shape.depth = depth;
  shape.heads = heads;
  shape.context = context;
  shape.vocab = 50257;
  shape.tied_head = true;
  shape.activation = Activation::gelu;
  return shape;
}

constexpr Shape llama_preset(long d_model, long depth, long heads, long kv_heads, long d_ff,
                             long vocab, long context, bool tied_head = false) {
  Shape shape;
  shape.d_model = d_model;
  shape.depth = depth;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.d_ff = d_ff;
  shape.context = context;
  shape.vocab = vocab;
  shape.tied_head = tied_head;
  shape.gated_mlp = true;
  shape.activation = Activation::silu;
  shape.biases = false;
  shape.norm_bias = false;
  shape.learned_positions = false;
  return shape;
}

constexpr Shape olmo2_preset(long d_model, long depth, long heads, long d_ff) {
  Shape shape = llama_preset(d_model, depth, heads, heads, d_ff, 100278, 4096);
  shape.qk_norm = QkNorm::full;
  return shape;
}

constexpr Shape qwen3_preset(long d_model, long depth, long heads, long d_ff, bool tied_head) {
  Shape shape = llama_preset(d_model, depth, heads, 8, d_ff, 151936, 40960, tied_head);
  shape.head_dim = 128;
  shape.qk_norm = QkNorm::head;
  return shape;
}

constexpr Shape bert_preset(long d_model, long depth, long heads) {
  Shape shape;
  shape.d_model = d_model;
  shape.depth = depth;
  shape.heads = heads;
  shape.context = 512;
  shape.vocab = 30522;
  shape.segments = 2;
  shape.tied_head = true;
  shape.head_bias = true;
  shape.embedding_norm = true;
  shape.final_norm = false;
  shape.activation = Activation::gelu;
  return shape;
}

constexpr Shape vit_preset(long d_model, long depth, long heads, long patch_size) {
  const long side = 224 / patch_size;
  Shape shape;
  shape.input = Input::patch;
  shape.d_model = d_model;
  shape.depth = depth;
  shape.heads = heads;
  shape.context = side * side + 1;  // and the class token
  shape.patch_dim = 3 * patch_size * patch_size;
  shape.classes = 1000;
  shape.tied_head = false;
  shape.head_bias = true;
  shape.class_token = true;
  shape.activation = Activation::gelu;
  return shape;
}

constexpr Shape t5_preset(long d_model, long depth, long heads, long head_dim, long d_ff) {
  Shape shape;
  shape.d_model = d_model;
  shape.depth = depth;
  shape.encoder_depth = depth;
  shape.heads = heads;
  shape.head_dim = head_dim;
  shape.d_ff = d_ff;
  shape.context = 512;
  shape.vocab = 32128;
  shape.relative_buckets = 32;
  shape.tied_head = true;
  shape.activation = Activation::relu;
  shape.biases = false;
  shape.norm_bias = false;
  shape.learned_positions = false;
  return shape;
}

constexpr Shape t5_1_1_preset(long d_model, long depth, long heads, long head_dim, long d_ff) {
  Shape shape = t5_preset(d_model, depth, heads, head_dim, d_ff);
  shape.context = 0;
  shape.tied_head = false;
  shape.gated_mlp = true;
  shape.activation = Activation::gelu;
  return shape;
}

constexpr Shape bart_preset(long d_model, long depth, long heads) {
  Shape shape;
  shape.d_model = d_model;
  shape.depth = depth;
  shape.encoder_depth = depth;
  shape.heads = heads;
  shape.context = 1024 + 2;  // positions begin at the third row
  shape.vocab = 50265;
  shape.tied_head = true;
  shape.embedding_norm = true;
  shape.final_norm = false;
  shape.activation = Activation::gelu;
  return shape;
}

constexpr Shape r2c2_preset(long d_model, long depth, long heads) {
  Shape shape = gpt_preset(d_model, depth, heads, 1024);
  shape.encoder_depth = depth;
  return shape;
}

constexpr Shape pythia_preset(long d_model, long depth, long heads) {
  Shape shape = gpt_preset(d_model, depth, heads, 2048);
  shape.vocab = 50254;
  shape.tied_head = false;
  shape.learned_positions = false;
  return shape;
}

inline constexpr std::string_view llm_c = "llm.c, train_gpt2.cu";
inline constexpr std::string_view neox = "gpt-neox, configs";
inline constexpr std::string_view litgpt = "litgpt, config.py";
inline constexpr std::string_view qwen = "Qwen3's config.json";
inline constexpr std::string_view t5x = "t5x, examples/t5/*.gin";
inline constexpr std::string_view vit_jax = "vision_transformer, vit_jax/configs/models.py";
inline constexpr std::string_view parlai = "ParlAI, opt_presets/arch";
inline constexpr std::string_view model_zoo = "Cerebras modelzoo, configs/Cerebras_GPT";

inline constexpr std::array preset_table{
    // GPT-2: 50257 tokens, often stored padded to 50304.
    Preset{"gpt2", gpt_preset(768, 12, 12, 1024), llm_c},
    Preset{"gpt2-medium", gpt_preset(1024, 24, 16, 1024), llm_c},
    Preset{"gpt2-large", gpt_preset(1280, 36, 20, 1024), llm_c},
    Preset{"gpt2-xl", gpt_preset(1600, 48, 25, 1024), llm_c},

    Preset{"gpt3-125m", gpt_preset(768, 12, 12, 2048), llm_c},
    Preset{"gpt3-350m", gpt_preset(1024, 24, 16, 2048), llm_c},
    Preset{"gpt3-760m", gpt_preset(1536, 24, 16, 2048), llm_c},
    Preset{"gpt3-1.3b", gpt_preset(2048, 24, 16, 2048), llm_c},  // differs: 32 heads in fairseq
    Preset{"gpt3-2.7b", gpt_preset(2560, 32, 32, 2048), llm_c},
    Preset{"gpt3-6.7b", gpt_preset(4096, 32, 32, 2048), neox},
    Preset{"gpt3-13b", gpt_preset(5120, 40, 40, 2048), neox},  // differs from the paper: 5140 there
    Preset{"gpt3-175b", gpt_preset(12288, 96, 96, 2048), neox},

    Preset{"llama-2-7b", llama_preset(4096, 32, 32, 32, 11008, 32000, 4096), litgpt},
    Preset{"llama-2-13b", llama_preset(5120, 40, 40, 40, 13824, 32000, 4096), litgpt},
    Preset{"llama-2-70b", llama_preset(8192, 80, 64, 8, 28672, 32000, 4096), litgpt},
    // LLaMA-3: 128000 tokens and 256 reserved ones, which the published weights have as well.
    Preset{"llama-3-8b", llama_preset(4096, 32, 32, 8, 14336, 128256, 8192), litgpt},
    Preset{"llama-3-70b", llama_preset(8192, 80, 64, 8, 28672, 128256, 8192), litgpt},
    Preset{"llama-3-405b", llama_preset(16384, 126, 128, 8, 53248, 128256, 131072), litgpt},  // 3.1
    Preset{"llama-3.2-1b", llama_preset(2048, 16, 32, 8, 8192, 128256, 131072, true), litgpt},
    Preset{"llama-3.2-3b", llama_preset(3072, 28, 24, 8, 8192, 128256, 131072, true), litgpt},

    // BERT: without the pooler and the extra layer before the language model head.
    Preset{"bert-base", bert_preset(768, 12, 12), "transformers, configuration_bert.py"},
    Preset{"bert-large", bert_preset(1024, 24, 16), "BERT's release: L-24, H-1024, A-16"},

    // ViT: 224 x 224 pixels, the 1000 classes of ImageNet.
    Preset{"vit-b16", vit_preset(768, 12, 12, 16), vit_jax},
    Preset{"vit-l16", vit_preset(1024, 24, 16, 16), vit_jax},
    Preset{"vit-h14", vit_preset(1280, 32, 16, 14), vit_jax},

    // T5: 512 tokens is what it was trained on and not in that code; no tensor has that size.
    Preset{"t5-base", t5_preset(768, 12, 12, 64, 3072), t5x},
    Preset{"t5-large", t5_preset(1024, 24, 16, 64, 4096), t5x},
    Preset{"t5-11b", t5_preset(1024, 24, 128, 128, 65536), t5x},
    Preset{"t5-1.1-xxl", t5_1_1_preset(4096, 24, 64, 64, 10240), t5x},

    // BART: 50265 tokens as in transformers. The published weights have two more rows of positions,
    // which are never used.
    Preset{"bart-large", bart_preset(1024, 12, 16), "fairseq, models/bart/model.py"},

    // R2C2: GPT-2's tokens; special ones of the released dictionary are not counted.
    Preset{"r2c2-400m", r2c2_preset(1024, 12, 16), parlai},
    Preset{"r2c2-2.7b", r2c2_preset(2048, 22, 32), parlai},

    Preset{"cerebras-gpt-111m", gpt_preset(768, 10, 12, 2048), model_zoo},
    Preset{"cerebras-gpt-256m", gpt_preset(1088, 14, 17, 2048), model_zoo},
    Preset{"cerebras-gpt-590m", gpt_preset(1536, 18, 12, 2048), model_zoo},
    Preset{"cerebras-gpt-1.3b", gpt_preset(2048, 24, 16, 2048), model_zoo},
    Preset{"cerebras-gpt-2.7b", gpt_preset(2560, 32, 32, 2048), model_zoo},
    Preset{"cerebras-gpt-6.7b", gpt_preset(4096, 32, 32, 2048), model_zoo},
    Preset{"cerebras-gpt-13b", gpt_preset(5120, 40, 40, 2048), model_zoo},

    // OLMo-2: 100278 tokens, stored padded to 100352. Its norms come after the blocks, as many as
    // LLaMA's.
    Preset{"olmo-2-1b", olmo2_preset(2048, 16, 16, 8192), "OLMo, configs/official-0425"},
    Preset{"olmo-2-7b", olmo2_preset(4096, 32, 32, 11008), litgpt},
    Preset{"olmo-2-13b", olmo2_preset(5120, 40, 40, 13824), litgpt},

    // Qwen3: 151936 rows of tokens, as the published weights have.
    Preset{"qwen3-0.6b", qwen3_preset(1024, 28, 16, 3072, true), qwen},
    Preset{"qwen3-1.7b", qwen3_preset(2048, 28, 16, 6144, true), qwen},
    Preset{"qwen3-4b", qwen3_preset(2560, 36, 32, 9728, true), qwen},
    Preset{"qwen3-8b", qwen3_preset(4096, 36, 32, 12288, false), qwen},
    Preset{"qwen3-14b", qwen3_preset(5120, 40, 40, 17408, false), qwen},
    Preset{"qwen3-32b", qwen3_preset(5120, 64, 64, 25600, false), qwen},

    // Pythia: 50254 tokens, stored padded to 50304, 50432 (6.9b) or 50688 (12b).
    Preset{"pythia-70m", pythia_preset(512, 6, 8), litgpt},
    Preset{"pythia-160m", pythia_preset(768, 12, 12), litgpt},
    Preset{"pythia-410m", pythia_preset(1024, 24, 16), litgpt},
    Preset{"pythia-1b", pythia_preset(2048, 16, 8), litgpt},
    Preset{"pythia-1.4b", pythia_preset(2048, 24, 16), litgpt},
    Preset{"pythia-2.8b", pythia_preset(2560, 32, 32), litgpt},
    Preset{"pythia-6.9b", pythia_preset(4096, 32, 32), litgpt},
    Preset{"pythia-12b", pythia_preset(5120, 36, 40), litgpt},
};

}  // namespace detail

/// Every preset, family by family. Sizes that a model has at the usual value are left open, so
/// that they follow when a preset is made wider; see resolved().
constexpr const auto& presets() { return detail::preset_table; }

/// The shape of a published model, its head tied or not as it was published.
/// Source:   each preset's own, see presets().
/// Throws:   InvalidInput for an unknown id.
/// Differs:  vocabularies are not padded, except LLaMA-3's and Qwen3's; comments in the table say the rest.
inline Shape preset_shape(std::string_view id) {
  for (const Preset& preset : presets()) {
    if (preset.id == id) return preset.shape;
  }
  messages::Nearest known(id);
  for (const Preset& preset : presets()) known.offer(preset.id);
  throw InvalidInput("preset", messages::printable(id), "the id of a preset",
                     known.empty() ? "plan --list-presets prints them" : known.hint());
}

}  // namespace scalewise
