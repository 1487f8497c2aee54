// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/gguf_shape.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scalewise/architecture/presets.hpp"
#include "scalewise/io/gguf.hpp"
#include "support/catch.hpp"
#include "support/model_bytes.hpp"
#include "support/temporary_file.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using scalewise::Activation;
using scalewise::AttentionBiases;
using scalewise::QkNorm;
using scalewise::Shape;
using scalewise::io::read_gguf;
using scalewise::test::GgufBytes;
using scalewise::test::ModelBytes;
using scalewise::test::TemporaryFile;

/// The sizes and words of a file's metadata; a size of 0 is left out.
struct GgufModel {
  std::string architecture = "llama";
  std::uint64_t width = 64;
  std::uint64_t layers = 2;
  std::uint64_t heads = 4;
  std::uint64_t kv_heads = 2;
  std::uint64_t d_ff = 160;
  std::uint64_t context = 128;
  std::uint64_t vocab = 100;
  bool output = true;
  std::vector<std::string> biases = {};
  std::function<void(GgufBytes&)> more = {};

  GgufBytes file() const {
    GgufBytes gguf;
    gguf.text("general.architecture", architecture);
    const auto size = [&](const std::string& key, std::uint64_t value) {
      if (value > 0) gguf.u32(architecture + "." + key, value);
    };
    size("context_length", context);
    size("embedding_length", width);
    size("block_count", layers);
    size("feed_forward_length", d_ff);
    size("attention.head_count", heads);
    size("attention.head_count_kv", kv_heads);
    if (vocab > 0) gguf.next("token_embd.weight", {width, vocab}, 24, width * vocab);
    gguf.next("blk.0.attn_norm.weight", {width}, 24, width);
    gguf.next("blk.0.attn_q.weight", {width, width}, 24, width * width);
    gguf.next("blk.0.ffn_up.weight", {width, d_ff}, 24, width * d_ff);
    gguf.next("blk.1.ffn_up.weight", {width, d_ff}, 24, width * d_ff);
    for (const std::string& name : biases) gguf.next(name, {1}, 24, 1);
    if (output) gguf.next("output.weight", {width, vocab}, 24, width * vocab);
    if (more) more(gguf);
    return gguf;
  }
};

scalewise::TensorFile read_shape(const GgufModel& model) {
  return read_gguf(TemporaryFile(model.file().bytes()).path());
}

std::string shape_refusal(const GgufModel& model) {
  return scalewise::test::refusal_of(model.file().bytes(), read_gguf);
}

/// Why there is no shape.
std::string no_shape(const GgufModel& model) {
  const scalewise::TensorFile read = read_shape(model);
  CHECK_FALSE(read.shape.has_value());
  return read.notes.empty() ? "" : read.notes.back();
}

}  // namespace

TEST_CASE("GGUF tells the shape of a llama", "[gguf]") {
  const scalewise::TensorFile read = read_shape({});
  CHECK(read.notes.empty());
  Shape expected{.d_model = 64, .depth = 2, .heads = 4, .kv_heads = 2, .d_ff = 160, .context = 128};
  expected.vocab = 100;
  expected.tied_head = false;
  expected.gated_mlp = true;
  expected.biases = false;
  expected.norm_bias = false;
  expected.learned_positions = false;
  expected.activation = Activation::silu;
  REQUIRE(read.shape.has_value());
  CHECK(*read.shape == expected);

  // Without head_count_kv: as many as heads; without output.weight: the embedding.
  const auto plain = read_shape({.kv_heads = 0, .output = false}).shape;
  REQUIRE(plain.has_value());
  CHECK(plain->kv_heads == 4);
  CHECK(plain->tied_head == true);
}

TEST_CASE("GGUF's shape of a published llama is that of the preset", "[gguf]") {
  const auto shape = read_shape({.width = 4096,
                                 .layers = 32,
                                 .heads = 32,
                                 .kv_heads = 8,
                                 .d_ff = 14336,
                                 .context = 8192,
                                 .vocab = 1})
                         .shape;
  REQUIRE(shape.has_value());
  Shape expected = scalewise::preset_shape("llama-3-8b");
  expected.vocab = 1;  // so that the file is small
  CHECK(*shape == expected);
}

