// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/skip_init.hpp"

#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

// arXiv:2002.10444, retyped: one gain per branch, zero at first; He's matrices.
static_assert(starts_at<SkipInit>({Group::residual_gain}, 0, 0));
static_assert(drawn<SkipInit>({Group::query}, 2 / fi));
static_assert(drawn<SkipInit>({Group::mlp_down}, 2 / fi));
static_assert(SkipInit{}.adapt(Shape{}).residual_gain == ResidualGain::scalar);
static_assert(SkipInit{}.model().residual_branch == Multiplier(1));
static_assert(SkipInit{}.model().residual_skip == Multiplier(1));
