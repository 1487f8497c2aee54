// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "scalewise/check/moments.hpp"
#include "scalewise/check/quantity.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::check {

/// One run: a model of one size from one seed.
struct Run {
  long size = 0;
  std::uint64_t seed = 0;

  friend bool operator==(const Run&, const Run&) = default;
  friend bool operator<(const Run& a, const Run& b) {
    return std::tie(a.size, a.seed) < std::tie(b.size, b.seed);
  }
};

/// The moments of each quantity, step and run. Values that are recorded twice add up, as the parts of
/// a tensor on several ranks do.
class Records {
 public:
  using Runs = std::map<Run, Moments>;
  using Steps = std::map<long, Runs>;

  /// Adds moments; those of no numbers are not recorded.
  /// Throws:   InvalidInput for a step below 0.
  void add(const Quantity& quantity, long step, const Run& run, const Moments& moments) {
    if (step < 0) {
      throw InvalidInput("step of " + messages::printable(quantity.name), std::to_string(step),
                         "0 for initialization, k after k updates");
    }
    if (moments == Moments{}) return;
    all_[quantity][step][run] += moments;
  }

  void merge(const Records& other) {
    other.for_each([&](const Quantity& quantity, long step, const Run& run,
                       const Moments& moments) { add(quantity, step, run, moments); });
    plans_.insert(other.plans_.begin(), other.plans_.end());
  }

  /// Notes the plan that a run was trained by: its plan_fingerprint().
  void set_plan(const Run& run, const std::string& fingerprint) { plans_[run] = fingerprint; }
  /// The plans that are known, by run.
  const std::map<Run, std::string>& plans() const { return plans_; }
  void forget_plans() { plans_.clear(); }

  /// The runs of a quantity at a step, or null.
  const Runs* find(const Quantity& quantity, long step) const {
    const auto steps = all_.find(quantity);
    if (steps == all_.end()) return nullptr;
    const auto runs = steps->second.find(step);
    return runs == steps->second.end() ? nullptr : &runs->second;
  }

  bool has(const Quantity& quantity, long step, const Run& run) const {
    const Runs* runs = find(quantity, step);
    return runs != nullptr && runs->contains(run);
  }

  const std::map<Quantity, Steps>& all() const { return all_; }

  /// Calls visit(quantity, step, run, moments) for all, in the order of all().
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [quantity, steps] : all_) {
      for (const auto& [step, runs] : steps) {
        for (const auto& [run, moments] : runs) visit(quantity, step, run, moments);
      }
    }
  }

  /// All runs that something is recorded of.
  std::set<Run> runs() const {
    std::set<Run> all;
    for_each([&](const Quantity&, long, const Run& run, const Moments&) { all.insert(run); });
    return all;
  }

  bool empty() const { return all_.empty(); }

  friend bool operator==(const Records&, const Records&) = default;

 private:
  std::map<Quantity, Steps> all_;
  std::map<Run, std::string> plans_;
};

/// Pools the layers of a place of models of these blocks, so that models of different depth have
/// the same quantities: "layer.3.mlp.output" counts as "mlp.output".
inline Records pooled_layers(const Records& records, const Shape& shape) {
  Records pooled;
  for (const auto& [quantity, steps] : records.all()) {
    const Quantity place{quantity.signal, place_of(shape, quantity.name)};
    for (const auto& [step, runs] : steps) {
      for (const auto& [run, moments] : runs) pooled.add(place, step, run, moments);
    }
  }
  for (const auto& [run, fingerprint] : records.plans()) pooled.set_plan(run, fingerprint);
  return pooled;
}

}  // namespace scalewise::check
