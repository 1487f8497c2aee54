// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The lists of tensors that other tests take for the truth: against the tensors of their shapes, against
// published numbers of parameters, and at a few places against what the code bases say.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scalewise/architecture/tensor.hpp"
#include "support/catch.hpp"
#include "support/published/all.hpp"
#include "support/published/checks.hpp"
#include "support/published/mutations.hpp"

namespace {

namespace published = scalewise::test::published;
using scalewise::Shape;

const published::Owner& owner_of(const published::Model& model, const std::string& name) {
  for (const published::Owner& owner : model.owners) {
    if (owner.tensor.name == name) return owner;
  }
  FAIL(model.title << " has no " << name);
  return model.owners.front();
}

/// Which entry owns each index along an axis, as "q0 q1 k0".
std::string row_by_row(const published::Owner& owner, int axis) {
  std::map<std::int64_t, std::string> rows;
  for (const auto& part : owner.parts) {
    const char letter = part.entry[part.entry.rfind('.') + 1];
    std::int64_t index = 0;
    for (const auto& selection : part.select) {
      if (selection.axis != axis) continue;
      for (const auto& [begin, count] : selection.runs) {
        for (std::int64_t row = begin; row < begin + count; ++row) {
          rows[row] = letter + std::to_string(index++);
        }
      }
    }
  }
  std::string text;
  for (const auto& [row, name] : rows) text += (text.empty() ? "" : " ") + name;
  return text;
}

}  // namespace

TEST_CASE("Published lists hold each tensor of their shape once, and nothing else", "[published]") {
  for (const published::Model& model : published::small_models()) {
    INFO(model.dialect << ", " << model.title);
    // marian has one table of positions for both stacks.
    const bool shared = model.dialect == "marian" && model.shape.learned_positions;
    CHECK(published::faults(model) ==
          (shared ? "encoder.position_embedding and decoder.position_embedding meet\n" : ""));
  }
  for (const auto& counted : published::big_models()) {
    INFO(counted.model.dialect << ", " << counted.model.title);
    CHECK(published::faults(counted.model) == "");
  }
}

TEST_CASE("Published lists have as many numbers as their models", "[published]") {
  for (const auto& counted : published::big_models()) {
    INFO(counted.model.dialect << ", " << counted.model.title);
    CHECK(parameters(counted.model) == counted.published);
  }
}

TEST_CASE("Published lists have as many tensors as files of them", "[published]") {
  const auto tensors_of = [](const std::string& dialect, const std::string& title) {
    for (const auto& counted : published::big_models()) {
      if (counted.model.dialect == dialect && counted.model.title == title) return counted.model;
    }
    return published::Model{};
  };
  // llama.cpp prints "291 tensors"; LLaMA 3.1 has one more, rope_freqs.
  CHECK(listed(tensors_of("gguf-llama", "Llama-2-7b")).size() == 291);
  CHECK(listed(tensors_of("hf-llama", "Llama-2-7b")).size() == 291);
  CHECK(listed(tensors_of("hf-gpt2", "gpt2")).size() == 148);  // len(list(model.parameters()))
  CHECK(listed(tensors_of("llm-c", "124M")).size() == 16);     // NUM_PARAMETER_TENSORS
  CHECK(listed(tensors_of("gpt-neox", "pythia-70m")).size() == 6 * 12 + 4);
  CHECK(listed_in_full(tensors_of("gpt-neox", "pythia-70m")).size() == 6 * 15 + 4);
}

TEST_CASE("What only padding owns is where code bases pad", "[published]") {
  for (const published::Model& model : published::small_models()) {
    INFO(model.dialect << ", " << model.title);
    std::int64_t padding = published::unowned(model);
    if (model.dialect == "llm-c") {
      padding -= (64 - 50) * 24;
    } else if (model.dialect == "marian" && model.shape.learned_positions) {
      padding += 15 * 24;  // one table for both stacks
    }
    CHECK(padding == 0);
  }
}

