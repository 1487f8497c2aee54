// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/numbered_tensors.hpp"
#include "scalewise/architecture/observables.hpp"
#include "scalewise/check/changing_batch.hpp"
#include "scalewise/check/idle_tensors.hpp"
#include "scalewise/check/recorded_layers.hpp"
#include "scalewise/check/records.hpp"
#include "scalewise/check/same_models.hpp"
#include "scalewise/check/scales.hpp"
#include "scalewise/check/uneven_records.hpp"
#include "scalewise/check/unknown_name.hpp"
#include "scalewise/plan/fingerprint.hpp"

namespace scalewise::check {

/// The part of some records that the plans of a family can judge, and everything else in them.
struct Judgeable {
  std::vector<std::string> unknown;   // names that stand for nothing, with the nearest that does
  std::vector<std::string> missing;   // what a verdict lacks
  std::vector<std::string> left_out;  // what is not judged, though a verdict does not need it
  std::set<long> idle;                // steps that moved nothing
  std::set<std::string> rounding;     // tensors of a list whose gradient is rounding
  bool of_these_plans = true;         // otherwise slopes say nothing of the plans

  /// How many of the first `step` steps moved something.
  long moves(long step) const {
    return step - static_cast<long>(std::distance(idle.begin(), idle.upper_bound(step)));
  }
};

namespace detail {

/// Throws:   InvalidInput for records of a size that has no plan.
inline void require_plans(const Records& records, const std::vector<Member>& family) {
  std::vector<std::string> sizes;
  sizes.reserve(family.size());
  for (const Member& member : family) sizes.push_back(std::to_string(member.size));
  records.for_each([&](const Quantity& quantity, long, const Run& run, const Moments&) {
    if (member_of(family, run.size) != nullptr) return;
    throw InvalidInput("size of " + messages::printable(quantity.name), std::to_string(run.size),
                       "one that has a plan: " + messages::listed(sizes));
  });
}

/// Throws:   InvalidInput for an update at step 0 that moved something.
inline void require_updates_from_1(const Records& records) {
  records.for_each([](const Quantity& quantity, long step, const Run&, const Moments& moments) {
    if (quantity.signal != Signal::update || step > 0 || moments.sum_squares == 0) return;
    throw InvalidInput("step of the update of " + messages::printable(quantity.name), "0",
                       "1 for what the first step adds", "updates count from 1");
  });
}

/// The sizes whose records name another plan than the family's.
inline std::set<long> of_other_plans(const Records& records, const std::vector<Member>& family) {
  std::map<long, std::string> own;
  std::set<long> others;
  for (const auto& [run, fingerprint] : records.plans()) {
    const Member* member = member_of(family, run.size);
    if (member == nullptr) continue;
    const auto [known, is_new] = own.try_emplace(run.size);
    if (is_new) known->second = plan::plan_fingerprint(member->plan);
    if (known->second != fingerprint) others.insert(run.size);
  }
  return others;
}

/// Looks at records before they are judged, one question after the other.
class JudgeableSearch {
 public:
  JudgeableSearch(const Records& records, const std::vector<Member>& family)
      : records_(records),
        pooled_(pooled_layers(records, family.front().plan.shape)),
        family_(family),
        plan_(family.front().plan) {}

  Judgeable run() && {
    names();
    result_.of_these_plans = plans() && layers() && counts() && !alike() && one_batch();
    idle_steps();
    batches();
    miss(changing_batch(records_, plan_));
    for (std::string& line : absent_outputs(records_, plan_))
      result_.left_out.push_back(std::move(line));
    leave_out(absent_tensors(records_, plan_));
    leave_out(partial_tensors(records_, family_));
    if (layer_names(plan_) == layer_names(family_.back().plan))
      miss(uneven_layers(records_, plan_.shape));
    if (plan_.shape.blocks == Blocks::listed) {
      idle_tensors();
    } else {
      miss(still_layers(records_, plan_.shape));
    }
    if (result_.of_these_plans) uneven();
    return std::move(result_);
  }

 private:
  void miss(std::string text) {
    if (!text.empty()) result_.missing.push_back(std::move(text));
  }

  void leave_out(std::string text) {
    if (!text.empty()) result_.left_out.push_back(std::move(text));
  }

  void names() {
    std::set<std::string> seen;
    std::set<std::string> tensors;  // by their places
    std::string foreign;            // a tensor that the plan does not have
    for (const auto& [quantity, steps] : pooled_.all()) {
      UnknownName unknown = unknown_name(quantity, plan_);
      for (const Member& member : family_) {  // a list may have more layers at other sizes
        if (!unknown.reason.empty() && unknown_name(quantity, member.plan).reason.empty())
          unknown.reason.clear();
      }
      if (!is_activation(quantity.signal)) {
        tensors.insert(place_of(plan_.shape, quantity.name));
        if (!unknown.reason.empty()) foreign = unknown.name;
      }
      if (unknown.reason.empty() || !seen.insert(unknown.name).second) continue;
      const bool known = !unknown.nearest.empty();
      result_.unknown.push_back(unknown.name + ": " + unknown.reason +
                                (known ? "; did you mean " + unknown.nearest + "?" : ""));
      if (known && pooled_.all().count({quantity.signal, unknown.nearest}) == 0) {
        miss(unknown.nearest + ", if " + unknown.name + " is it");
      }
    }
    if (foreign.empty() || !result_.missing.empty()) return;
    for (const Entry& entry : plan_.entries) {
      if (tensors.contains(place_of(plan_.shape, entry.name))) continue;
      miss(
          fmt::format("{}, a tensor of the plan; {}, which was recorded, is none, so that the "
                      "models may be others",
                      entry.name, foreign));
      return;
    }
  }

