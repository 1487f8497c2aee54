// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/ngpt_complete_p.hpp"

#include "support/normalized_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

// nGPT with CompleteP (muP).
static_assert(has_column(NGptCompleteP{},
                         {1, 1 / sqrt(m_N), 1 / m_N, 1 / m_N, 0.05 / m_L, 0.03, 1}));
// Table 2, left column: all rates of Table 1 times m_data^(-1/3).
static_assert(has_column(NGptCompleteP{.horizon_exponent = 1.0 / 3},
                         {pow(m_D, {-1, 3}), 1 / sqrt(m_N), 1 / m_N, 1 / m_N, 0.05 / m_L, 0.03,
                          1}));
// Figure 7 tunes (eta_input, eta_output) of both parametrizations.
static_assert(has_column(NGptCompleteP{.input_rate = 2, .output_rate = 0.5},
                         {1, 2 / sqrt(m_N), 1 / m_N, 0.5 / m_N, 0.05 / m_L, 0.03, 1}));
// Equations (10) and (11) with α_depth = 1/2 are the column "Depth-μP", with 0 the steps keep their size.
static_assert(has_column(NGptCompleteP{.depth_exponent = 0.5},
                         {1, 1 / sqrt(m_N), 1 / (m_N * sqrt(m_L)), 1 / m_N, 0.05 / sqrt(m_L), 0.03,
                          1}));
static_assert(has_column(NGptCompleteP{.depth_exponent = 0},
                         {1, 1 / sqrt(m_N), 1 / (m_N * m_L), 1 / m_N, 0.05, 0.03, 1}));
static_assert(unit_model(NGptCompleteP{}.model()));
static_assert(!policy::states(NGptCompleteP{}, sgd));
