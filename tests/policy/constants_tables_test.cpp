// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Constants of the base under every rule and optimizer, and in the tables for experts: what they do to a number is typed once, as an
// exact scaling, and the rest is that of the plan without them. Where a paper has no version, it was not written down which one was read.

#include <string>
#include <utility>
#include <vector>

#include "scalewise/plan/constants.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/formula_problem.hpp"
#include "support/told.hpp"

namespace constants_tables_test {

using namespace scalewise;
using namespace scalewise::symbols;
using Constants = std::vector<Parameter>;

/// A constant, and its symbol typed once more: equal to that of a plan by its text.
struct Given {
  const char* name;
  double value;
  Symbol symbol;
};
constexpr Symbol letter(const char* text) { return {text, "", text, "", ""}; }
constexpr Given rate{"rate", 0.003, letter("c_rate")},
    embedding_rate{"embedding.rate", 2.3, letter("c_embedding.rate")},
    hidden_rate{"hidden.rate", 0.7, letter("c_hidden.rate")},
    query_rate{"query.rate", 1.1, letter("c_query.rate")},
    output_rate{"output.rate", 1.6, letter("c_output.rate")},
    vector_rate{"vector.rate", 0.6, letter("c_vector.rate")},
    router_rate{"router.rate", 1.3, letter("c_router.rate")},
    rescaler_rate{"rescaler.rate", 0.4, letter("c_rescaler.rate")},
    embedding_std{"embedding.std", 2.2, letter("c_embedding.std")},
    hidden_std{"hidden.std", 1.3, letter("c_hidden.std")},
    expert_down_std{"expert_down.std", 1.4, letter("c_expert_down.std")},
    output_std{"output.std", 0.9, letter("c_output.std")},
    embedding_by{"embedding.multiplier", 1.7, letter("c_embedding.multiplier")},
    query_by{"query.multiplier", 3, letter("c_query.multiplier")},
    down_by{"mlp_down.multiplier", 0.8, letter("c_mlp_down.multiplier")},
    output_by{"output.multiplier", 1.2, letter("c_output.multiplier")},
    rescaler_by{"rescaler.multiplier", 1.9, letter("c_rescaler.multiplier")},
    decay{"decay", 1.4, letter("c_decay")},
    hidden_decay{"hidden.decay", 0.5, letter("c_hidden.decay")},
    logits{"logits", 1.8, letter("c_logits")}, scores{"scores", 1.5, letter("c_scores")},
    branches{"branches", 0.65, letter("c_branches")};

Constants constants_of(const std::vector<Given>& all) {
  Constants constants;
  for (const Given& one : all) constants.push_back({one.name, one.value});
  return constants;
}
constexpr Scaling operator*(const Scaling& a, const Given& b) { return a * Scaling(b.symbol); }

/// The numbers of a tensor, or what they are multiplied by. The decay is that of the coupled form.
struct Cells {
  Scaling variance = 1, multiplier = 1, rate = 1, decay = 1;
};

void check_cells(const Plan& plan, const char* name, const Cells& cells) {
  const Entry& entry = plan.at(name);
  INFO(name);
  CHECK(entry.init_variance.scaling == cells.variance);
  CHECK(entry.multiplier.scaling == cells.multiplier);
  CHECK(entry.learning_rate.scaling == cells.rate);
  CHECK(entry.weight_decay.scaling == cells.decay);
}

/// Constants that a kind of model can have, and what they do to its tensors.
struct Effects {
  Constants constants = {};
  std::vector<std::pair<const char*, Cells>> tensors = {};
  Scaling embedding = 1, branch = 1;  // of the model
};

constexpr Scaling small = Scaling(1) * rate, hidden = small * hidden_rate;
constexpr Scaling variance = Scaling(1) * hidden_std * hidden_std,
                  end_variance = Scaling(1) * output_std * output_std,
                  by_output = Scaling(1) * output_by, by_rescaler = Scaling(1) * rescaler_by,
                  all_decay = Scaling(1) * decay;

Effects effects_on(const Plan& plan) {
  if (plan.shape.blocks == Blocks::shallow_encoder) {
    return {.constants = constants_of({rate, hidden_rate, query_rate, output_rate, hidden_std,
                                       output_std, output_by, logits, scores}),
            .tensors = {{"layer.0.query", {variance, 1, hidden * query_rate}},
                        {"head", {end_variance, by_output, small * output_rate}}}};
  }
  if (plan.shape.blocks == Blocks::normalized) {  // nothing decays
    return {.constants = constants_of({rate, embedding_rate, hidden_rate, query_rate, output_rate,
                                       rescaler_rate, rescaler_by, output_by, logits, scores}),
            .tensors = {{"token_embedding", {1, 1, small * embedding_rate}},
                        {"layer.2.query", {1, 1, hidden * query_rate}},
                        {"layer.3.mlp_down", {1, 1, hidden}},
                        {"head", {1, by_output, small * output_rate}},
                        {"layer.1.attention_step", {1, by_rescaler, small * rescaler_rate}},
                        {"logit_scale", {1, by_rescaler, small * rescaler_rate}}}};
  }
  return {.constants =
              constants_of({rate, embedding_rate, hidden_rate, query_rate, output_rate, vector_rate,
                            embedding_std, hidden_std, output_std, embedding_by, query_by, down_by,
                            output_by, decay, hidden_decay, logits, scores, branches}),
          .tensors = {{"token_embedding",
                       {Scaling(1) * embedding_std * embedding_std, Scaling(1) * embedding_by,
                        small * embedding_rate, all_decay}},
                      {"layer.2.query",
                       {variance, Scaling(1) * query_by, hidden * query_rate,
                        all_decay * hidden_decay}},
                      {"layer.3.mlp_down",
                       {variance, Scaling(1) * down_by, hidden, all_decay * hidden_decay}},
                      {"head", {end_variance, by_output, small * output_rate, all_decay}},
                      {"final_norm_gain", {1, 1, small * vector_rate, all_decay}}},
          .embedding = Scaling(1) * embedding_by,
          .branch = Scaling(1) * branches};
}

PlanRequest request_of(const Rule& rule, const Optimizer& optimizer, DecayForm form) {
  Shape shape{.d_model = 24, .depth = 4, .heads = 4, .d_ff = 50, .context = 9, .vocab = 31};
  if (std::string(rule.id).starts_with("shallow"))
    shape.input = Input::patch, shape.patch_dim = 5, shape.classes = 3;
  shape.tied_head = false;
  shape.iterations = 4000;
  Shape base = shape;
  base.d_model = 8, base.depth = 2, base.heads = 2, base.d_ff = 20, base.iterations = 1000;
  return {.model = shape, .base = base, .optimizer = optimizer, .decay = form};
}

void check_constants(const Rule& rule, PlanRequest request) {
  const Plan plain = make_plan(test::told(rule), request);
  const Effects effects = effects_on(plain);
  request.constants = effects.constants;
  const Plan plan = make_plan(test::told(rule), request);
  CHECK(plan.constants == effects.constants);
  for (const auto& [name, by] : effects.tensors) {
    const Entry& own = plain.at(name);
    const Scaling along = request.decay == DecayForm::independent ? by.rate : Scaling(1);
    check_cells(plan, name,
                {own.init_variance.scaling * by.variance, own.multiplier.scaling * by.multiplier,
                 own.learning_rate.scaling * by.rate, own.weight_decay.scaling * by.decay * along});
  }
  CHECK(plan.model.logit_multiplier.scaling ==
        plain.model.logit_multiplier.scaling * logits * output_by);
  CHECK(plan.model.embedding_multiplier.scaling ==
        plain.model.embedding_multiplier.scaling * effects.embedding);
  CHECK(plan.model.attention_scale.scaling == plain.model.attention_scale.scaling * scores);
  REQUIRE(plan.model.residuals.size() == plain.model.residuals.size());
  for (std::size_t i = 0; i < plan.model.residuals.size(); ++i) {
    const Residual &with = plan.model.residuals[i], &without = plain.model.residuals[i];
    CHECK(with.branch.scaling == without.branch.scaling * effects.branch);
    CHECK(with.skip.scaling == without.skip.scaling);
  }
  CHECK(test::formula_problem(plan) == "");  // values are those of the formulas
}

TEST_CASE("Constants multiply the cells of every rule, whatever they are", "[constants]") {
  for (const Rule& rule : rules()) {
    for (const Optimizer& optimizer : rule.optimizers) {
      for (const DecayForm form : {DecayForm::coupled, DecayForm::independent}) {
        INFO(rule.id << " " << optimizer.name << " " << word(policy::decay_words, form));
        check_constants(rule, request_of(rule, optimizer, form));
      }
    }
  }
}

// arXiv:2605.14200 (MSSP, features of experts as in the base) and arXiv:2601.20205v3 (Jiang et al., Table 2).
TEST_CASE("Constants multiply the cells of the tables for experts", "[constants]") {
  struct Experts {
    const char* table;
    Cells router, up, down;
  };
  constexpr Scaling features{symbols::expert_ff, true};
  const Cells by_width{1 / m_N, 1, 1 / m_N, m_N};
  for (const Experts& line :
       {Experts{"mssp", by_width, by_width, {m_E / features, 1, 1 / features, features}},
        Experts{"jiang",
                {1 / (m_N * m_N), 1, 1 / m_N, m_N},
                by_width,
                {m_N / (features * features), 1, 1 / features, features}}}) {
    Shape shape{.d_model = 64, .depth = 4, .blocks = Blocks::listed}, base = shape;
    base.d_model = 32;
    shape.experts = 16, shape.experts_per_token = 4, shape.expert_ff = 64;
    base.experts = 4, base.experts_per_token = 1, base.expert_ff = 64;
    const Plan plan = make_plan(
        "complete-p",
        {.model = shape,
         .base = base,
         .parameters = {{line.table, 1}},
         .constants = constants_of({rate, router_rate, hidden_rate, expert_down_std}),
         .extras = {
             {"h.*.router", Group::router, "d_model", "experts"},
             {"h.*.up", Group::expert_up, "experts*d_model", "expert_ff", "d_model"},
             {"h.*.down", Group::expert_down, "experts*expert_ff", "d_model", "expert_ff"}}});
    INFO(line.table);
    check_cells(
        plan, "h.2.router",
        {line.router.variance, 1, line.router.rate * rate * router_rate, line.router.decay});
    check_cells(plan, "h.2.up",
                {line.up.variance, 1, line.up.rate * rate * hidden_rate, line.up.decay});
    check_cells(plan, "h.2.down",
                {line.down.variance * expert_down_std * expert_down_std, 1,
                 line.down.rate * rate * hidden_rate, line.down.decay});
    CHECK(test::formula_problem(plan) == "");
  }
}

}  // namespace constants_tables_test