  /// Whether the plans that records name are those of the family.
  bool plans() {
    const std::set<long> others = of_other_plans(records_, family_);
    if (others.empty()) return true;
    const Member& first = *member_of(family_, *others.begin());
    miss(fmt::format(
        "plans of the models that were recorded: records of size {} are of another plan than {}",
        fmt::join(others, ", "),
        first.name.empty() ? "the one given" : messages::printable(first.name)));
    return false;
  }

  bool layers() {
    std::string beyond = layers_beyond(records_, family_);
    const bool none = beyond.empty();
    miss(std::move(beyond));
    return none;
  }

  /// A model of another shape than the plan's has other numbers of entries. Parts of tensors may be
  /// recorded, but the same part at all sizes.
  bool counts() {
    for (const auto& [quantity, steps] : pooled_.all()) {
      if (is_activation(quantity.signal)) continue;
      std::map<long, double> shares;  // of the plan's entries, by size
      bool differ = false;
      for (const auto& [run, moments] : steps.begin()->second) {
        const std::uint64_t planned = entries_of(member_of(family_, run.size)->plan, quantity.name);
        if (planned == 0 || moments.count <= 1) break;  // one stands for sums that were not counted
        const double here = static_cast<double>(moments.count) / static_cast<double>(planned);
        const double first = shares.try_emplace(run.size, here).first->second;
        differ = differ || here > 1 || here != first || here != shares.begin()->second;
      }
      if (!differ) continue;
      miss(other_counts(quantity.name, steps.begin()->second));
      return false;
    }
    return true;
  }

  /// The sizes at which a tensor has other numbers of entries than the plan says.
  std::string other_counts(const std::string& name, const Records::Runs& runs) const {
    std::set<long> planned_at, others;
    std::string text;
    for (const auto& [run, moments] : runs) {
      const std::uint64_t planned = entries_of(member_of(family_, run.size)->plan, name);
      if (moments.count == planned) {
        planned_at.insert(run.size);
      } else if (others.insert(run.size).second && others.size() <= 2) {
        text += fmt::format("{}{}{} at size {}, the plan {}", others.size() > 1 ? "; " : "",
                            moments.count, others.size() > 1 ? "" : " entries", run.size, planned);
      }
    }
    if (const std::size_t more = others.size() > 2 ? others.size() - 2 : 0; more > 0)
      text += fmt::format(", and others at {} more size{}", more, more > 1 ? "s" : "");
    if (!planned_at.empty()) {
      text += fmt::format("; as planned at size {}", fmt::join(planned_at, ", "));
    }
    return fmt::format("plans of the models that were recorded: {} has {}", name, text);
  }

  /// Whether models of several sizes are one and the same: plans of one size, numbers that are equal to
  /// the last bit, or activations along the width that have as many entries at all widths.
  bool alike() {
    std::string same = same_plans(family_);
    if (same.empty()) same = same_numbers(records_);
    if (same.empty()) same = same_activations(pooled_, family_);
    if (!same.empty()) miss("models of different sizes: " + same);
    return !same.empty();
  }

  /// Gradients of a larger batch are smaller, so that another batch at each size looks like a mistake.
  bool one_batch() {
    if (plan_.shape.blocks == Blocks::listed) return one_batch_of_list();
    const std::array<std::pair<std::string_view, long Shape::*>, 3> wide{
        {{architecture::observable("embedding"), &Shape::d_model},
         {architecture::observable("final_hidden"), &Shape::d_model},
         {architecture::observable("logits"), &Shape::vocab}}};
    for (const auto& [place, width] : wide) {
      const Records::Runs* runs = records_.find({Signal::value, std::string(place)}, 0);
      if (runs == nullptr) continue;
      std::map<double, long> sizes;  // by tokens
      for (const auto& [run, moments] : *runs) {
        const auto entries = static_cast<double>(member_of(family_, run.size)->plan.shape.*width);
        if (moments.count > 1)
          sizes.try_emplace(static_cast<double>(moments.count) / entries, run.size);
      }
      // Numbers of entries of parts are rounded.
      const bool alike = sizes.empty() || sizes.rbegin()->first < 1.02 * sizes.begin()->first;
      if (alike) continue;
      miss(
          fmt::format("one batch at all sizes: {} has the entries of {:.6g} tokens at size {} and "
                      "of {:.6g} at size {}",
                      place, sizes.begin()->first, sizes.begin()->second, sizes.rbegin()->first,
                      sizes.rbegin()->second));
      return false;
    }
    return true;
  }

