// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <string>
#include <vector>

#include "scalewise/architecture/same_growth.hpp"
#include "scalewise/io/plan_json.hpp"
#include "support/catch.hpp"
#include "support/described.hpp"

// Where experts are in two sizes of a model, and which tensor is their router.
namespace described_experts {

using namespace scalewise;
using namespace scalewise::test::described;
using Catch::Matchers::ContainsSubstring;
using enum TensorKind;

/// The sizes of an expert and of its router, as other libraries lay them out: inputs before outputs, biases, a shared
/// expert with a gate, and a router of all experts.
ModelDescription mixture(long n, long count, long features) {
  std::vector<Given> rows{{"embed.weight", embedding, "io", {100, n}}};
  for (const std::string at : {"h.0.", "h.1."}) {
    rows.push_back({at + "router.weight", linear, "oi", {count, n}});
    rows.push_back({at + "router.bias", bias, "o", {count}});
    rows.push_back({at + "experts.gate_up", linear, "eio", {count, n, 2 * features}});
    rows.push_back({at + "experts.gate_up_bias", bias, "eo", {count, 2 * features}});
    rows.push_back({at + "experts.down", linear, "eio", {count, features, n}});
    rows.push_back({at + "shared.up.weight", linear, "oi", {2 * n, n}});
    rows.push_back({at + "shared.down.weight", linear, "oi", {n, 2 * n}});
    rows.push_back({at + "shared_gate.weight", linear, "oi", {1, n}});
  }
  rows.push_back({"head.weight", linear, "oi", {count, n}});
  return description(rows);
}

/// The groups and sides of the tensors of the first layer, and of the head.
std::vector<std::string> lines_of(const DescribedModel& model) {
  std::vector<std::string> lines;
  for (const Extra& extra : model.tensors) {
    if (extra.name == "embed.weight") continue;
    lines.push_back(extra.name + " " + std::string(to_string(extra.group)) + " " + extra.rows +
                    " " + extra.columns + " " + extra.fan_in);
  }
  return lines;
}

TEST_CASE("Experts and their router are found, however many and wide they are", "[described]") {
  using Lines = std::vector<std::string>;
  const Lines shared{"h.*.shared.up.weight hidden d_model 2*d_model ",
                     "h.*.shared.down.weight hidden 2*d_model d_model ",
                     "h.*.shared_gate.weight head d_model 1 "};
  const auto found = [&](Lines own, const std::string& head) {
    own.insert(own.end(), shared.begin(), shared.end());
    own.push_back(head);
    return own;
  };
  CHECK(lines_of(from_descriptions(mixture(64, 4, 64), mixture(16, 4, 16))) ==
        found({"h.*.router.weight router d_model 4 ", "h.*.router.bias hidden_bias 4 1 d_model",
               "h.*.experts.gate_up expert_up 4*d_model 2*d_model d_model",
               "h.*.experts.gate_up_bias hidden_bias 8*d_model 1 d_model",
               "h.*.experts.down expert_down 4*d_model d_model d_model"},
              "head.weight head d_model 4 "));
  // More experts, in proportion to the width, which stay as narrow.
  const DescribedModel narrow = from_descriptions(mixture(64, 16, 8), mixture(16, 4, 8));
  CHECK(lines_of(narrow) == found({"h.*.router.weight router d_model experts ",
                                   "h.*.router.bias hidden_bias d_model/4 1 d_model",
                                   "h.*.experts.gate_up expert_up experts*d_model 16 d_model",
                                   "h.*.experts.gate_up_bias hidden_bias experts*16 1 d_model",
                                   "h.*.experts.down expert_down experts*8 d_model 8"},
                                  "head.weight hidden d_model d_model/4 "));
  CHECK(narrow.shape.experts == 16);
  CHECK(narrow.base.experts == 4);
  CHECK(narrow.shape.expert_ff == 8);
  const Plan plan = make_plan("mup", {.model = narrow.shape,
                                      .base = narrow.base,
                                      .parameters = {{"mssp", 1}},
                                      .extras = narrow.tensors});
  CHECK(plan.at("h.1.experts.down").init_variance.formula() == "m_E");
  CHECK(plan.at("h.1.experts.down").size() == 16 * 8 * 64);
  CHECK(read_plan(to_json(plan).dump(), "plan") == plan);
  // Of another ratio than the width, wider in proportion to it.
  const DescribedModel more = from_descriptions(mixture(64, 8, 128), mixture(16, 4, 32));
  CHECK(lines_of(more)[1] == "h.*.router.bias hidden_bias experts 1 d_model");
  CHECK(lines_of(more)[4] == "h.*.experts.down expert_down experts*2*d_model d_model 2*d_model");
}

TEST_CASE("Who has experts as tensors of their own says so", "[described]") {
  const auto model = [](long n) {
    return description({{"embed.weight", embedding, "io", {100, n}},
                        {"h.0.gate.weight", linear, "oi", {2, n}},
                        {"h.0.experts.0.up.weight", linear, "oi", {3 * n, n}},
                        {"h.0.experts.0.down.weight", linear, "oi", {n, 3 * n}},
                        {"h.0.experts.0.down.bias", bias, "o", {n}},
                        {"h.0.experts.1.up.weight", linear, "oi", {3 * n, n}},
                        {"h.0.experts.1.down.weight", linear, "oi", {n, 3 * n}},
                        {"h.0.experts.1.down.bias", bias, "o", {n}}});
  };
  const std::vector<architecture::RoleOverride> roles{{"*.experts.*", GivenRole::expert},
                                                      {"*.gate.weight", GivenRole::router}};
  const DescribedModel found = from_descriptions(model(64), model(16), roles);
  CHECK(found.tensors[1].group == Group::router);
  CHECK(found.tensors[2].group == Group::expert_up);
  CHECK(found.tensors[6].group == Group::expert_down);
  CHECK(found.reasons[6] == "given: expert");
  CHECK(found.tensors[7].group == Group::hidden_bias);
}

/// Mixtral with a tensor for each expert.
/// Source: transformers 4, models/mixtral/modeling_mixtral.py (00d4b3d), MixtralSparseMoeBlock.
ModelDescription mixtral(long n, long layers, long experts, long features) {
  std::vector<Given> rows{{"model.embed_tokens.weight", embedding, "io", {100, n}}};
  for (long layer = 0; layer < layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".block_sparse_moe.";
    rows.push_back({at + "gate.weight", linear, "oi", {experts, n}});
    for (long expert = 0; expert < experts; ++expert) {
      const std::string one = at + "experts." + std::to_string(expert) + ".";
      rows.push_back({one + "w1.weight", linear, "oi", {features, n}});
      rows.push_back({one + "w2.weight", linear, "oi", {n, features}});
      rows.push_back({one + "w3.weight", linear, "oi", {features, n}});
    }
  }
  rows.push_back({"lm_head.weight", linear, "oi", {100, n}});
  return description(rows);
}

TEST_CASE("Experts that are numbered may be more than in the base", "[described]") {
  const DescribedModel found = from_descriptions(mixtral(64, 4, 8, 128), mixtral(16, 2, 4, 32));
  std::vector<std::string> first;
  for (const std::string& line : lines_of(found)) {
    if (line.find(".experts.") == std::string::npos ||
        line.find(".experts.7.") != std::string::npos)
      first.push_back(line);
  }
  const std::string at = "model.layers.*.block_sparse_moe.";
  CHECK(first == std::vector<std::string>{"model.embed_tokens.weight token_embedding 100 d_model ",
                                          at + "gate.weight router d_model experts ",
                                          at + "experts.7.w1.weight expert_up d_model 2*d_model ",
                                          at + "experts.7.w2.weight expert_down 2*d_model d_model ",
                                          at + "experts.7.w3.weight expert_up d_model 2*d_model ",
                                          "lm_head.weight head d_model 100 "});
  CHECK(found.sizes[1] == "experts 4 to 8: numbered under " + at +
                              "experts., whose weights have to sum up to the same in both models");
  CHECK(found.reasons[2] == "one of numbered experts");
  const auto plan = [&](const DescribedModel& model, const std::vector<Parameter>& parameters) {
    return make_plan("mup", {.model = model.shape,
                             .base = model.base,
                             .parameters = parameters,
                             .extras = model.tensors});
  };
  // MSSP, the column of more experts that are wider: arXiv:2605.14200 and its code.
  const Plan made = plan(found, {{"mssp", 1}});
  CHECK(made.entries.size() == 2 + 4 * (1 + 8 * 3));
  CHECK(made.at("model.layers.3.block_sparse_moe.experts.7.w2.weight").init_variance.formula() ==
        "1/m_N");
  CHECK(made.at("model.layers.3.block_sparse_moe.experts.7.w1.weight").epsilon.formula() ==
        "1/(m_N·m_E)");
  CHECK(made.at("model.layers.3.block_sparse_moe.gate.weight").epsilon.formula() == "1/m_E");
  // As narrow as in the base.
  const Plan narrow =
      plan(from_descriptions(mixtral(64, 2, 8, 32), mixtral(16, 2, 4, 32)), {{"mssp", 1}});
  CHECK(narrow.at("model.layers.0.block_sparse_moe.experts.0.w2.weight").init_variance.formula() ==
        "m_E");
  CHECK_THAT(test::error_message([&] { static_cast<void>(plan(found, {})); }),
             ContainsSubstring("experts = 4 to 8: expected as many in both models"));
  // In a model of one layer that has no number, and fewer than in the base.
  const auto alone = [](long n, long experts) {
    std::vector<Given> rows{{"gate.weight", linear, "oi", {experts, n}}};
    for (long expert = 0; expert < experts; ++expert)
      rows.push_back({"experts." + std::to_string(expert) + ".weight", linear, "oi", {n, n}});
    return description(rows);
  };
  const DescribedModel fewer = from_descriptions(alone(64, 2), alone(16, 4));
  CHECK(fewer.shape.experts == 2);
  CHECK(fewer.base.experts == 4);
  CHECK(fewer.shape.depth == 1);
  CHECK(fewer.tensors[0].group == Group::router);
  CHECK(fewer.tensors[2].group == Group::expert_up);
}

/// The second block of either stack, the first one with experts.
/// Source: transformers (17da178), models/switch_transformers/modular_switch_transformers.py, SwitchTransformersExperts;
///         as in the files of google/switch-base-8: encoder.block.1.layer.1.mlp.experts.expert_0.wi.weight.
ModelDescription switch_transformer(long n, long experts) {
  std::vector<Given> rows{{"shared.weight", embedding, "io", {100, n}}};
  for (const std::string at : {"encoder.block.1.layer.1.mlp.", "decoder.block.1.layer.2.mlp."}) {
    rows.push_back({at + "router.classifier.weight", linear, "oi", {experts, n}});
    for (long expert = 0; expert < experts; ++expert) {
      const std::string one = at + "experts.expert_" + std::to_string(expert);
      rows.push_back({one + ".wi.weight", linear, "oi", {4 * n, n}});
      rows.push_back({one + ".wo.weight", linear, "oi", {n, 4 * n}});
    }
  }
  return description(rows);
}

TEST_CASE("Experts are numbered behind an underscore in Switch Transformers", "[described]") {
  const DescribedModel found =
      from_descriptions(switch_transformer(64, 16), switch_transformer(16, 8));
  CHECK(found.shape.experts == 16);
  CHECK(found.base.experts == 8);
  const std::vector<std::string> lines = lines_of(found);
  const std::string at = "decoder.block.1.layer.2.mlp.";
  for (const std::string& line :
       {at + "router.classifier.weight router d_model experts ",
        at + "experts.expert_15.wi.weight expert_up d_model 4*d_model ",
        at + "experts.expert_15.wo.weight expert_down 4*d_model d_model "}) {
    CHECK(std::count(lines.begin(), lines.end(), line) == 1);
  }
  CHECK(found.tensors.size() == 1 + 2 * (1 + 2 * 16));
  const std::string third = test::error_message([&] {
    architecture::require_same_growth(switch_transformer(64, 16), switch_transformer(16, 8),
                                      switch_transformer(32, 12));
  });
  CHECK(third == "no error");
  // A shared one is not an expert, and neither is one without a number.
  CHECK(scalewise::detail::split_expert("h.0.mlp.shared_expert_0.up").number == -1);
  CHECK(scalewise::detail::split_expert("h.0.expert_up.weight").number == -1);
  CHECK(scalewise::detail::split_expert("h.0.expert_01.up").number == -1);
}

TEST_CASE("A third size confirms numbered experts", "[described]") {
  const auto message = [](const ModelDescription& third) {
    return test::error_message([&] {
      architecture::require_same_growth(mixtral(64, 4, 8, 32), mixtral(16, 2, 2, 8), third);
    });
  };
  CHECK(message(mixtral(32, 3, 4, 16)) == "no error");
  CHECK_THAT(message(mixtral(32, 3, 4, 12)),
             ContainsSubstring("experts.0.w1.weight, outputs = 8 to 32, and 12"));
}

TEST_CASE("A base that ends before the first layer of experts is told so", "[described]") {
  // As DeepSeek's: the first layer is dense, the others have experts.
  const auto model = [](long n, long layers) {
    std::vector<Given> rows{{"embed.weight", embedding, "io", {100, n}}};
    for (long layer = 0; layer < layers; ++layer) {
      const std::string at = "h." + std::to_string(layer) + ".mlp.";
      if (layer == 0) rows.push_back({at + "up.weight", linear, "oi", {4 * n, n}});
      for (long expert = 0; layer > 0 && expert < 2; ++expert)
        rows.push_back(
            {at + "experts." + std::to_string(expert) + ".weight", linear, "oi", {n, n}});
    }
    return description(rows);
  };
  CHECK(refusal(model(64, 4), model(16, 2)) == "no error");
  CHECK_THAT(refusal(model(64, 4), model(16, 1)),
             ContainsSubstring("(hint: do deeper layers have it? give a base that is as deep)"));
}

TEST_CASE("A list that grows and is none of layers or experts is named", "[described]") {
  const auto heads = [](long n, long count, const std::string& list) {
    std::vector<Given> rows{{"embed.weight", embedding, "io", {100, n}}};
    for (const std::string layer : {"h.0.", "h.1."}) {
      for (long head = 0; head < count; ++head)
        rows.push_back({layer + list + std::to_string(head) + ".weight", linear, "oi", {n, n}});
    }
    return description(rows);
  };
  const std::string hint =
      " (hint: only layers may be more, which the first number of a name counts from 0, and "
      "experts: name others by --role PATTERN=expert)";
  CHECK(refusal(heads(64, 4, "heads."), heads(16, 2, "heads.")) ==
        "base = without h.0.heads.2.weight, h.0.heads.3.weight, h.1.heads.2.weight and 1 more: "
        "expected the tensors of the target" +
            hint);
  CHECK_THAT(refusal(heads(64, 4, "shared_experts."), heads(16, 2, "shared_experts.")),
             ContainsSubstring("base = without h.0.shared_experts.2.weight"));
  CHECK(refusal(heads(64, 2, "heads."), heads(16, 4, "heads.")) ==
        "target = without h.0.heads.2.weight, h.0.heads.3.weight, h.1.heads.2.weight and 1 more: "
        "expected the tensors of the base");
  // Experts under another name, if somebody says so.
  const DescribedModel given = from_descriptions(heads(64, 4, "feed."), heads(16, 2, "feed."),
                                                 {{"*.feed.*", GivenRole::expert}});
  CHECK(given.shape.experts == 4);
  CHECK(given.base.experts == 2);
  CHECK(given.reasons[1] == "given: expert");
}

TEST_CASE("Numbered experts that are not alike are named", "[described]") {
  ModelDescription target = mixtral(64, 1, 4, 128);
  const ModelDescription base = mixtral(16, 1, 2, 32);
  target.tensors[5].sizes = {64, 64};
  const std::string at = "model.layers.0.block_sparse_moe.experts.";
  CHECK(refusal(target, base) ==
        "tensor " + at +
            "1.w1.weight = not like that of expert 0: expected the same tensors in each expert, "
            "numbered from 0 (hint: if it is not an expert, give its role, as in --role "
            "PATTERN=hidden)");
  target = mixtral(64, 1, 4, 128);
  target.tensors.erase(target.tensors.begin() + 6);
  CHECK(
      refusal(target, base) ==
      "experts " + at +
          "1 = 2 tensors, of 4 experts up to number 3: expected all experts from 0, each with the "
          "tensors of the first (hint: if they are not experts, give their role, as in --role "
          "PATTERN=hidden)");
  // The part of one of several processes.
  target = mixtral(64, 1, 4, 128);
  target.tensors.erase(target.tensors.begin() + 5, target.tensors.begin() + 8);
  CHECK_THAT(refusal(target, base), ContainsSubstring("experts up to number 3"));
  CHECK_THAT(refusal(base, target), ContainsSubstring("experts up to number 3"));
}

}  // namespace described_experts
