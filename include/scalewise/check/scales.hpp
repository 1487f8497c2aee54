// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "scalewise/check/band.hpp"
#include "scalewise/check/quantity.hpp"
#include "scalewise/plan/check_plan.hpp"

namespace scalewise::check {

/// With which powers of the size a group's row of the table goes.
/// Units:    exponents
struct GroupExponents {
  bool present = false;
  Band multiplier, deviation, mean, rate;
  double fan_in = 0, fan_out = 0;
  Normalization normalization = Normalization::none;  // of its optimizer
};

/// The rule's table as powers of one size, read from the plans of a family of models.
/// Units:    exponents
struct Scales {
  std::array<GroupExponents, group_count> groups;
  std::map<std::string, GroupExponents> tensors;  // by their names without the layer
  double width = 0;                               // 1 along the width, 0 along the depth
  double layers = 0;                              // 1 along the depth, 0 along the width
  double head_dim = 0;
  double queries_per_key = 0;  // heads that share keys and values
  double first_branch = 1;     // multiplier of a branch of the smallest model
  Band attention_scale, skip, branch, logit_multiplier, embedding_multiplier;

  const GroupExponents& of(Group group) const { return groups[static_cast<std::size_t>(group)]; }
  GroupExponents& of(Group group) { return groups[static_cast<std::size_t>(group)]; }
};

/// A model of a family, with the size that it is known by.
struct Member {
  long size = 0;
  Plan plan;
};

namespace detail {

/// Sum of logarithms, and whether any of the numbers is zero.
struct LogSum {
  double sum = 0;
  long count = 0;
  bool zero = false;

  void add(double value) {
    if (value == 0) zero = true;
    if (value != 0) sum += std::log(std::abs(value));
    ++count;
  }
  double mean() const { return sum / static_cast<double>(count); }
};

}  // namespace detail

/// The powers between the smallest and the largest of a family. What differs between layers counts
/// with its geometric mean.
/// Equation: log(a_last / a_first) / log(size_last / size_first)
/// Accuracy: exact for what is a power of the size.
/// Requires: plans of one rule, smallest size first.
/// Throws:   InvalidInput for fewer than two, and for a plan that check_plan() refuses.
inline Scales scales_of(const std::vector<Member>& family) {
  if (family.size() < 2) {
    throw InvalidInput("family", std::to_string(family.size()) + " models", "at least two sizes");
  }
  for (const Member& member : family)
    check_plan(member.plan, "plan of " + std::to_string(member.size));
  const Plan& smallest = family.front().plan;
  const Plan& largest = family.back().plan;
  const double log_ratio =
      std::log(static_cast<double>(family.back().size) / static_cast<double>(family.front().size));
  const auto slope = [&](const detail::LogSum& a, const detail::LogSum& b) {
    if (a.zero || b.zero) return Band::zero();
    const double power = (b.mean() - a.mean()) / log_ratio;
    return Band(std::round(power * 1e9) / 1e9);  // rounding errors are no growth
  };
  const auto power = [&](double a, double b) {
    detail::LogSum x;
    detail::LogSum y;
    x.add(a);
    y.add(b);
    return slope(x, y);
  };

  Scales scales;
  const auto growth = [&](long Shape::*field) {
    return power(static_cast<double>(smallest.shape.*field),
                 static_cast<double>(largest.shape.*field))
        .low;
  };
  scales.width = growth(&Shape::d_model);
  scales.layers = growth(&Shape::depth);
  scales.head_dim = growth(&Shape::head_dim);
  scales.queries_per_key = growth(&Shape::heads) - growth(&Shape::kv_heads);
  // Of the entries that are asked for, as one.
  const auto exponents = [&](const auto& wanted) {
    const auto sums = [&](const Plan& plan) {
      std::array<detail::LogSum, 6> all;
      for (const Entry& entry : plan.entries) {
        if (!wanted(entry)) continue;
        all[0].add(entry.multiplier.value);
        all[1].add(std::sqrt(entry.init_variance.value));
        all[2].add(entry.init_mean.value);
        all[3].add(entry.learning_rate.value);
        all[4].add(entry.fan_in);
        all[5].add(entry.fan_out);
      }
      return all;
    };
    const auto a = sums(smallest);
    const auto b = sums(largest);
    if (a[0].count == 0 || b[0].count == 0) return GroupExponents{};
    const auto first = std::find_if(smallest.entries.begin(), smallest.entries.end(), wanted);
    return GroupExponents{true,
                          slope(a[0], b[0]),
                          slope(a[1], b[1]),
                          slope(a[2], b[2]),
                          slope(a[3], b[3]),
                          slope(a[4], b[4]).low,
                          slope(a[5], b[5]).low,
                          first->optimizer.normalization};
  };
  for (std::size_t g = 0; g < group_count; ++g) {
    scales.groups[g] =
        exponents([&](const Entry& entry) { return entry.group == static_cast<Group>(g); });
  }
  for (const Entry& entry : smallest.entries) {
    const std::string name = role_name(entry.name);
    if (scales.tensors.contains(name)) continue;
    scales.tensors[name] =
        exponents([&](const Entry& other) { return role_name(other.name) == name; });
  }
  const auto residual = [&](const Number<Kind::multiplier> Residual::*member) {
    const auto sum = [&](const Plan& plan) {
      detail::LogSum all;
      for (const Residual& r : plan.model.residuals) all.add((r.*member).value);
      return all;
    };
    return slope(sum(smallest), sum(largest));
  };
  scales.skip = residual(&Residual::skip);
  scales.branch = residual(&Residual::branch);
  if (!smallest.model.residuals.empty()) {
    scales.first_branch = smallest.model.residuals.front().branch.value;
  }
  const auto of_model = [&](const Number<Kind::multiplier> Model::*member) {
    return power((smallest.model.*member).value, (largest.model.*member).value);
  };
  scales.attention_scale = of_model(&Model::attention_scale);
  scales.logit_multiplier = of_model(&Model::logit_multiplier);
  scales.embedding_multiplier = of_model(&Model::embedding_multiplier);
  return scales;
}

}  // namespace scalewise::check
