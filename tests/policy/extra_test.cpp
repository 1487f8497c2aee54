// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Tensors that the shape does not say.

#include "scalewise/architecture/extra.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/models.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

/// The same tensor once more, and the one that it is like.
struct Twin {
  Extra extra;
  std::string original;
};

/// `layer` is how names of layers begin.
std::vector<Twin> twins(const std::string& layer) {
  const std::string all = layer + "*.";
  const std::string one = layer + "1.";
  return {
      {{all + "q", Group::query, "d_model", "heads*head_dim"}, one + "query"},
      {{all + "k", Group::key, "d_model", "head_dim*kv_heads"}, one + "key"},
      {{all + "o", Group::attention_output, "heads*head_dim", "d_model"}, one + "attention_output"},
      {{all + "u", Group::mlp_up, "d_model", "d_ff"}, one + "mlp_up"},
      {{all + "d", Group::mlp_down, "2*d_ff/2", "1*d_model"}, one + "mlp_down"},
      {{all + "g", Group::norm_gain, "d_model"}, one + "mlp_norm_gain"},
      {{all + "n", Group::norm_bias, "d_model"}, one + "mlp_norm_bias"},
      {{all + "b", Group::hidden_bias, "d_model", "1", "d_ff"}, one + "mlp_down_bias"},
      {{"final", Group::final_norm_gain, "d_model"}, "final_norm_gain"},
      {{"places", Group::position_embedding, "context", "d_model"}, "position_embedding"},
      {{"more", Group::token_embedding, "vocab", "d_model"}, "token_embedding"},
      {{"values", Group::head, "d_model", "vocab"}, "head"}};
}

std::optional<Plan> plan_of(const Rule& rule, const Shape& shape,
                            const std::vector<Extra>& extras) {
  Shape base = tokens();
  base.encoder_depth = shape.encoder_depth > 0 ? 2 : 0;
  base.d_model = 12;
  base.context = shape.context;
  base.tied_head = shape.tied_head;
  try {
    return make_plan(told(rule),
                     {.model = shape,
                      .base = policy::needs_base(rule) ? std::optional<Shape>(base) : std::nullopt,
                      .optimizer = rule.optimizers.front(),
                      .extras = extras});
  } catch (const InvalidInput&) {
    return {};
  }
}

std::string refusal(const Extra& extra, const std::string& rule = "he", Shape shape = tokens()) {
  return error_message(
      [&] { static_cast<void>(make_plan(rule, {.model = shape, .extras = {extra}})); });
}

}  // namespace

TEST_CASE("An extra tensor gets what the tensor gets that it is like, under every rule") {
  std::map<std::string_view, int> compared;
  for (const Rule& rule : rules()) {
    for (const Variant& variant : variants()) {
      if (variant.shape.input != Input::token) continue;
      const std::optional<Plan> plain = plan_of(rule, variant.shape, {});
      if (!plain) continue;
      std::vector<Twin> present;
      std::vector<Extra> extras;
      for (const Twin& twin : twins(variant.shape.encoder_depth > 0 ? "decoder." : "layer.")) {
        const auto is_original = [&](const Entry& entry) { return entry.name == twin.original; };
        if (std::ranges::none_of(plain->entries, is_original)) continue;
        present.push_back(twin);
        extras.push_back(twin.extra);
      }
      INFO(rule.id << ", " << variant.name);
      const std::optional<Plan> plan = plan_of(rule, variant.shape, extras);
      REQUIRE(plan);
      CHECK(plan->model == plain->model);
      std::size_t added = 0;
      for (const Twin& twin : present) {
        INFO(twin.original);
        const Entry& original = plain->at(twin.original);
        std::string name = twin.extra.name;
        const bool layered = name.find('*') != std::string::npos;
        if (layered) name.replace(name.find('*'), 1, "1");
        const Entry& entry = plan->at(name);
        ++compared[rule.id];
        CHECK(entry.layer == original.layer);
        CHECK(entry.rows == original.rows);
        CHECK(entry.columns == original.columns);
        CHECK(entry.fan_in == original.fan_in);
        CHECK(entry.fan_out == original.fan_out);
        CHECK(entry.source == original.source);
        // A product of roots may round otherwise: 24 = 6 * 4.
        CHECK_THAT(entry.init_variance.value, WithinRel(original.init_variance.value, 1e-14));
        CHECK(entry.init_mean.value == original.init_mean.value);
        CHECK_THAT(entry.multiplier.value, WithinRel(original.multiplier.value, 1e-14));
        CHECK_THAT(entry.learning_rate.value, WithinRel(original.learning_rate.value, 1e-14));
        CHECK_THAT(entry.weight_decay.value, WithinRel(original.weight_decay.value, 1e-14));
        CHECK_THAT(entry.epsilon.value, WithinRel(original.epsilon.value, 1e-14));
        added += layered ? static_cast<std::size_t>(plan->shape.depth) : 1;
        CHECK(plan::is_extra(*plan, entry));
        CHECK_FALSE(plan::is_extra(*plan, plan->at(twin.original)));
      }
      CHECK(plan->entries.size() == plain->entries.size() + added);
    }
  }
  for (const Rule& rule : rules()) {
    if (rule.id.starts_with("shallow")) continue;
    INFO(rule.id);
    CHECK(compared[rule.id] >= 20);
  }
}

