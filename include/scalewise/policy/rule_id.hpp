// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The ids of rules, and the other names that people know rules by.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/policy/all.hpp"

namespace scalewise {

namespace policy {

/// Another name of a rule.
struct RuleAlias {
  std::string_view name;
  std::string_view id;
};

/// Other names of rules, as they are compared: in lower case, letters and digits only.
inline constexpr std::array rule_aliases{
    RuleAlias{"sp", "standard"},        RuleAlias{"torch", "pytorch"},
    RuleAlias{"glorot", "xavier"},      RuleAlias{"kaiming", "he"},
    RuleAlias{"ntk", "neural-tangent"}, RuleAlias{"ntp", "neural-tangent"},
    RuleAlias{"mup", "maximal-update"},
};

}  // namespace policy

namespace detail {

/// A name as it is compared: in lower case, Greek letters spelled out, without "-", "_" and spaces.
inline std::string folded(std::string_view name) {
  std::string folded;
  while (!name.empty()) {
    const std::string_view greek = name.substr(0, 2);
    if (greek == "\u03bc" || greek == "\u00b5" || greek == "\u039c") {  // mu, the micro sign, Mu
      folded += "mu";
      name.remove_prefix(2);
    } else if (greek == "\u03bd" || greek == "\u039d") {
      folded += "nu";
      name.remove_prefix(2);
    } else {
      const char c = name.front();
      if (c != '-' && c != '_' && c != ' ') {
        folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      }
      name.remove_prefix(1);
    }
  }
  return folded;
}

}  // namespace detail

namespace policy {

/// The ids of all shipped rules, in the order of the docs.
inline std::vector<std::string> rule_ids() {
  std::vector<std::string> ids;
  for_each_policy([&]<class P>() { ids.emplace_back(P::id); });
  return ids;
}

/// The id of a rule by any of its names: an id in any case, with or without hyphens, or an alias, such
/// as "mup" or "μP" for maximal-update.
/// Throws:   InvalidInput, naming the field, for a name of no rule.
inline std::string rule_id(std::string_view name, const std::string& field = "rule") {
  const std::string folded = detail::folded(name);
  messages::Nearest known(name);
  for (const std::string& id : rule_ids()) {
    if (folded == detail::folded(id)) return id;
    known.offer(id);
  }
  for (const RuleAlias& alias : rule_aliases) {
    if (folded == alias.name) return std::string(alias.id);
  }
  throw InvalidInput(field, name.empty() ? "(empty)" : messages::printable(name),
                     "the id of a rule",
                     known.empty() ? "plan --list-rules prints them" : known.hint());
}

}  // namespace policy

}  // namespace scalewise
