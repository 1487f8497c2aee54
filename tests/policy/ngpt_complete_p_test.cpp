// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/ngpt_complete_p.hpp"

#include "support/catch.hpp"
#include "support/normalized_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

// nGPT with CompleteP (muP).
static_assert(has_column(NGptCompleteP{},
                         {1, 1 / sqrt(m_N), 1 / m_N, 1 / m_N, 0.05 / m_L, 0.03, 1}));
static_assert(unit_model(NGptCompleteP{}.model()));
static_assert(!policy::states(NGptCompleteP{}, sgd));

TEST_CASE("nGPT with CompleteP numbers") {
  check_column(make_plan(NGptCompleteP{}, {.model = decoder(), .base = decoder_base()}),
               {1 / std::sqrt(3.0), 1 / 3.0, 1 / 3.0, 1}, 0.05 / 2.5, 0.03, 1);
}
