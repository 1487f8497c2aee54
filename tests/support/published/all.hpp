// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Every published list, small and in the size of a published model.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scalewise/architecture/presets.hpp"
#include "support/published/bart.hpp"
#include "support/published/bert.hpp"
#include "support/published/gpt2.hpp"
#include "support/published/llama.hpp"
#include "support/published/marian.hpp"
#include "support/published/neox.hpp"
#include "support/published/ngpt.hpp"
#include "support/published/shapes.hpp"
#include "support/published/t5.hpp"
#include "support/published/torch_nn.hpp"

namespace scalewise::test::published {

/// Small models, at least one of each dialect. Those of qk_norm.hpp are not among them.
inline std::vector<Model> small_models() {
  const auto with = [](Shape shape, auto&& change) {
    change(shape);
    return shape;
  };
  const Shape plain_nanogpt = with(small_gpt_of_four_widths(), [](Shape& s) {
    s.biases = false;
    s.norm_bias = false;
  });
  const Shape tied_llama = with(small_llama(), [](Shape& s) { s.tied_head = true; });
  const Shape scaled_vit =
      with(small_vit(), [](Shape& s) { s.residual_gain = ResidualGain::channel; });
  const Shape gated_t5 = with(small_t5(), [](Shape& s) {
    s.gated_mlp = true;
    s.tied_head = false;
  });
  const Shape pre_norm_bart = with(small_bart(), [](Shape& s) { s.final_norm = true; });
  const Shape sinusoidal_bart = with(small_bart(), [](Shape& s) {
    s.learned_positions = false;
    s.embedding_norm = false;
  });
  const Shape fairseq_lm = with(small_gpt(), [](Shape& s) { s.tied_head = false; });
  const Shape torch_encoder = with(small_gpt(), [](Shape& s) {
    s.tied_head = false;
    s.head_bias = true;
    s.final_norm = false;
  });
  const Shape torch_both = with(small_bart(), [](Shape& s) {
    s.embedding_norm = false;
    s.final_norm = true;
  });
  const Shape pre_norm_marian = with(small_marian(), [](Shape& s) {
    s.final_norm = true;
    s.embedding_norm = true;
    s.learned_positions = true;
    s.tied_head = false;
  });
  return {
      hf_gpt2(small_gpt()),
      without_prefix(hf_gpt2(small_gpt()), "transformer."),
      nanogpt(small_gpt_of_four_widths()),
      nanogpt(plain_nanogpt, "without biases"),
      llm_c(small_gpt_of_four_widths(), 64),
      ggml_gpt2(small_gpt_of_four_widths()),
      gguf_gpt2(small_gpt()),
      hf_llama(small_llama()),
      hf_llama(tied_llama, "tied"),
      meta_llama(small_llama()),
      meta_llama(small_llama(), "torchtitan of 2026", MetaNames::torchtitan_2026),
      torchtitan(small_llama()),
      torchtitan(tied_llama, "tied"),
      gguf_llama(small_llama()),
      gguf_llama(tied_llama, "tied"),
      phi3(small_llama()),
      gemma(tied_llama),
      gpt_neox(small_neox()),
      neox(small_neox()),
      neox(small_llama(), "grouped and gated"),
      neox(small_gpt(), "tied"),
      without_prefix(neox(small_neox()), "sequential."),
      megatron(small_gpt()),
      megatron(small_llama(), "grouped and gated"),
      megatron(small_gpt(), "Transformer Engine", MegatronNorms::of_the_next_matrix),
      megatron(small_llama(), "grouped and gated, Transformer Engine",
               MegatronNorms::of_the_next_matrix),
      opt(small_gpt()),
      hf_bert(small_bert()),
      hf_bert(small_bert(), "pre-training", BertHeads::pre_training),
      hf_bert(small_bert(), "first release", BertHeads::pre_training, BertNorms::gamma_beta),
      hf_vit(small_vit()),
      hf_vit_5(small_vit()),
      timm_vit(small_vit()),
      timm_vit(scaled_vit, "LayerScale"),
      hf_t5(small_t5()),
      hf_t5(gated_t5, "1.1"),
      hf_bart(small_bart()),
      hf_bart(pre_norm_bart, "mBART"),
      without_prefix(hf_bart(small_bart()), "model."),
      fairseq(small_bart()),
      fairseq(sinusoidal_bart, "sinusoidal positions"),
      fairseq(fairseq_lm, "language model"),
      torch_nn(torch_encoder, "encoder"),
      torch_nn(torch_both, "both stacks"),
      ngpt(small_ngpt()),
      marian(small_marian()),
      marian(pre_norm_marian, "pre-norm, trained positions", MarianNorms::before_blocks),
  };
}

/// A model of published size, and how many parameters its publisher counts, without buffers and with
/// what is tied counted once.
struct Counted {
  Model model;
  std::int64_t published = 0;
};

namespace detail {

inline Shape padded_gpt2(bool biases) {
  Shape s = preset_shape("gpt2");
  s.vocab = 50304;
  s.biases = biases;
  s.norm_bias = biases;
  return s;
}

/// Pythia's own sizes, with the rows that its files have.
inline Shape stored_pythia(const char* id, long vocab) {
  Shape s = preset_shape(id);
  s.vocab = vocab;
  return s;
}

inline Shape opt_of(long d_model, long depth, long heads) {
  Shape s = preset_shape("gpt2");
  s.d_model = d_model;
  s.depth = depth;
  s.heads = heads;
  s.context = 2050;  // rows
  s.vocab = 50272;
  return s;
}

/// nn.Transformer() has 44140544 parameters; with an embedding of 1000 and a tied head.
inline Shape torch_defaults() {
  Shape s = small_gpt();
  s.d_model = 512;
  s.depth = s.encoder_depth = 6;
  s.heads = 8;
  s.d_ff = 2048;
  s.vocab = 1000;
  s.learned_positions = false;
  return s;
}

/// Helsinki-NLP/opus-mt-en-de.
inline Shape opus_mt() {
  Shape s = small_marian();
  s.d_model = 512;
  s.depth = s.encoder_depth = 6;
  s.heads = 8;
  s.d_ff = 2048;
  s.vocab = 58101;
  return s;
}

}  // namespace detail

inline std::vector<Counted> big_models() {
  using detail::opt_of;
  using detail::padded_gpt2;
  using detail::stored_pythia;
  const Shape llama_2 = preset_shape("llama-2-7b");
  const Shape mistral = llama_like(4096, 32, 32, 8, 128, 14336, 32000);
  Shape neox_20b = stored_pythia("pythia-12b", 50432);
  neox_20b.d_model = 6144;
  neox_20b.depth = 44;
  neox_20b.heads = 64;
  Shape bart = preset_shape("bart-large");
  return {
      {hf_gpt2(preset_shape("gpt2"), "gpt2"), 124439808},
      {hf_gpt2(preset_shape("gpt2-xl"), "gpt2-xl"), 1557611200},
      {nanogpt(padded_gpt2(true), "124M"), 124475904},
      // It prints 123.59M, without the 1024 x 768 numbers of positions.
      {nanogpt(padded_gpt2(false), "124M without biases"), 123587328 + 1024 * 768},
      {llm_c(preset_shape("gpt2"), 50304, "124M"), 124475904},
      {ggml_gpt2(preset_shape("gpt2"), "117M"), 124439808},
      {gguf_gpt2(preset_shape("gpt2"), "gpt2"), 124439808},
      {hf_llama(llama_2, "Llama-2-7b"), 6738415616},
      {hf_llama(mistral, "Mistral-7B"), 7241732096},
      {hf_llama(preset_shape("llama-3.2-1b"), "Llama-3.2-1B"), 1235814400},
      {meta_llama(preset_shape("llama-3-8b"), "Llama-3-8B"), 8030261248},
      {gguf_llama(llama_2, "Llama-2-7b"), 6738415616},
      {phi3(llama_like(3072, 32, 32, 32, 96, 8192, 32064), "Phi-3-mini"), 3821079552},
      {gemma(llama_like(2048, 18, 8, 1, 256, 16384, 256000, true), "gemma-2b"), 2506172416},
      {gemma(llama_like(3072, 28, 16, 16, 256, 24576, 256000, true), "gemma-7b"), 8537680896},
      {gpt_neox(stored_pythia("pythia-70m", 50304), "pythia-70m"), 70426624},
      {gpt_neox(stored_pythia("pythia-12b", 50688), "pythia-12b"), 11846072320},
      {gpt_neox(neox_20b, "gpt-neox-20b"), 20554567680},
      {megatron(preset_shape("gpt2"), "gpt2"), 124439808},
      {megatron(mistral, "Mistral-7B"), 7241732096},
      {opt(opt_of(768, 12, 12), "opt-125m"), 125239296},
      {opt(opt_of(2048, 24, 32), "opt-1.3b"), 1315758080},
      {hf_bert(preset_shape("bert-base"), "BertForMaskedLM"), 109514298},
      {hf_bert(preset_shape("bert-base"), "BertForPreTraining", BertHeads::pre_training),
       110106428},
      {hf_vit(preset_shape("vit-b16"), "vit-base-patch16-224"), 86567656},
      {hf_vit(preset_shape("vit-h14"), "ViT-H/14"), 632045800},
      {timm_vit(preset_shape("vit-b16"), "vit_base_patch16_224"), 86567656},
      {hf_t5(preset_shape("t5-base"), "t5-base"), 222903552},
      {hf_t5(preset_shape("t5-1.1-xxl"), "t5-v1_1-xxl"), 11135332352},
      {hf_bart(bart, "bart-large"), 406291456},
      {fairseq(bart, "bart.large"), 406291456},
      {torch_nn(detail::torch_defaults(), "nn.Transformer()"), 44140544 + 1000 * 512},
      // transformers counts computed positions of both stacks, and no bias on the head.
      {marian(detail::opus_mt(), "opus-mt-en-de"), 74410496 - 2 * 512 * 512 + 58101},
  };
}

}  // namespace scalewise::test::published
