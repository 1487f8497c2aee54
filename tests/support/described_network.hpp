// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A model that is known by its tensors alone, and records of it as its plan says.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/check.hpp"
#include "scalewise/scalewise.hpp"

namespace scalewise::test::described_network {

using check::Signal;

/// A network with a router, which has a fixed number of outputs in the middle. Its block has a name as in a stack of layers.
inline ModelDescription network(long width) {
  using enum TensorKind;
  return {{{"embed", embedding, "io", {50, width}},
           {"decoder.0.norm.weight", gain, "o", {width}},
           {"decoder.0.router", linear, "oi", {4, width}},
           {"decoder.0.up", linear, "eoi", {4, 2 * width, width}},
           {"decoder.0.down", linear, "eoi", {4, width, 2 * width}},
           {"head", linear, "oi", {50, width}},
           {"head_bias", bias, "o", {50}}}};
}

using Roles = std::vector<architecture::RoleOverride>;

inline std::vector<check::Member> family_of(const Optimizer& optimizer, const Roles& roles = {},
                                            bool folded = true) {
  std::vector<check::Member> family;
  for (const long width : {32L, 64L, 128L}) {
    const DescribedModel model = from_descriptions(network(width), network(16), roles);
    Plan plan = make_plan(MaximalUpdate{}, {.model = model.shape,
                                            .base = model.base,
                                            .optimizer = optimizer,
                                            .extras = model.tensors});
    family.push_back({width, folded ? fold(plan).plan : plan});
  }
  return family;
}

/// Exponents of the width by quantity and step.
using Slopes = std::map<std::pair<Signal, std::string>, std::map<long, double>>;

/// From Table 8 of maximal update with the head's multiplier 1/n in its weights, by hand: activations begin with order
/// one and change by order one; the logits begin with n (1/n) n^(-1/2) and change by order one; gradients below the head
/// are 1/n of that of the logits.
inline Slopes as_planned() {
  Slopes all;
  const auto tensor = [&](const std::string& name, double size, double gradient, double update) {
    all[{Signal::parameter, name}][0] = size;
    all[{Signal::gradient, name}][0] = gradient;
    all[{Signal::update, name}] = {{1, update}, {2, update}};
  };
  tensor("embed", 0, -1, 0);
  tensor("decoder.0.norm.weight", 0, -1, 0);
  tensor("decoder.0.router", -1, -0.3, -1);
  tensor("decoder.0.up", -0.5, -1, -1);
  tensor("decoder.0.down", -0.5, -1, -1);
  tensor("head", -1, 0, -1);
  all[{Signal::gradient, "head_bias"}][0] = 0;
  all[{Signal::update, "head_bias"}] = {{1, 0}, {2, 0}};
  for (const char* name : {"embed", "decoder.0.norm.weight", "decoder.0.up"}) {
    all[{Signal::value, name}] = {{0, 0}, {1, 0}, {2, 0}};
    all[{Signal::change, name}] = {{1, 0}, {2, 0}};
  }
  all[{Signal::value, "decoder.0.router"}] = {{0, -0.5}, {1, -0.5}, {2, -0.5}};
  all[{Signal::change, "decoder.0.router"}] = {{1, -0.4}, {2, -0.4}};
  all[{Signal::value, "logits"}] = {{0, -0.5}, {1, -0.5}, {2, -0.4}};
  all[{Signal::change, "logits"}] = {{1, -0.1}, {2, 0}};
  all[{Signal::gradient, "logits"}][0] = 0;
  return all;
}

inline check::Records records_of(const Slopes& slopes, const std::vector<check::Member>& family) {
  check::Records records;
  for (const auto& [quantity, steps] : slopes) {
    const auto& [signal, name] = quantity;
    for (const auto& [step, slope] : steps) {
      for (const check::Member& member : family) {
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          const double noise = 1 + 0.01 * std::sin(static_cast<double>(member.size) +
                                                   13.0 * static_cast<double>(seed + name.size()));
          // What steps add adds up.
          const double factor = signal == Signal::change ? 0.1 * static_cast<double>(step) : 1;
          const double size = factor * noise * std::pow(static_cast<double>(member.size), slope);
          check::Moments moments;
          moments.sum_abs = size;
          moments.sum_squares = size * size;
          moments.count = 1;
          records.add({signal, name}, step, {member.size, seed}, moments);
        }
      }
    }
  }
  return records;
}

inline check::Report report(const Slopes& slopes, const std::vector<check::Member>& family) {
  return check::coordinate_check(records_of(slopes, family), family);
}

}  // namespace scalewise::test::described_network
