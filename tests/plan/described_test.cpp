// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "support/described.hpp"

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scalewise/architecture/base_like.hpp"
#include "scalewise/architecture/from_descriptions.hpp"
#include "scalewise/architecture/presets.hpp"
#include "scalewise/architecture/same_growth.hpp"
#include "scalewise/io/description_json.hpp"
#include "scalewise/io/plan_json.hpp"
#include "scalewise/plan/fold.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::test::described;
using Catch::Matchers::ContainsSubstring;
using enum TensorKind;

/// Two hidden layers, as mup's example has them; n is their width.
ModelDescription mlp(long n) {
  return description({{"fc_1.weight", linear, "oi", {n, 3072}},
                      {"fc_2.weight", linear, "oi", {n, n}},
                      {"fc_2.bias", bias, "o", {n}},
                      {"fc_3.weight", linear, "oi", {10, n}},
                      {"fc_3.bias", bias, "o", {10}}});
}

/// A convolutional network of two stages of which the second is twice as wide.
ModelDescription convolutions(long n) {
  return description({{"conv1.weight", linear, "oikk", {n, 3, 3, 3}},
                      {"bn1.weight", gain, "o", {n}},
                      {"bn1.bias", bias, "o", {n}},
                      {"stage.conv.weight", linear, "oikk", {2 * n, n, 3, 3}},
                      {"stage.bn.weight", gain, "o", {2 * n}},
                      {"linear.weight", linear, "oi", {10, 2 * n}},
                      {"linear.bias", bias, "o", {10}}});
}

/// The first number of one plan that the other does not have, of tensors of the same names.
std::string difference(const Plan& a, const Plan& b) {
  std::map<std::string, const Entry*> others;
  for (const Entry& one : b.entries) others.emplace(one.name, &one);
  if (a.entries.size() != b.entries.size()) return "the number of tensors";
  for (const Entry& one : a.entries) {
    const auto other = others.find(one.name);
    if (other == others.end()) return one.name + " is missing";
    std::vector<double> numbers;
    plan::for_each_number(
        *other->second, [&](const char*, const auto& number) { numbers.push_back(number.value); });
    std::size_t next = 0;
    std::string found;
    plan::for_each_number(one, [&](const char* what, const auto& number) {
      const double value = numbers.at(next++);
      if (std::abs(number.value - value) > 1e-12 * std::abs(value)) {
        found = one.name + ": " + what + " " + std::to_string(number.value) + " and " +
                std::to_string(value);
      }
    });
    if (!found.empty()) return found;
  }
  return "";
}

/// A base of a half to an eighth of the width, whichever has whole heads, and half of the layers.
std::optional<Shape> smaller(const Shape& shape) {
  const Shape whole = resolved(shape);
  for (const long part : {2, 3, 4, 5, 6, 7, 8}) {
    try {
      return base_like(shape, {.width = whole.d_model / part,
                               .depth = whole.depth % 2 == 0 ? whole.depth / 2 : 0});
    } catch (const InvalidInput&) {
      continue;
    }
  }
  return {};
}

}  // namespace

TEST_CASE("A list of a shape's tensors has the plan of the shape, under all rules by role",
          "[described]") {
  const std::vector<architecture::RoleOverride> roles{{"*relative_position", GivenRole::vector},
                                                      {"*residual_gain", GivenRole::vector}};
  std::set<std::string> compared;
  std::size_t tried = 0;
  for (const Preset& preset : presets()) {
    const std::optional<Shape> base = smaller(preset.shape);
    if (!base || (test::sanitized && tried++ % 60 != 0)) continue;
    std::vector<architecture::RoleOverride> given;
    for (const Tensor& tensor : tensors(resolved(preset.shape))) {
      if (tensor.group == Group::relative_position) given = {roles.front()};
    }
    // Keys of one head do not grow; a rule by role takes them for an output.
    if (resolved(preset.shape).kv_heads == 1) {
      given.push_back({"*key", GivenRole::hidden});
      given.push_back({"*value", GivenRole::hidden});
    }
    const DescribedModel model = from_descriptions(describe(preset.shape), describe(*base), given);
    for (const Rule& rule : rules()) {
      if (rule.reference != Reference::base) continue;
      for (const Optimizer& optimizer : rule.optimizers) {
        Plan listed;
        try {
          listed = planned(model, std::string(rule.id), optimizer);
        } catch (const InvalidInput& error) {
          CHECK(error.field() == "rule");
          continue;
        }
        INFO(preset.id << ", " << rule.id << ", " << optimizer.name);
        CHECK(difference(make_plan(rule.id,
                                   {.model = preset.shape, .base = *base, .optimizer = optimizer}),
                         listed) == "");
        CHECK(read_plan(to_json(listed).dump(), "plan") == listed);
        compared.insert(std::string(rule.id));
      }
    }
  }
  CHECK(compared.contains("complete-p"));
  CHECK(compared.contains("depth-mup"));
  CHECK(compared.contains("maximal-update"));
}

