// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Constants of the base in the table of every rule, formulation and optimizer. Tables are typed from the papers named at each, and
// what constants do to a cell once: expected is their product, as an exact scaling. Where a paper has no version, it was not
// written down which one was read.

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scalewise/plan/constants.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/formula_problem.hpp"
#include "support/table_rows.hpp"

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

/// Of one tensor. The decay is that of the coupled form.
struct Cells {
  Scaling variance = 1, multiplier = 1, rate = 1, decay = 1;
};
constexpr Cells fixed(const Scaling& variance) { return {variance, 1, 1}; }

struct Table {
  std::string rule = {};
  Constants parameters = {};
  Optimizer optimizer = adamw;
  Cells query = {}, down = {}, embedding = {}, head = {}, gain = {};
  Scaling scores = 1 / sqrt(C), branch = 1, skip = 1;
};

constexpr Scaling m_F = ratio(F), root = sqrt(m_N), over_C = 1 / sqrt(C * m_C);
constexpr Cells one{1, 1, 1}, gains{0, 1, 1};

/// Tables 3, 8 and 9 of arXiv:2203.03466v2, whose decay is 1 in the independent form. Of Muon a hidden matrix has the
/// rate √(fo/fi) of arXiv:2512.05620 over the factor of docs/muon.md that the optimizer has, and the others AdamW's.
void add_maximal_update(std::vector<Table>& all) {
  struct Hidden {
    Optimizer optimizer;
    Scaling query, down;  // rates
  };
  const std::vector<Hidden> normalized{{adamw, 1 / m_N, 1 / m_F},
                                       {sign_sgd, 1 / m_N, 1 / m_F},
                                       {muon, 1, sqrt(m_N / m_F)},
                                       {muon_fan_ratio, 1, 1},
                                       {muon_original, 1, sqrt(m_N / m_F)},
                                       {muon_spectral, 1 / root, root / m_F},
                                       {muon_match_adamw, 1 / root, root / m_F}};
  const auto add = [&](double table, const Hidden& h, const Cells& in, const Cells& out,
                       const Cells& gain) {
    all.push_back({"maximal-update",
                   {{"table", table}},
                   h.optimizer,
                   {1 / m_N, 1, h.query, 1 / h.query},
                   {1 / m_F, 1, h.down, 1 / h.down},
                   in,
                   out,
                   gain,
                   over_C});
  };
  for (const Hidden& h : normalized) {
    add(3, h, one, {1 / (m_N * m_N), 1, 1 / m_N, m_N}, gains);
    add(8, h, one, {1, 1 / m_N, 1}, gains);
    add(9, h, {1 / m_N, root, 1 / root, root}, {1 / m_N, 1 / root, 1 / root, root},
        {0, root, 1 / root, root});
  }
  const Hidden plain{sgd, 1, m_N / m_F};
  add(3, plain, {1, 1, m_N, 1 / m_N}, {1 / (m_N * m_N), 1, 1 / m_N, m_N}, {0, 1, m_N, 1 / m_N});
  add(8, plain, {1, 1, m_N, 1 / m_N}, {1, 1 / m_N, m_N, 1 / m_N}, {0, 1, m_N, 1 / m_N});
  add(9, plain, {1 / m_N, root, 1}, {1 / m_N, 1 / root, 1}, {0, root, 1});
}

/// Table 1 of arXiv:2505.01618 for several α: 1 is CompleteP, 1/2 Depth-μP.
void add_complete_p(std::vector<Table>& all) {
  const auto add = [&](const char* rule, const Constants& parameters, const Optimizer& optimizer,
                       Exponent a) {
    const Scaling block = pow(m_L, a - 1);
    all.push_back({rule,
                   parameters,
                   optimizer,
                   {1 / m_N, 1, block / m_N, m_N},
                   {1 / m_F, 1, block / m_F, m_F},
                   one,
                   {1, 1 / m_N, 1},
                   {0, 1, 1, 0},
                   over_C,
                   pow(m_L, -a)});
  };
  for (const Optimizer& optimizer : {adamw, sign_sgd}) {
    add("complete-p", {}, optimizer, 1);
    add("complete-p", {{"alpha", 0.75}}, optimizer, {3, 4});
    add("depth-mup", {}, optimizer, {1, 2});
  }
}