TEST_CASE("GGUF tells the shape of qwen2, qwen3, gemma and gpt2", "[gguf]") {
  const std::string block = "blk.0.";
  const auto qwen =
      read_shape({.architecture = "qwen2", .biases = {block + "attn_q.bias", "blk.1.ffn_up.bias"}});
  REQUIRE(qwen.shape.has_value());
  CHECK(qwen.shape->gated_mlp);
  CHECK(qwen.shape->activation == Activation::silu);
  CHECK_FALSE(qwen.shape->biases);
  CHECK(qwen.shape->attention_biases == AttentionBiases::qkv);
  CHECK(qwen.shape->qk_norm == QkNorm::none);
  const auto both = read_shape(
      {.architecture = "llama", .biases = {block + "attn_q.bias", block + "attn_output.bias"}});
  REQUIRE(both.shape.has_value());
  CHECK(both.shape->attention_biases == AttentionBiases::all);

  const auto qwen3 = read_shape({.architecture = "qwen3", .more = [](auto& gguf) {
                                   gguf.next("blk.0.attn_q_norm.weight", {16}, 24, 16);
                                 }});
  REQUIRE(qwen3.shape.has_value());
  CHECK(qwen3.shape->attention_biases == AttentionBiases::none);
  CHECK(qwen3.shape->qk_norm == QkNorm::head);

  const auto gemma = read_shape({.architecture = "gemma", .output = false, .more = [](auto& gguf) {
                                   gguf.u32("gemma.attention.key_length", 32);
                                   gguf.u32("gemma.attention.value_length", 32);
                                 }});
  REQUIRE(gemma.shape.has_value());
  CHECK(gemma.shape->head_dim == 32);
  CHECK(gemma.shape->tied_head == true);
  CHECK(gemma.shape->gated_mlp);
  CHECK(gemma.shape->activation == Activation::gelu);
  CHECK(gemma.notes.empty());
  CHECK(gemma.code == scalewise::plan::CodeFactors{.embedding = sqrt(scalewise::symbols::n)});

  const auto gpt2 = read_shape({.architecture = "gpt2",
                                .kv_heads = 0,
                                .output = false,
                                .biases = {block + "attn_qkv.bias", block + "attn_output.bias",
                                           block + "ffn_up.bias", block + "ffn_down.bias"}});
  REQUIRE(gpt2.shape.has_value());
  CHECK_FALSE(gpt2.shape->gated_mlp);
  CHECK(gpt2.shape->biases);
  CHECK(gpt2.shape->norm_bias);
  CHECK(gpt2.shape->learned_positions);
  CHECK(gpt2.shape->tied_head == true);
  CHECK(gpt2.shape->activation == Activation::gelu);
  CHECK(gpt2.notes.empty());

  const auto copied = read_shape({.architecture = "gpt2"});
  REQUIRE(copied.shape.has_value());
  CHECK_FALSE(copied.shape->tied_head.has_value());
  CHECK(copied.notes ==
        std::vector<std::string>{
            "output.weight may be a copy of token_embd.weight, so tied_head is open"});
}

TEST_CASE("GPT-2 in GGUF need not say the width of its MLP", "[gguf]") {
  GgufModel gpt2{.architecture = "gpt2", .d_ff = 0};
  const auto shape = read_shape(gpt2).shape;
  REQUIRE(shape.has_value());
  CHECK(shape->d_ff == 256);
  gpt2.architecture = "llama";
  CHECK(no_shape(gpt2) == "no shape: llama.feed_forward_length is missing");
}

TEST_CASE("Numbers of GGUF's metadata may have any width", "[gguf]") {
  for (const std::uint32_t type : {0U, 1U, 2U, 3U, 4U, 5U, 10U, 11U}) {
    // u8, i8, u16, i16, u32, i32, u64, i64
    const int width = type < 2 ? 1 : type < 4 ? 2 : type < 6 ? 4 : 8;
    const auto with = [&](std::uint64_t layers) {
      return GgufModel{.layers = 0, .more = [type, width, layers](auto& gguf) {
                         gguf.value("llama.block_count", type, ModelBytes().number(layers, width));
                       }};
    };
    const auto shape = read_shape(with(7)).shape;
    REQUIRE(shape.has_value());
    CHECK(shape->depth == 7);
    const bool is_signed = type % 2 == 1;
    const std::string negative = shape_refusal(with(~std::uint64_t{0}));
    CHECK_THAT(negative,
               ContainsSubstring("FILE: llama.block_count ") || ContainsSubstring("no error"));
    CHECK((negative == "FILE: llama.block_count (negative): expected a whole number from 1 to "
                       "5000") == is_signed);
  }
}

