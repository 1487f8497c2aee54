// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/pytorch.hpp"

#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

// Linear U(±1/sqrt(fi)), its bias too, variance 1/(3 fi); Embedding N(0, 1); LayerNorm 1, 0.
static_assert(drawn<PyTorch>(matrices, 1 / (3 * fi), Distribution::uniform));
static_assert(drawn<PyTorch>({Group::head}, 1 / (3 * fi), Distribution::uniform));
static_assert(drawn<PyTorch>({Group::patch_embedding}, 1 / (3 * fi), Distribution::uniform));
static_assert(drawn<PyTorch>(linear_biases, 1 / (3 * fi), Distribution::uniform));
static_assert(drawn<PyTorch>(tables, 1));
static_assert(starts_at<PyTorch>(norm_gains, 1));
static_assert(starts_at<PyTorch>(norm_biases, 0));
static_assert(plain_model(PyTorch{}.model(), 1));