  /// Where the head has as many outputs in all models, logits have as many entries.
  bool one_batch_of_list() {
    const Records::Runs* runs =
        records_.find({Signal::value, std::string(architecture::observable("logits"))}, 0);
    const Plan &first = family_.front().plan, &last = family_.back().plan;
    const auto head = std::find_if(first.entries.rbegin(), first.entries.rend(),
                                   [](const Entry& e) { return e.group == Group::head; });
    if (runs == nullptr || head == first.entries.rend()) return true;
    const Entry* of_last = entry_of(last, head->name);
    if (of_last == nullptr || of_last->fan_out != head->fan_out) return true;
    const auto by_count = [](const auto& a, const auto& b) {
      return a.second.count < b.second.count;
    };
    const auto [least, most] = std::minmax_element(runs->begin(), runs->end(), by_count);
    if (least->second.count <= 1 || least->second.count == most->second.count) return true;
    miss(fmt::format("one batch at all sizes: logits has {} entries at size {} and {} at size {}",
                     least->second.count, least->first.size, most->second.count, most->first.size));
    return false;
  }

  void uneven() {
    const UnevenRecords found = uneven_records(pooled_, family_);
    if (!found.sizes.empty())
      miss(scalewise::detail::up_to_three(found.sizes) + ", as in other runs");
    if (found.runs.empty()) return;
    leave_out(scalewise::detail::up_to_three(found.runs) + ", not recorded" +
              (experts_of(plan_).empty() ? "" : ", or of an expert that no token chose"));
  }

  void idle_tensors() {
    const std::vector<std::string> still = still_tensors(records_, plan_);
    if (!still.empty()) {
      leave_out(scalewise::detail::up_to_three(still) +
                ": no step moves them (frozen, in no optimizer, or with gradients of zero)");
    }
    result_.rounding = rounding_tensors(records_, plan_);
    if (result_.rounding.empty()) return;
    leave_out(scalewise::detail::up_to_three({result_.rounding.begin(), result_.rounding.end()}) +
              ": their gradients are rounding, as those of a key's bias are");
  }

  /// A rate of zero, as at the first step of many schedules, says nothing.
  void idle_steps() {
    std::set<long> steps;
    for (const auto& [quantity, all] : records_.all()) {
      for (const auto& [step, runs] : all) {
        if (step > 0) steps.insert(step);
      }
    }
    for (const long step : steps) {
      // Changes are since step 0.
      if (all_zero(Signal::update, step).value_or(all_zero(Signal::change, step).value_or(false))) {
        result_.idle.insert(step);
      }
    }
    if (result_.idle.empty()) return;
    const bool several = result_.idle.size() > 1;
    result_.left_out.push_back(fmt::format(
        "{} {}, whose updates are all exactly zero at every size, as with a learning rate of 0",
        several ? "steps" : "step", fmt::join(result_.idle, ", ")));
    if (result_.idle.size() == steps.size()) {
      miss(
          "a step that moves something: all updates are exactly zero, as with a learning rate of "
          "0");
    }
  }

  /// Whether all that has a signal at a step is zero; none where nothing has.
  std::optional<bool> all_zero(Signal signal, long step) const {
    std::optional<bool> zero;
    for (const auto& [quantity, steps] : records_.all()) {
      if (quantity.signal != signal) continue;
      const auto runs = steps.find(step);
      if (runs == steps.end()) continue;
      for (const auto& [run, moments] : runs->second) {
        if (moments.sum_abs != 0 || moments.sum_squares != 0) return false;
        zero = true;
      }
    }
    return zero;
  }

  /// A batch of another size, or a pass that counted twice, has other numbers of entries than step 0.
  void batches() {
    for (const auto& [quantity, steps] : records_.all()) {
      if (quantity.signal != Signal::value || steps.begin()->first != 0) continue;
      const Records::Runs& first = steps.begin()->second;
      for (const auto& [step, runs] : steps) {
        for (const auto& [run, moments] : runs) {
          const auto start = first.find(run);
          if (start == first.end() || start->second.count == moments.count) continue;
          miss(
              fmt::format("one pass over the same batch at each step: {} has {} entries at step {} "
                          "and {} at step 0",
                          quantity.name, moments.count, step, start->second.count));
          return;
        }
      }
    }
  }

  const Records& records_;
  Records pooled_;
  const std::vector<Member>& family_;
  const Plan& plan_;
  Judgeable result_;
};

}  // namespace detail

/// Whether no record names another plan than the family's.
inline bool of_these_plans(const Records& records, const std::vector<Member>& family) {
  return detail::of_other_plans(records, family).empty();
}

/// Decides what of some records can be judged, and lists the rest: names that stand for nothing, models that
/// are not those of the plans or all the same one, steps that moved nothing, batches that changed or differ between
/// sizes, layers whose outputs or tensors were not recorded.
/// Requires: every recorded size has a member.
inline Judgeable judgeable(const Records& records, const std::vector<Member>& family) {
  return detail::JudgeableSearch(records, family).run();
}

}  // namespace scalewise::check
