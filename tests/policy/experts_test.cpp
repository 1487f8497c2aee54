// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/experts.hpp"

#include <string>

#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/numbers.hpp"
#include "support/table_rows.hpp"

namespace experts_test {

using namespace scalewise;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;
using symbols::m_E;
using symbols::m_fi;
using symbols::m_L;
using symbols::m_N;

/// A base, and a target of which some sizes are larger.
constexpr policy::Context growing(long experts, long features) {
  const Shape base{.d_model = 256, .depth = 4, .experts = 8, .expert_ff = 256};
  Shape shape = base;
  shape.d_model = 512;
  shape.experts = experts;
  shape.expert_ff = features;
  return {shape, Stack::main, base};
}

/// The three columns of MSSP: n is the width, e the number of experts, f their hidden features, as ratios.
constexpr policy::Context fixed = growing(8, 512), all = growing(16, 512),
                          narrow = growing(16, 256);
constexpr Scaling n = m_N, e = m_E;

/// A row with ratios of fans put in.
constexpr Row fanned(Row row, const Scaling& in, const Scaling& out) {
  const auto put = [&](const Scaling& cell) {
    Scaling result = cell.number();
    for (const scaling::Factor& factor : cell.factors()) {
      const Scaling of = factor.is(symbols::fan_in)    ? in
                         : factor.is(symbols::fan_out) ? out
                                                       : Scaling(*factor.symbol, factor.ratio);
      result = result * pow(of, factor.exponent);
    }
    return result;
  };
  for (const Optimizer& optimizer : {sgd, adamw, muon}) {
    if (row.rates.has(optimizer)) row.rates.set(optimizer, put(row.rate(optimizer).scaling));
  }
  row.init_variance = put(row.init_variance.scaling);
  row.weight_decay = put(row.weight_decay.scaling);
  row.epsilon = put(row.epsilon.scaling);
  return row;
}

/// Standard deviation, Adam's rate and epsilon of a group whose fans grow so.
constexpr bool has(const auto& rule, Group group, const policy::Context& context, const Scaling& in,
                   const Scaling& out, const Scaling& deviation, const Scaling& rate,
                   const Scaling& epsilon) {
  const Row row = fanned(rule.row(group, context), in, out);
  return row.init_variance == Variance(deviation * deviation) && row.rate(adamw) == Rate(rate) &&
         row.epsilon == Epsilon(epsilon) && row.multiplier == Multiplier(1) && row.stated;
}

constexpr bool by_sgd(const auto& rule, Group group, const policy::Context& context,
                      const Scaling& in, const Scaling& out, const Scaling& rate) {
  return fanned(rule.row(group, context), in, out).rate(sgd) == Rate(rate);
}

using enum Group;

// Source: arXiv:2605.14200, the authors' table for Adam, retyped: standard deviation / rate / epsilon. Columns: the number of
// experts stays; width, experts and their features grow; features stay.
constexpr MaximalUpdate mssp{.experts = {.mssp = true}};
constexpr Scaling one = 1;

static_assert(has(mssp, router, fixed, n, one, 1 / n, 1 / n, one / e));  // e is 1 here
static_assert(has(mssp, router, all, n, e, 1 / sqrt(n), 1 / n, 1 / e));
static_assert(has(mssp, router, narrow, n, e, 1 / sqrt(n), 1 / n, 1 / e));

static_assert(has(mssp, expert_up, fixed, n, n, 1 / sqrt(n), 1 / n, 1 / (n * e)));  // e is 1 here
static_assert(has(mssp, expert_up, all, n, n, 1 / sqrt(n), 1 / n, 1 / (n * e)));
static_assert(has(mssp, expert_up, narrow, n, one, 1 / sqrt(n), 1 / n, 1 / e));

static_assert(has(mssp, expert_down, fixed, n, n, 1 / sqrt(n), 1 / n, 1 / (n * e)));  // e is 1 here
static_assert(has(mssp, expert_down, all, n, n, 1 / sqrt(n), 1 / n, 1 / (n * e)));
static_assert(has(mssp, expert_down, narrow, one, n, sqrt(e), 1, 1 / (n * e)));

// The others are those of maximal update: shared experts are a dense MLP, and biases of experts are biases.
static_assert(has(mssp, hidden, all, n, n, 1 / sqrt(n), 1 / n, 1 / n));
static_assert(mssp.row(hidden_bias, all).rate(adamw) == Rate(1) &&
              fanned(mssp.row(hidden_bias, all), n, n).epsilon == Epsilon(1 / n));

// SGD, the authors' table of multilayer perceptrons; where experts are more they grow as the width does.
static_assert(by_sgd(mssp, router, fixed, n, one, 1 / n));
static_assert(by_sgd(mssp, router, all, n, n, 1));
static_assert(by_sgd(mssp, router, narrow, n, e, e / n));
static_assert(by_sgd(mssp, expert_up, fixed, n, n, e));  // e is 1 here
static_assert(by_sgd(mssp, expert_up, all, n, n, e));
static_assert(by_sgd(mssp, expert_up, narrow, n, one, e / n));
static_assert(by_sgd(mssp, expert_down, narrow, one, n, e* n));

// Source: arXiv:2601.20205, Table 2, retyped: D width, M features of an expert, L layers.
constexpr CompleteP jiang{.experts = {.jiang = true}};
constexpr Scaling D = m_N, M{symbols::expert_ff, true}, L = m_L;

static_assert(has(jiang, router, narrow, D, e, 1 / D, 1 / D, 1 / (D * L)));
static_assert(has(jiang, expert_up, narrow, D, M, 1 / sqrt(D), 1 / D, 1 / (M * L)));
static_assert(has(jiang, expert_down, narrow, M, D, sqrt(D) / M, 1 / M, D / (M * M * L)));
static_assert(has(jiang, hidden, narrow, D, D, 1 / sqrt(D), 1 / D, 1 / (D * L)));
static_assert(jiang.row(token_embedding, narrow).epsilon == Epsilon(1 / D));
static_assert(!jiang.row(expert_up, narrow).rates.has(sgd));

// Without a table a router is an output and an expert a hidden matrix.
constexpr CompleteP plain{};
static_assert(plain.row(router, fixed).multiplier == Multiplier(1 / m_fi) &&
              plain.row(router, fixed).rate(adamw) == Rate(1) &&
              plain.row(expert_up, fixed).init_variance == Variance(1 / m_fi) &&
              plain.row(expert_down, fixed).epsilon == plain.row(hidden).epsilon);
// That of MSSP for a fixed number, times Jiang's factor of the depth, since routers stand in the layers: a multiplier 1/n is
// a deviation and a rate of 1/n, and epsilon times n.
static_assert(plain.row(router, fixed).epsilon == Epsilon(1 / (m_N * m_L)));
static_assert(CompleteP{.alpha = 0.5}.row(router, fixed).rate(adamw) == Rate(1 / sqrt(m_L)));

// Decay falls with the rate, as that of other hidden matrices.
static_assert(fanned(jiang.row(expert_down, narrow), M, D).weight_decay == Decay(M) &&
              mssp.row(expert_up, all).decay_form == DecayForm::independent);

inline Plan mixture(const std::string& rule, const std::vector<Parameter>& parameters,
                    const Optimizer& optimizer = adamw) {
  Shape target{.d_model = 64, .depth = 4, .blocks = Blocks::listed}, base = target;
  base.d_model = 32;
  target.experts = 16, target.experts_per_token = 4, target.expert_ff = 64;
  base.experts = 4, base.experts_per_token = 1, base.expert_ff = 64;
  return make_plan(
      rule, {.model = target,
             .base = base,
             .optimizer = optimizer,
             .parameters = parameters,
             .extras = {{"h.*.router", router, "d_model", "experts"},
                        {"h.*.up", expert_up, "experts*d_model", "expert_ff", "d_model"},
                        {"h.*.down", expert_down, "experts*expert_ff", "d_model", "expert_ff"}}});
}

TEST_CASE("A plan has the numbers of a table for more experts", "[experts]") {
  const Plan plan = mixture("depth-mup", {{"mssp", 1}});
  CHECK(plan.at("h.2.up").size() == 16 * 64 * 64);
  CHECK(plan.at("h.2.up").fan_in == 64);
  CHECK(plan.at("h.2.down").init_variance.formula() == "m_E/m_Fe");
  CHECK(plan.at("h.2.down").init_variance.value == 4);
  CHECK(plan.at("h.0.router").epsilon.formula() == "1/(m_E√m_L)");
  CHECK(plan.at("h.0.router").init_variance.value == 1.0 / 2);
  CHECK(plan.parameters == std::vector<Parameter>{{"mssp", 1}, {"jiang", 0}});
  CHECK(mixture("mup", {{"mssp", 1}}, sgd).at("h.0.up").learning_rate.formula() == "m_Fe·m_E/m_N");
}

TEST_CASE("What no table for experts has is refused", "[experts]") {
  const auto message = [](const std::string& rule, const std::vector<Parameter>& parameters,
                          const Optimizer& optimizer = adamw) {
    return test::error_message([&] { static_cast<void>(mixture(rule, parameters, optimizer)); });
  };
  CHECK(message("complete-p", {}) ==
        "experts = 4 to 16: expected as many in both models (hint: tables for more experts: "
        "--set mssp=true, or --set jiang=true)");
  CHECK(message("complete-p", {{"jiang", 1}}) == "no error");
  CHECK_THAT(message("mup", {{"mssp", 1}, {"jiang", 1}}),
             ContainsSubstring("jiang = true: expected one table for experts"));
  CHECK_THAT(message("mup", {{"jiang", 1}}, sgd), ContainsSubstring("optimizer = sgd"));
  CHECK_THAT(test::error_message([] {
               static_cast<void>(CompleteP{.experts = {.jiang = true}}.row(
                   router, {{.experts = 16, .experts_per_token = 2},
                            Stack::main,
                            Shape{.experts = 8, .experts_per_token = 2}}));
             }),
             ContainsSubstring("experts_per_token = 2 of 8 to 2 of 16: expected the same share"));
}

}  // namespace experts_test
