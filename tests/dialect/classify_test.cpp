// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/dialect/classify.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/dialect/detect.hpp"
#include "scalewise/dialect/flat_blocks.hpp"
#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/maximal_update.hpp"
#include "support/catch.hpp"
#include "support/published/shapes.hpp"
#include "support/small_shapes.hpp"

using namespace scalewise;
using namespace scalewise::dialect;
using Catch::Matchers::ContainsSubstring;
using scalewise::test::biasless_gpt;

namespace {

/// nanoGPT with bias=False, as named_parameters() and the tied head give it.
std::vector<ModelTensor> nano(long depth = 2) {
  std::vector<ModelTensor> model{{"transformer.wte.weight", {50, 24}},
                                 {"transformer.wpe.weight", {16, 24}}};
  for (long l = 0; l < depth; ++l) {
    const std::string h = "transformer.h." + std::to_string(l) + ".";
    model.push_back({h + "ln_1.weight", {24}});
    model.push_back({h + "attn.c_attn.weight", {72, 24}});
    model.push_back({h + "attn.c_proj.weight", {24, 24}});
    model.push_back({h + "ln_2.weight", {24}});
    model.push_back({h + "mlp.c_fc.weight", {40, 24}});
    model.push_back({h + "mlp.c_proj.weight", {24, 40}});
  }
  model.push_back({"transformer.ln_f.weight", {24}});
  model.push_back({"lm_head.weight", {50, 24}});
  return model;
}

ModelTensor& at(std::vector<ModelTensor>& model, const std::string& name) {
  return *std::find_if(model.begin(), model.end(),
                       [&](const ModelTensor& tensor) { return tensor.name == name; });
}

std::string only_problem(const Assignment& assignment) {
  REQUIRE(assignment.problems.size() == 1);
  return assignment.problems.front();
}

}  // namespace

TEST_CASE("The tensors of a nanoGPT are found, and a fused matrix is cut along its outputs") {
  const Assignment found = classify(nanogpt, biasless_gpt(), nano());
  CHECK(found.problems.empty());
  CHECK(found.tensors.size() == 15);
  REQUIRE(found.aliases.size() == 1);
  CHECK(found.aliases[0].name == "lm_head.weight");
  CHECK(found.aliases[0].of == "transformer.wte.weight");
  const OwnerTensor& fused = *std::find_if(
      found.tensors.begin(), found.tensors.end(),
      [](const OwnerTensor& t) { return t.name == "transformer.h.1.attn.c_attn.weight"; });
  CHECK(fused.transposed);
  REQUIRE(fused.parts.size() == 3);
  CHECK(fused.parts[0] == OwnedPart{"layer.1.query", {{0, {{0, 24}}}}});
  CHECK(fused.parts[1] == OwnedPart{"layer.1.key", {{0, {{24, 24}}}}});
  CHECK(fused.parts[2] == OwnedPart{"layer.1.value", {{0, {{48, 24}}}}});
  CHECK(detect(biasless_gpt(), nano()).dialect == "nanogpt");
}

TEST_CASE("Wrappers anywhere in names and an optional prefix do not matter") {
  std::vector<ModelTensor> wrapped = nano();
  for (ModelTensor& tensor : wrapped) tensor.name.insert(0, "_orig_mod.module.");
  CHECK(classify(nanogpt, biasless_gpt(), wrapped).problems.empty());
  std::vector<ModelTensor> bare = nano();
  for (ModelTensor& tensor : bare) {
    if (tensor.name.starts_with("transformer.")) tensor.name.erase(0, 12);
  }
  CHECK(classify(nanogpt, biasless_gpt(), bare).problems.empty());
  wrapped.back().name = "lm_head.weight";  // one without
  CHECK(classify(nanogpt, biasless_gpt(), wrapped).problems.empty());

  // As FSDP, activation checkpointing and torch.compile nest them, block by block.
  wrapped = nano();
  for (ModelTensor& tensor : wrapped) {
    const std::size_t at = tensor.name.find(".h.");
    if (at != std::string::npos) {
      tensor.name.insert(at + 4, "._fsdp_wrapped_module._checkpoint_wrapped_module._orig_mod");
    }
    tensor.name.insert(0, "_fsdp_wrapped_module.");
  }
  const Assignment found = classify(nanogpt, biasless_gpt(), wrapped);
  CHECK(found.problems.empty());
  CHECK(found.tensors.size() == 15);
  CHECK(found.tensors.front().name == "_fsdp_wrapped_module.transformer.wte.weight");
  CHECK(detect(biasless_gpt(), wrapped).dialect == "nanogpt");
  CHECK(unwrapped("module") == "module");  // a tensor of that name
  CHECK(unwrapped("module.a.module_list.0") == "a.module_list.0");
}