// Source: Yang et al. 2022 (arXiv:2203.03466v2), Table 8, Adam and SGD, which microsoft/mup implements.
TEST_CASE("An MLP has the numbers of Table 8", "[described]") {
  const DescribedModel model = from_descriptions(mlp(1024), mlp(128));
  const Plan adam = planned(model, "maximal-update"),
             by_sgd = planned(model, "maximal-update", sgd);
  struct Expected {
    std::string name;
    double variance, multiplier, adam, sgd;
  };
  for (const Expected& e :
       {Expected{"fc_1.weight", 1, 1, 1, 8}, Expected{"fc_2.weight", 1.0 / 8, 1, 1.0 / 8, 1},
        Expected{"fc_2.bias", 0, 1, 1, 8}, Expected{"fc_3.weight", 1, 1.0 / 8, 1, 8},
        Expected{"fc_3.bias", 0, 1, 1, 1}}) {
    INFO(e.name);
    CHECK(entry(adam, e.name).init_variance.value == e.variance);
    CHECK(entry(adam, e.name).multiplier.value == e.multiplier);
    CHECK(entry(adam, e.name).learning_rate.value == e.adam);
    CHECK(entry(by_sgd, e.name).learning_rate.value == e.sgd);
  }
}

TEST_CASE("Kernels and experts count with the fans of one", "[described]") {
  const Plan network =
      planned(from_descriptions(convolutions(64), convolutions(16)), "maximal-update");
  CHECK(entry(network, "stage.conv.weight").fan_in == 9 * 64);
  CHECK(entry(network, "stage.conv.weight").learning_rate.value == 1.0 / 4);
  CHECK(entry(network, "conv1.weight").learning_rate.value == 1);
  CHECK(entry(network, "linear.weight").multiplier.value == 1.0 / 4);

  const Plan plan = planned(from_descriptions(mixture(64, 4), mixture(16, 2)), "complete-p");
  const Entry& up = entry(plan, "blocks.3.experts.up");
  CHECK(up.size() == 4 * 128 * 64);
  CHECK(up.fan_in == 64);
  CHECK(up.init_variance.formula() == "1/m_N");
  CHECK(entry(plan, "blocks.0.router.weight").multiplier.formula() == "1/m_N");
  CHECK(plan.model.logit_multiplier.formula() == "1/m_N");  // tied: the embedding's row
  CHECK(plan.model.residuals.size() == 4);
  CHECK(plan.model.residuals.front().branch.formula() == "1/m_L");
  CHECK(plan.model.attention_scale.scaling.is_zero());  // not stated
  CHECK_FALSE(to_json(plan).at("model").contains("attention_scale"));
}

TEST_CASE("Fold takes the multipliers of listed tensors and names what stays", "[described]") {
  const Plan plan = planned(from_descriptions(mixture(64, 4), mixture(16, 2)), "complete-p");
  const RewrittenPlan folded = fold(plan);
  const Entry& router = entry(folded.plan, "blocks.0.router.weight");
  CHECK(router.multiplier.value == 1);
  CHECK(router.init_variance.value == 1.0 / 16);
  CHECK(router.learning_rate.value == 1.0 / 4);
  CHECK(folded.plan.model.residuals == plan.model.residuals);
  CHECK(folded.left.size() == 2);
}

