// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"

namespace scalewise::messages {

/// A value of an enumeration and its word.
template <class Enum>
struct Spelled {
  Enum value;
  std::string_view text;
};

/// The words for the values of an enumeration, in files and on command lines.
template <class Enum, std::size_t size>
using Spelling = std::array<Spelled<Enum>, size>;

/// The word of a value.
/// Requires: every value of the enumeration is in the spelling.
template <class Enum, std::size_t size>
constexpr std::string_view word(const Spelling<Enum, size>& spelling, Enum value) {
  for (const auto& [known, text] : spelling) {
    if (known == value) return text;
  }
  return "";
}

/// "a, b or c".
inline std::string listed(const std::vector<std::string>& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return list;
}

/// The value of a word.
/// Throws:   InvalidInput naming the field and the closest word.
template <class Enum, std::size_t size>
Enum value_of(const Spelling<Enum, size>& spelling, const std::string& field,
              std::string_view text) {
  std::vector<std::string> known;
  for (const auto& [value, name] : spelling) {
    if (name == text) return value;
    known.emplace_back(name);
  }
  throw InvalidInput(field, printable(text), listed(known), did_you_mean(text, known));
}

}  // namespace scalewise::messages
