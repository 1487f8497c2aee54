// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Where logits have their factor in a list of tensors: once, whoever is tied to whom, and with whose bias.

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/described.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::test::described;
using enum TensorKind;
using Catch::Matchers::ContainsSubstring;

/// The product of all factors on the logits of a plan, with the base's factor of 1, four times as wide.
template <class Model>
double factor_of_logits(const Model& model, const std::string& head,
                        const Shape& shape = {.blocks = Blocks::listed}) {
  const DescribedModel roles =
      from_descriptions(description(model(64)), description(model(16)), {}, shape, shape);
  const Plan plan = planned(roles, "maximal-update");
  return plan.model.logit_multiplier.value * entry(plan, head).multiplier.value;
}

TEST_CASE("A base with another vocabulary is refused, whatever its ratio", "[described]") {
  const auto model = [](long n, long words) {
    return description({{"embed.weight", embedding, "io", {words, n}},
                        {"mix.weight", linear, "oi", {n, n}},
                        {"head.weight", linear, "oi", {words, n}}});
  };
  for (const long words : {200L, 300L}) {  // as the widths, and otherwise
    CHECK_THAT(
        test::error_message([&] { from_descriptions(model(64, words), model(32, 100)); }),
        ContainsSubstring("tensor head.weight, outputs = ") &&
            ContainsSubstring("they are the rows of embed.weight: describe a base with as many"));
  }
  // Rows that are as many as the model is wide are none of a vocabulary.
  const auto square = [](long n) {
    return description({{"table.weight", embedding, "io", {n, n}},
                        {"mix.weight", linear, "oi", {n, n}},
                        {"head.weight", linear, "oi", {10, n}}});
  };
  CHECK(test::error_message([&] { from_descriptions(square(64), square(32)); }) == "no error");
}

TEST_CASE("Logits have their factor once, whatever is tied", "[described]") {
  // A head of its own, beside embeddings that two stacks share, as in T5 v1.1.
  const auto stacks = [](long n) {
    return std::vector<Given>{
        {"shared.weight", embedding, "io", {100, n}},
        {"encoder.embed_tokens.weight", embedding, "io", {100, n}, "shared.weight"},
        {"mix.weight", linear, "oi", {n, n}},
        {"lm_head.weight", linear, "oi", {100, n}}};
  };
  CHECK(factor_of_logits(stacks, "lm_head.weight") == 0.25);
  // A tied head, listed after the embedding or before it, as a linear layer or as a bare parameter.
  for (const TensorKind kind : {linear, other}) {
    const auto after = [&](long n) {
      return std::vector<Given>{
          {"embed.weight", embedding, "io", {100, n}},
          {"mix.weight", linear, "oi", {n, n}},
          {"head.weight", kind, kind == linear ? "oi" : "io", {100, n}, "embed.weight"}};
    };
    CHECK(factor_of_logits(after, "embed.weight") == 0.25);
  }
  const auto before = [](long n) {
    return std::vector<Given>{{"head.weight", linear, "oi", {100, n}},
                              {"embed.weight", embedding, "io", {100, n}, "head.weight"},
                              {"mix.weight", linear, "oi", {n, n}}};
  };
  CHECK(factor_of_logits(before, "head.weight") == 0.25);
  const DescribedModel roles = from_descriptions(description(before(64)), description(before(16)));
  CHECK(roles.tensors[0].group == Group::token_embedding);
  CHECK(roles.tensors[0].columns == "d_model");
  CHECK(roles.notes.empty());
  // Features of fixed size, as of a factorized embedding, need none.
  const auto factorized = [](long n) {
    return std::vector<Given>{{"embed.weight", embedding, "io", {100, 8}},
                              {"up.weight", linear, "oi", {n, 8}},
                              {"mix.weight", linear, "oi", {n, n}},
                              {"down.weight", linear, "oi", {8, n}},
                              {"decoder.weight", linear, "oi", {100, 8}, "embed.weight"}};
  };
  CHECK(factor_of_logits(factorized, "embed.weight") == 1);
  const auto otherwise = [&](long n) {
    std::vector<Given> rows = factorized(n);
    for (Given& row : rows) {
      for (long& size : row.sizes) size = size == 8 ? n / 8 + 30 : size;
    }
    rows.push_back({"more.weight", linear, "oi", {n, n}});
    return description(rows);
  };
  const Shape large{.d_ff = 38, .blocks = Blocks::listed},
      small{.d_ff = 32, .blocks = Blocks::listed};
  CHECK(test::error_message([&] {
          static_cast<void>(from_descriptions(otherwise(64), otherwise(16), {}, large, small));
        }) ==
        "tensor embed.weight, outputs = 32 to 38: expected features that grow like d_model, from "
        "16 to 64 "
        "(hint: a plan has one factor for logits of a tied head: describe it untied)");
}