TEST_CASE("A prefix that all names have and no code base has is named once") {
  std::vector<ModelTensor> model = nano();
  for (ModelTensor& tensor : model) tensor.name.insert(0, "net.model.");
  const Assignment found = classify(nanogpt, biasless_gpt(), model);
  CHECK(only_problem(found) ==
        "all names begin with net.model., which nanogpt does not have (hint: give the module that "
        "it names)");
  CHECK(found.tensors.size() == 15);
  CHECK(nearest_dialect(biasless_gpt(), model).assignment.dialect == "nanogpt");
}

TEST_CASE("Names that no code base has are not claimed for one") {
  const std::vector<ModelTensor> model{{"net.a", {24}},
                                       {"net.b", {24}},
                                       {"net.c", {24}},
                                       {"net.d", {24}},
                                       {"net.norm.weight", {24}}};
  const Detection found = nearest_dialect(biasless_gpt(), model);
  CHECK(found.assignment.dialect.empty());
  CHECK(only_problem(found.assignment) ==
        "no code base is known that has names such as net.a; all begin with net. (hint: describe "
        "them in a file for --names)");
  CHECK_THROWS_WITH(detect(biasless_gpt(), model), ContainsSubstring("no code base is known"));
  CHECK(kind_of_names("model.layers.0.mlp.up_proj.qweight").starts_with("quantized by GPTQ"));
  CHECK(
      kind_of_names("model.layers.0.mlp.up_proj.weight_scale_inv").starts_with("quantized to FP8"));
  CHECK(kind_of_names("base_model.model.q_proj.lora_A.weight").starts_with("an adapter (LoRA)"));
  CHECK(kind_of_names("model.layers.0.mlp.up_proj.weight").empty());
}

TEST_CASE("Tensors that differ in the layer alone are one line, which says what to set") {
  // llama.cpp: metadata say 2048, tensors are [3072, 768].
  Shape shape = biasless_gpt(24, 3);
  shape.gated_mlp = true;
  shape.learned_positions = false;
  shape.tied_head = false;
  shape.kv_heads = 2;
  shape = resolved(shape);
  std::vector<ModelTensor> model;
  const auto wrong = [&](const std::string& part, std::size_t axis, std::int64_t size) {
    model.clear();
    for (const OwnerTensor& tensor : usual_tensors(gguf_llama, shape).tensors) {
      model.push_back({tensor.name, tensor.shape});
      if (tensor.name.find(part) != std::string::npos) model.back().shape[axis] = size;
    }
    return only_problem(classify(gguf_llama, shape, model));
  };
  CHECK(wrong("ffn_gate", 0, 60) ==
        "blk.*.ffn_gate.weight (3 tensors): [60, 24]: expected [40, 24] (hint: d_ff = 40, but 60 "
        "here: "
        "--set d_ff=60)");
  CHECK(wrong("ffn_down", 1, 60) ==
        "blk.*.ffn_down.weight (3 tensors): [24, 60]: expected [24, 40] (hint: d_ff = 40, but 60 "
        "here: "
        "--set d_ff=60)");
  // Exporters forget head_dim: 4 heads of 8 where 24/4 = 6.
  CHECK(wrong("attn_q.", 0, 32) ==
        "blk.*.attn_q.weight (3 tensors): [32, 24]: expected [24, 24] (hint: head_dim = 6, but 8 "
        "here: "
        "--set head_dim=8)");
  CHECK(wrong("attn_k.", 0, 24) ==
        "blk.*.attn_k.weight (3 tensors): [24, 24]: expected [12, 24] (hint: head_dim = 6, but 12 "
        "here: "
        "--set head_dim=12 or kv_heads=4)");
  CHECK(wrong("blk.1.ffn_up", 0, 60).starts_with("blk.1.ffn_up.weight: [60, 24]: expected"));
  CHECK(wrong("token_embd", 0, 51) ==
        "token_embd.weight: [51, 24]: expected [50, 24] (hint: vocab = 50, but 51 here: --set "
        "vocab=51)");
  CHECK(wrong("ffn_norm", 0, 25) == "blk.*.ffn_norm.weight (3 tensors): [25]: expected [24]");
  const auto without = [&](std::initializer_list<const char*> parts) {
    model.clear();
    for (const OwnerTensor& tensor : usual_tensors(gguf_llama, shape).tensors) {
      const bool gone = std::any_of(parts.begin(), parts.end(), [&](const char* part) {
        return tensor.name.find(part) != std::string::npos;
      });
      if (!gone) model.push_back({tensor.name, tensor.shape});
    }
    return only_problem(classify(gguf_llama, shape, model));
  };
  CHECK(without({"ffn_norm"}) ==
        "blk.*.ffn_norm.weight (3 tensors): missing: expected [24] for layer.*.mlp_norm_gain");
  CHECK(without({"blk.1.ffn_norm", "blk.2.ffn_norm"}) ==
        "blk.*.ffn_norm.weight (2 tensors, * = 1-2): missing: expected [24] for "
        "layer.*.mlp_norm_gain");
  CHECK(without({"blk.1.", "blk.2."}) == "layer.1-2: no tensor found, but depth = 3");
}

