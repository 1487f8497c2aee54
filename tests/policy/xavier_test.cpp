// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/xavier.hpp"

#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

// U(±sqrt(6/(fi+fo))), variance 2/(fi+fo); Vaswani's embeddings N(0, 1/n) times sqrt(n).
static_assert(drawn<Xavier>(matrices, 2 / fi_plus_fo, Distribution::uniform));
static_assert(drawn<Xavier>({Group::head}, 2 / fi_plus_fo, Distribution::uniform));
static_assert(drawn<Xavier>({Group::patch_embedding}, 2 / fi_plus_fo, Distribution::uniform));
static_assert(drawn<Xavier>({Group::token_embedding}, 1 / n, Distribution::normal, sqrt(n)));
static_assert(drawn<Xavier>({Group::position_embedding}, 1 / n));
static_assert(drawn<Xavier>({Group::segment_embedding}, 1 / n));
static_assert(starts_at<Xavier>(norm_gains, 1));
static_assert(starts_at<Xavier>(norm_biases, 0));
static_assert(starts_at<Xavier>(linear_biases, 0));
static_assert(plain_model(Xavier{}.model(), 1));