TEST_CASE("That the code computes logits from the embedding can be said", "[described]") {
  const auto model = [](long n) {
    return std::vector<Given>{{"embed.weight", embedding, "io", {100, n}},
                              {"mix.weight", linear, "oi", {n, n}}};
  };
  Shape tied{.blocks = Blocks::listed};
  tied.tied_head = true;
  CHECK(factor_of_logits(model, "embed.weight") == 1);
  CHECK(factor_of_logits(model, "embed.weight", tied) == 0.25);
  const auto notes = [&](const Shape& shape) {
    return from_descriptions(description(model(64)), description(model(16)), {}, shape, shape)
        .notes;
  };
  REQUIRE(notes({.blocks = Blocks::listed}).size() == 1);
  CHECK_THAT(notes({.blocks = Blocks::listed})[0], ContainsSubstring("no tensor is a head"));
  CHECK(notes(tied).empty());
  const auto own = [&](long n) {
    std::vector<Given> rows = model(n);
    rows.push_back({"head.weight", linear, "oi", {100, n}});
    return description(rows);
  };
  CHECK(test::error_message(
            [&] { static_cast<void>(from_descriptions(own(64), own(16), {}, tied, tied)); }) ==
        "tied_head = true: expected an embedding that gives the logits (hint: head.weight is the "
        "head)");
}

TEST_CASE("A head's bias is one without layers too, and what stands before is none",
          "[described]") {
  const auto model = [](long n) {
    return description({{"fc_1.weight", linear, "oi", {n, 20}},
                        {"fc_1.bias", bias, "o", {n}},
                        {"narrow.weight", linear, "oi", {4, n}},
                        {"narrow.bias", bias, "o", {4}},
                        {"fc_2.weight", linear, "oi", {n, 4}},
                        {"fc_3.weight", linear, "oi", {10, n}},
                        {"fc_3.bias", bias, "o", {10}}});
  };
  const Plan plan = planned(from_descriptions(model(64), model(16)), "maximal-update");
  CHECK(entry(plan, "fc_1.bias").epsilon.value == 0.25);   // 1/√(m_fo m_N)
  CHECK(entry(plan, "narrow.bias").epsilon.value == 0.5);  // 1/√m_N
  CHECK(entry(plan, "narrow.bias").group == Group::hidden_bias);
  CHECK(entry(plan, "fc_3.bias").epsilon.value == 1);
}

TEST_CASE("Outputs of fixed size within layers are named, but for those that are given",
          "[described]") {
  const auto model = [](long n) {
    std::vector<Given> rows{{"embed.weight", embedding, "io", {100, n}}};
    for (const std::string layer : {"h.0.", "h.1."}) {
      rows.push_back({layer + "q.weight", linear, "oi", {n, n}});
      rows.push_back({layer + "k.weight", linear, "oi", {8, n}});
      rows.push_back({layer + "gate.weight", linear, "oi", {1, n}});
    }
    rows.push_back({"head.weight", linear, "oi", {100, n}});
    return description(rows);
  };
  const std::vector<std::string> notes = from_descriptions(model(64), model(16)).notes;
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], ContainsSubstring("h.*.k.weight: the numbers of an output") &&
                           ContainsSubstring("--role PATTERN=hidden"));
  for (const GivenRole role : {GivenRole::hidden, GivenRole::output}) {
    CHECK(from_descriptions(model(64), model(16), {{"*.k.weight", role}}).notes.empty());
  }
}

TEST_CASE("Without layers, outputs of fixed size before a hidden matrix are named", "[described]") {
  const auto model = [](long n) {
    return description({{"embed.weight", embedding, "io", {100, n}},
                        {"q.weight", linear, "oi", {n, n}},
                        {"k.weight", linear, "oi", {8, n}},
                        {"out.weight", linear, "oi", {n, n}},
                        {"policy.weight", linear, "oi", {100, n}},
                        {"value.weight", linear, "oi", {10, n}}});
  };
  const std::vector<std::string> notes = from_descriptions(model(64), model(16)).notes;
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].starts_with("k.weight: the numbers of an output"));
}

TEST_CASE("Lists whose modules read no features, or make none, are not layers", "[described]") {
  // Embeddings of codebooks, and a box head (facebookresearch/detr 29901c5, detr.py: MLP).
  const auto model = [](long n, long layers) {
    std::vector<Given> rows;
    for (const std::string book : {"0", "1"})
      rows.push_back({"emb." + book + ".weight", embedding, "io", {100, n}});
    for (long layer = 0; layer < layers; ++layer)
      rows.push_back({"h." + std::to_string(layer) + ".weight", linear, "oi", {n, n}});
    rows.push_back({"bbox_embed.layers.0.weight", linear, "oi", {n, n}});
    rows.push_back({"bbox_embed.layers.1.weight", linear, "oi", {4, n}});
    return description(rows);
  };
  for (const long depth : {2, 4}) {
    CHECK(from_descriptions(model(64, depth), model(16, 2)).sizes[0] ==
          "depth 2 to " + std::to_string(depth) + ": numbered under h.");
  }
}

