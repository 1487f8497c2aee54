// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>

namespace scalewise {

/// What every function of the library throws on bad input: one message that names the field, the
/// value it had, what was expected, and what to do about it.
class InvalidInput : public std::invalid_argument {
 public:
  InvalidInput(const std::string& field, const std::string& value, const std::string& expectation,
               const std::string& hint = {})
      : std::invalid_argument(field + " = " + value + ": expected " + expectation +
                              (hint.empty() ? "" : " (hint: " + hint + ")")),
        field_(field) {}

  /// The field at fault, as the user wrote it.
  const std::string& field() const noexcept { return field_; }

 private:
  std::string field_;
};

}  // namespace scalewise
