// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/utf8.hpp"

namespace scalewise::messages {

/// Requires that a name can be shown: nothing else may enter where names come from outside.
/// Throws:   InvalidInput for a name that is_printable_utf8() denies.
inline void require_name(const std::string& field, std::string_view name) {
  if (is_printable_utf8(name)) return;
  throw InvalidInput(field, printable(name), "a name in UTF-8 without control characters");
}

}  // namespace scalewise::messages