/// arXiv:2304.02034v1: variances (1.25) to (1.33), rates (1.99) to (1.107) under SGD and (1.108) to (1.116) under AdamW,
/// decay independent of them; the exponent s of (1.34) is 0 for neural-tangent.
void add_effective_theory(std::vector<Table>& all) {
  const auto add = [&](const char* rule, const Constants& parameters, const Optimizer& optimizer,
                       const std::vector<Scaling>& variances, const std::vector<Scaling>& rates) {
    const auto cells = [&](std::size_t i) {
      return Cells{variances[i], 1, rates[i], 1 / rates[i]};
    };
    all.push_back({rule, parameters, optimizer, cells(0), cells(1), cells(2), cells(3), cells(4)});
  };
  const Scaling n32 = n * sqrt(n), ends = 1 / (n * sqrt(n_out)), quarter = pow(n, Exponent{1, 4});
  const std::vector<Scaling> table{1 / n, 1 / (M * n), 1, 1 / n, 0};
  const std::vector<Scaling> by_sgd{1 / n, 1 / (M * n), 1, 1 / n, 1};
  const std::vector<Scaling> by_adamw{1 / n32, 1 / (M * n32), 1 / sqrt(n), ends, 1 / sqrt(n)};
  add("neural-tangent", {}, sgd, table, by_sgd);
  add("neural-tangent", {}, adamw, table, by_adamw);
  add("neural-tangent", {{"mlp_ratio_in_rates", 0}}, adamw, table,
      {1 / n32, 1 / n32, 1 / sqrt(n), ends, 1 / sqrt(n)});
  // II 2 C: a deviation of 0.02 for the matrices of blocks
  add("neural-tangent", {{"experiment_constants", 1}}, sgd, {0.0004, 0.0004, 1, 1 / n, 0}, by_sgd);
  add("neural-tangent", {{"C_query", 2}, {"Lambda_mlp_down", 3}}, sgd,
      {2 / n, 1 / (M * n), 1, 1 / n, 0}, {1 / n, 3 / (M * n), 1, 1 / n, 1});
  const Scaling head = 1 / n32, half = sqrt(n);
  add("meta-principled", {}, sgd, {1 / n, 1 / (M * n), 1, head, 0},
      {half / n, half / (M * n), half, 1 / n, half});
  add("meta-principled", {}, adamw, {1 / n, 1 / (M * n), 1, head, 0},
      {quarter / n32, quarter / (M * n32), quarter / half, ends, quarter / half});
  add("meta-principled", {{"s", 1}}, adamw, {1 / n, 1 / (M * n), 1, 1 / (n * n), 0},
      {1 / n, 1 / (M * n), 1, ends, 1});
}

