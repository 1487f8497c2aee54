// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/dialect/named_plan.hpp"

namespace scalewise::inline io {

/// Tensors that an optimizer treats alike, by patterns of their names.
struct PatternGroup {
  dialect::TensorFactors factors;
  std::vector<std::string> patterns;
  std::size_t tensors = 0;
};

/// How a configuration writes patterns.
enum class PatternStyle {
  regex,  // of the whole name: "^h\.\d+\.ln_1\.weight$"
  glob,   // of fnmatch: "h.*.ln_1.weight"
};

/// A name as a pattern, that of any layer where asked for.
inline std::string name_pattern(std::string_view name, PatternStyle style, bool any_number) {
  const bool regex = style == PatternStyle::regex;
  std::string text = regex ? "^" : "";
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool digit = c >= '0' && c <= '9';
    // A number that is a part of the name by itself, not "ln_1" or "fc2".
    const bool begins = digit && (i == 0 || name[i - 1] == '.' || name[i - 1] == '/');
    std::size_t end = i;
    while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
    if (any_number && begins && (end == name.size() || name[end] == '.' || name[end] == '/')) {
      text += regex ? "\\d+" : "*";
      i = end - 1;
      continue;
    }
    const bool plain = digit || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       static_cast<unsigned char>(c) >= 0x80;  // of a letter in UTF-8
    if (!plain && regex && c != '/') text += '\\';
    text += c;
  }
  return text + (regex ? "$" : "");
}

/// Whether a glob that name_pattern() wrote matches a name; its stars match dots too.
/// Time:     the product of the lengths at most: a star takes more only where what follows it did not fit
inline bool glob_matches(std::string_view glob, std::string_view name) {
  std::size_t at = 0, in_name = 0;
  std::size_t star = std::string_view::npos, taken = 0;  // the last star, and where its text ends
  while (in_name < name.size()) {
    if (at < glob.size() && glob[at] == '*') {
      star = at++;
      taken = in_name;
    } else if (at < glob.size() && glob[at] == name[in_name]) {
      ++at;
      ++in_name;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in_name = ++taken;
    } else {
      return false;
    }
  }
  while (at < glob.size() && glob[at] == '*') ++at;
  return at == glob.size();
}

/// The groups of an optimizer, in the order of their first tensor. Names that differ in the layer share
/// a pattern where all names that it matches are in one group.
inline std::vector<PatternGroup> pattern_groups(const dialect::NamedPlan& named,
                                                PatternStyle style) {
  const auto& tensors = named.assignment.tensors;
  const auto any = [&](std::size_t i) { return name_pattern(tensors[i].name, style, true); };
  std::map<std::string, bool> shared;  // whether all tensors of a pattern have the same factors
  std::map<std::string, std::size_t> first;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto [at, is_first] = first.emplace(any(i), i);
    const bool same = named.factors[at->second].same(named.factors[i]);
    shared[at->first] = (is_first || shared[at->first]) && same;
  }
  if (style ==
      PatternStyle::glob) {  // "layer.*.output" is found in "layer.0.attention.output", too
    for (auto& [pattern, is_shared] : shared) {
      if (pattern.find('*') == std::string::npos) continue;
      for (std::size_t i = 0; i < tensors.size() && is_shared; ++i) {
        is_shared = named.factors[first[pattern]].same(named.factors[i]) ||
                    !glob_matches(pattern, tensors[i].name);
      }
    }
  }
  std::vector<PatternGroup> groups;
  std::map<std::string, bool> written;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    PatternGroup* group = nullptr;
    for (PatternGroup& known : groups) {
      if (known.factors.same(named.factors[i])) group = &known;
    }
    if (group == nullptr) group = &groups.emplace_back(PatternGroup{named.factors[i], {}, 0});
    ++group->tensors;
    const std::string pattern =
        shared[any(i)] ? any(i) : name_pattern(tensors[i].name, style, false);
    if (!std::exchange(written[pattern], true)) group->patterns.push_back(pattern);
  }
  return groups;
}

}  // namespace scalewise::inline io
