// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "scalewise/core/error.hpp"
#include "scalewise/io/bytes.hpp"

namespace scalewise {

/// One thing that a result depends on: an option and its value, or data and their fingerprint.
struct Setting {
  std::string name;
  std::string value;

  friend bool operator==(const Setting&, const Setting&) = default;
};

/// Everything that a stored result depends on. Files that hold results carry it.
using Inputs = std::vector<Setting>;

/// Sixteen hexadecimal digits that stand for the inputs, in their order.
inline std::string fingerprint(const Inputs& inputs) {
  ByteWriter bytes;
  for (const Setting& input : inputs) {
    bytes.text(input.name);
    bytes.text(input.value);
  }
  return fingerprint(bytes.bytes());
}

/// Compares the inputs of this run with those that a file carries.
/// Throws:   InvalidInput naming the first input that differs, is missing, or is unknown.
inline void require_same_inputs(const Inputs& now, const Inputs& saved, const std::string& path) {
  const auto find = [](const Inputs& inputs, const std::string& name) {
    const auto found = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const Setting& input) { return input.name == name; });
    return found == inputs.end() ? nullptr : &found->value;
  };
  const auto text = [](const std::string* value) {
    return value == nullptr ? std::string("(none)") : printable(*value);
  };
  const auto compare = [&](const std::string& name) {
    const std::string* here = find(now, name);
    const std::string* there = find(saved, name);
    if ((here == nullptr) == (there == nullptr) && (here == nullptr || *here == *there)) return;
    throw InvalidInput(name, text(here), text(there) + ", as in " + path,
                       "use another file or folder for another experiment");
  };
  for (const Setting& input : now) compare(input.name);
  for (const Setting& input : saved) compare(input.name);
  if (now != saved) {
    throw InvalidInput(path, "(other inputs)", "the inputs of this run, in their order",
                       "use another file or folder for another experiment");
  }
}

}  // namespace scalewise
