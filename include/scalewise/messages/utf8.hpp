// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace scalewise::messages {

/// A character of a text: its bytes, and its number in Unicode; 0 bytes where there is none in UTF-8.
struct Utf8Character {
  std::size_t length = 0;
  std::uint32_t code = 0;
};

/// The character that a text starts with.
/// Requires: a text that is not empty.
inline Utf8Character utf8_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80U) return {1, byte(0)};
  const std::size_t length = byte(0) < 0xE0U ? 2 : byte(0) < 0xF0U ? 3 : 4;
  if (byte(0) < 0xC2U || byte(0) > 0xF4U || text.size() < length) return {};
  std::uint32_t code = byte(0) & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const bool too_long = (length == 3 && code < 0x800U) || (length == 4 && code < 0x10000U);
  const bool no_character =
      (code >= 0xD800U && code < 0xE000U) || code > 0x10FFFFU || code == 0xFFFEU || code == 0xFFFFU;
  return too_long || no_character ? Utf8Character{} : Utf8Character{length, code};
}

/// The bytes of the UTF-8 character that a text starts with; 0 where there is none.
/// Requires: a text that is not empty.
inline std::size_t utf8_length(std::string_view text) { return utf8_character(text).length; }

/// Whether a character is one that a reader sees: no control character, which a terminal would obey, no
/// end of a line or a paragraph, no mark that changes the direction of what follows, none without width.
inline bool is_visible(std::uint32_t code) {
  const auto among = [&](std::uint32_t first, std::uint32_t last) {
    return first <= code && code <= last;
  };
  return !(code < 0x20U || among(0x7FU, 0x9FU) || code == 0xADU || code == 0x61CU ||
           code == 0x180EU || among(0x200BU, 0x200FU) || among(0x2028U, 0x202EU) ||
           among(0x2060U, 0x206FU) || code == 0xFEFFU || among(0xFFF9U, 0xFFFBU) ||
           among(0xE0000U, 0xE0FFFU));
}

/// A text with the letters of ASCII in lower case.
inline std::string in_lower_case(std::string_view text) {
  std::string low(text);
  for (char& c : low) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return low;
}

/// Whether a text is UTF-8 throughout.
inline bool is_utf8(std::string_view text) {
  while (!text.empty() && utf8_length(text) > 0) text.remove_prefix(utf8_length(text));
  return text.empty();
}

/// Whether a text is UTF-8 throughout and has none but visible characters.
inline bool is_printable_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = utf8_character(text);
    if (character.length == 0 || !is_visible(character.code)) return false;
    text.remove_prefix(character.length);
  }
  return true;
}

/// A text that is_printable_utf8() accepts: a space for a tab or an end of a line, and a question mark for all
/// else that is not UTF-8 or not visible.
inline std::string visible_text(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto [length, code] = utf8_character(text);
    const bool space = code == '\n' || code == '\r' || code == '\t';
    if (length > 0 && is_visible(code)) {
      result += text.substr(0, length);
    } else {
      result += length > 0 && space ? ' ' : '?';
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

}  // namespace scalewise::messages