TEST_CASE("An image model's tensors have the axes of its code base") {
  // transformers 005db82, models/vit/modeling_vit.py: torch.randn(1, 1, n), torch.randn(1, patches + 1, n) and
  // nn.Conv2d(channels, n, patch); timm vision_transformer.py the same.
  Shape shape{.input = Input::patch, .d_model = 24, .depth = 1, .heads = 4, .context = 10};
  shape.patch_dim = 3 * 4 * 4;
  shape.classes = 5;
  shape.class_token = true;
  shape = resolved(shape);
  shape.tied_head = false;
  const auto shape_of = [&](const Dialect& dialect, const std::string& name) {
    const Assignment usual = usual_tensors(dialect, shape);
    CHECK(usual.problems.empty());
    const auto at = std::find_if(usual.tensors.begin(), usual.tensors.end(),
                                 [&](const OwnerTensor& tensor) { return tensor.name == name; });
    REQUIRE(at != usual.tensors.end());
    return at->shape;
  };
  using Sizes = std::vector<std::int64_t>;
  CHECK(shape_of(hf_vit, "vit.embeddings.cls_token") == Sizes{1, 1, 24});
  CHECK(shape_of(hf_vit, "vit.embeddings.position_embeddings") == Sizes{1, 10, 24});
  CHECK(shape_of(hf_vit, "vit.embeddings.patch_embeddings.projection.weight") ==
        Sizes{24, 3, 4, 4});
  CHECK(shape_of(hf_vit_5, "vit.layers.0.attention.q_proj.weight") == Sizes{24, 24});
  CHECK(shape_of(timm_vit, "cls_token") == Sizes{1, 1, 24});
  CHECK(shape_of(timm_vit, "pos_embed") == Sizes{1, 10, 24});
  CHECK(shape_of(timm_vit, "patch_embed.proj.weight") == Sizes{24, 3, 4, 4});
  shape.patch_dim = 16;  // grey
  CHECK(shape_of(timm_vit, "patch_embed.proj.weight") == Sizes{24, 1, 4, 4});
  shape.patch_dim = 17;
  CHECK(shape_of(timm_vit, "patch_embed.proj.weight") == Sizes{24, 17});
}

TEST_CASE("Names of transformers 4 and 5 are both known") {
  Shape neox = biasless_gpt(24, 1);
  neox.tied_head = neox.learned_positions = false;
  neox.biases = neox.norm_bias = true;
  neox = resolved(neox);
  std::vector<ModelTensor> model;
  for (const OwnerTensor& tensor : usual_tensors(gpt_neox, neox).tensors) {
    model.push_back({tensor.name, tensor.shape});
  }
  CHECK(at(model, "embed_out.weight").shape == std::vector<std::int64_t>{50, 24});
  at(model, "embed_out.weight").name = "lm_head.weight";
  CHECK(classify(gpt_neox, neox, model).problems.empty());
  CHECK(detect(neox, model).dialect == "gpt-neox");
  CHECK(usual_tensors(gpt_neox_5, neox).problems.empty());
  CHECK(usual_tensors(gpt_neox_5, neox).tensors.front().name == "lm_head.weight");
}

TEST_CASE("A layer that no plan has is planned where it is an extra tensor") {
  // BertForMaskedLM: cls.predictions.transform, as in modeling_bert.py.
  Shape shape = biasless_gpt(24, 1);
  const std::string transform = "cls.predictions.transform.";
  const std::vector<Extra> extras{
      {transform + "dense.weight", Group::mlp_up, "d_model", "d_model"},
      {transform + "dense.bias", Group::hidden_bias, "d_model", "1", "d_model"},
      {transform + "LayerNorm.weight", Group::final_norm_gain, "d_model"},
      {transform + "LayerNorm.bias", Group::final_norm_bias, "d_model"}};
  const std::vector<ModelTensor> model{{transform + "dense.weight", {24, 24}},
                                       {transform + "dense.bias", {24}},
                                       {transform + "LayerNorm.weight", {24}},
                                       {transform + "LayerNorm.bias", {24}}};
  CHECK(classify(hf_bert, shape, model).unplanned.size() == 4);
  CHECK(classify(hf_bert, shape, model, extras).unplanned.empty());
  CHECK(classify(hf_bert, shape, model, extras).tensors.size() == 4);
  const std::vector<std::string> unplanned = usual_tensors(hf_bert, shape).unplanned;
  CHECK(std::find(unplanned.begin(), unplanned.end(), transform + "dense.weight") !=
        unplanned.end());
}