TEST_CASE("A special last layer is compared with the last one", "[described]") {
  // The context's modulation has two parts in the last block, else six, and that block no output
  // (Stability-AI/sd3.5 fbf8f48, mmditx.py: DismantledBlock, pre_only).
  const auto model = [](long n, long layers) {
    std::vector<Given> rows{{"x_embedder.weight", linear, "oi", {n, 64}}};
    for (long layer = 0; layer < layers; ++layer) {
      const std::string at = "joint_blocks." + std::to_string(layer) + ".context_block.";
      const bool last = layer + 1 == layers;
      rows.push_back({at + "adaLN_modulation.1.weight", linear, "oi", {(last ? 2 : 6) * n, n}});
      if (!last) rows.push_back({at + "attn.proj.weight", linear, "oi", {n, n}});
    }
    rows.push_back({"final_layer.linear.weight", linear, "oi", {64, n}});
    return description(rows);
  };
  for (const long width : {64, 96}) {
    const Plan plan = planned(from_descriptions(model(width, 6), model(32, 2)), "maximal-update");
    for (const Entry& one : plan.entries) {
      if (one.name.find("adaLN") == std::string::npos) continue;
      CAPTURE(one.name);
      CHECK(one.group == Group::hidden);
      CHECK(one.epsilon.value == 32.0 / static_cast<double>(width));
    }
  }
}

TEST_CASE("Layers that alternate are compared by number", "[described]") {
  // Every other layer has a table of another length (facebookresearch/segment-anything dca509f, image_encoder.py).
  const auto model = [](long n, long layers) {
    std::vector<Given> rows{{"x.weight", linear, "oi", {n, 64}}};
    for (long layer = 0; layer < layers; ++layer) {
      const std::string at = "blocks." + std::to_string(layer) + ".";
      rows.push_back({at + "proj.weight", linear, "oi", {n, n}});
      rows.push_back({at + "rel_pos_h", other, "io", {layer % 2 == 0 ? 27L : 127L, 64}});
    }
    rows.push_back({"head.weight", linear, "oi", {10, n}});
    return description(rows);
  };
  CHECK(test::described::refusal(model(64, 4), model(16, 2), {{"*rel_pos_h", GivenRole::input}}) ==
        "no error");
}

TEST_CASE("Layers that are one, shared, may be more", "[described]") {
  const auto model = [](long n, long layers) {
    std::vector<Given> rows;
    for (long layer = 0; layer < layers; ++layer) {
      rows.push_back({"h." + std::to_string(layer) + ".weight",
                      linear,
                      "oi",
                      {n, n},
                      layer == 0 ? "" : "h.0.weight"});
    }
    rows.push_back({"head.weight", linear, "oi", {10, n}});
    return description(rows);
  };
  const DescribedModel roles = from_descriptions(model(64, 4), model(16, 2));
  CHECK(roles.shape.depth == 4);
  const Plan plan = planned(roles, "maximal-update");
  REQUIRE(plan.entries.size() == 2);  // one matrix, trained once
  CHECK(plan.entries[0].name == "h.0.weight");
  CHECK(plan.entries[0].group == Group::hidden);
}

TEST_CASE("The ends of an MLP that is a Sequential are not layers, however deep it is",
          "[described]") {
  const auto model = [](long n, long hidden) {
    std::vector<Given> rows;
    for (long layer = 0; layer < hidden + 2; ++layer) {
      const long in = layer == 0 ? 8 : n, out = layer == hidden + 1 ? 3 : n;
      rows.push_back({std::to_string(layer) + ".weight", linear, "oi", {out, in}});
      rows.push_back({std::to_string(layer) + ".bias", bias, "o", {out}});
    }
    return description(rows);
  };
  for (const long hidden : {1, 2, 4}) {
    CAPTURE(hidden);
    const DescribedModel roles = from_descriptions(model(64, hidden), model(16, 2));
    CHECK(roles.shape.depth == (hidden == 2 ? 1 : hidden));  // a list as long as the base's is none
    const std::string last = std::to_string(hidden + 1);
    const auto rows = [&](const char* rule) { return planned(roles, rule); };
    // The page of maximal-update; and a rule whose rates of layers alone know the depth.
    const Plan mup = rows("maximal-update");
    CHECK(entry(mup, "0.weight").epsilon.value == 0.25);
    CHECK(entry(mup, "1.weight").learning_rate.value == 0.25);
    CHECK(entry(mup, last + ".weight").multiplier.value == 0.25);
    CHECK(entry(mup, last + ".bias").epsilon.value == 1);
    const Plan deep = rows("depth-mup");
    CHECK(entry(deep, "0.weight").learning_rate.value == 1);
    CHECK(entry(deep, last + ".weight").learning_rate.value == 1);
    CHECK(roles.notes.empty());
  }
}

