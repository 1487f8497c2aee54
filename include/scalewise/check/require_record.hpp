// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/utf8.hpp"

namespace scalewise::check::detail {

/// Throws:   InvalidInput for a name that cannot be shown.
inline void require_printable_name(const std::string& place, const std::string& name) {
  if (is_printable_utf8(name)) return;
  throw InvalidInput(place, printable(name), "a name in UTF-8 without control characters");
}

}  // namespace scalewise::check::detail