TEST_CASE("torchtitan's Qwen has norms of queries and keys, and biases") {
  // pytorch/torchtitan, models/qwen3/model: attention.q_norm.weight, k_norm.weight.
  Shape shape = biasless_gpt(24, 2);
  shape.gated_mlp = true;
  shape.tied_head = shape.learned_positions = false;
  shape.qk_norm = QkNorm::head;
  shape.attention_biases = AttentionBiases::qkv;
  shape.biases = false;
  const Assignment usual = usual_tensors(meta_llama, resolved(shape));
  CHECK(usual.problems.empty());
  std::set<std::string> names;
  for (const OwnerTensor& tensor : usual.tensors) names.insert(tensor.name);
  CHECK(names.contains("layers.1.attention.q_norm.weight"));
  CHECK(names.contains("layers.1.attention.wk.bias"));
}

TEST_CASE("Key heads by the million take no memory") {
  Shape shape = biasless_gpt(24, 1);
  shape.heads = shape.kv_heads = 1L << 28;
  shape.head_dim = 1;
  const Assignment found = classify(megatron, shape, {{"output_layer.weight", {50, 24}}});
  CHECK_THAT(
      found.problems.front(),
      ContainsSubstring("268435456 key heads in each layer are more groups than can be listed"));
}

TEST_CASE("Each mistake in a list of tensors is one line that names the tensor") {
  std::vector<ModelTensor> model = nano();
  const auto problem = [&] { return only_problem(classify(nanogpt, biasless_gpt(), model)); };
  SECTION("transposed") {
    at(model, "transformer.h.0.mlp.c_fc.weight").shape = {24, 40};
    CHECK_THAT(problem(), ContainsSubstring("transformer.h.0.mlp.c_fc.weight: [24, 40]: expected "
                                            "[40, 24] (hint: it is transposed)"));
  }
  SECTION("of another size") {
    at(model, "transformer.wpe.weight").shape = {17, 24};
    CHECK_THAT(problem(), ContainsSubstring("transformer.wpe.weight: [17, 24]: expected [16, 24]"));
  }
  SECTION("dropped") {
    model.erase(model.begin() + 3);
    CHECK_THAT(problem(), ContainsSubstring("transformer.h.0.attn.c_attn.weight: missing: expected "
                                            "[72, 24] for layer.0.query, layer.0.key"));
  }
  SECTION("a head that is tied in the file") {
    Shape untied = biasless_gpt();
    untied.tied_head = false;
    model.pop_back();
    CHECK(only_problem(classify(nanogpt, untied, model)) ==
          "lm_head.weight: missing: expected [50, 24] for head (hint: or --set tied_head=true, if "
          "it is the embedding)");
  }
  SECTION("a whole layer dropped") {
    std::erase_if(model, [](const ModelTensor& t) { return t.name.find(".h.1.") < 20; });
    CHECK(problem() == "layer.1: no tensor found, but depth = 2");
  }
  SECTION("a layer too many") {
    model.push_back({"transformer.h.2.ln_1.weight", {24}});
    CHECK(problem() == "transformer.h.2.ln_1.weight: of layer 2, but depth = 2");
  }
  SECTION("given twice") {
    model.push_back(model[4]);
    CHECK(problem() == model[4].name + ": given twice");
  }
  SECTION("with and without the prefix") {
    model.push_back({"wte.weight", {50, 24}});
    CHECK_THAT(problem(),
               ContainsSubstring("wte.weight: the same tensor as transformer.wte.weight"));
  }
  SECTION("unknown") {
    model.push_back({"transformer.h.0.attn.rope", {24}});
    CHECK_THAT(problem(), ContainsSubstring("transformer.h.0.attn.rope: is none of the tensors"));
  }
  SECTION("a bias that the shape does not have") {
    model.push_back({"transformer.ln_f.bias", {24}});
    CHECK(problem() ==
          "transformer.ln_f.bias: is final_norm_bias, which a model of this shape does not have "
          "under this name");
  }
  SECTION("renamed, which is missing too") {
    at(model, "transformer.h.1.ln_2.weight").name = "transformer.h.1.ln2.weight";
    const Assignment found = classify(nanogpt, biasless_gpt(), model);
    REQUIRE(found.problems.size() == 2);
    CHECK_THAT(found.problems[0], ContainsSubstring("transformer.h.1.ln_2.weight: missing"));
    // A program wrote the name, and has no typos.
    CHECK(found.problems[1] == "transformer.h.1.ln2.weight: is none of the tensors of nanogpt");
  }
}