TEST_CASE("Fold takes a constant of the logits into the head of a list", "[described]") {
  const auto with_heads = [](std::vector<Given> heads) {
    return [heads = std::move(heads)](long n) {
      std::vector<Given> rows{{"embed.weight", embedding, "io", {100, n}},
                              {"mix.weight", linear, "oi", {n, n}}};
      for (Given head : heads) {
        head.sizes[1] = n;
        rows.push_back(head);
      }
      return description(rows);
    };
  };
  const auto folded = [](const auto& model) {
    const DescribedModel roles = from_descriptions(model(64), model(16));
    return fold(make_plan("maximal-update", {.model = roles.shape,
                                             .base = roles.base,
                                             .constants = {{"logits", 2.0}},
                                             .extras = roles.tensors}));
  };
  const Given head{"head.weight", linear, "oi", {100, 0}};
  const RewrittenPlan one = folded(with_heads({head}));
  CHECK(one.left.empty());
  CHECK(one.plan.model.logit_multiplier.value == 1);
  CHECK(entry(one.plan, "head.weight").init_variance.value == 4.0 / 16);  // (2 · 1/4)² · 1
  const RewrittenPlan two = folded(with_heads({head, {"value.weight", linear, "oi", {1, 0}}}));
  CHECK(two.left == std::vector<std::string>{
                        "logit_multiplier: the list does not say which head makes logits"});
  CHECK(two.plan.model.logit_multiplier.value == 2);
  const RewrittenPlan tied =
      folded(with_heads({{"head.weight", linear, "oi", {100, 0}, "embed.weight"}}));
  CHECK(tied.left == std::vector<std::string>{"logit_multiplier: the head is tied"});
}

TEST_CASE("What two descriptions do not say is asked for", "[described]") {
  CHECK_THAT(
      refusal(mlp(128), mlp(128)),
      ContainsSubstring("base = the target itself: expected the same model at another width"));
  ModelDescription bare = mlp(128);
  bare.tensors.push_back({"position", other, "io", {16, 128}});
  CHECK_THAT(refusal(bare, bare), ContainsSubstring("base = the target itself"));
  CHECK_THAT(refusal(mixture(64, 4), mixture(64, 2)),
             ContainsSubstring("base = as wide as the target"));

  ModelDescription renamed = mlp(128);
  renamed.tensors[1].name = "hidden.weight";
  CHECK_THAT(refusal(mlp(1024), renamed), ContainsSubstring("without fc_2.weight"));

  ModelDescription transposed = mlp(128);
  transposed.tensors[3] = {"fc_3.weight", linear, "io", {128, 10}};
  CHECK_THAT(refusal(mlp(1024), transposed),
             ContainsSubstring(
                 "tensor fc_3.weight = linear oi: expected what it is in the base, linear io"));

  ModelDescription target = mlp(1024), base = mlp(128);
  target.tensors[1].sizes = {1024, 3000};
  base.tensors[1].sizes = {128, 1000};
  const std::string unnamed = refusal(target, base);
  CHECK_THAT(unnamed,
             ContainsSubstring(
                 "1000 to 3000: expected a multiple of d_model, which grows from 128 to 1024"));
  CHECK_THAT(unnamed, ContainsSubstring("--set d_ff=3000 --set base.d_ff=1000"));

  target = mlp(1024), base = mlp(128);
  for (ModelDescription* model : {&target, &base}) {
    model->tensors.push_back({"scale", other, "io", {16, model->tensors[1].sizes[0]}});
  }
  CHECK_THAT(refusal(target, base), ContainsSubstring("tensor scale = other: expected a role"));
  CHECK(refusal(target, base, {{"sc*", GivenRole::vector}}) == "no error");
  CHECK_THAT(refusal(target, base, {{"sc*", GivenRole::vector}, {"no*", GivenRole::input}}),
             ContainsSubstring("role = no*"));

  target.tensors.push_back({"h.0.a.log", other, "io", {4, 3}});
  base.tensors.push_back({"h.0.a.log", other, "io", {4, 3}});
  target.tensors.push_back({"h.1.a.log", other, "io", {4, 3}});
  CHECK(refusal(target, base) ==
        "tensors scale, h.*.a.log = other: expected a role (hint: give --role PATTERN=vector, or "
        "input, hidden or output, for each; of matrices and experts their kind, where they are "
        "described)");

  base = mixture(16, 2);
  base.tensors.push_back({"blocks.1.gate.weight", linear, "oi", {4, 16}});
  CHECK(refusal(mixture(64, 4), base) ==
        "target = without blocks.1.gate.weight: expected the tensors of the base");

  CHECK_THAT(refusal(mixture(64, 4), description({{"embed.weight", embedding, "io", {100, 16}}})),
             ContainsSubstring("without blocks.0.norm.weight, blocks.0.router.weight"));
  ModelDescription fewer = mixture(16, 2);
  fewer.tensors[3].sizes[0] = 2;  // of one layer's up alone
  CHECK_THAT(refusal(mixture(64, 4), fewer),
             ContainsSubstring("copies = 4 to 4: expected 2 to 4, as of other"));

  target = mlp(1024), base = mlp(128);
  for (ModelDescription* model : {&target, &base}) {
    model->tensors.push_back({"embed.weight", embedding, "oi", {100, model->tensors[1].sizes[0]}});
  }
  CHECK_THAT(
      refusal(target, base),
      ContainsSubstring(
          "tensor embed.weight = an embedding whose rows alone grow: expected features that grow"));

  target = base = mlp(128);  // as wide, with more tokens
  target.tensors.push_back({"embed.weight", embedding, "io", {200, 128}});
  base.tensors.push_back({"embed.weight", embedding, "io", {100, 128}});
  CHECK(test::error_message([&] {
          static_cast<void>(from_descriptions(target, base, {{"fc*.weight", GivenRole::hidden}},
                                              {.d_model = 128, .blocks = Blocks::listed},
                                              {.d_model = 128, .blocks = Blocks::listed}));
        }) == "no error");

  for (const GivenRole role :
       {GivenRole::hidden, GivenRole::input, GivenRole::output, GivenRole::router}) {
    CHECK_THAT(refusal(mixture(64, 4), mixture(16, 2), {{"*norm*", role}}),
               ContainsSubstring("role of blocks.0.norm.weight = ") &&
                   ContainsSubstring("expected vector, since it is a gain (hint: narrow the "
                                     "pattern, such as '*.weight')"));
  }
  CHECK(refusal(mixture(64, 4), mixture(16, 2), {{"*norm*", GivenRole::vector}}) == "no error");

  Shape tied{.blocks = Blocks::listed};
  tied.tied_head = true;
  CHECK_THAT(test::error_message([&] {
               static_cast<void>(from_descriptions(mlp(1024), mlp(128), {}, tied, tied));
             }),
             ContainsSubstring("tied_head = true: expected an embedding that gives the logits"));

  const DescribedModel model = from_descriptions(mlp(1024), mlp(128));
  for (const std::string rule : {"gpt2", "layer-scale", "skip-init", "rezero"}) {
    CHECK_THAT(test::error_message([&] { static_cast<void>(planned(model, rule)); }),
               ContainsSubstring("rule = " + rule + ": expected a rule that is stated by role"));
  }
}

