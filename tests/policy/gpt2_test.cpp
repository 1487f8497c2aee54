// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/gpt2.hpp"

#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

// N(0, 0.02²); residual outputs 0.02/sqrt(2L); biases 0; no decay of gains and biases.
static_assert(drawn<Gpt2>({Group::query, Group::key, Group::value, Group::mlp_up, Group::mlp_gate},
                          0.02 * 0.02));
static_assert(drawn<Gpt2>({Group::attention_output}, 0.02 * 0.02 / (2 * L)));
static_assert(drawn<Gpt2>({Group::mlp_down}, 0.02 * 0.02 / (2 * L)));
static_assert(drawn<Gpt2>({Group::token_embedding}, 0.02 * 0.02));
static_assert(drawn<Gpt2>({Group::position_embedding}, 0.02 * 0.02));
static_assert(drawn<Gpt2>({Group::head}, 0.02 * 0.02));
static_assert(starts_at<Gpt2>(norm_gains, 1, 0));
static_assert(starts_at<Gpt2>(norm_biases, 0, 0));
static_assert(starts_at<Gpt2>(linear_biases, 0, 0));
static_assert(plain_model(Gpt2{}.model(), 1));
