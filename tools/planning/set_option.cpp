// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "planning/set_option.hpp"

#include <cstdlib>
#include <sstream>
#include <string_view>

#include "scalewise/architecture/shape_fields.hpp"

namespace scalewise::tools {

double number_of(const std::string& key, const std::string& text) {
  if (text == "true") return 1;
  if (text == "false") return 0;
  // std::from_chars reads no doubles in libc++ 14. strtod takes more than numbers in decimal.
  const bool decimal = text.find_first_not_of("+-.0123456789eE") == std::string::npos;
  char* stop = nullptr;
  const double value = std::strtod(text.c_str(), &stop);
  if (!decimal || text.empty() || *stop != 0) throw InvalidInput(key, text, "a number");
  return value;
}

std::vector<Parameter> constants_of(const std::vector<std::string>& lists,
                                    const std::string& option, const std::string& example) {
  const std::string hint = "such as " + option + " " + example;
  std::vector<Parameter> constants;
  for (const std::string& list : lists) {
    std::istringstream words(list + ",");
    for (std::string word; std::getline(words, word, ',');) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) {
        throw InvalidInput(option, word.empty() ? "(empty)" : word, "NAME=FACTOR", hint);
      }
      const std::string name = word.substr(0, equals);
      constants.push_back({name, number_of(name, word.substr(equals + 1))});
    }
  }
  return constants;
}

bool is_of_base(const std::string& setting) { return setting.starts_with("base."); }

std::vector<Parameter> set_target(const std::vector<std::string>& settings, Shape& target) {
  std::vector<Parameter> parameters;
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos)
      throw InvalidInput("--set", setting, "key=value", "for example --set d_ff=11008");
    if (is_of_base(setting)) continue;
    const std::string key = setting.substr(0, equals);
    const std::string value = setting.substr(equals + 1);
    if (!architecture::set_field(target, key, value))
      parameters.push_back({key, number_of(key, value)});
  }
  return parameters;
}

void set_base(const std::vector<std::string>& settings, std::optional<Shape>& base,
              const std::string& base_hint) {
  for (const std::string& setting : settings) {
    if (!is_of_base(setting)) continue;
    if (!base) throw InvalidInput("--set", setting, "a base", base_hint);
    const std::size_t equals = setting.find('=');
    const std::string field = setting.substr(5, equals - 5);
    if (architecture::set_field(*base, field, setting.substr(equals + 1))) continue;
    throw InvalidInput("--set", "base." + field, "a field of a shape after \"base.\"",
                       messages::did_you_mean(field, architecture::shape_fields()));
  }
}

std::vector<std::string> without_effect(const std::vector<std::string>& settings,
                                        const Plan& plan) {
  std::vector<std::string> lines;
  const auto compare = [&](const std::string& prefix, Shape has) {
    if (has.blocks == Blocks::normalized) has.norm_gain = has.norm_bias = has.final_norm = false;
    if (has.blocks == Blocks::shallow_encoder)
      architecture::for_each_flag(has, [](const char*, auto& flag) { flag = false; });
    Shape asked = has;
    for (const std::string& setting : settings) {
      if (!setting.starts_with(prefix)) continue;
      const std::size_t equals = setting.find('='), begin = prefix.size();
      architecture::set_field(asked, setting.substr(begin, equals - begin),
                              setting.substr(equals + 1));
    }
    std::vector<std::string> wanted;
    architecture::for_each_field(asked, [&](std::string_view, const auto& field) {
      wanted.push_back(architecture::field_text(field));
    });
    std::size_t at = 0;
    architecture::for_each_field(has, [&](std::string_view name, const auto& field) {
      const std::string text = architecture::field_text(field);
      const std::string& other = wanted[at++];
      if (text == other) return;
      const std::string key = prefix + std::string(name);
      lines.push_back(plan.rule + " has " + key + " = " + text + ": --set " + key + "=" + other +
                      " changes nothing");
    });
  };
  compare("", plan.shape);
  if (plan.base) compare("base.", *plan.base);
  return lines;
}

}  // namespace scalewise::tools