TEST_CASE("Fused tensors are in the order of their code bases", "[published]") {
  Shape shape = published::small_llama();
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 1;
  shape.d_ff = 3;
  shape.d_model = 5;
  const auto rows = [](const published::Model& model, const std::string& name, int axis = 0) {
    return row_by_row(owner_of(model, name), axis);
  };
  const std::string layer = "decoder.layers.1.";
  const published::Model megatron = published::megatron(shape);
  // "q1 q2 k1 v1 | q3 q4 k2 v2", counted from 0.
  CHECK(rows(megatron, layer + "self_attention.linear_qkv.weight") == "q0 q1 k0 v0 q2 q3 k1 v1");
  const published::Owner& up = owner_of(megatron, layer + "mlp.linear_fc1.weight");
  CHECK(up.parts.at(0).entry == "layer.1.mlp_gate");
  CHECK(up.parts.at(0).select.at(0).runs == published::Runs{{0, 3}});
  CHECK(up.parts.at(1).entry == "layer.1.mlp_up");
  CHECK(up.parts.at(1).select.at(0).runs == published::Runs{{3, 3}});

  const published::Model phi3 = published::phi3(shape);
  CHECK(rows(phi3, "model.layers.1.self_attn.qkv_proj.weight") == "q0 q1 q2 q3 k0 k1 v0 v1");
  CHECK(owner_of(phi3, "model.layers.1.mlp.gate_up_proj.weight").parts.at(0).entry ==
        "layer.1.mlp_gate");

  Shape neox = published::small_neox();
  neox.d_model = 6;
  neox.heads = 3;
  const std::string one_head_after_another =
      "q0 q1 k0 k1 v0 v1 q2 q3 k2 k3 v2 v3 q4 q5 k4 k5 v4 v5";
  const published::Model pythia = published::gpt_neox(neox);
  const std::string attention = "gpt_neox.layers.2.attention.query_key_value.";
  CHECK(rows(pythia, attention + "weight") == one_head_after_another);
  CHECK(rows(pythia, attention + "bias") == one_head_after_another);

  Shape gpt = published::small_gpt();
  gpt.d_model = gpt.heads = 2;
  const std::string all = "q0 q1 k0 k1 v0 v1";
  CHECK(rows(published::hf_gpt2(gpt), "transformer.h.1.attn.c_attn.weight", 1) == all);
  CHECK(rows(published::nanogpt(gpt), "transformer.h.1.attn.c_attn.weight", 0) == all);
  CHECK(rows(published::torch_nn(gpt), "encoder.layers.1.self_attn.in_proj_weight") == all);

  const published::Model ngpt = published::ngpt(published::small_ngpt());
  CHECK(owner_of(ngpt, "transformer.h.1.c_fc.weight").parts.at(0).entry == "layer.1.mlp_up");
  CHECK(owner_of(ngpt, "transformer.h.1.suv").parts.at(1).entry == "layer.1.gate_scale");
}

TEST_CASE("Tensors of one shape are told apart as in their code bases", "[published]") {
  const struct {
    const char* dialect;
    const char* tensor;
    const char* entry;
  } rows[] = {
      // act(gate(x)) * up(x)
      {"hf-llama", "model.layers.1.mlp.gate_proj.weight", "layer.1.mlp_gate"},
      {"hf-llama", "model.layers.1.mlp.up_proj.weight", "layer.1.mlp_up"},
      {"meta-llama", "layers.1.feed_forward.w1.weight", "layer.1.mlp_gate"},
      {"meta-llama", "layers.1.feed_forward.w3.weight", "layer.1.mlp_up"},
      {"gguf-llama", "blk.1.ffn_gate.weight", "layer.1.mlp_gate"},
      {"gguf-llama", "blk.1.ffn_up.weight", "layer.1.mlp_up"},
      {"hf-t5", "decoder.block.1.layer.2.DenseReluDense.wi_0.weight", "decoder.1.mlp_gate"},
      {"hf-t5", "encoder.block.1.layer.1.DenseReluDense.wi_1.weight", "encoder.1.mlp_up"},
      // Norms, by what comes next before a block and by what came before after it.
      {"hf-llama", "model.layers.1.post_attention_layernorm.weight", "layer.1.mlp_norm_gain"},
      {"gpt-neox", "gpt_neox.layers.1.input_layernorm.bias", "layer.1.attention_norm_bias"},
      {"megatron", "decoder.layers.1.pre_mlp_layernorm.bias", "layer.1.mlp_norm_bias"},
      {"hf-gpt2", "transformer.h.1.ln_1.weight", "layer.1.attention_norm_gain"},
      {"hf-bert", "bert.encoder.layer.1.attention.output.LayerNorm.weight",
       "layer.1.attention_norm_gain"},
      {"hf-bert", "bert.encoder.layer.1.output.LayerNorm.bias", "layer.1.mlp_norm_bias"},
      {"hf-vit", "vit.encoder.layer.1.layernorm_after.weight", "layer.1.mlp_norm_gain"},
      {"opt", "model.decoder.layers.1.final_layer_norm.weight", "layer.1.mlp_norm_gain"},
      {"opt", "model.decoder.final_layer_norm.weight", "final_norm_gain"},
      {"hf-t5", "decoder.block.1.layer.1.layer_norm.weight", "decoder.1.cross_attention_norm_gain"},
      {"hf-t5", "encoder.block.1.layer.1.layer_norm.weight", "encoder.1.mlp_norm_gain"},
      {"hf-t5", "encoder.final_layer_norm.weight", "encoder.final_norm_gain"},
      {"hf-bart", "model.decoder.layers.1.encoder_attn_layer_norm.weight",
       "decoder.1.cross_attention_norm_gain"},
      {"hf-bart", "model.encoder.layers.1.final_layer_norm.weight", "encoder.1.mlp_norm_gain"},
      {"fairseq", "encoder.layers.1.self_attn_layer_norm.bias", "encoder.1.attention_norm_bias"},
      {"fairseq", "decoder.layernorm_embedding.bias", "decoder.embedding_norm_bias"},
      {"torch-nn", "decoder.layers.1.norm2.weight", "decoder.1.cross_attention_norm_gain"},
      {"torch-nn", "decoder.layers.1.norm3.weight", "decoder.1.mlp_norm_gain"},
      {"torch-nn", "encoder.layers.1.norm2.weight", "encoder.1.mlp_norm_gain"},
      {"marian", "decoder_l2_context_Wo_ln_scale", "decoder.1.cross_attention_norm_gain"},
      {"marian", "encoder_l1_ffn_ffn_ln_bias", "encoder.0.mlp_norm_bias"},
      {"marian", "decoder_top_ln_scale", "decoder.final_norm_gain"},
      {"marian", "decoder_emb_ln_scale_pre", "decoder.embedding_norm_gain"},
      // Square matrices, and steps of two blocks.
      {"hf-bart", "model.decoder.layers.1.encoder_attn.v_proj.weight", "decoder.1.cross_value"},
      {"hf-bart", "model.decoder.layers.1.self_attn.out_proj.bias",
       "decoder.1.attention_output_bias"},
      {"marian", "decoder_l3_self_Wk", "decoder.2.key"},
      {"marian", "decoder_l3_context_Wo", "decoder.2.cross_attention_output"},
      {"hf-t5", "decoder.block.2.layer.1.EncDecAttention.q.weight", "decoder.2.cross_query"},
      {"ngpt", "transformer.h.2.att_c_proj.weight", "layer.2.attention_output"},
      {"ngpt", "transformer.h.2.mlp_alpha", "layer.2.mlp_step"},
      {"timm-vit", "blocks.2.ls1.gamma", "layer.2.attention_gain"},
  };
  const std::vector<published::Model> models = published::small_models();
  for (const auto& row : rows) {
    INFO(row.dialect << ", " << row.tensor);
    std::set<std::string> found;
    for (const published::Model& model : models) {
      // One stack has other entries than two.
      const bool two = std::string(row.entry).find("coder.") != std::string::npos;
      if (model.dialect != row.dialect || (model.shape.encoder_depth > 0) != two) continue;
      for (const published::Owner& owner : model.owners) {
        if (owner.tensor.name == row.tensor) found.insert(owner.parts.front().entry);
      }
    }
    CHECK(found == std::set<std::string>{row.entry});
  }
}

