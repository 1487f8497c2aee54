// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/bert.hpp"

#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::test;

// A truncated normal of 0.02 everywhere; no decay of gains and biases.
static_assert(drawn<Bert>(matrices, 0.02 * 0.02, Distribution::truncated_normal));
static_assert(drawn<Bert>(tables, 0.02 * 0.02, Distribution::truncated_normal));
static_assert(drawn<Bert>({Group::head}, 0.02 * 0.02, Distribution::truncated_normal));
static_assert(drawn<Bert>({Group::patch_embedding}, 0.02 * 0.02, Distribution::truncated_normal));
static_assert(starts_at<Bert>(norm_gains, 1, 0));
static_assert(starts_at<Bert>(norm_biases, 0, 0));
static_assert(starts_at<Bert>(linear_biases, 0, 0));
static_assert(plain_model(Bert{}.model(), 1));