/// Rules that say how a model begins, and scale no rate: the sources of their pages, docs/rules.
void add_initializations(std::vector<Table>& all) {
  const auto add = [&](const char* rule, const Cells& query, const Cells& down,
                       const Cells& embedding, const Cells& head, const Table& rest) {
    for (const Optimizer& optimizer : {adamw, sgd, sign_sgd})
      all.push_back({rule, rest.parameters, optimizer, query, down, embedding, head, rest.gain,
                     rest.scores, rest.branch, rest.skip});
  };
  const Table usual{.gain = gains}, not_decayed{.gain = {0, 1, 1, 0}};
  const Cells small = fixed(0.0004), xavier = fixed(2 / fi_plus_fo), table{1 / n, sqrt(n), 1};
  add("standard", fixed(1 / n), fixed(1 / F), one, fixed(1 / n), usual);
  add("he", fixed(2 / n), fixed(2 / F), one, fixed(2 / n), usual);
  add("skip-init", fixed(2 / n), fixed(2 / F), one, fixed(2 / n), usual);
  add("pytorch", fixed(1 / (3 * n)), fixed(1 / (3 * F)), one, fixed(1 / (3 * n)), usual);
  add("xavier", xavier, xavier, table, xavier, usual);
  add("rezero", xavier, xavier, table, xavier, usual);
  const Scaling l = symbols::layer;
  add("ds-init", fixed(2 / (l * fi_plus_fo)), fixed(2 / (l * fi_plus_fo)), table, xavier, usual);
  add("bert", small, small, small, small, not_decayed);
  add("gpt2", small, fixed(0.0004 / (2 * L)), small, small, not_decayed);
  add("layer-scale", small, small, small, small, not_decayed);
  const Scaling beta = pow(8 * L, Exponent{-1, 4});
  add("deep-norm", xavier, fixed(2 * beta * beta / fi_plus_fo), table, xavier,
      {.gain = gains, .skip = pow(2 * L, Exponent{1, 4})});
  const Scaling keep{DeepScaleLM::keep_probability}, lambda2{DeepScaleLM::skip_power};
  const Cells mlp = fixed(sqrt(2 * keep / (F * n)));
  for (const char* rule : {"deep-scale-lm", "deep-scale-lm-simple"}) {
    add(rule, fixed(1 / n), mlp, fixed(keep / 2),
        {1, 1 / sqrt(n), 1},  // positions are a second table
        {.parameters = {{"dropout", 0.1}, {"input_correlation", 0.2}},
         .gain = gains,
         .branch = sqrt(2 / L),
         .skip = sqrt(lambda2)});
  }
}

std::vector<Table> tables() {
  std::vector<Table> all;
  add_maximal_update(all);
  add_complete_p(all);
  add_effective_theory(all);
  add_initializations(all);
  return all;
}

PlanRequest request_of(const Constants& parameters, const Optimizer& optimizer,
                       const Constants& constants, DecayForm form = DecayForm::coupled) {
  Shape shape{.d_model = 24, .depth = 4, .heads = 4, .d_ff = 50, .context = 9, .vocab = 31};
  shape.tied_head = false;
  shape.iterations = 4000;
  Shape base = shape;
  base.d_model = 8, base.depth = 2, base.heads = 2, base.d_ff = 20, base.iterations = 1000;
  return {.model = shape,
          .base = base,
          .optimizer = optimizer,
          .decay = form,
          .parameters = parameters,
          .constants = constants};
}

void check_cells(const Plan& plan, const char* name, const Cells& cells) {
  const Entry& entry = plan.at(name);
  INFO(name);
  CHECK(entry.init_variance.scaling == cells.variance);
  CHECK(entry.multiplier.scaling == cells.multiplier);
  CHECK(entry.learning_rate.scaling == cells.rate);
  CHECK(entry.weight_decay.scaling == cells.decay);
}