TEST_CASE("A size that does not grow is not a ratio") {
  // Yang et al. 2022 (arXiv:2203.03466), Table 8, hidden weights under Adam: variance 1/fan_in, rate
  // 1/fan_in, each relative to the base; an input of 64 is the same in both.
  Shape base = tokens();
  base.d_model = 12;
  base.heads = 3;
  const Plan plan =
      make_plan("maximal-update", {.model = tokens(),
                                   .base = base,
                                   .extras = {{"layer.*.down", Group::mlp_up, "d_model", "64"},
                                              {"layer.*.up", Group::mlp_down, "64", "d_model"}}});
  CHECK_THAT(plan.at("layer.2.down").init_variance.value, WithinRel(0.5, 1e-14));
  CHECK_THAT(plan.at("layer.2.down").learning_rate.value, WithinRel(0.5, 1e-14));
  CHECK(plan.at("layer.2.up").init_variance.value == 1);
  CHECK(plan.at("layer.2.up").learning_rate.value == 1);
  CHECK(plan.at("layer.2.up").fan_in == 64);
  // A gradient of the down-projection falls as that of any hidden matrix over the root of its outputs
  // over the base's, which are the same.
  CHECK_THAT(plan.at("layer.2.down").epsilon.value, WithinRel(std::sqrt(0.5), 1e-14));
}

TEST_CASE("A rule that states a matrix by sizes of the model refuses other sides") {
  const Shape shape = tokens();
  const auto refused = [&](const Rule& rule, const Extra& extra) {
    return error_message([&] {
      static_cast<void>(make_plan(rule, {.model = shape,
                                         .base = shape,
                                         .optimizer = rule.optimizers.front(),
                                         .extras = {extra}}));
    });
  };
  // Dinan et al. 2023 (arXiv:2304.02034), (1.32), has 1/(M n) for the fan-in of the MLP's output, which is
  // not that of 64 inputs; Kedia et al. 2024 (arXiv:2403.09635) has d_ff likewise.
  const Extra up{"layer.*.up", Group::mlp_down, "64", "d_model"};
  for (const char* rule : {"neural-tangent", "meta-principled", "nu-gpt"}) {
    INFO(rule);
    CHECK_THAT(refused(rule, up),
               ContainsSubstring("inputs and outputs of the shape's own mlp_down"));
    CHECK(refused(rule, {"layer.*.up", Group::mlp_down, "d_ff", "d_model"}) == "no error");
  }
  for (const char* rule :
       {"standard", "pytorch", "xavier", "he", "gpt2", "maximal-update", "complete-p"}) {
    INFO(rule);
    CHECK(refused(rule, up) == "no error");
  }
}

