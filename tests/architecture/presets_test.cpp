// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#include "scalewise/architecture/presets.hpp"

#include <cmath>
#include <set>
#include <string>
#include <string_view>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/architecture/tensor.hpp"
#include "scalewise/messages/error.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

namespace {

using scalewise::Input;
using scalewise::InvalidInput;
using scalewise::Preset;
using scalewise::Shape;

// Retyped from the models' own code, not from the header.
struct Published {
  std::string_view id;
  long d_model, depth, encoder_depth, heads, kv_heads, head_dim, d_ff, vocab, context;
  long parameters = 0;  // where all of them are published
};

constexpr Published rows[] = {
    {"gpt2", 768, 12, 0, 12, 12, 64, 3072, 50257, 1024, 124439808},
    {"gpt2-medium", 1024, 24, 0, 16, 16, 64, 4096, 50257, 1024, 354823168},
    {"gpt2-large", 1280, 36, 0, 20, 20, 64, 5120, 50257, 1024, 774030080},
    {"gpt2-xl", 1600, 48, 0, 25, 25, 64, 6400, 50257, 1024, 1557611200},
    {"gpt3-125m", 768, 12, 0, 12, 12, 64, 3072, 50257, 2048},
    {"gpt3-350m", 1024, 24, 0, 16, 16, 64, 4096, 50257, 2048},
    {"gpt3-760m", 1536, 24, 0, 16, 16, 96, 6144, 50257, 2048},
    {"gpt3-1.3b", 2048, 24, 0, 16, 16, 128, 8192, 50257, 2048},
    {"gpt3-2.7b", 2560, 32, 0, 32, 32, 80, 10240, 50257, 2048},
    {"gpt3-6.7b", 4096, 32, 0, 32, 32, 128, 16384, 50257, 2048},
    {"gpt3-13b", 5120, 40, 0, 40, 40, 128, 20480, 50257, 2048},
    {"gpt3-175b", 12288, 96, 0, 96, 96, 128, 49152, 50257, 2048},
    {"llama-2-7b", 4096, 32, 0, 32, 32, 128, 11008, 32000, 4096, 6738415616},
    {"llama-2-13b", 5120, 40, 0, 40, 40, 128, 13824, 32000, 4096, 13015864320},
    {"llama-2-70b", 8192, 80, 0, 64, 8, 128, 28672, 32000, 4096, 68976648192},
    {"llama-3-8b", 4096, 32, 0, 32, 8, 128, 14336, 128256, 8192, 8030261248},
    {"llama-3-70b", 8192, 80, 0, 64, 8, 128, 28672, 128256, 8192, 70553706496},
    {"llama-3-405b", 16384, 126, 0, 128, 8, 128, 53248, 128256, 131072, 405853388800},
    {"llama-3.2-1b", 2048, 16, 0, 32, 8, 64, 8192, 128256, 131072, 1235814400},
    {"llama-3.2-3b", 3072, 28, 0, 24, 8, 128, 8192, 128256, 131072, 3212749824},
    {"bert-base", 768, 12, 0, 12, 12, 64, 3072, 30522, 512},
    {"bert-large", 1024, 24, 0, 16, 16, 64, 4096, 30522, 512},
    {"vit-b16", 768, 12, 0, 12, 12, 64, 3072, 0, 197, 86567656},
    {"vit-l16", 1024, 24, 0, 16, 16, 64, 4096, 0, 197, 304326632},
    {"vit-h14", 1280, 32, 0, 16, 16, 80, 5120, 0, 257, 632045800},
    {"t5-base", 768, 12, 12, 12, 12, 64, 3072, 32128, 512, 222903552},
    {"t5-large", 1024, 24, 24, 16, 16, 64, 4096, 32128, 512, 737668096},
    {"t5-11b", 1024, 24, 24, 128, 128, 128, 65536, 32128, 512, 11307321344},
    {"t5-1.1-xxl", 4096, 24, 24, 64, 64, 64, 10240, 32128, 0, 11135332352},
    {"bart-large", 1024, 12, 12, 16, 16, 64, 4096, 50265, 1026},
    {"r2c2-400m", 1024, 12, 12, 16, 16, 64, 4096, 50257, 1024},
    {"r2c2-2.7b", 2048, 22, 22, 32, 32, 64, 8192, 50257, 1024},
    {"cerebras-gpt-111m", 768, 10, 0, 12, 12, 64, 3072, 50257, 2048},
    {"cerebras-gpt-256m", 1088, 14, 0, 17, 17, 64, 4352, 50257, 2048},
    {"cerebras-gpt-590m", 1536, 18, 0, 12, 12, 128, 6144, 50257, 2048},
    {"cerebras-gpt-1.3b", 2048, 24, 0, 16, 16, 128, 8192, 50257, 2048},
    {"cerebras-gpt-2.7b", 2560, 32, 0, 32, 32, 80, 10240, 50257, 2048},
    {"cerebras-gpt-6.7b", 4096, 32, 0, 32, 32, 128, 16384, 50257, 2048},
    {"cerebras-gpt-13b", 5120, 40, 0, 40, 40, 128, 20480, 50257, 2048},
    {"olmo-2-1b", 2048, 16, 0, 16, 16, 128, 8192, 100278, 4096},
    {"olmo-2-7b", 4096, 32, 0, 32, 32, 128, 11008, 100278, 4096},
    {"olmo-2-13b", 5120, 40, 0, 40, 40, 128, 13824, 100278, 4096},
    {"qwen3-0.6b", 1024, 28, 0, 16, 8, 128, 3072, 151936, 40960, 596049920},
    {"qwen3-1.7b", 2048, 28, 0, 16, 8, 128, 6144, 151936, 40960},
    {"qwen3-4b", 2560, 36, 0, 32, 8, 128, 9728, 151936, 40960, 4022468096},
    {"qwen3-8b", 4096, 36, 0, 32, 8, 128, 12288, 151936, 40960, 8190735360},
    {"qwen3-14b", 5120, 40, 0, 40, 8, 128, 17408, 151936, 40960, 14768307200},
    {"qwen3-32b", 5120, 64, 0, 64, 8, 128, 25600, 151936, 40960, 32762123264},
    {"pythia-70m", 512, 6, 0, 8, 8, 64, 2048, 50254, 2048},
    {"pythia-160m", 768, 12, 0, 12, 12, 64, 3072, 50254, 2048},
    {"pythia-410m", 1024, 24, 0, 16, 16, 64, 4096, 50254, 2048},
    {"pythia-1b", 2048, 16, 0, 8, 8, 256, 8192, 50254, 2048},
    {"pythia-1.4b", 2048, 24, 0, 16, 16, 128, 8192, 50254, 2048},
    {"pythia-2.8b", 2560, 32, 0, 32, 32, 80, 10240, 50254, 2048},
    {"pythia-6.9b", 4096, 32, 0, 32, 32, 128, 16384, 50254, 2048},
    {"pythia-12b", 5120, 36, 0, 40, 40, 128, 20480, 50254, 2048},
};

// The choices that a family's tensors depend on besides sizes, in the order of the columns below.
struct Flags {
  std::string_view prefix;
  bool tied_head, head_bias, gated_mlp, biases, norm_bias, learned_positions, class_token,
      embedding_norm, final_norm;
  long segments, relative_buckets;
};

constexpr Flags families[] = {
    // first match     tied   h.bias gated  biases n.bias posit. class  e.norm f.norm seg rel
    {"gpt", /*      */ true, false, false, true, true, true, false, false, true, 0, 0},
    {"cerebras", /* */ true, false, false, true, true, true, false, false, true, 0, 0},
    {"r2c2", /*     */ true, false, false, true, true, true, false, false, true, 0, 0},
    {"pythia", /*   */ false, false, false, true, true, false, false, false, true, 0, 0},
    {"llama-3.2", /**/ true, false, true, false, false, false, false, false, true, 0, 0},
    {"llama", /*    */ false, false, true, false, false, false, false, false, true, 0, 0},
    {"qwen3-0", /*  */ true, false, true, false, false, false, false, false, true, 0, 0},
    {"qwen3-1.7", /**/ true, false, true, false, false, false, false, false, true, 0, 0},
    {"qwen3-4", /*  */ true, false, true, false, false, false, false, false, true, 0, 0},
    {"qwen3", /*    */ false, false, true, false, false, false, false, false, true, 0, 0},
    {"olmo", /*     */ false, false, true, false, false, false, false, false, true, 0, 0},
    {"bert", /*     */ true, true, false, true, true, true, false, true, false, 2, 0},
    {"bart", /*     */ true, false, false, true, true, true, false, true, false, 0, 0},
    {"vit", /*      */ false, true, false, true, true, true, true, false, true, 0, 0},
    {"t5-1.1", /*   */ false, false, true, false, false, false, false, false, true, 0, 32},
    {"t5", /*       */ true, false, false, false, false, false, false, false, true, 0, 32},
};

long parameter_count(std::string_view id) {
  long count = 0;
  for (const auto& tensor : tensors(resolved(scalewise::preset_shape(id)))) {
    count += tensor.rows * tensor.columns;
  }
  return count;
}

std::string message(std::string_view id) {
  return scalewise::test::error_message([&] { scalewise::preset_shape(id); });
}

}  // namespace