TEST_CASE("Padding of tokens comes last", "[published]") {
  const auto select = [](const published::Model& model, const std::string& name) {
    return owner_of(model, name).parts.front().select.at(0);
  };
  const published::Model llm_c = published::llm_c(published::small_gpt_of_four_widths(), 64);
  CHECK(select(llm_c, "wte").runs == published::Runs{{0, 50}});
  CHECK(select(llm_c, "wte").axis == 0);
}

TEST_CASE("Names and shapes of one layer are those that nn.Transformer prints", "[published]") {
  Shape shape = published::small_bart();
  shape.d_ff = 40;
  const published::Model model = published::torch_nn(shape);
  const std::vector<published::NamedShape> printed = {
      {"decoder.layers.0.self_attn.in_proj_weight", {72, 24}},
      {"decoder.layers.0.self_attn.in_proj_bias", {72}},
      {"decoder.layers.0.self_attn.out_proj.weight", {24, 24}},
      {"decoder.layers.0.self_attn.out_proj.bias", {24}},
      {"decoder.layers.0.multihead_attn.in_proj_weight", {72, 24}},
      {"decoder.layers.0.multihead_attn.in_proj_bias", {72}},
      {"decoder.layers.0.multihead_attn.out_proj.weight", {24, 24}},
      {"decoder.layers.0.multihead_attn.out_proj.bias", {24}},
      {"decoder.layers.0.linear1.weight", {40, 24}},
      {"decoder.layers.0.linear1.bias", {40}},
      {"decoder.layers.0.linear2.weight", {24, 40}},
      {"decoder.layers.0.linear2.bias", {24}},
      {"decoder.layers.0.norm1.weight", {24}},
      {"decoder.layers.0.norm1.bias", {24}},
      {"decoder.layers.0.norm2.weight", {24}},
      {"decoder.layers.0.norm2.bias", {24}},
      {"decoder.layers.0.norm3.weight", {24}},
      {"decoder.layers.0.norm3.bias", {24}},
  };
  std::vector<published::NamedShape> found;
  for (const published::NamedShape& tensor : listed(model)) {
    if (tensor.name.starts_with("decoder.layers.0.")) found.push_back(tensor);
  }
  CHECK(found == printed);
}