TEST_CASE("Constants multiply the cells of every rule's table", "[constants]") {
  const Constants constants =
      constants_of({rate, embedding_rate, hidden_rate, query_rate, output_rate, vector_rate,
                    embedding_std, hidden_std, output_std, embedding_by, query_by, down_by,
                    output_by, decay, hidden_decay, logits, scores, branches});
  for (const Table& t : tables()) {
    for (const DecayForm form : {DecayForm::coupled, DecayForm::independent}) {
      const Plan plan = make_plan(t.rule, request_of(t.parameters, t.optimizer, constants, form));
      INFO(t.rule << " " << t.optimizer.name << " "
                  << (t.parameters.empty() ? "" : t.parameters.front().name) << " "
                  << (t.parameters.empty() ? 0 : t.parameters.front().value));
      CHECK(plan.constants == constants);
      CHECK(plan.model.logit_multiplier.scaling == t.head.multiplier * logits * output_by);
      CHECK(plan.model.embedding_multiplier.scaling == t.embedding.multiplier * embedding_by);
      CHECK(plan.model.attention_scale.scaling == t.scores * scores);
      for (const Residual& residual : plan.model.residuals) {
        CHECK(residual.branch.scaling == t.branch * branches);
        CHECK(residual.skip.scaling == t.skip);
      }
      const auto check = [&](const char* name, const Cells& own, Cells cells) {
        cells.decay = own.decay * cells.decay;
        if (form == DecayForm::independent) cells.decay = cells.decay * cells.rate;
        check_cells(plan, name, cells);
      };
      const auto& [query, down, embedding] = std::tie(t.query, t.down, t.embedding);
      check("layer.2.query", query,
            {query.variance * hidden_std * hidden_std, query.multiplier * query_by,
             query.rate * rate * hidden_rate * query_rate, Scaling(1) * decay * hidden_decay});
      check("layer.3.mlp_down", down,
            {down.variance * hidden_std * hidden_std, down.multiplier * down_by,
             down.rate * rate * hidden_rate, Scaling(1) * decay * hidden_decay});
      check(
          "token_embedding", embedding,
          {embedding.variance * embedding_std * embedding_std, embedding.multiplier * embedding_by,
           embedding.rate * rate * embedding_rate, Scaling(1) * decay});
      // The page of deep-scale-lm has the head's multiplier as one of the model's.
      const bool of_model = t.rule.starts_with("deep-scale-lm");
      check("head", t.head,
            {t.head.variance * output_std * output_std,
             (of_model ? Scaling(1) : t.head.multiplier) * output_by,
             t.head.rate * rate * output_rate, Scaling(1) * decay});
      check("final_norm_gain", t.gain,
            {0, t.gain.multiplier, t.gain.rate * rate * vector_rate, Scaling(1) * decay});
      CHECK(test::formula_problem(plan) == "");  // values are those of the formulas
    }
  }
}

/// arXiv:2604.27077v2, Tables 1 and 2: rates of input, hidden and output over the global one, the start of steps and of the
/// logits' scale, and what is stored at first. All matrices are normalized, and nothing decays.
struct Column {
  std::string rule;
  Constants parameters;
  Scaling input, hidden, output, global, step, logit, stored = 0.03;
};

std::vector<Column> columns() {
  const Scaling third = pow(m_D, Exponent{-1, 3}), mid = pow(m_N, Exponent{-3, 4});
  const Scaling w = 1 / m_N, h = 1 / root, step = 0.05 / m_L, unit = 1 / sqrt(n);
  return {{"ngpt", {}, 1, 1, 1, 1, 0.05, 1, unit},
          {"ngpt", {{"input_rate", 2}, {"output_rate", 0.5}}, 2, 1, 0.5, 1, 0.05, 1, unit},
          {"ngpt-depth-mup", {}, h, w / sqrt(m_L), w, 1, 0.05 / sqrt(m_L), 1},
          {"ngpt-complete-p", {}, h, w, w, 1, step, 1},
          {"ngpt-complete-p", {{"horizon_exponent", 1.0 / 3}}, h, w, w, third, step, 1},
          {"nu-gpt", {}, h, mid, mid, third, step, root},
          {"nu-gpt", {{"alignment", 0.5}}, h, h, h, third, step, root},
          {"nu-gpt-full-align", {}, h, w, w, third, step, root}};
}

