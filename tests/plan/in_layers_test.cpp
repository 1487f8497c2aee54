// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include <string>
#include <utility>
#include <vector>

#include "scalewise/io/plan_json.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/described.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::test::described;
using enum TensorKind;
using Catch::Matchers::WithinRel;

/// A diffusion transformer (facebookresearch/DiT 4961bcb, models.py) with two tensors of a Mamba block of fixed rank in each
/// layer (state-spaces/mamba 000b310, mamba_simple.py): the steps' embedder and the last modulation are hidden matrices
/// outside the layers, and `x_proj`, `dt_proj` are an output and an input within them.
ModelDescription diffusion(long n, long layers,
                           const std::vector<std::string>& lists = {"blocks."}) {
  std::vector<Given> rows{{"x_embedder.proj.weight", linear, "oikk", {n, 4, 2, 2}},
                          {"t_embedder.mlp.0.weight", linear, "oi", {n, 256}},
                          {"t_embedder.mlp.2.weight", linear, "oi", {n, n}},
                          {"t_embedder.mlp.2.bias", bias, "o", {n}}};
  std::vector<std::string> blocks;
  for (const std::string& list : lists) {
    for (long layer = 0; layer < layers; ++layer)
      blocks.push_back(list + std::to_string(layer) + ".");
  }
  for (const std::string& block : blocks) {
    rows.push_back({block + "adaLN_modulation.1.weight", linear, "oi", {6 * n, n}});
    rows.push_back({block + "x_proj.weight", linear, "oi", {48, n}});
    rows.push_back({block + "dt_proj.weight", linear, "oi", {n, 16}});
  }
  rows.push_back({"final_layer.linear.weight", linear, "oi", {32, n}});
  rows.push_back({"final_layer.adaLN_modulation.1.weight", linear, "oi", {2 * n, n}});
  return description(rows);
}

struct Expected {
  std::string name;
  double rate, epsilon, multiplier;
};

void check_rows(const Plan& plan, const std::vector<Expected>& table) {
  for (const Expected& row : table) {
    INFO(plan.rule << ", " << row.name);
    CHECK(entry(plan, row.name).learning_rate.value == row.rate);
    CHECK(entry(plan, row.name).epsilon.value == row.epsilon);
    CHECK(entry(plan, row.name).multiplier.value == row.multiplier);
  }
}

// Derived from arXiv:2505.01618, Table 1: m_N = 2 and m_L = 4. The branches' factor 1/m_L^α is in the gradients of what
// stands in them, and α - 1 in the exponent of their rates makes all layers together move the stream by order one.
const std::vector<Expected> by_complete_p{
    {"x_embedder.proj.weight", 1, 1.0 / 2, 1},
    {"t_embedder.mlp.0.weight", 1, 1.0 / 2, 1},
    {"t_embedder.mlp.2.weight", 1.0 / 2, 1.0 / 2, 1},
    {"t_embedder.mlp.2.bias", 1, 1.0 / 2, 1},
    {"blocks.3.adaLN_modulation.1.weight", 1.0 / 2, 1.0 / 8, 1},
    {"blocks.3.x_proj.weight", 1, 1.0 / 8, 1.0 / 2},
    {"blocks.3.dt_proj.weight", 1, 1.0 / 8, 1},
    {"final_layer.adaLN_modulation.1.weight", 1.0 / 2, 1.0 / 2, 1},
    {"final_layer.linear.weight", 1, 1.0 / 2, 1.0 / 2}};
const std::vector<Expected> by_depth_mup{
    {"t_embedder.mlp.2.weight", 1.0 / 2, 1.0 / 2, 1},
    {"blocks.3.adaLN_modulation.1.weight", 1.0 / 4, 1.0 / 4, 1},
    {"blocks.3.x_proj.weight", 1.0 / 2, 1.0 / 4, 1.0 / 2},
    {"blocks.3.dt_proj.weight", 1.0 / 2, 1.0 / 4, 1},
    {"final_layer.adaLN_modulation.1.weight", 1.0 / 2, 1.0 / 2, 1}};

}  // namespace

TEST_CASE("What stands in the layers has the factors of the depth, and nothing else has",
          "[described]") {
  const DescribedModel model = from_descriptions(diffusion(128, 8), diffusion(64, 2));
  check_rows(planned(model, "complete-p"), by_complete_p);
  check_rows(planned(model, "depth-mup"), by_depth_mup);

  const std::vector<std::string> lists{"blocks.", "out_blocks."};  // so that no name has *
  const DescribedModel two = from_descriptions(diffusion(128, 8, lists), diffusion(64, 2, lists));
  check_rows(planned(two, "complete-p"), by_complete_p);
  check_rows(planned(two, "depth-mup"), by_depth_mup);
}

TEST_CASE("Where nobody says what the layers are, hidden matrices stand in them", "[described]") {
  const auto stacked = [](long n) {
    return description(
        {{"embed", embedding, "io", {100, n}}, {"layers", linear, "kio", {6, n, n}}});
  };
  const auto shape = [](long depth) { return Shape{.depth = depth, .blocks = Blocks::listed}; };
  const Plan plan =
      planned(from_descriptions(stacked(128), stacked(64), {}, shape(6), shape(3)), "depth-mup");
  CHECK(entry(plan, "layers").epsilon.formula() == "1/(m_N√m_L)");
}