TEST_CASE("What a shape cannot describe in GGUF is said", "[gguf]") {
  CHECK(
      no_shape({.architecture = "mamba"}) ==
      "no shape: general.architecture = \"mamba\" is none of llama, qwen2, qwen3, gemma and gpt2");
  CHECK(no_shape({.width = 0, .vocab = 0, .output = false}) ==
        "no shape: llama.embedding_length is missing");
  CHECK(no_shape({.layers = 0}) == "no shape: llama.block_count is missing");
  CHECK(no_shape({.heads = 0}) == "no shape: llama.attention.head_count is missing");
  CHECK(no_shape({.context = 0}) == "no shape: llama.context_length is missing");
  CHECK(no_shape({.vocab = 0, .output = false}) == "no shape: token_embd.weight is missing");
  CHECK(no_shape({.more = [](auto& gguf) { gguf.u32("llama.expert_count", 8); }}) ==
        "no shape: llama.expert_count = 8: for a mixture of experts give its config.json to plan "
        "--config");
  CHECK(read_shape({.more = [](auto& gguf) {
          gguf.u32("llama.expert_count", 0);
        }}).shape.has_value());
  CHECK(no_shape({.kv_heads = 0,
                  .more =
                      [](auto& gguf) {
                        gguf.value("llama.attention.head_count_kv", 9,
                                   ModelBytes().u32(4).u64(2).u32(2).u32(4));
                      }}) ==
        "no shape: llama.attention.head_count_kv is an array, and a shape has one number for all "
        "layers");
  CHECK(no_shape({.more = [](auto& gguf) { gguf.u32("llama.attention.value_length", 8); }}) ==
        "no shape: llama.attention.value_length = 8, and a shape has one size for keys and values");
  CHECK(read_gguf(TemporaryFile(GgufBytes().bytes()).path()).notes ==
        std::vector<std::string>{"no shape: general.architecture is missing"});
}

TEST_CASE("Sizes in GGUF that no model has are refused", "[gguf]") {
  const auto with = [](const std::string& key, std::uint32_t value) {
    return shape_refusal(GgufModel{.kv_heads = 0, .context = 0, .more = [=](auto& gguf) {
                                     gguf.u32("llama." + key, value);
                                     if (key != "context_length")
                                       gguf.u32("llama.context_length", 9);
                                   }});
  };
  const std::string whole = ": expected a whole number from 1 to 1073741824";
  CHECK(with("context_length", 1U << 30U) == "no error");
  CHECK(with("context_length", 0) == "FILE: llama.context_length = 0" + whole);
  CHECK(with("context_length", (1U << 30U) + 1) ==
        "FILE: llama.context_length = 1073741825" + whole);
  CHECK(with("attention.head_count_kv", 3) ==
        "FILE: llama.attention.head_count_kv = 3: expected a divisor of head_count = 4");
  CHECK(with("attention.key_length", 1U << 29U) ==
        "FILE: llama.attention.key_length = 536870912: expected at most 2^30 in all heads");
  CHECK(shape_refusal({.layers = 5001}) ==
        "FILE: llama.block_count = 5001: expected a whole number from 1 to 5000");
  CHECK(shape_refusal({.heads = 6}) ==
        "FILE: llama.attention.head_count = 6: expected a divisor of embedding_length = 64");
  CHECK(shape_refusal({.context = 0, .more = [](auto& gguf) {
                         gguf.text("llama.context_length", "many");
                       }}) == "FILE: llama.context_length = \"many\"" + whole);
  CHECK(shape_refusal({.context = 0, .more = [](auto& gguf) {
                         gguf.value("llama.context_length", 6, ModelBytes().f32(128));
                       }}) == "FILE: llama.context_length (a floating-point number)" + whole);
  CHECK(shape_refusal({.vocab = 0,
                       .output = false,
                       .more =
                           [](auto& gguf) {
                             gguf.next("token_embd.weight", {32, 5}, 24, 160);
                           }}) ==
        "FILE: token_embd.weight: dims = [5, 32]: expected [vocabulary, llama.embedding_length = "
        "64]");
}
