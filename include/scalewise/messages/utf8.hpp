// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>

namespace scalewise::inline messages {

/// The bytes of the UTF-8 character that a text starts with; 0 where there is none.
/// Requires: a text that is not empty.
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80U) return 1;
  const std::size_t length = byte(0) < 0xE0U ? 2 : byte(0) < 0xF0U ? 3 : 4;
  if (byte(0) < 0xC2U || byte(0) > 0xF4U || text.size() < length) return 0;
  unsigned long code = byte(0) & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const bool too_long = (length == 3 && code < 0x800U) || (length == 4 && code < 0x10000U);
  const bool no_character =
      (code >= 0xD800U && code < 0xE000U) || code > 0x10FFFFU || code == 0xFFFEU || code == 0xFFFFU;
  return too_long || no_character ? 0 : length;
}

/// Whether a text is UTF-8 throughout and has no control characters, which a terminal would obey:
/// neither those of ASCII nor U+0080 to U+009F.
inline bool is_printable_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (length == 0 || byte(0) < ' ' || byte(0) == 0x7FU) return false;
    if (byte(0) == 0xC2U && byte(1) < 0xA0U) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace scalewise::inline messages