TEST_CASE("Several heads are not layers", "[described]") {
  const auto model = [](long n) {
    std::vector<Given> rows{{"embed", embedding, "io", {100, n}}};
    for (const std::string number : {"0", "1", "2"})
      rows.push_back({"blocks." + number + ".weight", linear, "oi", {n, n}});
    for (const std::string number : {"0", "1", "2"}) {
      rows.push_back({"heads." + number + ".weight", linear, "oi", {10, n}});
      rows.push_back({"heads." + number + ".bias", bias, "o", {10}});
    }
    return description(rows);
  };
  const DescribedModel found = from_descriptions(model(128), model(64));
  CHECK(found.shape.depth == 3);
  const Plan plan = planned(found, "maximal-update");
  CHECK(entry(plan, "blocks.2.weight").group == Group::hidden);
  CHECK(entry(plan, "heads.2.bias").group == Group::head_bias);
  CHECK(entry(plan, "heads.2.bias").epsilon.value ==
        1);  // a bias of logits has gradients of order one
}

TEST_CASE("Layers of which some have experts are layers, also of a base as deep", "[described]") {
  const auto model = [](long n) {
    std::vector<Given> rows{{"embed", embedding, "io", {100, n}}};
    for (const std::string at : {"layers.0.", "layers.1.", "layers.2."}) {
      rows.push_back({at + "norm.weight", gain, "o", {n}});
      rows.push_back({at + "attention.out.weight", linear, "oi", {n, n}});
      if (at == "layers.0.") {
        rows.push_back({at + "mlp.up.weight", linear, "oi", {4 * n, n}});
        rows.push_back({at + "mlp.down.weight", linear, "oi", {n, 4 * n}});
        continue;
      }
      rows.push_back({at + "mlp.router.weight", linear, "oi", {4, n}});
      rows.push_back({at + "mlp.experts.up", linear, "eoi", {4, n, n}});
      rows.push_back({at + "mlp.experts.down", linear, "eoi", {4, n, n}});
    }
    rows.push_back({"norm.weight", gain, "o", {n}});
    rows.push_back({"head.weight", linear, "oi", {100, n}});
    return description(rows);
  };
  const DescribedModel found = from_descriptions(model(128), model(64));
  CHECK(found.sizes[0] == "depth 3 to 3: numbered under layers.");
  const Plan plan = planned(found, "complete-p");
  CHECK(entry(plan, "norm.weight").group == Group::final_norm_gain);
  CHECK(entry(plan, "layers.0.norm.weight").group == Group::norm_gain);
}

TEST_CASE("A bias outside of the layers has the inputs of its matrix", "[described]") {
  // torch.nn.Linear draws both from U(-1/√fan_in, 1/√fan_in), of variance 1/(3 fan_in).
  for (const bool layers : {false, true}) {
    const auto model = [&](long n) {
      std::vector<Given> rows;
      const auto linear_of = [&](const std::string& name, long inputs, long outputs) {
        rows.push_back({name + ".weight", linear, "oi", {outputs, inputs}});
        rows.push_back({name + ".bias", bias, "o", {outputs}});
      };
      linear_of("first", 20, n);
      linear_of("before", n, n);
      for (const std::string at : {"layers.0", "layers.1"}) {
        if (layers) linear_of(at, n, n);
      }
      linear_of("wide", n, 4 * n);
      linear_of("last", 4 * n, 10);
      return description(rows);
    };
    const Plan plan = planned(from_descriptions(model(256), model(64)), "pytorch");
    for (const auto& [name, inputs] : std::vector<std::pair<std::string, double>>{
             {"first", 20}, {"before", 256}, {"wide", 256}, {"last", 1024}}) {
      INFO(name << (layers ? " beside layers" : ""));
      CHECK(entry(plan, name + ".bias").fan_in == inputs);
      CHECK_THAT(entry(plan, name + ".bias").init_variance.value,
                 WithinRel(1 / (3 * inputs), 1e-12));
      CHECK_THAT(entry(plan, name + ".weight").init_variance.value,
                 WithinRel(1 / (3 * inputs), 1e-12));
    }
    CHECK(entry(plan, "first.bias").group == Group::patch_bias);
    CHECK(entry(plan, "wide.bias").group == Group::hidden_bias);
    CHECK(entry(plan, "last.bias").group == Group::head_bias);
    CHECK(read_plan(to_json(plan).dump(), "plan") == plan);
  }
}

TEST_CASE("A file keeps whether a tensor stands in the layers", "[described]") {
  const Plan plan = planned(from_descriptions(diffusion(128, 8), diffusion(64, 2)), "complete-p");
  CHECK(read_plan(to_json(plan).dump(), "plan") == plan);
  std::vector<std::string> outside;
  for (const Extra& extra : plan.extras) {
    if (extra.in_layers) outside.push_back(extra.name);
  }
  CHECK(outside == std::vector<std::string>{"t_embedder.mlp.2.weight", "t_embedder.mlp.2.bias",
                                            "final_layer.adaLN_modulation.1.weight"});
}

TEST_CASE("A tensor that one of two equally deep models lacks in a layer is named", "[described]") {
  const ModelDescription whole = diffusion(128, 4);
  ModelDescription target = diffusion(256, 4), deeper = diffusion(256, 8);
  const auto note = [&](const ModelDescription& model) -> std::string {
    for (const std::string& one : from_descriptions(model, whole).notes) {
      if (one.starts_with("in one of the two models alone")) return one;
    }
    return "";
  };
  const auto forget = [](ModelDescription& model) {
    std::erase_if(model.tensors,
                  [](const DescribedTensor& t) { return t.name == "blocks.1.x_proj.weight"; });
  };
  CHECK(note(target).empty());
  forget(target);
  CHECK(note(target) ==
        "in one of the two models alone, though both have as many layers: blocks.1.x_proj.weight "
        "(in the base)");
  forget(deeper);  // every other layer may have it
  CHECK(note(deeper).empty());
}
