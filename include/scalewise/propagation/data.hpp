// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/number_text.hpp"

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

namespace detail {

/// Throws:   InvalidInput for statistics that no data have.
inline void check_data(const Data& data) {
  const auto within = [](const char* field, double value, double lowest, const char* range) {
    if (!(value >= lowest && value <= 1))
      throw InvalidInput(field, numeric::number_text(value), range);
  };
  within("repeats", data.repeats, 0, "a number from 0 to 1");
  within("segment_repeats", data.segment_repeats, 0, "a number from 0 to 1");
  within("patch_correlation", data.patch_correlation, -1, "a number from -1 to 1");
  if (!(data.patch_power >= 0 && std::isfinite(data.patch_power))) {
    throw InvalidInput("patch_power", numeric::number_text(data.patch_power),
                       "a finite number that is not negative");
  }
}

}  // namespace detail

}  // namespace scalewise::propagation
