// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace scalewise::messages {

namespace detail {

/// A line cut at the numbers that count layers in it: texts and numbers take turns, texts first and last.
using CutLine = std::vector<std::string>;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80U;  // of a letter in UTF-8
}

/// Whether digits are a part of a name by themselves, next to one that begins with a letter: "h.0.ln_1" has
/// one such part, "0.5" and "1.2e-5" have none.
constexpr bool counts_layers(std::string_view line, std::size_t begin, std::size_t end,
                             std::string_view separators) {
  const auto at = [&](std::size_t i) { return i < line.size() ? line[i] : ' '; };
  const auto separates = [&](std::size_t i) { return separators.find(at(i)) != line.npos; };
  const auto in_part = [&](std::size_t i) { return is_letter(at(i)) || is_digit(at(i)); };
  if (in_part(end) || (begin > 0 && in_part(begin - 1))) return false;
  if (separates(end) && is_letter(at(end + 1))) return true;
  if (begin == 0 || !separates(begin - 1)) return false;
  std::size_t before = begin - 1;
  while (before > 0 && in_part(before - 1)) --before;
  return is_letter(at(before));
}

inline CutLine cut_at_layers(std::string_view line) {
  const std::size_t name = line.find(": ");
  CutLine cut{""};
  for (std::size_t i = 0; i < line.size();) {
    std::size_t end = i;
    while (end < line.size() && is_digit(line[end])) ++end;
    if (end > i && counts_layers(line, i, end, i < name ? "./" : ".")) {
      cut.emplace_back(line.substr(i, end - i));
      cut.emplace_back("");
    } else {
      if (end == i) ++end;
      cut.back() += line.substr(i, end - i);
    }
    i = end;
  }
  return cut;
}

/// "0-11", or "3, 7, 9-11": in the order of numbers, whatever that of the lines.
inline std::string in_runs(std::vector<std::string> numbers) {
  std::sort(numbers.begin(), numbers.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  const auto follows = [](const std::string& next, const std::string& number) {
    return next.size() < 10 && number.size() < 10 && std::stol(next) == std::stol(number) + 1;
  };
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < numbers.size() && follows(numbers[i + 1], numbers[i])) ++i;
    text += (text.empty() ? "" : ", ") + numbers[first];
    if (i > first) text += "-" + numbers[i];
  }
  return text;
}

/// "(12 tensors)", and which where they are not the first ones.
/// Requires: the numbers that the only star of the name stands for, or none.
inline std::string count_text(std::size_t count, const std::vector<std::string>& numbers) {
  const std::string runs = in_runs(numbers);
  const bool first_ones = runs == "0-" + std::to_string(count - 1);
  return " (" + std::to_string(count) + " tensors" +
         (runs.empty() || first_ones ? "" : ", * = " + runs) + ")";
}

/// One line for lines that differ in numbers of layers alone. A number that all of them share stays.
inline std::string as_one(const std::vector<CutLine>& lines) {
  std::string text;
  std::size_t name = std::string::npos;  // where it ends
  std::vector<std::string> numbers;      // of its only star
  bool has_star = false;
  for (std::size_t i = 0; i < lines.front().size(); ++i) {
    const std::string& piece = lines.front()[i];
    if (name == std::string::npos && piece.find(": ") != std::string::npos) {
      name = text.size() + piece.find(": ");
    }
    bool shared = true;
    for (const CutLine& line : lines) shared = shared && line[i] == piece;
    text += shared ? piece : "*";
    if (shared || name != std::string::npos) continue;
    numbers.clear();
    if (std::exchange(has_star, true)) continue;
    for (const CutLine& line : lines) numbers.push_back(line[i]);
  }
  if (lines.size() == 1) return text;
  return text.insert(name == std::string::npos ? text.size() : name,
                     count_text(lines.size(), numbers));
}

}  // namespace detail

/// Messages about tensors, "name: text", with those that differ in the layer alone as one, in the order of
/// the first of each.
///
///     layer.*.query (12 tensors): rate = 0.01: expected 0.005
///     layer.*.key (3 tensors, * = 2, 7, 8): not in the optimizer
///
/// Equation: a number between dots of a name, and slashes before the colon, becomes a star where it differs, in
///           the text as well; a line like no other stays as it is
inline std::vector<std::string> folded(const std::vector<std::string>& lines) {
  std::map<std::string, std::size_t> known;
  std::vector<std::vector<detail::CutLine>> groups;
  for (const std::string& line : lines) {
    detail::CutLine cut = detail::cut_at_layers(line);
    std::string key;
    for (std::size_t i = 0; i < cut.size(); ++i) key += i % 2 == 0 ? cut[i] : "\n";
    const auto [at, is_new] = known.emplace(std::move(key), groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(std::move(cut));
  }
  std::vector<std::string> result;
  result.reserve(groups.size());
  for (const auto& group : groups) result.push_back(detail::as_one(group));
  return result;
}

}  // namespace scalewise::messages
