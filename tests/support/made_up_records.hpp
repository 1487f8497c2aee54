// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Records of a coordinate check that are made up, with slopes that are known.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scalewise/check/coordinate_check.hpp"
#include "scalewise/numeric/random.hpp"
#include "scalewise/plan/make_plan.hpp"

namespace scalewise::test {

using namespace scalewise::check;

inline Shape shape_of(long width) {
  Shape s{.d_model = width, .depth = 2, .heads = width / 16, .context = 32, .vocab = 256};
  s.tied_head = false;
  return s;
}

inline constexpr long sizes[] = {64, 128, 256, 512};

inline std::vector<Member> family_of(const std::string& rule) {
  std::vector<Member> family;
  for (const long n : sizes) {
    family.push_back({n, make_plan(rule, {.model = shape_of(n), .base = shape_of(64)})});
  }
  return family;
}

/// Runs whose root mean squares are 3 n^slope with a scatter of so many percent.
inline void add(Records& records, Signal signal, const std::string& name, long step, double slope,
                double scatter = 0.02) {
  numeric::RandomStream stream(1, name + std::to_string(step));
  for (const long n : sizes) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const double rms = slope == -HUGE_VAL ? 0
                                            : 3 * std::pow(static_cast<double>(n), slope) *
                                                  std::exp(scatter * stream.normal());
      records.add({signal, name}, step, {n, seed}, {rms, rms * rms, 1});
    }
  }
}

inline const Judgement& find(const Report& report, Signal signal, const std::string& name,
                             long step) {
  for (const Judgement& j : report.judgements) {
    if (j.curve.quantity == Quantity{signal, name} && j.curve.step == step) return j;
  }
  throw InvalidInput("quantity", name, "one of the report's");
}

/// Records as training under some plans would give at large sizes, from their own prediction: the middle
/// of each band.
inline Records follow(const std::vector<Member>& family, double backward = 0,
                      double scatter = 0.02) {
  const Prediction p(scales_of(family), family.front().plan.shape, {.backward = backward});
  Records records;
  const auto slope = [](const Band& band) {
    return band.is_zero() ? -HUGE_VAL : (band.low + band.high) / 2;
  };
  for (const char* role : {"embedding", "attention.output", "mlp.hidden", "mlp.output", "logits"}) {
    add(records, Signal::value, role, 0, slope(*p.value(role, 0)), scatter);
    add(records, Signal::value, role, 1, slope(*p.value(role, 1)), scatter);
    add(records, Signal::change, role, 1, slope(*p.change(role, 1)), scatter);
  }
  for (const Group group : {Group::token_embedding, Group::query, Group::mlp_down, Group::head}) {
    const std::string name(to_string(group));
    add(records, Signal::parameter, name, 0, slope(p.parameter(name, group)), scatter);
    if (const std::optional<Band> gradient = p.gradient(group, 0))  // nGPT's are not predicted
      add(records, Signal::gradient, name, 0, slope(*gradient), scatter);
    add(records, Signal::update, name, 1, slope(p.update(group, 1)), scatter);
  }
  return records;
}

/// The records with another slope of one quantity.
inline Records with(const Records& records, const Quantity& quantity, long step, double slope) {
  Records changed;
  records.for_each([&](const Quantity& other, long at, const Run& run, const Moments& moments) {
    if (other != quantity || at != step) changed.add(other, at, run, moments);
  });
  add(changed, quantity.signal, quantity.name, step, slope);
  return changed;
}

}  // namespace scalewise::test
