// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/ngpt_depth_mup.hpp"

#include "support/normalized_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

static_assert(has_column(NGptDepthMup{}, {1, 1 / sqrt(m_N), 1 / (m_N * sqrt(m_L)), 1 / m_N,
                                          0.05 / sqrt(m_L), 0.03, 1}));
static_assert(has_column(NGptDepthMup{.input_rate = 2, .output_rate = 0.5},
                         {1, 2 / sqrt(m_N), 1 / (m_N * sqrt(m_L)), 0.5 / m_N, 0.05 / sqrt(m_L),
                          0.03, 1}));
static_assert(unit_model(NGptDepthMup{}.model()));
static_assert(!policy::states(NGptDepthMup{}, sgd));