TEST_CASE("In a model of two stacks a tensor of the blocks belongs to the one that its name says") {
  Shape shape = tokens();
  shape.encoder_depth = 6;
  Shape base = shape;
  base.encoder_depth = 2;
  const auto planned = [&](const std::string& name) {
    return make_plan(
        "depth-mup",
        {.model = shape, .base = base, .extras = {{name, Group::mlp_up, "d_model", "64"}}});
  };
  // Yang et al. 2023: rates fall as the root of the depth, here 3 times the base's in the encoder.
  const std::string encoder = "encoder.adapter", decoder = "decoder.adapter";
  CHECK(planned(encoder).at(encoder).stack == Stack::encoder);
  CHECK_THAT(planned(encoder).at(encoder).learning_rate.value,
             WithinRel(1 / std::sqrt(3.0), 1e-14));
  CHECK_THAT(planned(decoder).at(decoder).learning_rate.value, WithinRel(1, 1e-14));
  CHECK_THAT(error_message([&] { static_cast<void>(planned("adapter")); }),
             ContainsSubstring("one with encoder or decoder in it"));
}

TEST_CASE("An extra tensor that cannot be is refused, and named") {
  CHECK_THAT(refusal({"", Group::norm_gain}), ContainsSubstring("extra , name (empty)"));
  CHECK_THAT(refusal({"a.*.b.*", Group::norm_gain}), ContainsSubstring("one * at most"));
  CHECK_THAT(
      refusal({"a", Group::norm_gain, "d_modl"}),
      ContainsSubstring(
          "extra a, rows = d_modl: expected a whole number or a size of the shape (hint: did "
          "you mean d_model?)"));
  CHECK_THAT(
      refusal({"a", Group::mlp_up, "d_model", "d_model/5"}),
      ContainsSubstring("extra a, columns = d_model/5: expected a whole number; it is 24/5"));
  for (const char* rows : {"", "-1", "0", "d_model*", "*2", "2/0", "9999999999", "d_model d_ff"}) {
    INFO(rows);
    CHECK_THAT(refusal({"a", Group::norm_gain, rows}), ContainsSubstring("extra a, rows "));
  }
  CHECK_THAT(refusal({"a", Group::norm_gain, "1073741824*2"}),
             ContainsSubstring("a size up to 2^30"));
  CHECK_THAT(refusal({"a", Group::norm_gain, "patch_dim"}),
             ContainsSubstring("a size that the shape has"));
  CHECK_THAT(refusal({"a", Group::norm_gain, "d_model", "2"}),
             ContainsSubstring("1: a norm_gain is a vector"));
  CHECK_THAT(refusal({"a", Group::hidden_bias}),
             ContainsSubstring("fan_in (none): expected the inputs"));
  CHECK_THAT(refusal({"a", Group::norm_gain, "d_model", "1", "d_ff"}),
             ContainsSubstring("fan_in = d_ff: expected none"));
  CHECK_THAT(refusal({"layer.1.query", Group::norm_gain}),
             ContainsSubstring("extra = layer.1.query: expected a name that no other tensor has"));
  Shape both = tokens();
  both.encoder_depth = 2;
  CHECK_THAT(refusal({"layer.*.a", Group::norm_gain}, "he", both),
             ContainsSubstring("encoder or decoder in it"));
  CHECK_THAT(refusal({"pooler", Group::mlp_up, "d_model", "d_model"}, "ds-init"),
             ContainsSubstring(
                 "extra = pooler: expected a name with * for the layer (hint: in ds-init the "
                 "row of mlp_up"));
}

TEST_CASE("An extra is read from text") {
  CHECK(architecture::extra_from_text("layer.*.q:norm_gain:head_dim") ==
        Extra{"layer.*.q", Group::norm_gain, "head_dim"});
  CHECK(architecture::extra_from_text("a:mlp_up:d_model,64") ==
        Extra{"a", Group::mlp_up, "d_model", "64"});
  CHECK(architecture::extra_from_text("a:hidden_bias:64:d_ff") ==
        Extra{"a", Group::hidden_bias, "64", "1", "d_ff"});
  for (const char* text : {"", "a", "a:norm_gain", "a:norm_gain:1:2:3"}) {
    INFO(text);
    CHECK_THAT(error_message([&] { architecture::extra_from_text(text); }),
               ContainsSubstring("NAME:GROUP:ROWS"));
  }
  CHECK_THAT(error_message([] { architecture::extra_from_text("a:norm_gai:d_model"); }),
             ContainsSubstring("extra a, group = norm_gai") &&
                 ContainsSubstring("did you mean norm_gain?"));
}