TEST_CASE("A layer too many is counted in its own stack") {
  Shape both = biasless_gpt();
  both.encoder_depth = 4;
  std::vector<ModelTensor> model{{"transformer.encoder.layers.4.norm1.weight", {24}},
                                 {"transformer.decoder.layers.2.norm1.weight", {24}}};
  const std::vector<std::string> problems = classify(torch_nn, resolved(both), model).problems;
  const auto has = [&](const std::string& text) {
    return std::find(problems.begin(), problems.end(), text) != problems.end();
  };
  CHECK(has("transformer.encoder.layers.4.norm1.weight: of layer 4, but depth = 4"));
  CHECK(has("transformer.decoder.layers.2.norm1.weight: of layer 2, but depth = 2"));
}

TEST_CASE("Buffers, and tensors that no plan has, are listed") {
  std::vector<ModelTensor> model = nano();
  model.push_back({"transformer.h.1.attn.bias", {1, 1, 16, 16}});
  const Assignment found = classify(nanogpt, biasless_gpt(), model);
  CHECK(found.problems.empty());
  CHECK(found.buffers == std::vector<std::string>{"transformer.h.1.attn.bias"});
  const Assignment pooled =
      classify(hf_bert, biasless_gpt(), {{"bert.pooler.dense.weight", {24, 24}}});
  CHECK(pooled.unplanned == std::vector<std::string>{"bert.pooler.dense.weight"});
}

TEST_CASE("One storage in two roles, and two storages in one, are told") {
  std::vector<ModelTensor> model = nano();
  std::vector<char> memory(model.size());
  for (std::size_t i = 0; i < model.size(); ++i) model[i].storage = &memory[i];
  CHECK_THAT(only_problem(classify(nanogpt, biasless_gpt(), model)),
             ContainsSubstring("lm_head.weight: not the same storage as transformer.wte.weight") &&
                 ContainsSubstring("tied_head=false"));
  model.back().storage = model.front().storage;
  CHECK(classify(nanogpt, biasless_gpt(), model).problems.empty());
  Shape untied = biasless_gpt();
  untied.tied_head = false;
  CHECK_THAT(only_problem(classify(nanogpt, untied, model)),
             ContainsSubstring("lm_head.weight: the same storage as transformer.wte.weight") &&
                 ContainsSubstring("tied_head=true"));
  at(model, "transformer.h.0.ln_2.weight").storage =
      at(model, "transformer.h.0.ln_1.weight").storage;
  CHECK_THAT(only_problem(classify(nanogpt, biasless_gpt(), model)),
             ContainsSubstring("transformer.h.0.ln_2.weight: the same storage as "
                               "transformer.h.0.ln_1.weight"));
}

TEST_CASE("A vocabulary may be padded to a multiple of 64, and only it") {
  std::vector<ModelTensor> model = nano();
  model.front().shape = model.back().shape = {64, 24};
  const Assignment padded = classify(nanogpt, biasless_gpt(), model);
  CHECK(padded.problems.empty());
  REQUIRE(padded.tensors.front().padding.size() == 1);
  CHECK(padded.tensors.front().padding[0] == AxisRuns{0, {{50, 14}}});
  CHECK(padded.tensors.front().parts[0].select == std::vector<AxisRuns>{{0, {{0, 50}}}});
  model.front().shape = model.back().shape = {51, 24};
  CHECK_THAT(only_problem(classify(nanogpt, biasless_gpt(), model)), ContainsSubstring("[51, 24]"));
  model.front().shape = model.back().shape = {50 + 1024 + 14, 24};
  CHECK_THAT(only_problem(classify(nanogpt, biasless_gpt(), model)),
             ContainsSubstring("[1088, 24]"));
}

TEST_CASE("The same names with inputs first are another dialect") {
  std::vector<ModelTensor> model = nano();
  for (ModelTensor& tensor : model) {
    if (tensor.name.find(".c_") < 40) std::swap(tensor.shape[0], tensor.shape[1]);
  }
  CHECK(detect(biasless_gpt(), model).dialect == "hf-gpt2");
  const Assignment found = classify(hf_gpt2, biasless_gpt(), model);
  for (const OwnerTensor& tensor : found.tensors) {
    if (tensor.parts.size() < 3) continue;
    CHECK_FALSE(tensor.transposed);
    CHECK(tensor.parts[2].select == std::vector<AxisRuns>{{1, {{48, 24}}}});
  }
  model[3].shape = {1, 1};
  CHECK_THROWS_WITH(detect(biasless_gpt(), model), ContainsSubstring("the nearest is hf-gpt2"));
}

