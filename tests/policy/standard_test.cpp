// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/standard.hpp"

#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

// LeCun: var W = 1/fi; one active row of a one-hot input, hence 1 for embeddings; a tied head needs
// 1/sqrt(n) to be of order one.
static_assert(drawn<Standard>(matrices, 1 / fi));
static_assert(drawn<Standard>({Group::head}, 1 / fi));
static_assert(drawn<Standard>({Group::patch_embedding}, 1 / fi));
static_assert(drawn<Standard>(tables, 1));
static_assert(starts_at<Standard>(norm_gains, 1));
static_assert(starts_at<Standard>(norm_biases, 0));
static_assert(starts_at<Standard>(linear_biases, 0));
static_assert(plain_model(Standard{}.model(), 1 / sqrt(n)));
static_assert(!Standard{}.row(Group::query).init_variance.scaling.needs_base());
