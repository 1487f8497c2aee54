// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Edits of JSON that keep it valid.

#pragma once

#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"

namespace scalewise::fuzz {

/// Values at which programs fail.
inline const std::string& hostile_json(Random& random) {
  static const std::vector<std::string> all{"0",
                                            "1",
                                            "-1",
                                            "2",
                                            "3",
                                            "7",
                                            "64",
                                            "100000",
                                            "1073741824",
                                            "1073741825",
                                            "2147483648",
                                            "9223372036854775807",
                                            "-9223372036854775808",
                                            "18446744073709551615",
                                            "0.5",
                                            "-0.0",
                                            "1e-320",
                                            "5e-324",
                                            "1e308",
                                            "-1e308",
                                            "1.7976931348623157e308",
                                            "1e-300",
                                            "null",
                                            "true",
                                            "false",
                                            "\"\"",
                                            "\"a\\nb\"",
                                            "\"\\u0000\"",
                                            "\"\xC2\xB5\"",
                                            "[]",
                                            "{}",
                                            "[[]]",
                                            "{\"a\":1}"};
  return all[below(all.size(), random)];
}

/// One value of a JSON text replaced, taken away or given another name.
inline std::string edited_json(const std::string& text, Random& random) {
  nlohmann::ordered_json root = nlohmann::ordered_json::parse(text, nullptr, false);
  if (root.is_discarded()) return text;
  nlohmann::ordered_json* node = &root;
  while (node->is_structured() && !node->empty()) {
    const auto at = static_cast<int>(below(node->size(), random));
    const auto item = std::next(node->begin(), at);
    const std::size_t choice = below(8, random);
    if (choice == 0) {
      node->erase(item);
      break;
    }
    if (choice == 1 && node->is_object()) {
      (*node)[item.key() + "_"] = *item;
      break;
    }
    node = &*item;
    if (choice == 2) break;
  }
  *node = nlohmann::ordered_json::parse(hostile_json(random));
  return root.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace scalewise::fuzz