TEST_CASE("Groups of a key head and its query heads lie side by side") {
  Shape s = biasless_gpt();
  s.kv_heads = 2;  // of four query heads, six wide
  s.biases = true;
  const Assignment usual = usual_tensors(megatron, resolved(s));
  const auto fused = std::find_if(usual.tensors.begin(), usual.tensors.end(), [](const auto& t) {
    return t.name == "decoder.layers.0.self_attention.linear_qkv.weight";
  });
  // Rows q0 q1 k0 v0 | q2 q3 k1 v1, six each.
  CHECK(fused->shape == std::vector<std::int64_t>{48, 24});
  CHECK(fused->parts[0].select == std::vector<AxisRuns>{{0, {{0, 12}, {24, 12}}}});
  CHECK(fused->parts[1].select == std::vector<AxisRuns>{{0, {{12, 6}, {36, 6}}}});
  CHECK(fused->parts[2].select == std::vector<AxisRuns>{{0, {{18, 6}, {42, 6}}}});
}

TEST_CASE("Flat blocks cover each number of a tensor once, and those of its part") {
  const auto visit = [](const OwnerTensor& tensor) {
    std::int64_t size = 1;
    for (const std::int64_t n : tensor.shape) size *= n;
    std::vector<int> owner(static_cast<std::size_t>(size), -1);
    for (std::size_t p = 0; p < tensor.parts.size(); ++p) {
      for (const FlatBlock& block : flat_blocks(tensor, tensor.parts[p])) {
        for (std::int64_t r = 0; r < block.repeats; ++r) {
          for (std::int64_t i = 0; i < block.count; ++i) {
            int& at = owner.at(static_cast<std::size_t>(block.offset + r * block.stride + i));
            REQUIRE(at == -1);
            at = static_cast<int>(p);
          }
        }
      }
    }
    // The same by index.
    for (std::int64_t flat = 0; flat < size; ++flat) {
      std::vector<std::int64_t> index(tensor.shape.size());
      std::int64_t rest = flat;
      for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
        index[axis] = rest % tensor.shape[axis];
        rest /= tensor.shape[axis];
      }
      int expected = -1;
      for (std::size_t p = 0; p < tensor.parts.size(); ++p) {
        bool inside = true;
        for (const AxisRuns& select : tensor.parts[p].select) {
          const std::int64_t i = index[static_cast<std::size_t>(select.axis)];
          bool found = false;
          for (const IndexRun& run : select.runs) {
            for (std::int64_t k = 0; k < run.count; ++k) found |= i == run.begin + k * run.step;
          }
          inside = inside && found;
        }
        if (inside) expected = static_cast<int>(p);
      }
      REQUIRE(owner[static_cast<std::size_t>(flat)] == expected);
    }
  };
  Shape s = biasless_gpt();
  s.kv_heads = 2;
  s.biases = s.norm_bias = true;
  const auto visit_all = [&](const Dialect& dialect, const Shape& shape) {
    INFO(dialect.id);
    const Assignment usual = usual_tensors(dialect, resolved(shape));
    CHECK(usual.problems.empty());
    for (const OwnerTensor& tensor : usual.tensors) visit(tensor);
  };
  for (const Dialect* dialect : {&hf_gpt2, &nanogpt, &llm_c, &megatron, &opt})
    visit_all(*dialect, s);
  visit_all(torchtitan, test::published::small_llama());
}

TEST_CASE("Parts of one tensor that want different rates are refused by name") {
  Plan plan = make_plan(MaximalUpdate{}, {.model = biasless_gpt(48), .base = biasless_gpt()});
  CHECK(name_plan(plan, nanogpt).assignment.problems.empty());
  for (Entry& entry : plan.entries) {
    if (entry.name == "layer.1.key") entry.learning_rate.value *= 2;
  }
  const NamedPlan named = name_plan(plan, nanogpt);
  REQUIRE(named.assignment.problems.size() == 1);
  CHECK_THAT(named.assignment.problems[0],
             ContainsSubstring("transformer.h.1.attn.c_attn.weight: layer.1.query and layer.1.key "
                               "are parts of it, but want different learning rates"));
  CHECK(name_plan(plan, gguf_llama).assignment.problems.size() > 0);  // has no position table
}

namespace {

/// A gated model of few key heads, so that megatron has fused matrices of unlike parts.
Shape grouped(long width, long heads, long kv_heads, long d_ff) {
  Shape s = biasless_gpt(width);
  s.heads = heads;
  s.kv_heads = kv_heads;
  s.head_dim = 8;
  s.d_ff = d_ff;
  s.gated_mlp = true;
  s.tied_head = s.learned_positions = false;
  return s;
}

}  // namespace

