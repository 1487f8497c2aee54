// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The reference transformer and its optimizers. Needs Eigen.
#pragma once

#include "scalewise/nn/checkpoint.hpp"
#include "scalewise/nn/initialize.hpp"
#include "scalewise/nn/normalize_matrices.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "scalewise/nn/schedule.hpp"
#include "scalewise/nn/train_step.hpp"
#include "scalewise/nn/transformer.hpp"
