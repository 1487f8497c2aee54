// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/shallow_encoder.hpp"

#include "support/catch.hpp"
#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

namespace {

// Table of initializations of arXiv:2311.01575, cell by cell, retyped: d is the patch dimension,
// d_m the width. Plain gradient descent: every rate is one.
constexpr bool shallow_cell(const Row& rule, const Scaling& variance, const Scaling& multiplier) {
  return rule.init_variance == Variance(variance) && rule.multiplier == Multiplier(multiplier) &&
         rule.init_mean == Mean(0) && rule.rate(sgd) == Rate(1) &&
         rule.distribution == Distribution::normal && !rule.source.empty();
}

/// eta_O, eta_V, eta_Q, eta_K, tau_1; the last is the multiplier of the head.
constexpr bool shallow_row(const auto& p, const Scaling& eta_o, const Scaling& eta_v,
                           const Scaling& eta_q, const Scaling& eta_k, const Scaling& tau_1) {
  return shallow_cell(bound(p.row(Group::head), n, 1), eta_o, tau_1) &&
         shallow_cell(bound(p.row(Group::value), n_patch, n), eta_v, 1) &&
         shallow_cell(bound(p.row(Group::query), n_patch, n), eta_q, 1) &&
         shallow_cell(bound(p.row(Group::key), n_patch, n), eta_k, 1);
}

static_assert(shallow_row(ShallowLeCun{}, 1 / n, 1 / n_patch, 1 / n_patch, 1 / n_patch, 1));
static_assert(shallow_row(ShallowHe{}, 2 / n, 2 / n_patch, 2 / n_patch, 2 / n_patch, 1));
static_assert(shallow_row(ShallowNtk{}, 1, 1, 1, 1, 1 / sqrt(n)));

/// tau_0 = d_m^(-1/2) by default, or d_m^(-1).
constexpr bool shallow_scores(const ModelRow& m, const Scaling& tau_0) {
  return m.attention_scale == Multiplier(tau_0) && m.logit_multiplier == Multiplier(1);
}
static_assert(shallow_scores(ShallowLeCun{}.model(), 1 / sqrt(n)));
static_assert(shallow_scores(ShallowHe{}.model(), 1 / sqrt(n)));
static_assert(shallow_scores(ShallowNtk{}.model(), 1 / sqrt(n)));
static_assert(shallow_scores(ShallowLeCun{.tau0 = 1}.model(), 1 / n));
static_assert(shallow_scores(ShallowHe{.tau0 = 1}.model(), 1 / n));
static_assert(shallow_scores(ShallowNtk{.tau0 = 1}.model(), 1 / n));

// The choice of tau_0 changes the scores and nothing else.
static_assert(shallow_row(ShallowNtk{.tau0 = 1}, 1, 1, 1, 1, 1 / sqrt(n)));
static_assert(shallow_row(ShallowLeCun{.tau0 = 1}, 1 / n, 1 / n_patch, 1 / n_patch, 1 / n_patch,
                          1));

static_assert(ShallowLeCun::reference == Reference::absolute);
static_assert(ShallowHe::reference == Reference::absolute);
static_assert(ShallowNtk::reference == Reference::absolute);

}  // namespace

TEST_CASE("The power of the width in the scores of a shallow encoder is one of two") {
  CHECK_THROWS_AS(make_plan(ShallowNtk{.tau0 = 0.7}, {.model = vision(), .optimizer = sgd}),
                  InvalidInput);
}
