// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Vectors that no module explains, as timm's vision transformers have them (pytorch-image-models aa4b5850,
// vision_transformer.py: cls_token (1, 1, d), pos_embed (1, N, d), LayerScale.gamma (d)).

#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/from_descriptions.hpp"
#include "scalewise/io/plan_json.hpp"
#include "scalewise/io/plan_table.hpp"
#include "scalewise/plan/fold.hpp"
#include "scalewise/plan/initial_values.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/plan/start.hpp"
#include "scalewise/policy/maximal_update.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

namespace {

using namespace scalewise;
using Catch::Matchers::ContainsSubstring;
using enum TensorKind;
using test::error_message;

ModelDescription vision(long d, DescribedTensor more) {
  ModelDescription model;
  model.tensors = {{"cls_token", other, "iio", {1, 1, d}},
                   {"pos_embed", other, "iio", {1, 197, d}},
                   {"patch_embed.proj.weight", linear, "oikk", {d, 3, 16, 16}},
                   {"blocks.0.attn.scale", other, "iio", {6, 1, 1}},
                   {"blocks.0.attn.proj.weight", linear, "oi", {d, d}},
                   {"blocks.0.ls1.gamma", other, "o", {d}},
                   {"temperature", other, "", {}},
                   {"head.weight", linear, "oi", {1000, d}}};
  if (!more.name.empty()) model.tensors.push_back(std::move(more));
  return model;
}

DescribedModel described_vision(const std::vector<architecture::RoleOverride>& roles = {}) {
  return from_descriptions(vision(384, {}), vision(192, {}), roles);
}

Plan plan_of_vision(const DescribedModel& model) {
  return make_plan(MaximalUpdate{},
                   {.model = model.shape, .base = model.base, .extras = model.tensors});
}

std::string refusal_of(const DescribedTensor& target, const DescribedTensor& base) {
  return error_message<InvalidInput>(
      [&] { static_cast<void>(from_descriptions(vision(384, target), vision(192, base))); });
}

}  // namespace

TEST_CASE("Vectors that no module explains keep the model's own initial values", "[own]") {
  const DescribedModel model = described_vision();
  const Plan plan = plan_of_vision(model);
  for (const char* name :
       {"cls_token", "pos_embed", "blocks.0.attn.scale", "blocks.0.ls1.gamma", "temperature"}) {
    const Entry& entry = plan.at(name);
    INFO(name);
    CHECK(entry.distribution == Distribution::own);
    CHECK(entry.init_variance.value == 0);
    CHECK(entry.learning_rate.value == 1);  // Table 3, input weights and all biases, under Adam
    CHECK(entry.multiplier.value == 1);
    CHECK_THAT(error_message<InvalidInput>([&] { InitialValues(entry, 1); }),
               ContainsSubstring("own: expected a tensor that the plan initializes"));
  }
  CHECK(model.reasons[0] == "one axis");
  CHECK(model.reasons[1] == "alike for all of a batch");
  CHECK(plan.at("pos_embed").rows == 197 * 384);
  CHECK(plan.at("blocks.0.attn.proj.weight").distribution == Distribution::normal);
  CHECK(plan_table(plan, true).rows[0][1] == "own");
  CHECK(fold(plan).plan.at("cls_token") == plan.at("cls_token"));
}

TEST_CASE("Values of the model's own act as they do in the model, in each formulation", "[own]") {
  const DescribedModel model = described_vision();
  for (const int table : {3, 8, 9}) {
    for (const auto& [optimizer, rate] : {std::pair{adamw, 1.0}, std::pair{sgd, 2.0}}) {
      const Plan plan = make_plan(MaximalUpdate{.table = table}, {.model = model.shape,
                                                                  .base = model.base,
                                                                  .optimizer = optimizer,
                                                                  .extras = model.tensors});
      INFO("table " << table << ", " << optimizer.name);
      CHECK(plan.at("pos_embed").multiplier.value == 1);
      CHECK(plan.at("pos_embed").learning_rate.value == rate);  // Table 3: 1, by SGD fan-out
      if (optimizer == adamw) CHECK(plan.at("pos_embed").epsilon.value == 0.5);
    }
  }
}

TEST_CASE("A plan with values of the model's own is read back, and none that contradicts itself",
          "[own]") {
  const Plan plan = plan_of_vision(described_vision());
  const std::string text = to_json(plan).dump();
  CHECK(read_plan(text) == plan);
  nlohmann::ordered_json changed = to_json(plan);
  changed["entries"][0]["distribution"] = "normal";
  CHECK_THAT(
      error_message<InvalidInput>([&] { static_cast<void>(read_plan(changed.dump())); }),
      ContainsSubstring("entries[0].distribution = normal: expected own, as the extra says"));
  changed = to_json(plan);
  changed["entries"][2]["distribution"] = "own";
  CHECK_THAT(
      error_message<InvalidInput>([&] { static_cast<void>(read_plan(changed.dump())); }),
      ContainsSubstring("entries[2].distribution = own: expected one that can be drawn from"));
}

TEST_CASE("A tensor that may be a matrix needs a role, which may be that of a vector", "[own]") {
  // (1, 3, in, 1, 1) gives colours, as in StyleGAN2; A_log (inner, states) and positions (1, d, 14, 14) could be matrices.
  for (const DescribedTensor& base :
       {DescribedTensor{"to_rgb", other, "iiiio", {1, 3, 192, 1, 1}},
        DescribedTensor{"A_log", other, "io", {192, 16}},
        DescribedTensor{"positions", other, "iiio", {1, 192, 14, 14}}}) {
    DescribedTensor target = base;
    for (long& size : target.sizes) size = size == 192 ? 384 : size;
    CHECK_THAT(refusal_of(target, base),
               ContainsSubstring(base.name + " = other: expected a role"));
  }
  const DescribedTensor decay{"A_log", other, "io", {384, 16}},
      of_base{"A_log", other, "io", {192, 16}};
  const auto with_role = [&](GivenRole role) {
    const DescribedModel model =
        from_descriptions(vision(384, decay), vision(192, of_base), {{"A_log", role}});
    return plan_of_vision(model).at("A_log").distribution;
  };
  CHECK(with_role(GivenRole::vector) == Distribution::own);
  CHECK(with_role(GivenRole::output) ==
        Distribution::normal);  // the plan's, since somebody said what it is
}
