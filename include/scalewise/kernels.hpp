// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Kernels of infinite width: attention networks, the effective theory, the shallow encoder, and regression with
// them. Needs Eigen, and compiles for three minutes with GCC 12 and 40 s with Clang 14.
#pragma once

#include "scalewise/kernels/effective_scales.hpp"
#include "scalewise/kernels/effective_theory.hpp"
#include "scalewise/kernels/finite_network.hpp"
#include "scalewise/kernels/network_gram.hpp"
#include "scalewise/kernels/regression.hpp"
#include "scalewise/kernels/shallow_conditions.hpp"
#include "scalewise/kernels/shallow_encoder.hpp"
#include "scalewise/kernels/shallow_kernel.hpp"
#include "scalewise/kernels/stored_gram.hpp"
#include "scalewise/kernels/vertex.hpp"