TEST_CASE("A list without its tensors is refused", "[described]") {
  const DescribedModel model = from_descriptions(mlp(1024), mlp(128));
  CHECK(test::error_message([&] {
          static_cast<void>(make_plan(MaximalUpdate{}, {.model = model.shape, .base = model.base}));
        }) == "plan.extra (empty): expected the tensors of the list, as roles.tensors has them");
}

TEST_CASE("A third size confirms what two say, or names what does not", "[described]") {
  const auto message = [](const ModelDescription& target, const ModelDescription& base,
                          const ModelDescription& third) {
    return test::error_message([&] { architecture::require_same_growth(target, base, third); });
  };
  CHECK(message(mlp(1024), mlp(128), mlp(512)) == "no error");
  CHECK(message(mixture(64, 4), mixture(16, 2), mixture(48, 3)) == "no error");
  CHECK(message(mlp(1024), mlp(128), mlp(1024)) ==
        "check model = as large as the base, or as the target: expected a third size");

  ModelDescription third = mlp(512);
  third.tensors[1].sizes = {512, 640};  // eight times as many from 128 to 1024, but five times
  CHECK(message(mlp(1024), mlp(128), third) ==
        "tensor fc_2.weight, inputs = 128 to 1024, and 640 in the check model: expected growth as "
        "of tensor fc_1.weight, outputs, from 128 to 512 (hint: base and target alone do not tell "
        "what it grows with)");
  third = mlp(512);
  third.tensors[0].sizes = {512, 3000};  // 3072 in both
  CHECK_THAT(message(mlp(1024), mlp(128), third),
             ContainsSubstring("tensor fc_1.weight, inputs = 3072 to 3072, and 3000 in the check "
                               "model: expected 3072, as in the two others"));
  third = mlp(512);
  third.tensors[1].name = "other.weight";
  CHECK_THAT(message(mlp(1024), mlp(128), third),
             ContainsSubstring("check model = without fc_2.weight"));
}