TEST_CASE("Norms that a Sequential numbers between its matrices stand in the layers",
          "[described]") {
  const auto model = [](long n, long hidden) {
    std::vector<Given> rows;
    for (long layer = 0; layer < hidden + 2; ++layer) {
      const long in = layer == 0 ? 8 : n, out = layer == hidden + 1 ? 3 : n;
      rows.push_back({std::to_string(2 * layer) + ".weight", linear, "oi", {out, in}});
      if (layer > hidden) break;
      rows.push_back({std::to_string(2 * layer + 1) + ".weight", gain, "o", {n}});
      rows.push_back({std::to_string(2 * layer + 1) + ".bias", bias, "o", {n}});
    }
    return description(rows);
  };
  const DescribedModel roles = from_descriptions(model(64, 4), model(16, 2));
  CHECK(roles.shape.depth == 4);
  CHECK(roles.base.depth == 2);
  const Plan plan = planned(roles, "complete-p");
  // CompleteP's page: epsilon 1/(m_N m_L) in the layers, 1/m_N before and after them.
  CHECK(entry(plan, "0.weight").epsilon.value == 1.0 / 4);
  for (const char* name : {"2.weight", "3.weight", "3.bias", "5.bias", "8.weight"}) {
    CAPTURE(name);
    CHECK(entry(plan, name).epsilon.value == 1.0 / 8);
  }
  CHECK(entry(plan, "9.bias").group == Group::final_norm_bias);
}

TEST_CASE("Which side of a bare matrix is its inputs is not guessed", "[described]") {
  const auto model = [](long n, const std::vector<long>& sizes) {
    return description({{"in.weight", linear, "oi", {n, 9}},
                        {"mix.weight", linear, "oi", {n, n}},
                        {"bare", other, "io", sizes},
                        {"out.weight", linear, "oi", {10, n}}});
  };
  const auto says = [&](GivenRole role, const std::vector<long>& large,
                        const std::vector<long>& small) {
    return test::described::refusal(model(64, large), model(16, small), {{"bare", role}});
  };
  const std::string asks =
      "tensor bare = other io: expected its kind, and which axes are inputs and outputs (hint: "
      "where it is described, as in kinds={PATTERN: \"linear:oi\"})";
  CHECK(says(GivenRole::router, {8, 64}, {8, 16}) ==
        asks);  // (experts, width), as in transformers 5
  CHECK(says(GivenRole::output, {8, 64}, {8, 16}) == asks);
  CHECK(says(GivenRole::output, {64, 8}, {16, 8}) == "no error");
  CHECK(says(GivenRole::input, {64, 8}, {16, 8}) == asks);
  CHECK(says(GivenRole::input, {8, 64}, {8, 16}) == "no error");
  CHECK(says(GivenRole::hidden, {256, 64}, {64, 16}) == "no error");  // alike either way
  CHECK(says(GivenRole::hidden, {8, 64}, {8, 16}) == asks);
  CHECK(says(GivenRole::vector, {8, 64}, {8, 16}) == "no error");
  CHECK_THAT(says(GivenRole::expert, {64, 64}, {16, 16}), ContainsSubstring("linear:eoi"));
}

TEST_CASE("A size that needs a name gets one that is free", "[described]") {
  const auto model = [](long n, long one, long two) {
    return description({{"mix.weight", linear, "oi", {n, n}},
                        {"one.weight", linear, "oi", {one, n}},
                        {"two.weight", linear, "oi", {two, n}},
                        {"out.weight", linear, "oi", {10, n}}});
  };
  Shape shape{.blocks = Blocks::listed}, base{.blocks = Blocks::listed};
  const auto says = [&] {
    return test::error_message([&] {
      static_cast<void>(from_descriptions(model(64, 30, 50), model(16, 10, 30), {}, shape, base));
    });
  };
  CHECK_THAT(says(), ContainsSubstring("--set d_ff=30 --set base.d_ff=10"));
  shape.d_ff = 30, base.d_ff = 10;
  CHECK_THAT(says(), ContainsSubstring("--set expert_ff=50 --set base.expert_ff=30"));
  shape.expert_ff = 50, base.expert_ff = 30;
  CHECK(says() == "no error");
}

}  // namespace
