// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/files/bytes.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::files {

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

/// Inputs as binary files have them: how many, then name and value of each.
inline void write_inputs(ByteWriter& bytes, const Inputs& inputs) {
  bytes.number(static_cast<std::uint64_t>(inputs.size()));
  for (const Setting& input : inputs) {
    bytes.text(input.name);
    bytes.text(input.value);
  }
}

/// Turns the reader bad where write_inputs() has not written.
inline Inputs read_inputs(ByteReader& bytes) {
  Inputs inputs;
  for (auto count = bytes.number<std::uint64_t>(); count > 0 && bytes.good(); --count) {
    std::string name = bytes.text();
    inputs.push_back({std::move(name), bytes.text()});
  }
  return inputs;
}

/// Compares the inputs of this run with those that a file carries.
/// Throws:   InvalidInput naming the first input that differs, is missing, or is unknown.
inline void require_same_inputs(
    const Inputs& now, const Inputs& saved, const std::string& path,
    const std::string& hint = "use another file or folder for another experiment") {
  const auto find = [](const Inputs& inputs, const std::string& name) {
    const auto found = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const Setting& input) { return input.name == name; });
    return found == inputs.end() ? nullptr : &found->value;
  };
  const auto text = [](const std::string* value) {
    return value == nullptr ? std::string("(none)") : messages::printable(*value);
  };
  const auto compare = [&](const std::string& name) {
    const std::string* here = find(now, name);
    const std::string* there = find(saved, name);
    if ((here == nullptr) == (there == nullptr) && (here == nullptr || *here == *there)) return;
    throw InvalidInput(name, text(here), text(there) + ", as in " + path, hint);
  };
  for (const Setting& input : now) compare(input.name);
  for (const Setting& input : saved) compare(input.name);
  if (now != saved) {
    throw InvalidInput(path, "(other inputs)", "the inputs of this run, in their order", hint);
  }
}

}  // namespace scalewise::files