TEST_CASE("Muon takes a fused matrix only where it is known what it does with one") {
  const auto problems = [](const Shape& target, const Shape& base, const Optimizer& optimizer,
                           std::optional<Cut> cut) {
    const Plan plan =
        make_plan("maximal-update", {.model = target, .base = base, .optimizer = optimizer});
    return name_plan(plan, megatron, cut).assignment.problems;
  };
  const Shape base = grouped(32, 4, 2, 96);
  const Shape larger = grouped(64, 8, 4, 192);
  for (const Optimizer& optimizer : {muon, muon_original, muon_spectral}) {
    INFO(optimizer.name);
    const std::vector<std::string> unsaid = problems(larger, base, optimizer, {});
    REQUIRE(unsaid.size() == 4);  // two in each of two layers
    CHECK_THAT(unsaid[0],
               ContainsSubstring("decoder.layers.0.self_attention.linear_qkv.weight: layer.0.query "
                                 "and layer.0.key are parts of it, but " +
                                 std::string(optimizer.name) + " normalizes whole matrices") &&
                   ContainsSubstring("--cut qkv") && ContainsSubstring("--cut none"));
    CHECK(problems(larger, base, optimizer, Cut::qkv).empty());
    CHECK(problems(larger, base, optimizer, Cut::none).empty());
  }
  // A base with fewer layers.
  Shape deeper = larger;
  deeper.depth = 7;
  CHECK(problems(deeper, base, muon_spectral, Cut::qkv).empty());
  CHECK(problems(deeper, base, muon_spectral, Cut::none).empty());
  // Twice the query heads and as many key heads: the three have rates of their own, also as one matrix.
  const Shape fewer_keys = grouped(64, 8, 2, 192);
  CHECK_THAT(problems(fewer_keys, base, muon, Cut::qkv).at(0),
             ContainsSubstring("layer.0.query and layer.0.key are parts of it, but want different "
                               "learning rates (1 and 0.7071"));
  CHECK_THAT(problems(fewer_keys, base, muon, Cut::none).at(0),
             ContainsSubstring("layer.0.query and layer.0.key are one matrix to muon-plain, but "
                               "their outputs are 2 and 1 times the base's"));
  Shape deep_fewer_keys = fewer_keys;
  deep_fewer_keys.depth = 7;
  const auto of_layers = problems(deep_fewer_keys, base, muon, Cut::none);
  CHECK(std::count_if(of_layers.begin(), of_layers.end(), [](const std::string& line) {
          return line.find("are one matrix to muon-plain") != std::string::npos;
        }) == 7);
  // Gate and up together are wider than the stream in the base, and each of them in neither: √max(1, 2F/n)
  // of PyTorch's Muon is 1.225 in the base and 1 in the target.
  const auto of_mlp =
      problems(grouped(64, 8, 4, 24), grouped(32, 4, 2, 24), muon_original, Cut::qkv);
  REQUIRE(of_mlp.size() == 2);
  CHECK_THAT(of_mlp[0], ContainsSubstring(
                            "layer.0.mlp_gate and layer.0.mlp_up are one matrix to muon-original, "
                            "but its own factors for one and both are 1 and 0.8164"));
}

TEST_CASE("The rate of a matrix that Muon cuts is that of the cut") {
  const Shape base = grouped(32, 4, 2, 96), larger = grouped(128, 8, 4, 384);
  const Plan plan =
      make_plan("maximal-update", {.model = larger, .base = base, .optimizer = muon_original});
  const NamedPlan named = name_plan(plan, megatron, Cut::qkv);
  REQUIRE(named.assignment.problems.empty());
  std::size_t found = 0;
  for (std::size_t i = 0; i < named.factors.size(); ++i) {
    if (!named.assignment.tensors[i].name.ends_with("linear_qkv.weight")) continue;
    ++found;
    // TensorParallelMuon of Megatron-LM 000a717 cuts (groups (queries per group + 2) head_dim, columns) into the
    // rows of all queries, keys and values; shape_scaling is √max(1, rows/columns) of each. The spectral
    // condition wants √(rows/columns), over the base's.
    for (const auto& [rows, base_rows] : {std::pair(8 * 8., 4 * 8.), std::pair(4 * 8., 2 * 8.)}) {
      const double own = std::sqrt(std::max(1., rows / 128) / std::max(1., base_rows / 32));
      const double wanted = std::sqrt(rows / 128) / std::sqrt(base_rows / 32);
      CHECK(std::abs(named.factors[i].learning_rate * own - wanted) <= 1e-14);
    }
  }
  CHECK(found == 2);
}

