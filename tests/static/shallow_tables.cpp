// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The shallow encoder, table of initializations of arXiv:2311.01575, cell by cell, retyped: d is
// the patch dimension, d_m the width. Compiling this file is the test.

#include "scalewise/policy/all.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::symbols;

constexpr Row bound(Row rule, const Scaling& in, const Scaling& out) {
  const auto put = [&](Scaling& cell) {
    cell = substitute(substitute(cell, Axis::fan_in, in), Axis::fan_out, out);
  };
  put(rule.init_variance.scaling);
  put(rule.multiplier.scaling);
  return rule;
}

/// Plain gradient descent: every rate is one.
constexpr bool cell(const Row& rule, const Scaling& variance, const Scaling& multiplier) {
  return rule.init_variance == Variance(variance) && rule.multiplier == Multiplier(multiplier) &&
         rule.init_mean == Mean(0) && rule.sgd_rate == Rate(1) &&
         rule.distribution == Distribution::normal && !rule.source.empty();
}

/// eta_O, eta_V, eta_Q, eta_K, tau_1; the last is the multiplier of the head.
constexpr bool row(const auto& p, const Scaling& eta_o, const Scaling& eta_v, const Scaling& eta_q,
                   const Scaling& eta_k, const Scaling& tau_1) {
  return cell(bound(p.row(Group::head), n, 1), eta_o, tau_1) &&
         cell(bound(p.row(Group::value), n_patch, n), eta_v, 1) &&
         cell(bound(p.row(Group::query), n_patch, n), eta_q, 1) &&
         cell(bound(p.row(Group::key), n_patch, n), eta_k, 1);
}

static_assert(row(ShallowLeCun{}, 1 / n, 1 / n_patch, 1 / n_patch, 1 / n_patch, 1));
static_assert(row(ShallowHe{}, 2 / n, 2 / n_patch, 2 / n_patch, 2 / n_patch, 1));
static_assert(row(ShallowNtk{}, 1, 1, 1, 1, 1 / sqrt(n)));

/// tau_0 = d_m^(-1/2) by default, or d_m^(-1).
constexpr bool scores(const ModelRow& m, const Scaling& tau_0) {
  return m.attention_scale == Multiplier(tau_0) && m.logit_multiplier == Multiplier(1);
}
static_assert(scores(ShallowLeCun{}.model(), 1 / sqrt(n)));
static_assert(scores(ShallowHe{}.model(), 1 / sqrt(n)));
static_assert(scores(ShallowNtk{}.model(), 1 / sqrt(n)));
static_assert(scores(ShallowLeCun{.tau0 = 1}.model(), 1 / n));
static_assert(scores(ShallowHe{.tau0 = 1}.model(), 1 / n));
static_assert(scores(ShallowNtk{.tau0 = 1}.model(), 1 / n));

// The choice of tau_0 changes the scores and nothing else.
static_assert(row(ShallowNtk{.tau0 = 1}, 1, 1, 1, 1, 1 / sqrt(n)));
static_assert(row(ShallowLeCun{.tau0 = 1}, 1 / n, 1 / n_patch, 1 / n_patch, 1 / n_patch, 1));

static_assert(ShallowLeCun::reference == Reference::absolute);
static_assert(ShallowHe::reference == Reference::absolute);
static_assert(ShallowNtk::reference == Reference::absolute);

}  // namespace
