// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The same rule at several sizes, as predictions see it.
#pragma once

#include <string>
#include <vector>

#include "scalewise/check/prediction.hpp"
#include "scalewise/plan/make_plan.hpp"

namespace scalewise::test {

inline Shape shape_of(long width, long depth, long heads) {
  Shape s{.d_model = width, .depth = depth, .heads = heads, .context = 32, .vocab = 256};
  s.tied_head = false;
  return s;
}

inline std::vector<check::Member> widths(const std::string& rule, Optimizer optimizer = adamw,
                                         const std::vector<Parameter>& parameters = {},
                                         long head_dim = 16) {
  std::vector<check::Member> family;
  const auto shape = [&](long n) { return shape_of(n, 2, head_dim > 0 ? n / head_dim : 4); };
  for (const long n : {64L, 256L, 1024L}) {
    family.push_back({n, make_plan(rule, {.model = shape(n),
                                          .base = shape(64),
                                          .optimizer = optimizer,
                                          .parameters = parameters})});
  }
  return family;
}

inline std::vector<check::Member> depths(const std::string& rule,
                                         const std::vector<Parameter>& parameters = {}) {
  std::vector<check::Member> family;
  for (const long depth : {2L, 8L, 32L}) {
    family.push_back({depth, make_plan(rule, {.model = shape_of(64, depth, 4),
                                              .base = shape_of(64, 2, 4),
                                              .parameters = parameters})});
  }
  return family;
}

inline check::Prediction predict(const std::vector<check::Member>& family,
                                 const check::Assumptions& assumptions = {}) {
  return {check::scales_of(family), family.front().plan.shape, assumptions};
}

inline std::vector<check::Member> tied(const std::string& rule, Optimizer optimizer) {
  std::vector<check::Member> family;
  for (const long n : {64L, 256L, 1024L}) {
    Shape shape = shape_of(n, 2, n / 16);
    Shape base = shape_of(64, 2, 4);
    shape.tied_head = base.tied_head = true;
    family.push_back({n, make_plan(rule, {.model = shape, .base = base, .optimizer = optimizer})});
  }
  return family;
}

}  // namespace scalewise::test
