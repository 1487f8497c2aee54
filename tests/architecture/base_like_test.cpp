// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/architecture/base_like.hpp"

#include <string>

#include "scalewise/architecture/presets.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace scalewise;
using Catch::Matchers::ContainsSubstring;
using test::error_message;

struct Sizes {
  long d_model, depth, encoder_depth, heads, kv_heads, head_dim, d_ff;

  friend bool operator==(const Sizes&, const Sizes&) = default;
};

Sizes sizes_of(const Shape& shape) {
  const Shape whole = resolved(shape);
  return {whole.d_model,  whole.depth,    whole.encoder_depth, whole.heads,
          whole.kv_heads, whole.head_dim, whole.d_ff};
}

/// A LLaMA of published sizes.
Shape llama(long d_model, long heads, long kv_heads, long head_dim, long d_ff) {
  Shape shape = preset_shape("llama-3-8b");
  shape.d_model = d_model;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.head_dim = head_dim;
  shape.d_ff = d_ff;
  return shape;
}

std::string refusal(const Shape& target, const Base& base) {
  return error_message([&] { static_cast<void>(base_like(target, base)); });
}

}  // namespace

TEST_CASE("A base like the target has heads of the same size, and the rest in proportion") {
  const Shape gpt2 = preset_shape("gpt2");
  CHECK(sizes_of(base_like(gpt2, {.width = 256})) == Sizes{256, 12, 0, 4, 4, 64, 1024});
  CHECK(sizes_of(base_like(gpt2, {.depth = 2})) == Sizes{768, 2, 0, 12, 12, 64, 3072});
  CHECK(sizes_of(base_like(gpt2, {.width = 256, .depth = 2})) == Sizes{256, 2, 0, 4, 4, 64, 1024});
  CHECK(base_like(gpt2, {}) == gpt2);
  CHECK(base_like(gpt2, {.width = 768, .depth = 12}) == gpt2);
  // Llama 3 8B: 4 heads to a key head, d_ff 3.5 times the width. Llama 2 7B: 2.6875 times.
  CHECK(sizes_of(base_like(preset_shape("llama-3-8b"), {.width = 512})) ==
        Sizes{512, 32, 0, 4, 1, 128, 1792});
  CHECK(sizes_of(base_like(preset_shape("llama-2-7b"), {.width = 256})) ==
        Sizes{256, 32, 0, 2, 2, 128, 688});
  // Qwen3-0.6B: heads that are larger together than the width. Falcon-7B: one key head.
  CHECK(sizes_of(base_like(llama(1024, 16, 8, 128, 3072), {.width = 256})) ==
        Sizes{256, 32, 0, 4, 2, 128, 768});
  CHECK(sizes_of(base_like(llama(4544, 71, 1, 64, 18176), {.width = 256})) ==
        Sizes{256, 32, 0, 4, 1, 64, 1024});
  // An encoder and a decoder, T5-11B with 128 heads of 128 at a width of 1024.
  CHECK(sizes_of(base_like(preset_shape("t5-11b"), {.width = 64, .depth = 3})) ==
        Sizes{64, 3, 3, 8, 8, 128, 4096});
  Shape shallow_decoder = preset_shape("bart-large");
  shallow_decoder.depth = 6;
  CHECK(sizes_of(base_like(shallow_decoder, {.depth = 2})).encoder_depth == 4);
  // Experts stay as many, and are narrower.
  Shape mixture = llama(512, 8, 8, 64, 1024);
  mixture.experts = 8;
  mixture.experts_per_token = 2;
  mixture.expert_ff = 96;
  const Shape narrower = base_like(mixture, {.width = 128});
  CHECK((narrower.experts == 8 && narrower.experts_per_token == 2 && narrower.expert_ff == 24));
  CHECK_THROWS_AS(base_like(mixture, {.width = 64 / 4}), InvalidInput);
  // All else is the target's.
  Shape mine = gpt2;
  mine.vocab = 300;
  mine.context = 32;
  mine.tied_head = false;
  mine.iterations = 1000;
  Shape expected = mine;
  expected.d_model = 256;
  expected.heads = 4;
  CHECK(base_like(mine, {.width = 256}) == expected);
}

TEST_CASE("Open sizes of a target are open in its base") {
  Shape base = base_like(preset_shape("gpt2"), {.width = 256});
  base.heads = 8;
  base.d_model = 512;
  CHECK(sizes_of(base) == Sizes{512, 12, 0, 8, 8, 64, 2048});
}

TEST_CASE("A base is refused exactly where a size would not be whole") {
  for (const Preset& preset : presets()) {
    const Shape target = resolved(preset.shape);
    const bool single = target.kv_heads == 1;
    const long step = test::sanitized ? 16 : 1;
    for (long width = step; width <= target.d_model; width += step) {
      const auto whole = [&](long size) { return size * width % target.d_model == 0; };
      const bool possible =
          whole(target.heads) && whole(target.d_ff) && (single || whole(target.kv_heads));
      const std::string said = refusal(preset.shape, {.width = width});
      if ((said == "no error") != possible) FAIL_CHECK(preset.id << ", " << width << ": " << said);
      if (!possible) continue;
      const Shape base = resolved(base_like(preset.shape, {.width = width}));
      const bool kept = base.d_model == width && base.head_dim == target.head_dim &&
                        base.heads * target.d_model == target.heads * width &&
                        base.kv_heads * target.d_model == target.kv_heads * width &&
                        base.d_ff * target.d_model == target.d_ff * width;
      if (!kept) FAIL_CHECK(preset.id << ", " << width);
    }
  }
}

TEST_CASE("A refused base says what would not be whole, and which sizes are possible") {
  CHECK(refusal(preset_shape("gpt2"), {.width = 200}) ==
        "base width = 200: expected a multiple of 64 (hint: it has heads of the same size, "
        "12 at a width of 768)");
  CHECK(refusal(preset_shape("llama-3-8b"), {.width = 256}) ==
        "base width = 256: expected a multiple of 512 (hint: it has key and value heads in "
        "proportion, 8 at a width of 4096)");
  CHECK(refusal(llama(1024, 64, 64, 0, 2736), {.width = 32}) ==
        "base width = 32: expected a multiple of 64 (hint: it has d_ff in proportion, 2736 at "
        "a width of 1024)");
  // The multiple is one that suits all of them: 896 = 7·128 heads, 4 key heads, d_ff 37/7.
  CHECK_THAT(refusal(llama(3584, 28, 4, 128, 18944), {.width = 100}),
             ContainsSubstring("a multiple of 896 (hint: it has heads of the same size"));
  Shape short_encoder = preset_shape("bart-large");
  short_encoder.encoder_depth = 6;
  CHECK(refusal(short_encoder, {.depth = 5}) ==
        "base depth = 5: expected a multiple of 2 (hint: it has an encoder in proportion, of "
        "6 layers at a depth of 12)");
  CHECK_THAT(refusal(preset_shape("gpt2"), {.width = -64}),
             ContainsSubstring("base width = -64: expected a positive integer"));
  CHECK_THAT(refusal(preset_shape("gpt2"), {.width = 1L << 31}), ContainsSubstring("at most 2^30"));
  CHECK_THAT(refusal(preset_shape("gpt2"), {.depth = -1}),
             ContainsSubstring("base depth = -1: expected a positive integer"));
  CHECK_THAT(refusal(preset_shape("gpt2"), {.depth = architecture::most_layers + 1}),
             ContainsSubstring("at most 5000"));
  CHECK_THAT(refusal(Shape{}, {.width = 64}), ContainsSubstring("d_model = 0"));
}
