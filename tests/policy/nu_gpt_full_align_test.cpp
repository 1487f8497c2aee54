// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/nu_gpt_full_align.hpp"

#include "support/normalized_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

static_assert(has_column(NuGptFullAlign{}, {pow(m_D, {-1, 3}), 1 / sqrt(m_N), 1 / m_N, 1 / m_N,
                                            0.05 / m_L, 0.03, sqrt(m_N)}));
// η_input and η_output are tuned in Table 2 as well.
static_assert(has_column(NuGptFullAlign{.input_rate = 2, .output_rate = 0.5},
                         {pow(m_D, {-1, 3}), 2 / sqrt(m_N), 1 / m_N, 0.5 / m_N, 0.05 / m_L, 0.03,
                          sqrt(m_N)}));
static_assert(unit_model(NuGptFullAlign{}.model()));
static_assert(!policy::states(NuGptFullAlign{}, sgd));