TEST_CASE("Layers of a slab are matrices of their own to Muon") {
  const Plan plan =
      make_plan("maximal-update",
                {.model = biasless_gpt(48), .base = biasless_gpt(), .optimizer = muon_original});
  CHECK(name_plan(plan, llm_c).assignment.problems.size() > 3);  // it has biases
  const auto about = [&](std::optional<Cut> cut, const std::string& name) {
    const auto problems = name_plan(plan, llm_c, cut).assignment.problems;
    return std::count_if(problems.begin(), problems.end(),
                         [&](const std::string& line) { return line.starts_with(name + ": "); });
  };
  for (const char* name : {"qkvw", "attprojw", "fcw", "fcprojw"}) {
    CHECK(about({}, name) == 1);
    CHECK(about(Cut::none, name) == 0);
    CHECK(about(Cut::qkv, name) == 0);
  }
}

TEST_CASE("A shape that is not the model's does not hide the code base") {
  const auto llama = [](long width, long depth, long kv_heads) {
    Shape s = biasless_gpt(width, depth);
    s.kv_heads = kv_heads;
    s.gated_mlp = true;
    s.tied_head = s.learned_positions = false;
    return resolved(s);
  };
  std::vector<ModelTensor> model;
  for (const OwnerTensor& tensor : usual_tensors(hf_llama, llama(24, 2, 2)).tensors) {
    model.push_back({tensor.name, tensor.shape});
  }
  CHECK(detect(llama(24, 2, 2), model).dialect == "hf-llama");
  for (const Shape& other :
       {llama(48, 2, 2), llama(24, 3, 4), biasless_gpt(), biasless_gpt(48, 6)}) {
    const Detection found = nearest_dialect(other, model);
    CHECK(found.exact.empty());
    CHECK(found.assignment.dialect == "hf-llama");
  }
}

TEST_CASE("The nearest code base has the problems that it has by its name") {
  std::vector<ModelTensor> model = nano();
  at(model, "transformer.h.1.mlp.c_fc.weight").name = "transformer.h.1.mlp.fc.weight";
  const std::vector<std::string> problems =
      nearest_dialect(biasless_gpt(), model).assignment.problems;
  CHECK(problems == classify(nanogpt, biasless_gpt(), model).problems);
  REQUIRE_FALSE(problems.empty());
  CHECK(problems.back() == "transformer.h.1.mlp.fc.weight: is none of the tensors of nanogpt");
}

TEST_CASE("Tensors that the shape does not say are found by the names of the extras") {
  const std::vector<Extra> extras{
      {"transformer.h.*.attn.q_gain", Group::norm_gain, "head_dim"},
      {"transformer.h.*.adapter.weight", Group::mlp_up, "d_model", "7"}};
  std::vector<ModelTensor> model = nano();
  CHECK(classify(nanogpt, biasless_gpt(), model, extras).problems.size() ==
        2);  // missing, a line for each kind
  for (const char* layer : {"0", "1"}) {
    const std::string h = std::string("transformer.h.") + layer;
    model.push_back({h + ".attn.q_gain", {6}});
    model.push_back({h + ".adapter.weight", {7, 24}});  // outputs first, as nanoGPT has it
  }
  CHECK_FALSE(classify(nanogpt, biasless_gpt(), model).problems.empty());
  const Assignment found = classify(nanogpt, biasless_gpt(), model, extras);
  CHECK(found.problems.empty());
  CHECK(found.tensors.size() == classify(nanogpt, biasless_gpt(), nano()).tensors.size() + 4);
  CHECK(detect(biasless_gpt(), model, extras).dialect == "nanogpt");

  const Plan plan = make_plan(
      MaximalUpdate{}, {.model = biasless_gpt(48), .base = biasless_gpt(), .extras = extras});
  const NamedPlan named = name_plan(plan, nanogpt);
  CHECK(named.assignment.problems.empty());
  const OwnerTensor& last = named.assignment.tensors.back();
  CHECK(last.name == "transformer.h.1.adapter.weight");
  CHECK(last.transposed);
  CHECK(last.shape == std::vector<std::int64_t>{7, 48});
  CHECK(named.factors.back().learning_rate == 0.5);  // of a hidden matrix, 1/m_N

  std::vector<ModelTensor> wrapped = model;
  for (ModelTensor& tensor : wrapped) tensor.name = "module." + tensor.name;
  CHECK(classify(nanogpt, biasless_gpt(), wrapped, extras).problems.empty());
  const int one = 0;  // a storage
  at(model, "transformer.h.0.adapter.weight").storage = &one;
  at(model, "transformer.h.1.adapter.weight").storage = &one;
  CHECK_THAT(only_problem(classify(nanogpt, biasless_gpt(), model, extras)),
             ContainsSubstring("the same storage"));
  at(model, "transformer.h.1.adapter.weight").storage = nullptr;
  at(model, "transformer.h.1.adapter.weight").shape = {24, 7};
  CHECK_THAT(
      only_problem(classify(nanogpt, biasless_gpt(), model, extras)),
      ContainsSubstring("transformer.h.1.adapter.weight: ") && ContainsSubstring("transposed"));
}
