// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "scalewise/messages/utf8.hpp"
#include "scalewise/messages/version.hpp"

namespace scalewise {

namespace messages::detail {

/// "width = 0", or "width (missing)" where the value only says in parentheses what is wrong with it.
inline std::string field_and_value(const std::string& field, const std::string& value) {
  const bool aside = value.starts_with('(') && value.ends_with(')');
  return field + (aside ? " " : " = ") + value;
}

}  // namespace messages::detail

/// Thrown by every function of the library on bad input, with one message that names the field, the
/// value it had, what was expected, and what to do about it. It is one line, whatever is in a value.
class SCALEWISE_VISIBLE InvalidInput : public std::invalid_argument {
 public:
  /// A value in parentheses, such as (missing), stands for what cannot be shown.
  InvalidInput(const std::string& field, const std::string& value, const std::string& expectation,
               const std::string& hint = {})
      : InvalidInput(field, messages::detail::field_and_value(field, value) + ": expected " +
                                expectation + (hint.empty() ? "" : " (hint: " + hint + ")")) {}

  /// "cannot open runs.jsonl: no such file".
  static InvalidInput cannot(const std::string& act, const std::string& path,
                             const std::string& reason) {
    return {path, "cannot " + act + " " + path + ": " + reason};
  }

  /// The field at fault, as the user wrote it.
  const std::string& field() const noexcept { return field_; }

 private:
  InvalidInput(const std::string& field, const std::string& message)
      : std::invalid_argument(messages::visible_text(message)), field_(field) {}

  std::string field_;
};

namespace messages {

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

}  // namespace messages

}  // namespace scalewise
