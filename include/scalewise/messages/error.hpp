// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace scalewise::inline messages {

namespace detail {

/// A text with a space or a question mark for each control character, which could clear a terminal.
inline std::string without_controls(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
      c = c == '\n' || c == '\r' || c == '\t' ? ' ' : '?';
  }
  return text;
}

}  // namespace detail

/// Thrown by every function of the library on bad input, with one message that names the field, the
/// value it had, what was expected, and what to do about it. It is one line, whatever is in a value.
class InvalidInput : public std::invalid_argument {
 public:
  InvalidInput(const std::string& field, const std::string& value, const std::string& expectation,
               const std::string& hint = {})
      : std::invalid_argument(
            detail::without_controls(field + " = " + value + ": expected " + expectation +
                                     (hint.empty() ? "" : " (hint: " + hint + ")"))),
        field_(field) {}

  /// The field at fault, as the user wrote it.
  const std::string& field() const noexcept { return field_; }

 private:
  std::string field_;
};

/// At most 60 characters of a text that somebody gave, all of them printable ASCII.
inline std::string printable(std::string_view text) {
  constexpr std::size_t longest = 60;
  const bool cut = text.size() > longest;
  std::string result(text.substr(0, cut ? longest - 3 : longest));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = c == '\n' || c == '\r' || c == '\t' ? ' ' : '?';
  }
  return cut ? result + "..." : result;
}

}  // namespace scalewise::inline messages
