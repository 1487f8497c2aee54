// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

namespace scalewise::propagation {

/// Statistics of the data: predicted (embedding.hpp) or measured.
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.1, for texts; patches are derived.
/// Units:    repeats: the chance that two tokens of a sequence are the same, also for targets;
///           patch_power and patch_correlation: mean square of an entry of a patch, and mean product
///           of two patches' entries over it.
struct Data {
  double repeats = 0;
  double segment_repeats = 2.0 / 3;
  double patch_power = 1;
  double patch_correlation = 0;
};

}  // namespace scalewise::propagation
