// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Parameters of published models, counted here by hand.

#include "scalewise/policy/all.hpp"
#include "support/catch.hpp"
#include "support/numbers.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {

/// No biases, no gains, no class token: what the paper counts.
Shape counted(Shape shape) {
  shape.biases = false;
  shape.norm_gain = false;
  shape.norm_bias = false;
  shape.class_token = false;
  shape.embedding_norm = false;
  return shape;
}

}  // namespace

TEST_CASE("parameter counts of the effective theory's models") {
  SECTION("ViT-B") {
    Shape shape{.input = Input::patch, .d_model = 768, .depth = 12, .heads = 12, .context = 196};
    shape.patch_dim = 768;
    shape.classes = 1000;
    shape.head_bias = true;
    CHECK(make_plan(NeuralTangent{}, {.model = counted(shape)}).parameter_count() ==
          768L * 768 + 196L * 768 + 768L * 768 * 12 * 12 + 768L * 1000 + 1000);
  }
  // Encoder: 12 n² a layer; decoder with cross attention: 16 n²; a position table each.
  const auto language = [](long d_model, long layers, long heads) {
    Shape shape{.d_model = d_model, .depth = layers, .encoder_depth = layers, .heads = heads};
    shape.context = 514;
    shape.vocab = 50265;
    shape.tied_head = true;
    return make_plan(NeuralTangent{}, {.model = counted(shape)}).parameter_count();
  };
  SECTION("BART-large") {
    CHECK(language(1024, 12, 16) == 50265L * 1024 + 514L * 1024 + 1024L * 1024 * 12 * 12 +
                                        514L * 1024 + 1024L * 1024 * 16 * 12);
  }
  SECTION("R2C2") {
    CHECK(language(2048, 22, 32) == 50265L * 2048 + 514L * 2048 + 2048L * 2048 * 12 * 22 +
                                        514L * 2048 + 2048L * 2048 * 16 * 22);
  }
}
