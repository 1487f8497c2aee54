// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Numbers in options and files.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/exact_text.hpp"

namespace scalewise::train {

/// The number that a whole text stands for.
/// Throws:   InvalidInput for another text, and for a number outside [least, most] (NaN is).
template <class Number>
Number number_of(const std::string& field, std::string_view text, Number least, Number most,
                 const std::string& expectation) {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value >= least && value <= most)) {
    throw InvalidInput(field, text.empty() ? "(empty)" : messages::printable(text), expectation);
  }
  return value;
}

}  // namespace scalewise::train
