// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/rezero.hpp"

#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

// arXiv:2003.04887, retyped: one gain per branch, zero at first; Xavier's matrices.
static_assert(starts_at<ReZero>({Group::residual_gain}, 0, 0));
static_assert(drawn<ReZero>({Group::query}, 2 / fi_plus_fo, Distribution::uniform));
static_assert(drawn<ReZero>({Group::mlp_down}, 2 / fi_plus_fo, Distribution::uniform));
static_assert(ReZero{}.adapt(Shape{}).residual_gain == ResidualGain::scalar);
static_assert(ReZero{}.model().residual_branch == Multiplier(1));
static_assert(ReZero{}.model().residual_skip == Multiplier(1));
