// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "scalewise/messages/folded.hpp"

namespace scalewise::messages {

/// Nothing where there are no problems.
/// Throws:   std::invalid_argument with all of them at once, folded(), below what they are problems of.
inline void require_none(const std::string& what, const std::vector<std::string>& problems) {
  if (problems.empty()) return;
  std::string text = what;
  for (const std::string& problem : folded(problems)) {
    text += "\n  ";
    text += problem;
  }
  throw std::invalid_argument(text);
}

}  // namespace scalewise::messages
