// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <string>

namespace scalewise::inline files {

/// The shortest text that reads back to the same number, whatever the locale of the program.
template <class Number>
std::string exact_text(Number x) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), x).ptr};
}

}  // namespace scalewise::inline files
