// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/propagation/token_covariance.hpp"

namespace scalewise::experiment {

/// One sequence of a batch, pair by pair.
/// Shapes:   (L, L); content: whether two tokens are the same, or the mean product of two patches'
///           entries; same_target: whether two tokens are followed by the same
struct SequencePairs {
  propagation::TokenCovariance content;
  propagation::TokenCovariance same_target;
};

}  // namespace scalewise::experiment