TEST_CASE("Constants multiply the cells of the normalized transformer's tables", "[constants]") {
  const Constants constants =
      constants_of({rate, embedding_rate, hidden_rate, query_rate, output_rate, rescaler_rate,
                    rescaler_by, output_by, logits, scores});
  for (const Column& c : columns()) {
    const Plan plan = make_plan(c.rule, request_of(c.parameters, adamw, constants));
    INFO(c.rule);
    const Scaling global = c.global * rate, rescaled = global * rescaler_rate;
    check_cells(plan, "token_embedding", {1 / n, 1, c.input * global * embedding_rate, 0});
    check_cells(plan, "layer.2.query", {1 / n, 1, c.hidden * global * hidden_rate * query_rate, 0});
    check_cells(plan, "layer.3.mlp_down", {1 / n, 1, c.hidden * global * hidden_rate, 0});
    check_cells(plan, "head", {1 / n, Scaling(1) * output_by, c.output * global * output_rate, 0});
    check_cells(plan, "layer.1.attention_step", {0, c.step / c.stored * rescaler_by, rescaled, 0});
    check_cells(plan, "logit_scale", {0, c.logit / c.stored * rescaler_by, rescaled, 0});
    CHECK(plan.model.logit_multiplier.scaling == Scaling(1) * logits * output_by);
    CHECK(plan.model.attention_scale.scaling == sqrt(C) * scores);
    CHECK(test::formula_problem(plan) == "");
  }
}

/// arXiv:2311.01575, table of initializations: η_O, η_Q and τ₁; d_m is n, d is n_patch.
struct Line {
  std::string rule;
  Scaling head, query, tau1;
};
const std::vector<Line> lines{{"shallow-lecun", 1 / n, 1 / n_patch, 1},
                              {"shallow-he", 2 / n, 2 / n_patch, 1},
                              {"shallow-ntk", 1, 1, 1 / sqrt(n)}};

TEST_CASE("Constants multiply the cells of the shallow encoder's tables", "[constants]") {
  const Constants constants = constants_of({rate, hidden_rate, query_rate, output_rate, hidden_std,
                                            output_std, output_by, logits, scores});
  for (const Line& line : lines) {
    for (const bool half : {true, false}) {
      PlanRequest request = request_of({{"tau0", half ? 0.5 : 1}}, sgd, constants);
      for (Shape* shape : {&request.model, &*request.base})
        shape->input = Input::patch, shape->patch_dim = 5, shape->classes = 3;
      const Plan plan = make_plan(line.rule, request);
      INFO(line.rule);
      check_cells(plan, "layer.0.query",
                  {line.query * hidden_std * hidden_std, 1,
                   Scaling(1) * rate * hidden_rate * query_rate, 1});
      check_cells(plan, "head",
                  {line.head * output_std * output_std, line.tau1 * output_by,
                   Scaling(1) * rate * output_rate, 1});
      CHECK(plan.model.attention_scale.scaling == (half ? 1 / sqrt(n) : 1 / n) * scores);
      CHECK(plan.model.logit_multiplier.scaling == line.tau1 * logits * output_by);
      CHECK(test::formula_problem(plan) == "");
    }
  }
}

TEST_CASE("Constants multiply the cells of every rule, whatever they are", "[constants]") {
  std::set<std::string> typed;
  for (const Table& table : tables()) typed.insert(table.rule);
  for (const Line& line : lines) typed.insert(line.rule);
  const auto plan_of = [](const Rule& rule, const Constants& constants) {
    return make_plan(rule, request_of({}, adamw, constants));
  };
  const Constants constants = constants_of({rate, hidden_rate, query_rate, logits});
  for (const Rule& rule : rules()) {
    INFO(rule.id);
    std::optional<Plan> plain;
    try {
      plain = plan_of(rule, {});
    } catch (const InvalidInput&) {
      CHECK(typed.contains(std::string(rule.id)));  // of other models, or with parameters: above
      continue;
    }
    const Plan plan = plan_of(rule, constants);
    const auto times = [&](const char* name, const Scaling& by) {
      CHECK(plan.at(name).learning_rate.scaling == plain->at(name).learning_rate.scaling * by);
      CHECK(plan.at(name).init_variance.scaling == plain->at(name).init_variance.scaling);
    };
    times("token_embedding", Scaling(1) * rate);
    times("layer.2.query", Scaling(1) * rate * hidden_rate * query_rate);
    times("layer.3.mlp_down", Scaling(1) * rate * hidden_rate);
    CHECK(plan.model.logit_multiplier.scaling == plain->model.logit_multiplier.scaling * logits);
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
