// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "scalewise/policy/rule.hpp"

namespace scalewise::test {

/// A rule with what it has to be told of a run: DeepScaleLM's dropout, and the correlation of its input.
inline Rule told(const Rule& rule) {
  std::vector<Parameter> missing;
  for (const std::string& name : rule.to_give) {
    missing.push_back({name, name == "dropout" ? 0.1 : 0.221});
  }
  return rule.with(missing);
}

}  // namespace scalewise::test
