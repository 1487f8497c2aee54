// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/he.hpp"

#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

// var W = 2/fi; embeddings as in the standard parametrization.
static_assert(drawn<He>(matrices, 2 / fi));
static_assert(drawn<He>({Group::head}, 2 / fi));
static_assert(drawn<He>({Group::patch_embedding}, 2 / fi));
static_assert(drawn<He>(tables, 1));
static_assert(starts_at<He>(norm_gains, 1));
static_assert(starts_at<He>(norm_biases, 0));
static_assert(starts_at<He>(linear_biases, 0));
static_assert(He{}.model().attention_scale == Multiplier(1 / sqrt(C)));
static_assert(He{}.model().logit_multiplier == Multiplier(1));
static_assert(He{}.model().tied_logit_multiplier.scaling.exponent_of(symbols::d_model) ==
              Exponent(-1, 2));