static_assert(scalewise::presets().size() == std::size(rows));
static_assert(scalewise::presets().front().shape.d_model == 768);  // usable in constants

TEST_CASE("presets have the sizes of the published models", "[presets]") {
  for (const Published& row : rows) {
    INFO(row.id);
    const Shape shape = resolved(scalewise::preset_shape(row.id));
    CHECK(shape.d_model == row.d_model);
    CHECK(shape.depth == row.depth);
    CHECK(shape.encoder_depth == row.encoder_depth);
    CHECK(shape.heads == row.heads);
    CHECK(shape.kv_heads == row.kv_heads);
    CHECK(shape.head_dim == row.head_dim);
    CHECK(shape.d_ff == row.d_ff);
    CHECK(shape.vocab == row.vocab);
    CHECK(shape.context == row.context);
    CHECK(shape.iterations == 0);
  }
}

TEST_CASE("presets of vision models have patches of 224 pixel images", "[presets]") {
  for (const Preset& preset : scalewise::presets()) {
    INFO(preset.id);
    const bool is_vit = preset.id.starts_with("vit");
    CHECK((preset.shape.input == Input::patch) == is_vit);
    CHECK(preset.shape.classes == (is_vit ? 1000 : 0));
    CHECK(preset.shape.patch_dim == (preset.id == "vit-h14" ? 588 : is_vit ? 768 : 0));
  }
}

