// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Constants that were tuned on the base: what they do, and which are refused. policy/constants_tables_test.cpp has
// all rules, and tests/models/fold_test.cpp trains with them.

#include "scalewise/plan/constants.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "scalewise/io/plan_json.hpp"
#include "scalewise/io/plan_table.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/plan/set_up_warnings.hpp"
#include "scalewise/plan/single_rate.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/formula_problem.hpp"
#include "support/sanitized.hpp"

using namespace scalewise;
using scalewise::test::error_message;

namespace {

using Constants = std::vector<Parameter>;

Shape constants_shape(bool tied = false) {
  Shape s;
  s.d_model = 24;
  s.depth = 4;
  s.heads = 4;
  s.d_ff = 50;
  s.context = 9;
  s.vocab = 31;
  s.tied_head = tied;
  return s;
}

Shape constants_base(bool tied = false) {
  Shape s = constants_shape(tied);
  s.d_model = 8;
  s.depth = 2;
  s.heads = 2;
  s.d_ff = 20;
  return s;
}

Plan constants_plan(const std::string& rule, const Constants& constants, bool tied = false,
                    const Optimizer& optimizer = adamw, DecayForm decay = DecayForm::coupled) {
  return make_plan(rule, {.model = constants_shape(tied),
                          .base = constants_base(tied),
                          .optimizer = optimizer,
                          .decay = decay,
                          .constants = constants});
}

/// All at once.
const Constants every_kind{{"rate", 0.003},
                           {"embedding.rate", 2.3},
                           {"hidden.rate", 0.7},
                           {"query.rate", 1.1},
                           {"vector.rate", 0.6},
                           {"embedding.std", 2.2},
                           {"hidden.std", 1.3},
                           {"output.std", 0.9},
                           {"embedding.multiplier", 1.7},
                           {"query.multiplier", 3},
                           {"mlp_down.multiplier", 0.8},
                           {"output.multiplier", 1.2},
                           {"decay", 1.4},
                           {"hidden.decay", 0.5},
                           {"logits", 1.8},
                           {"scores", 1.5},
                           {"branches", 0.65}};

Shape nanogpt_at(long width) {
  Shape s;
  s.d_model = width;
  s.depth = 4;
  s.heads = width / 64;
  s.context = 512;
  s.vocab = 256;
  s.tied_head = true;
  s.biases = s.norm_bias = false;
  return s;
}

/// The five constants that were tuned for nanoGPT at width 256 on a GPU: rate 2^-8.40, embedding rate × 2.31, logits
/// × 1.79, standard deviations 0.0255 and 0.0448, where GPT-2 has 0.02.
Plan tuned_nanogpt() {
  return make_plan("maximal-update", {.model = nanogpt_at(2048),
                                      .base = nanogpt_at(256),
                                      .constants = {{"rate", std::exp2(-8.4)},
                                                    {"embedding.rate", 2.31},
                                                    {"logits", 1.79},
                                                    {"hidden.std", 0.0255 / 0.02},
                                                    {"embedding.std", 0.0448 / 0.02}},
                                      .start = "gpt2"});
}

std::string refusal(const Constants& constants, Shape shape = constants_shape(),
                    const char* rule = "complete-p", const Optimizer& optimizer = adamw) {
  return error_message([&] {
    make_plan(rule,
              {.model = shape, .base = shape, .optimizer = optimizer, .constants = constants});
  });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("The constants of a tuned nanoGPT are carried to eight times the width", "[constants]") {
  const Plan plan = tuned_nanogpt();
  const auto near = [](double x, double y) { return std::abs(x / y - 1) < 1e-13; };
  const double rate = std::exp2(-8.4);
  const Entry& embedding = plan.at("token_embedding");
  CHECK(near(std_dev(embedding.init_variance), 0.0448));
  CHECK(near(embedding.learning_rate.value, rate * 2.31));
  CHECK(near(std_dev(plan.at("position_embedding").init_variance), 0.0448));
  const Entry& query = plan.at("layer.0.query");
  CHECK(near(std_dev(query.init_variance), 0.0255 / std::sqrt(8)));
  CHECK(near(query.learning_rate.value, rate / 8));
  // GPT-2 draws what ends a branch smaller, by the root of twice the depth.
  CHECK(near(std_dev(plan.at("layer.3.mlp_down").init_variance),
             0.0255 / std::sqrt(8) / std::sqrt(2 * 4)));
  CHECK(near(plan.model.logit_multiplier.value, 1.79 / 8));

  const Plan folded = fold(plan).plan;  // nanoGPT multiplies nothing: the final norm does
  CHECK(folded.model.logit_multiplier.value == 1);
  CHECK(near(folded.at("final_norm_gain").init_mean.value, 1.79 / 8));
  CHECK(near(folded.at("final_norm_gain").learning_rate.value, rate * 1.79 / 8));
  CHECK(folded.at("final_norm_gain").init_mean.formula() == "c_logits/m_N");
}

TEST_CASE("Plans with constants are read back, whatever is done with them", "[constants]") {
  std::vector<Plan> plans{constants_plan("maximal-update", every_kind),
                          constants_plan("complete-p", every_kind), tuned_nanogpt(),
                          make_plan("ngpt", {.model = constants_shape(),
                                             .constants = {{"rescaler.rate", 2}, {"logits", 3}}})};
  for (std::size_t i = 0; i < (test::sanitized ? 1 : 3); ++i) {
    const Plan single = single_rate(plans[i]).plan;
    plans.push_back(fold(plans[i]).plan);
    plans.push_back(single);
    plans.push_back(fold(single).plan);
  }
  for (const Plan& plan : plans) {
    INFO(plan.rule);
    CHECK(test::formula_problem(plan) == "");
    const std::string text = to_json(plan).dump();
    CHECK(read_plan(text) == plan);
    CHECK(to_json(read_plan(text)).dump() == text);
  }
  const Plan without = constants_plan("complete-p", {});
  CHECK(!to_json(without).contains("constants"));  // as before there were any
  CHECK(plan::with_constants(without, every_kind) == plans[1]);
  CHECK(constants_plan("complete-p", {{"logits", 1}}).entries == without.entries);
}

TEST_CASE("A decay of 0 exempts what it names, and nothing else", "[constants]") {
  const Plan without = constants_plan("maximal-update", {});
  const Plan exempt = constants_plan("maximal-update", {{"vector.decay", 0}});
  for (std::size_t i = 0; i < without.entries.size(); ++i) {
    Entry expected = without.entries[i];
    if (plan::constant_role(expected.group) == "vector") expected.weight_decay = {0};
    INFO(expected.name);
    CHECK(exempt.entries[i] == expected);
  }
  const auto warns = [](const Plan& plan) {
    const std::vector<std::string> lines = set_up_warnings(plan);
    return std::any_of(lines.begin(), lines.end(),
                       [](const std::string& line) { return contains(line, "gains are decayed"); });
  };
  CHECK(warns(without));
  CHECK_FALSE(warns(exempt));
  CHECK(test::formula_problem(exempt) == "");
  CHECK(read_plan(to_json(exempt).dump()) == exempt);
  CHECK(contains(refusal({{"hidden.decay", -1}}), "expected 0, or a factor from 1e-12 to 1e12"));
}

TEST_CASE("Records of the base are kept, and change no number", "[constants]") {
  const Constants records{{"batch", 16}, {"warmup", 30}};
  for (const Constants& others : {Constants{}, every_kind}) {
    Constants all = others;
    all.insert(all.begin(), records.begin(), records.end());
    const Plan without = constants_plan("complete-p", others);
    Plan plan = constants_plan("complete-p", all);
    CHECK(plan.constants == all);
    CHECK(read_plan(to_json(plan).dump()) == plan);
    CHECK(fold(plan).plan.constants == all);
    const std::vector<std::string> lines = legend({plan});
    CHECK(std::count(lines.begin(), lines.end(), "batch = 16 (of the base, a record)") == 1);
    CHECK(std::count(lines.begin(), lines.end(), "warmup = 30 (of the base, a record)") == 1);
    plan.constants = others;
    CHECK(plan == without);
  }
  CHECK(contains(refusal({{"batch", 16},
                          {"hidden.multiplier", 4},
                          {"hidden.std", 0.25},
                          {"hidden.rate", 0.25},
                          {"hidden.decay", 4}}),
                 "constants = hidden.multiplier=4"));
}

TEST_CASE("A rate takes the decay along in either form of it", "[constants]") {
  for (const char* rule : {"maximal-update", "complete-p"}) {
    const auto by_form = [&](DecayForm form) {
      return constants_plan(rule, every_kind, false, adamw, form);
    };
    const Plan coupled = by_form(DecayForm::coupled), independent = by_form(DecayForm::independent);
    for (std::size_t i = 0; i < coupled.entries.size(); ++i) {
      const Entry& entry = coupled.entries[i];
      CHECK(entry.weight_decay.scaling * entry.learning_rate.scaling ==
            independent.entries[i].weight_decay.scaling);
    }
  }
}

TEST_CASE("A constant that is none, or no number, or of nothing is refused", "[constants]") {
  CHECK(
      refusal({{"embeding.rate", 2}}) ==
      "constant = embeding.rate: expected logits, scores, branches, rate, decay, or embedding, "
      "hidden, output, vector, rescaler or a group with .rate, .std, .multiplier or .decay, or as "
      "records batch and warmup (hint: did you mean embedding.rate?)");
  for (const char* name : {"", ".", "hidden", "hidden.", ".rate", "std", "logits.rate",
                           "Hidden.rate", "hidden.rate ", "layer.0.query.rate", "hidden.epsilon"}) {
    INFO(name);
    CHECK(contains(refusal({{name, 2}}), "constant = "));
  }
  for (const double value : {0.0, -1.0, 1e-13, 1e13, std::nan(""), HUGE_VAL}) {
    CHECK(contains(refusal({{"logits", value}}), ": expected a factor from 1e-12 to 1e12"));
  }
  CHECK(refusal({{"logits", 2}, {"scores", 2}, {"logits", 2}}) ==
        "constant = logits: expected each constant once");
  CHECK(refusal({{"mlp_gate.rate", 2}}) ==
        "constant = mlp_gate.rate: expected a constant of something in the model (hint: it has no "
        "tensor of mlp_gate)");
  CHECK(refusal({{"output.std", 2}}, constants_shape(true)) ==
        "constant = output.std: expected a constant of something in the model (hint: its head is "
        "tied: logits is the constant of the logits)");
  CHECK(contains(refusal({{"rescaler.rate", 2}}), "it has no tensor of rescaler"));
}

TEST_CASE("A constant that changes nothing is refused", "[constants]") {
  CHECK(refusal({{"vector.std", 2}}) ==
        "constant = vector.std: expected one that changes training (hint: nothing that it names is "
        "drawn, or all is normalized)");
  CHECK(refusal({{"logits", 2}, {"vector.decay", 2}}) ==
        "constant = vector.decay: expected one that changes training (hint: nothing that it names "
        "decays)");
  Shape normed = constants_shape();
  normed.qk_norm = QkNorm::head;
  normed.biases = false;
  CHECK(refusal({{"query.multiplier", 2}}, normed) ==
        "constant = query.multiplier: expected one that changes training (hint: what it multiplies "
        "is normalized)");
  CHECK(refusal({{"scores", 2}}, normed) == "no error");
  CHECK(refusal({{"query.std", 2}}, normed) == "no error");  // turns more slowly
  CHECK(contains(refusal({{"key.std", 2}, {"key.rate", 2}, {"key.decay", 0.5}}, normed), "a set"));
  normed.biases = true;  // added before the norm
  CHECK(refusal({{"query.multiplier", 2}}, normed) == "no error");

  Shape first = constants_shape();
  first.embedding_norm = true;
  CHECK(contains(refusal({{"embedding.multiplier", 2}}, first), "is normalized"));
  CHECK(refusal({{"token_embedding.multiplier", 2}}, first) == "no error");  // positions stay

  for (const char* name :
       {"hidden.std", "output.std", "branches", "mlp_down.multiplier", "decay"}) {
    INFO(name);
    CHECK(contains(refusal({{name, 2}}, constants_shape(), "ngpt"), "changes training"));
  }
  CHECK(refusal({{"mlp_gate.multiplier", 2}}, constants_shape(), "ngpt") == "no error");
}

TEST_CASE("Constants that only move a factor are refused together, and not alone", "[constants]") {
  struct Moved {
    Constants constants;
    Optimizer optimizer;
    bool tied = false;
  };
  Shape shape = constants_shape();
  const std::vector<Moved> all{
      {{{"hidden.multiplier", 4}, {"hidden.std", 0.25}, {"hidden.rate", 0.25}, {"hidden.decay", 4}},
       adamw},
      {{{"hidden.multiplier", 4},
        {"hidden.std", 0.25},
        {"hidden.rate", 0.0625},
        {"hidden.decay", 16}},
       sgd},
      {{{"logits", 3}, {"output.multiplier", 1.0 / 3}}, adamw},
      {{{"scores", 3}, {"query.multiplier", 1.0 / 3}}, adamw},
      {{{"branches", 3},
        {"attention_output.multiplier", 1.0 / 3},
        {"mlp_down.multiplier", 1.0 / 3}},
       adamw},
      {{{"logits", 3}, {"final_norm_gain.multiplier", 1.0 / 3}}, adamw, true}};
  for (const Moved& moved : all) {
    shape.tied_head = moved.tied;
    shape.biases = shape.norm_bias = false;  // which would have to be multiplied as well
    const auto refused = [&](const Constants& constants) {
      return refusal(constants, shape, "maximal-update", moved.optimizer);
    };
    INFO(moved.constants.front().name << " " << moved.optimizer.name);
    CHECK(contains(refused(moved.constants), "constants = "));
    CHECK(contains(refused(moved.constants), "expected a set that changes training"));
    for (std::size_t i = 0; i < moved.constants.size(); ++i) {  // all but one
      Constants fewer = moved.constants;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      CHECK(refused(fewer) == "no error");
    }
    Constants nearly = moved.constants;
    nearly.back().value *= 1.001;
    CHECK(refused(nearly) == "no error");
    Constants more = moved.constants;
    more.push_back({"vector.rate", 2});  // of another target
    const bool one_target = more.front().name.starts_with("hidden");
    CHECK((refused(more) == "no error") == !one_target);
  }
  Constants ones;
  for (const Parameter& constant : every_kind) ones.push_back({constant.name, 1});
  CHECK(refusal(ones, constants_shape()) == "no error");  // where a search begins
}

TEST_CASE("A plan that has constants gets no start afterwards", "[constants]") {
  const Plan base = make_plan("standard", {.model = constants_base()});
  CHECK(contains(error_message([&] {
                   with_start(constants_plan("maximal-update", {{"logits", 2}}), base);
                 }),
                 "ask make_plan() for both at once"));
}