TEST_CASE("A given role says where sides that grow contradict it", "[described]") {
  const auto reason = [](const char* name, GivenRole role) {
    const DescribedModel found = from_descriptions(mlp(1024), mlp(128), {{name, role}});
    for (std::size_t i = 0; i < found.tensors.size(); ++i) {
      if (found.tensors[i].name == name) return found.reasons[i];
    }
    return std::string();
  };
  CHECK(reason("fc_2.weight", GivenRole::output) == "given: output, though its outputs grow");
  CHECK(reason("fc_2.weight", GivenRole::input) == "given: input, though its inputs grow");
  CHECK(reason("fc_2.weight", GivenRole::hidden) == "given: hidden");
  CHECK(reason("fc_1.weight", GivenRole::input) == "given: input");
  CHECK(reason("fc_3.weight", GivenRole::output) == "given: output");
  const auto vocabulary = [](long n) {
    return description({{"embed", embedding, "io", {2 * n, n}}});
  };
  CHECK(from_descriptions(vocabulary(64), vocabulary(16), {{"embed", GivenRole::input}}).reasons ==
        std::vector<std::string>{"given: input"});  // an entry per word, not a sum over them
}

TEST_CASE("What is read off two descriptions is said, and can be given instead", "[described]") {
  const auto model = [](long n, long layers) {
    std::vector<Given> rows{{"embed.weight", embedding, "io", {100, n}}};
    for (const long copy : {0, 1, 2})
      rows.push_back({"adapters." + std::to_string(copy) + ".weight", linear, "oi", {n, n}});
    for (long layer = 0; layer < layers; ++layer)
      rows.push_back({"h." + std::to_string(layer) + ".weight", linear, "oi", {n, n}});
    return description(rows);
  };
  CHECK(refusal(model(64, 4), model(16, 2)) ==
        "h. = 2 to 4 layers: expected layers that grow like those of adapters., 3 to 3 (hint: say "
        "what the depth is, as in --set depth=4 --set base.depth=2)");
  const Shape target{.depth = 4, .blocks = Blocks::listed},
      base{.depth = 2, .blocks = Blocks::listed};
  const DescribedModel found = from_descriptions(model(64, 4), model(16, 2), {}, target, base);
  CHECK(found.shape.depth == 4);
  CHECK(found.base.depth == 2);
  REQUIRE(found.notes.size() == 2);  // that no tensor is a head, too
  CHECK(found.notes[1] ==
        "adapters. (3 to 3): do not grow like the depth that was given: none of their numbers "
        "depends on it, and their branches get no factor");
  CHECK(found.sizes ==
        std::vector<std::string>{"depth 2 to 4: numbered under h.",
                                 "d_model 16 to 64: what most inputs and outputs grow with"});
  CHECK(from_descriptions(mlp(1024), mlp(128), {}, target, base).shape.depth == 4);
  CHECK(from_descriptions(mixture(64, 4), mixture(16, 2)).sizes ==
        std::vector<std::string>{"depth 2 to 4: numbered under blocks.",
                                 "experts 4 to 4: copies side by side",
                                 "d_model 16 to 64: what most inputs and outputs grow with"});
}

TEST_CASE("Numbers that no list of layers writes are names", "[described]") {
  const auto model = [](long n) {
    std::vector<Given> rows{{"embed.weight", embedding, "io", {100, n}}};
    for (const std::string part : {"h.0", "h.1", "h.01", "h.-1", "h.+1", "h.99999999999999999999"})
      rows.push_back({part + ".weight", linear, "oi", {n, n}});
    return description(rows);
  };
  CHECK(planned(from_descriptions(model(64), model(16)), "mup").entries.size() == 7);
}

