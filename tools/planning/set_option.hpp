// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The option --set key=value of the programs.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "scalewise/architecture/shape_fields.hpp"
#include "scalewise/policy/policy_view.hpp"

namespace scalewise::tools {

inline double number_of(const std::string& key, const std::string& text) {
  if (text == "true") return 1;
  if (text == "false") return 0;
  // std::from_chars reads no doubles in libc++ 14. strtod takes more than numbers in decimal.
  const bool decimal = text.find_first_not_of("+-.0123456789eE") == std::string::npos;
  char* stop = nullptr;
  const double value = std::strtod(text.c_str(), &stop);
  if (!decimal || text.empty() || *stop != 0) throw InvalidInput(key, text, "a number");
  return value;
}

/// A field of the shape, of the base with the prefix "base.", or a parameter: those are returned.
/// Throws:   InvalidInput; `base_hint` says how to give a base when there is none.
inline std::vector<Parameter> apply_settings(const std::vector<std::string>& settings,
                                             Shape& target, std::optional<Shape>& base,
                                             const std::string& base_hint) {
  std::vector<Parameter> parameters;
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos)
      throw InvalidInput("--set", setting, "key=value", "for example --set d_ff=11008");
    const std::string key = setting.substr(0, equals);
    const std::string value = setting.substr(equals + 1);
    if (key.starts_with("base.")) {
      if (!base) throw InvalidInput("--set", setting, "a base", base_hint);
      if (!set_field(*base, key.substr(5), value)) {
        throw InvalidInput("--set", key, "a field of a shape after \"base.\"",
                           did_you_mean(key.substr(5), shape_fields()));
      }
    } else if (!set_field(target, key, value)) {
      parameters.push_back({key, number_of(key, value)});
    }
  }
  return parameters;
}

}  // namespace scalewise::tools
