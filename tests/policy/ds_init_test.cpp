// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/ds_init.hpp"

#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

// arXiv:1908.11365, cell by cell, retyped: Xavier's bound over sqrt(l), l from 1.
static_assert(drawn<DsInit>({Group::query, Group::key, Group::value},
                            2 / (Scaling(symbols::layer) * fi_plus_fo), Distribution::uniform));
static_assert(drawn<DsInit>({Group::attention_output, Group::mlp_up},
                            2 / (Scaling(symbols::layer) * fi_plus_fo), Distribution::uniform));
static_assert(drawn<DsInit>({Group::mlp_gate, Group::mlp_down},
                            2 / (Scaling(symbols::layer) * fi_plus_fo), Distribution::uniform));
static_assert(drawn<DsInit>({Group::head}, 2 / fi_plus_fo, Distribution::uniform));
static_assert(drawn<DsInit>({Group::token_embedding}, 1 / n, Distribution::normal, sqrt(n)));
static_assert(DsInit{}.model().residual_skip == Multiplier(1));
static_assert(DsInit{}.model().residual_branch == Multiplier(1));
static_assert(DsInit{}.model().attention_scale == Multiplier(1 / sqrt(C)));
