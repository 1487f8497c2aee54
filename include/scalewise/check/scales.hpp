// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/check/band.hpp"
#include "scalewise/check/quantity.hpp"
#include "scalewise/plan/check_plan.hpp"

namespace scalewise::check {

/// With which powers of the size a group's row of the table goes.
/// Units:    exponents
struct GroupExponents {
  bool present = false;
  Group group = Group::query;
  Role role = Role::hidden;
  Band multiplier, deviation, mean;
  Band rate;          // times the optimizer's own factor
  Band planned_rate;  // without it
  double fan_in = 0, fan_out = 0;
  double aspect = 0;  // of the first tensor in the smallest model: its longer side over the shorter
  policy::Normalization normalization = policy::Normalization::none;  // of its optimizer
  bool own_values = false;  // begins as the model itself does

  friend bool operator==(const GroupExponents&, const GroupExponents&) = default;
};

/// The rule's table as powers of one size, read from the plans of a family of models.
/// Units:    exponents
struct Scales {
  std::array<GroupExponents, architecture::group_count> groups;
  std::map<std::string, GroupExponents> tensors;  // by their names without the layer
  double width = 0;                               // 1 along the width, 0 along the depth
  double layers = 0;                              // 1 along the depth, 0 along the width
  double head_dim = 0;
  double queries_per_key = 0;  // heads that share keys and values
  double active_experts = 0;   // for each token
  double first_branch = 1;     // multiplier of a branch of the smallest model
  double token_share = 1;      // of the smallest model's embedding: what tokens add to its variance
  std::string head;            // of a listed model: the tensor that gives its logits
  Band attention_scale, skip, branch, logit_multiplier, embedding_multiplier;

  const GroupExponents& of(Group group) const { return groups[static_cast<std::size_t>(group)]; }
  GroupExponents& of(Group group) { return groups[static_cast<std::size_t>(group)]; }

  friend bool operator==(const Scales&, const Scales&) = default;
};

/// A model of a family, with the size that it is known by.
struct Member {
  long size = 0;
  Plan plan;
  std::string name = {};  // of the plan, such as its file
};

namespace detail {

/// The member of a size, or null.
inline const Member* member_of(const std::vector<Member>& family, long size) {
  for (const Member& member : family) {
    if (member.size == size) return &member;
  }
  return nullptr;
}

/// Gains and biases of norms inside of blocks or after them, which share their groups with those before.
inline bool is_inner_norm(const std::string& place) {
  return place.find("query_norm_") != std::string::npos ||
         place.find("key_norm_") != std::string::npos ||
         place.find("branch_norm_") != std::string::npos;
}

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

/// Entries of a plan that count as one.
struct EntrySums {
  const Entry* first = nullptr;
  LogSum multiplier, deviation, mean, rate, planned_rate, fan_in, fan_out;

  void add(const Entry& entry) {
    if (first == nullptr) first = &entry;
    multiplier.add(entry.multiplier.value);
    deviation.add(std::sqrt(entry.init_variance.value));
    mean.add(entry.init_mean.value);
    planned_rate.add(entry.learning_rate.value);
    rate.add(entry.learning_rate.value *
             policy::own_factor(entry.optimizer, entry.fan_in, entry.fan_out));
    fan_in.add(entry.fan_in);
    fan_out.add(entry.fan_out);
  }
};

/// The entries of a plan, by group and by name without the layer.
struct PlanSums {
  std::array<EntrySums, architecture::group_count> groups;
  std::map<std::string, EntrySums> tensors;

  explicit PlanSums(const Plan& plan) {
    for (const Entry& entry : plan::entries_of_shape(plan)) {
      if (is_inner_norm(place_of(plan.shape, entry.name))) continue;  // not alike those of blocks
      groups[static_cast<std::size_t>(entry.group)].add(entry);
    }
    for (const Entry& entry : plan.entries) tensors[place_of(plan.shape, entry.name)].add(entry);
  }
};

/// The power with which a number goes from one model to another.
class PowerBetween {
 public:
  PowerBetween(const Member& smallest, const Member& largest)
      : log_ratio_(
            std::log(static_cast<double>(largest.size) / static_cast<double>(smallest.size))) {}

  Band operator()(const LogSum& a, const LogSum& b) const {
    if (a.zero || b.zero) return Band::zero();
    const double power = (b.mean() - a.mean()) / log_ratio_;
    return {std::round(power * 1e9) / 1e9};  // rounding errors are not growth
  }

  Band operator()(double a, double b) const {
    LogSum x;
    LogSum y;
    x.add(a);
    y.add(b);
    return (*this)(x, y);
  }

  /// Of the entries that count as one in both; not present where one plan has none.
  GroupExponents operator()(const EntrySums& a, const EntrySums& b) const {
    const PowerBetween& power = *this;
    if (a.first == nullptr || b.first == nullptr) return {};
    const auto [shorter, longer] = std::minmax(a.first->fan_in, a.first->fan_out);
    return {true,
            a.first->group,
            role_of(a.first->group),
            power(a.multiplier, b.multiplier),
            power(a.deviation, b.deviation),
            power(a.mean, b.mean),
            power(a.rate, b.rate),
            power(a.planned_rate, b.planned_rate),
            power(a.fan_in, b.fan_in).low,
            power(a.fan_out, b.fan_out).low,
            longer / shorter,
            a.first->optimizer.normalization,
            a.first->distribution == Distribution::own};
  }

