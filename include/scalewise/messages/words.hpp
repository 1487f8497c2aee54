// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"

namespace scalewise::inline messages {

/// The words for the values of an enumeration, in files and on command lines.
template <class Enum, std::size_t size>
using Spelling = std::array<std::pair<Enum, std::string_view>, size>;

/// The word of a value. Requires: every value of the enumeration is in the spelling.
template <class Enum, std::size_t size>
constexpr std::string_view word(const Spelling<Enum, size>& spelling, Enum value) {
  for (const auto& [known, text] : spelling) {
    if (known == value) return text;
  }
  return "";
}

/// The value of a word. Throws: InvalidInput naming the field and the closest word.
template <class Enum, std::size_t size>
Enum value_of(const Spelling<Enum, size>& spelling, const std::string& field,
              std::string_view text) {
  Nearest known(text);
  std::string list;
  for (std::size_t i = 0; i < size; ++i) {
    const auto& [value, name] = spelling[i];
    if (name == text) return value;
    known.offer(name);
    list += (i == 0 ? "" : i + 1 == size ? " or " : ", ") + std::string(name);
  }
  throw InvalidInput(field, printable(text), list, known.hint());
}

}  // namespace scalewise::inline messages