TEST_CASE("presets have the tensors of their family", "[presets]") {
  for (const Preset& preset : scalewise::presets()) {
    INFO(preset.id);
    const Flags* found = nullptr;
    for (const Flags& flags : families) {
      if (found == nullptr && preset.id.starts_with(flags.prefix)) found = &flags;
    }
    REQUIRE(found != nullptr);
    const Shape shape = resolved(preset.shape);
    CHECK(preset.shape.tied_head == found->tied_head);  // set, not left to the rule
    CHECK(shape.head_bias == found->head_bias);
    CHECK(shape.gated_mlp == found->gated_mlp);
    CHECK(shape.biases == found->biases);
    CHECK(shape.norm_gain);
    CHECK(shape.norm_bias == found->norm_bias);
    CHECK(shape.learned_positions == found->learned_positions);
    CHECK(shape.class_token == found->class_token);
    CHECK(shape.embedding_norm == found->embedding_norm);
    CHECK(shape.final_norm == found->final_norm);
    CHECK(shape.segments == found->segments);
    CHECK(shape.relative_buckets == found->relative_buckets);
    CHECK(shape.blocks == scalewise::Blocks::residual);
    CHECK(shape.residual_gain == scalewise::ResidualGain::none);
  }
}

TEST_CASE("presets have the published number of parameters", "[presets]") {
  for (const Published& row : rows) {
    INFO(row.id);
    if (row.parameters > 0) CHECK(parameter_count(row.id) == row.parameters);
  }

  SECTION("BERT, without the dense layer and norm before its head") {
    const auto transform = [](long d) { return d * d + d + 2 * d; };
    CHECK(parameter_count("bert-base") == 109514298 - transform(768));
    CHECK(parameter_count("bert-large") == 335174458 - transform(1024));
  }
  SECTION("BART, with two unused rows in each of two tables") {
    CHECK(parameter_count("bart-large") == 406291456);
  }
  SECTION("OLMo-2, without padding of two tables") {
    const long padding = 2 * (100352 - 100278);
    CHECK(parameter_count("olmo-2-1b") == 1484916736 - padding * 2048);
    CHECK(parameter_count("olmo-2-7b") == 7298617344 - padding * 4096);
    CHECK(parameter_count("olmo-2-13b") == 13716198400 - padding * 5120);
  }
  SECTION("Pythia, without padding of two tables") {
    CHECK(parameter_count("pythia-70m") == 70426624 - 2 * (50304 - 50254) * 512);
    CHECK(parameter_count("pythia-160m") == 162322944 - 2 * (50304 - 50254) * 768);
    CHECK(parameter_count("pythia-410m") == 405334016 - 2 * (50304 - 50254) * 1024);
    CHECK(parameter_count("pythia-1b") == 1011781632 - 2 * (50304 - 50254) * 2048);
    CHECK(parameter_count("pythia-1.4b") == 1414647808 - 2 * (50304 - 50254) * 2048);
    CHECK(parameter_count("pythia-2.8b") == 2775208960 - 2 * (50304 - 50254) * 2560);
    CHECK(parameter_count("pythia-6.9b") == 6857302016 - 2 * (50432 - 50254) * 4096);
    CHECK(parameter_count("pythia-12b") == 11846072320 - 2 * (50688 - 50254) * 5120);
  }
  SECTION("the others agree with the size in their name, which has two or three digits") {
    const auto check = [](std::string_view id, double named) {
      INFO(id);
      CHECK(std::abs(static_cast<double>(parameter_count(id)) / named - 1) < 0.025);
    };
    check("gpt3-125m", 125e6);
    check("gpt3-350m", 350e6);
    check("gpt3-760m", 760e6);
    check("gpt3-1.3b", 1.3e9);
    check("gpt3-2.7b", 2.7e9);
    check("gpt3-6.7b", 6.7e9);
    check("gpt3-13b", 13e9);
    check("gpt3-175b", 175e9);
    check("r2c2-400m", 400e6);
    check("r2c2-2.7b", 2.7e9);
    check("cerebras-gpt-111m", 111e6);
    check("cerebras-gpt-256m", 256e6);
    check("cerebras-gpt-590m", 590e6);
    check("cerebras-gpt-1.3b", 1.3e9);
    check("cerebras-gpt-2.7b", 2.7e9);
    check("cerebras-gpt-6.7b", 6.7e9);
    check("cerebras-gpt-13b", 13e9);
  }
}

TEST_CASE("presets are told apart by their ids and name their source", "[presets]") {
  std::set<std::string_view> ids;
  for (const Preset& preset : scalewise::presets()) {
    INFO(preset.id);
    CHECK(ids.insert(preset.id).second);
    CHECK(scalewise::preset_shape(preset.id) == preset.shape);
    CHECK(!preset.source.empty());
  }
}

TEST_CASE("preset_shape names the nearest preset when there is none", "[presets]") {
  CHECK(message("gpt2") == "no error");
  CHECK(message("gpt-2") ==
        "preset = gpt-2: expected the id of a preset (hint: did you mean gpt2?)");
  CHECK(message("llama3-8b") ==
        "preset = llama3-8b: expected the id of a preset (hint: did you mean llama-3-8b?)");
  CHECK(message("LLAMA-3-8b") ==
        "preset = LLAMA-3-8b: expected the id of a preset (hint: did you mean llama-3-8b?)");
  const std::string all = "expected the id of a preset (hint: plan --list-presets prints them)";
  CHECK(message("") == "preset = : " + all);
  CHECK(message("chinchilla") == "preset = chinchilla: " + all);
  CHECK_THROWS_AS(scalewise::preset_shape("GPT2"), InvalidInput);
}