 private:
  double log_ratio_;
};

/// Finds the tensor of a listed model that gives its logits, the last matrix from the width to a fixed number of outputs, or
/// the embedding of a tied head. Its multiplier is that of the logits.
inline void find_head(Scales& scales, const Plan& plan) {
  const bool tied = plan.shape.tied_head.value_or(false);
  for (const Entry& entry : plan.entries) {
    const std::string place = place_of(plan.shape, entry.name);
    const GroupExponents& t = scales.tensors.at(place);
    const bool is_output = architecture::is_matrix(entry.group) && t.fan_in > 0 && t.fan_out == 0;
    const bool is_first = entry.group == Group::token_embedding && scales.head.empty();
    if (tied ? is_first : is_output) scales.head = place;
  }
  if (!tied && !scales.head.empty()) {
    scales.logit_multiplier = scales.tensors.at(scales.head).multiplier;
  }
}

inline void require_one_rule(const std::vector<Member>& family) {
  if (family.size() < 2) {
    throw InvalidInput("family", std::to_string(family.size()) + " models", "at least two sizes");
  }
  long before = 0;
  for (const Member& member : family) {
    const std::string name = "plan of " + std::to_string(member.size);
    if (member.size <= std::exchange(before, member.size))
      throw InvalidInput(name, "(not the next size)", "one plan of each size, the smallest first");
    check_plan(member.plan, name);
    if (member.plan.reference == Reference::base && member.plan.base != family.front().plan.base) {
      throw InvalidInput(name, "another base", "the base of the other sizes",
                         "its variances are factors on those of its base");
    }
    const auto require_same = [&](auto Plan::*field, const char* what, const std::string& value) {
      if (member.plan.*field == family.front().plan.*field) return;
      throw InvalidInput(name, value, std::string(what) + " of the other sizes",
                         "is it a file of another experiment?");
    };
    require_same(&Plan::rule, "the rule", member.plan.rule);
    require_same(&Plan::start, "the start", member.plan.start.empty() ? "none" : member.plan.start);
    require_same(&Plan::parameters, "the parameters", "(others)");
    require_same(&Plan::optimizer, "the optimizer", std::string(member.plan.optimizer.name));
    require_same(&Plan::decay, "the weight decay",
                 std::string(word(policy::decay_words, member.plan.decay)));
    require_same(&Plan::reference, "the reference of variances",
                 std::string(word(policy::reference_words, member.plan.reference)));
  }
}

}  // namespace detail

/// The powers between the smallest and the largest of a family. What differs between layers counts
/// with its geometric mean.
/// Equation: log(a_last / a_first) / log(size_last / size_first)
/// Accuracy: exact for what is a power of the size.
/// Requires: plans of one rule, smallest size first.
/// Throws:   InvalidInput for fewer than two, for a plan that check_plan() refuses, for plans of several rules, optimizers
///           or parameters, and for factors on the variances of different bases, which are not a power of the size.
inline Scales scales_of(const std::vector<Member>& family) {
  detail::require_one_rule(family);
  const Plan& smallest = family.front().plan;
  const Plan& largest = family.back().plan;
  const detail::PowerBetween power(family.front(), family.back());

  Scales scales;
  const auto growth = [&](long Shape::*field) {
    if (smallest.shape.*field == 0) return 0.0;  // a listed model need not say it
    return power(static_cast<double>(smallest.shape.*field),
                 static_cast<double>(largest.shape.*field))
        .low;
  };
  scales.width = growth(&Shape::d_model);
  scales.layers = growth(&Shape::depth);
  scales.head_dim = growth(&Shape::head_dim);
  if (smallest.shape.experts_per_token > 0) {
    scales.active_experts = growth(&Shape::experts_per_token);
  }
  scales.queries_per_key = growth(&Shape::heads) - growth(&Shape::kv_heads);
  const detail::PlanSums first(smallest);
  detail::PlanSums last(largest);
  for (std::size_t g = 0; g < architecture::group_count; ++g) {
    scales.groups[g] = power(first.groups[g], last.groups[g]);
  }
  for (const auto& [name, sums] : first.tensors) {
    scales.tensors[name] = power(sums, last.tensors[name]);
  }
  const auto residual = [&](const Number<Kind::multiplier> Residual::*member) {
    const auto sum = [&](const Plan& plan) {
      detail::LogSum all;
      for (const Residual& r : plan.model.residuals) all.add((r.*member).value);
      return all;
    };
    return power(sum(smallest), sum(largest));
  };
  scales.skip = residual(&Residual::skip);
  scales.branch = residual(&Residual::branch);
  if (!smallest.model.residuals.empty()) {
    scales.first_branch = smallest.model.residuals.front().branch.value;
  }
  double variance = 0, tokens = 0;  // of the embedding
  for (const Entry& entry : plan::entries_of_shape(smallest)) {
    const bool token = entry.group == Group::token_embedding;
    if (!token && entry.group != Group::position_embedding) continue;
    const double m = token ? smallest.model.embedding_multiplier.value : entry.multiplier.value;
    const double own = m * m * entry.init_variance.value;
    variance += own;
    if (token) tokens += own;
  }
  if (variance > 0 && std::isfinite(variance)) scales.token_share = tokens / variance;
  const auto of_model = [&](const Number<Kind::multiplier> Model::*member) {
    return power((smallest.model.*member).value, (largest.model.*member).value);
  };
  scales.attention_scale = of_model(&Model::attention_scale);
  scales.logit_multiplier = of_model(&Model::logit_multiplier);
  scales.embedding_multiplier = of_model(&Model::embedding_multiplier);
  if (smallest.shape.blocks == Blocks::listed) detail::find_head(scales, smallest);
  return scales;
}

}  // namespace scalewise::check
