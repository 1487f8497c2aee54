// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <string>

namespace scalewise::experiment {

/// The note of a frame::Progress.
inline std::string loss_text(double loss) {
  char text[32];
  std::snprintf(text, sizeof(text), "loss %.4g", loss);
  return text;
}

}  // namespace scalewise::experiment