TEST_CASE("A model that is a list of layers itself has its depth from their numbers",
          "[described]") {
  const auto model = [](long n, long layers) {
    std::vector<Given> rows;
    for (long layer = 0; layer < layers; ++layer) {
      rows.push_back({std::to_string(layer) + ".linear.weight", linear, "oi", {n, n}});
      rows.push_back({std::to_string(layer) + ".norm.weight", gain, "o", {n}});
    }
    return description(rows);
  };
  const DescribedModel found = from_descriptions(model(64, 4), model(16, 2));
  CHECK(found.sizes[0] == "depth 2 to 4: numbered under the model itself");
  const Plan plan = planned(found, "complete-p");
  CHECK(plan.entries.size() == 8);
  CHECK(plan.parameter_count() == 4 * (64 * 64 + 64));
  CHECK(plan.model.residuals.at(0).branch.value == 0.5);  // 1/m_L

  CHECK(planned(from_descriptions(model(64, 3), model(16, 3)), "mup").entries.size() == 6);
  CHECK_THAT(refusal(description({{"0.weight", linear, "oi", {8, 8}},
                                  {"1.weight", linear, "oi", {8, 8}},
                                  {"h.0.weight", linear, "oi", {8, 8}},
                                  {"h.1.weight", linear, "oi", {8, 8}},
                                  {"h.2.weight", linear, "oi", {8, 8}}}),
                     description({{"0.weight", linear, "oi", {4, 4}},
                                  {"h.0.weight", linear, "oi", {4, 4}},
                                  {"h.1.weight", linear, "oi", {4, 4}}})),
             ContainsSubstring("h. = 2 to 3 layers: expected layers that grow like those of the "
                               "model itself, 1 to 2 (hint: a rule knows one depth: describe a "
                               "base in which both are as many times less deep)"));
}

TEST_CASE("A convolution and its norm, numbered by a Sequential, are not layers", "[described]") {
  // stem.0, stem.1 of timm's ConvNeXt (pytorch-image-models aa4b5850, convnext.py)
  const auto model = [](long n) {
    return description({{"stem.0.weight", linear, "oikk", {n, 3, 4, 4}},
                        {"stem.0.bias", bias, "o", {n}},
                        {"stem.1.weight", gain, "o", {n}},
                        {"stem.1.bias", bias, "o", {n}},
                        {"head.weight", linear, "oi", {10, n}}});
  };
  CHECK(from_descriptions(model(64), model(16)).sizes[0] ==
        "depth 1 to 1: no modules numbered from 0 have a matrix in common and both read and make "
        "features");
}

TEST_CASE("A description reads back, and one that no model has is refused", "[described]") {
  const ModelDescription model = mixture(64, 4);
  CHECK(io::read_description(to_json(model), "model") == model);
  const auto message = [](const DescribedTensor& tensor) {
    ModelDescription wrong = mlp(8);
    wrong.tensors.push_back(tensor);
    return test::error_message([&] { architecture::check_description(wrong); });
  };
  CHECK_THAT(message({"fc_2.weight", linear, "oi", {8, 8}}), ContainsSubstring("twice"));
  CHECK_THAT(message({"a", linear, "oi", {8}}),
             ContainsSubstring("a letter for each of the 1 sizes"));
  CHECK_THAT(message({"a", linear, "ox", {8, 8}}), ContainsSubstring("letters i"));
  CHECK_THAT(message({"a", linear, "oo", {8, 8}}), ContainsSubstring("an i and an o"));
  CHECK_THAT(message({"a.*", linear, "oi", {8, 8}}), ContainsSubstring("a name without *"));
  CHECK_THAT(message({"a", linear, "oii", {1L << 30, 1L << 30, 8}}),
             ContainsSubstring("at most 2^60 numbers"));
  CHECK_THAT(message({"a", bias, "i", {8}}), ContainsSubstring("no i"));
  CHECK_THAT(message({"a", linear, "oi", {8, 0}}), ContainsSubstring("a size from 1 to 2^30"));
  CHECK_THAT(message({"a", linear, "oi", {8, 8}, "b"}),
             ContainsSubstring("the name of another tensor"));
  CHECK_THAT(message({"a", linear, "oi", {8, 8}, "a"}),
             ContainsSubstring("the name of another tensor"));
  CHECK_THAT(message({"a", linear, "oi", {8, 9}, "fc_2.weight"}),
             ContainsSubstring("tied_to = fc_2.weight: expected a tensor of 72 numbers as well"));
  ModelDescription circle = mlp(8);
  circle.tensors[1].tied_to = "copy";
  circle.tensors.push_back({"copy", linear, "oi", {8, 8}, "fc_2.weight"});
  CHECK_THAT(test::error_message([&] { architecture::check_description(circle); }),
             ContainsSubstring("tied_to = copy: expected a tensor that is not tied itself"));
}
