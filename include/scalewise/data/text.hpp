// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scalewise/files/read_file.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::data {

/// A file as tokens: every byte, 0 to 255, is one. The vocabulary has 256 entries.
/// Throws:   InvalidInput when the file is missing, cannot be read, is empty, or larger than 1 GiB.
inline std::vector<int> read_byte_tokens(const std::string& path) {
  constexpr std::size_t limit = std::size_t{1} << 30U;
  const std::string text = files::read_file(path, limit);
  if (text.empty()) throw InvalidInput(path, "(empty)", "a file of at least one byte");
  std::vector<int> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

/// Tokens to train on and tokens to measure on.
struct TokenSplit {
  std::vector<int> train;
  std::vector<int> validation;
};

/// Keeps the last part of a text for validation.
/// Equation: validation = floor(`validation` times the number of tokens)
/// Throws:   InvalidInput for a fraction outside (0, 1), and when a part has fewer than the two
///           tokens that make one prediction.
inline TokenSplit split_tokens(const std::vector<int>& tokens, double validation = 0.1) {
  if (!(validation > 0 && validation < 1)) {
    throw InvalidInput("validation", numeric::number_text(validation),
                       "a fraction between 0 and 1");
  }
  const auto last = static_cast<std::size_t>(validation * static_cast<double>(tokens.size()));
  if (last < 2 || tokens.size() - last < 2) {
    throw InvalidInput("tokens", std::to_string(tokens.size()),
                       "enough for two tokens in either part",
                       "validation = " + numeric::number_text(validation));
  }
  const auto border = tokens.end() - static_cast<std::ptrdiff_t>(last);
  return {{tokens.begin(), border}, {border, tokens.end()}};
}

}  // namespace scalewise::data
