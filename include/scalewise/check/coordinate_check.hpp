// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/observables.hpp"
#include "scalewise/check/coordinate_report.hpp"
#include "scalewise/check/diagnosis.hpp"
#include "scalewise/check/hypotheses.hpp"
#include "scalewise/check/judgeable.hpp"
#include "scalewise/check/recorded_assumptions.hpp"

// The words of the check, in the order in which it works:
//   Records        what training recorded: the size (root mean square) of each quantity, by size of the model and step
//                  (records.hpp)
//   Member         one model of the family that was trained: its plan, and the size that it is known by (scales.hpp)
//   judgeable()    which records the plans can judge; everything else is listed
//   Assumptions    what plans do not say: norms, their placement, how aligned updates are (slopes_state.hpp)
//   Scales         the plans' numbers as powers of the size (scales.hpp)
//   Prediction     the exponents with which quantities grow, from the scales and assumptions (prediction.hpp)
//   Expectation    the exponent of one quantity at one step, and how exact it is (expectation.hpp)
//   Growth         a measured exponent, or slope, and its error: scatter from seeds, tail_error for verdicts (growth.hpp)
//   Judgement      one quantity at one step: its growth, the predicted exponents, and a verdict (judge.hpp)
//   Criteria       when an exponent contradicts its prediction, Thresholds by how many standard errors
//   Fault          a mistake in the plans' exponents: a part that is missing or applied twice; slips are small ones
//                  (fault.hpp; possible_faults(), possible_slips() and their scales: fault_scales.hpp)
//   Hypothesis     a fault with what it would predict
//   Standing       how a hypothesis fits the judgements: worse than the rule, or, below 0, better (hypotheses.hpp)

namespace scalewise::check {

namespace detail {

/// How far a mistake's misfit must be below the rule's to be named: 2 log(100), odds of a hundred.
inline constexpr double likelier = 9.21034;

/// Turns records into a report, one question after the other.
class CoordinateCheck {
 public:
  CoordinateCheck(const Records& records, const std::vector<Member>& family,
                  const Assumptions& assumptions, const Criteria& criteria)
      : records_(pooled_layers(records, family.front().plan.shape)),
        plan_(family.front().plan),
        judgeable_(judgeable(records, family)),
        assumptions_(as_recorded(assumptions, records_, plan_, judgeable_)),
        criteria_(criteria),
        scales_(scales_of(family)),
        prediction_(scales_, plan_.shape, assumptions_) {
    // Variance between seeds falls as size^-power: entries of wide models average, if not as independent ones would,
    // with a power of 1; along the depth and the number of experts nothing averages.
    const double power = prediction_.along_width() ? 0.8 : 0;
    Measurements measured(records_, prediction_, plan_, judgeable_, power, criteria);
    const std::vector<std::string> zeros = measured.zeros();
    report_.judgements = std::move(measured).take();
    for (Judgement& j : report_.judgements)
      j.outlier = outlier_of(j, records, family, criteria.outlier);
    report_.unknown = judgeable_.unknown;
    report_.missing = judgeable_.missing;
    report_.left_out = judgeable_.left_out;
    if (!zeros.empty()) {
      report_.left_out.push_back(
          scalewise::detail::up_to_three(zeros) +
          ": where exactly zero in all runs, as behind weights that begin at zero");
    }
  }

  Report run() && {
    judge_all();
    // Slopes of other models say nothing of these plans.
    if (!judgeable_.of_these_plans) return std::move(report_);
    const bool failed = any_failed();
    // A cause of what has failed need not be as sure as a failure.
    const Thresholds& sure = report_.thresholds;
    // A model known by its tensors alone may grow because of a wrong role.
    const bool by_role = prediction_.roles() != nullptr;
    if (const Judgement* growth = growing(failed || by_role ? sure.doubt : sure.failure)) {
      report_.cause = Cause::growth;
      report_.diagnosis = finding(*growth) +
                          (by_role ? ": the plan lets it grow, as where a tensor has another's role"
                                   : ": the rule itself lets it grow");
    } else if (const Judgement* shrinks = beginning_small()) {
      report_.cause = Cause::mistake;
      report_.diagnosis = finding(*shrinks) + ": " + wrong_output;
    } else if (failed) {
      diagnose();
    }
    if (report_.cause != Cause::none || failed) {
      report_.verdict = Verdict::fail;
      return std::move(report_);
    }
    what_is_missing();
    what_is_open();
    const bool open = !report_.missing.empty() || !report_.undecided.empty();
    report_.verdict = open ? Verdict::inconclusive : Verdict::pass;
    return std::move(report_);
  }

 private:
  void judge_all() {
    const auto count = std::count_if(report_.judgements.begin(), report_.judgements.end(),
                                     [](const Judgement& j) { return j.expected.has_value(); });
    report_.error_rate = criteria_.error_rate;
    report_.thresholds = thresholds_of(criteria_, static_cast<std::size_t>(count));
    for (Judgement& j : report_.judgements) judge(j, criteria_, report_.thresholds);
  }

  bool any_failed() const {
    return std::any_of(report_.judgements.begin(), report_.judgements.end(),
                       [](const Judgement& j) { return j.verdict == Verdict::fail; });
  }

  /// The change that grows fastest because the rule lets it, by more than `threshold` errors; null where
  /// none does. Where one does, models train differently at each size, and only exact quantities can
  /// show a mistake.
  const Judgement* growing(double threshold) const {
    const Judgement* found = nullptr;
    for (const Judgement& j : report_.judgements) {
      if (!j.expected) continue;
      if (j.verdict == Verdict::fail && j.expected->regime == Regime::exact) return nullptr;
      if (j.curve.quantity.signal != Signal::change || !j.measured) continue;
      const Band& band = j.expected->band;
      const bool certain = band.low > criteria_.growth;
      // Scores of normalized queries and keys start small and may grow up to where they are bounded.
      const bool open = band.high > criteria_.open_growth &&
                        j.curve.quantity.name != architecture::observable("attention.scores");
      if (!certain && !open) continue;
      const double most = certain ? criteria_.growth : criteria_.open_growth;
      if (j.measured->slope - threshold * j.measured->tail_error <= most) continue;
      if (found == nullptr || j.measured->slope > found->measured->slope) found = &j;
    }
    return found;
  }

  static constexpr const char* wrong_output =
      "its tensor has an output's role, though its outputs grow";

  /// The output of a tensor with an output's role that grows, and is seen to begin too small; null where there is none.
  const Judgement* beginning_small() const {
    if (prediction_.roles() == nullptr) return nullptr;
    for (const Judgement& j : report_.judgements) {
      const bool first_value = j.curve.quantity.signal == Signal::value && j.moves == 0;
      if (!first_value || !prediction_.roles()->shrinking.contains(j.subject.place)) continue;
      if (j.expected && j.measured && j.measured->slope < 0 &&
          j.deviation > report_.thresholds.doubt) {
        return &j;
      }
    }
    return nullptr;
  }

  std::vector<Standing> standings_of(const std::vector<Fault>& faults) const {
    std::vector<Standing> result;
    result.reserve(faults.size());
    for (const Fault& fault : faults) {
      result.push_back(standing_of(hypothesis_of(scales_, plan_.shape, fault, assumptions_),
                                   report_.judgements, criteria_, report_.thresholds.failure));
    }
    return result;
  }

  void diagnose() {
    const Judgement& first = *first_failure(report_, [](const Judgement&) { return true; });
    const auto say = [&](const char* why) { report_.diagnosis = finding(first) + ": " + why; };
    report_.cause = Cause::unknown;
    if (first.outlier) {
      say("the plan is not followed there");
    } else if (first.curve.step > 0 && no_even_update(report_, records_)) {
      say("the entries of no first update are of one size, as Adam's are: another optimizer, or a "
          "large epsilon");
    } else if (first.curve.quantity.signal == Signal::parameter && first.curve.is_zero()) {
      say("where it begins at zero on purpose, leave it out of the records (keep in Python)");
    } else if (!name_mistake(first)) {
      say("no single part of the rule could be named");
    }
  }

  /// Names the most likely mistake.
  /// Returns:  whether it may be named.
  bool name_mistake(const Judgement& first) {
    std::vector<Fault> faults = possible_faults(scales_, plan_.shape.blocks);
    const std::vector<Fault> slips = possible_slips(scales_, plan_.shape.blocks);
    faults.insert(faults.end(), slips.begin(), slips.end());
    std::vector<Standing> all = standings_of(faults);
    std::stable_sort(all.begin(), all.end(),
                     [](const Standing& a, const Standing& b) { return a.worse < b.worse; });
    if (all.empty() || all.front().worse > -likelier) return false;
    const Explanation found = explanation_by(
        hypothesis_of(scales_, plan_.shape, all.front().fault, assumptions_), report_, criteria_);
    if (!found.holds) return false;
    report_.cause = Cause::mistake;
    std::size_t alike = 1;
    while (alike < all.size() && all[alike].worse - all.front().worse < 1e-6) ++alike;
    const double next = alike < all.size() ? (std::min)(all[alike].worse, 0.0) : 0;
    report_.log10_odds = (std::min)(9.0, (next - all.front().worse) / 2 / std::log(10.0));
    report_.diagnosis =
        finding(found.failure == nullptr ? first : *found.failure) + ": " +
        names_of({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(alike)}, all);
    if (found.left != nullptr) report_.diagnosis += ", and more: " + finding(*found.left);
    return true;
  }

  /// Requires that a place of this kind was recorded at initialization, and that some change that training made to one was
  /// judged.
  template <class Predicate>
  void require_start_and_change(const std::string& name, const Predicate& is_one) {
    bool start = false, change = false;
    for (const Judgement& j : report_.judgements) {
      const Quantity& q = j.curve.quantity;
      if (!is_one(q.name)) continue;
      start = start || (q.signal == Signal::value && j.curve.step == 0);
      change = change || (j.expected && q.signal == Signal::change && j.curve.step > 0);
    }
    if (start && change) return;
    report_.missing.push_back(name + ", at step 0 and after a step" +
                              (start ? " (as a change since step 0, on the same batch)" : ""));
  }

  /// Without the start and changes of the logits and of what some block gives (or its hidden layer, or the stream) nothing was checked.
  void what_is_missing() {
    if (!prediction_.has_limit()) {
      report_.missing.push_back("a limit: " + std::string(prediction_.why_no_limit()));
      return;
    }
    const auto is_logits = [](std::string_view name) {
      return name == architecture::observable("logits");
    };
    const bool by_role = prediction_.roles() != nullptr;
    const auto is_of_block = [&](std::string_view name) {
      if (by_role) return !is_logits(name);
      return name == architecture::observable("attention.output") ||
             name == architecture::observable("mlp.hidden") ||
             name == architecture::observable("mlp.output") ||
             name == architecture::observable("mlp.stream");
    };
    require_start_and_change("logits", is_logits);
    require_start_and_change(by_role ? "the output of a module, under the name of a tensor of it"
                                     : "layer.*.mlp.output or layer.*.attention.output",
                             is_of_block);
  }

  void what_is_open() {
    std::size_t open = 0;
    constexpr std::size_t most = 3;
    for (const Judgement& j : report_.judgements) {
      // What is not judged says that training diverges, too.
      const bool counts = j.expected || !j.curve.finite;
      if (!counts || j.verdict != Verdict::inconclusive || ++open > most) continue;
      if (j.measured) report_.wants_larger_size = true;
      report_.undecided.push_back(fmt::format("{} ({}) at step {}: {}", j.curve.quantity.name,
                                              word(signal_words, j.curve.quantity.signal),
                                              j.curve.step, j.reason));
    }
    if (open > most) {
      report_.undecided.push_back(fmt::format("{} more quantities at other steps", open - most));
    }
    if (const RoleSlopes* roles = prediction_.roles()) {
      const Band growth = sum(roles->change, roles->logits.change);
      if (growth.low > criteria_.growth) {
        report_.undecided.push_back("the plan lets changes grow, by a power of " +
                                    band_text(growth) +
                                    " of the width, as where a tensor has another's role");
      }
      for (const auto& [name, start] : roles->shrinking) {
        report_.undecided.push_back(name + ": " + wrong_output + "; by the plan they begin as " +
                                    band_text(start) + " of the width");
      }
    }
    bool blind = true;  // to all mistakes, for lack of a record
    for (const Standing& s : standings_of(possible_faults(scales_, plan_.shape.blocks))) {
      const std::string hint = what_would_show(s.fault);
      blind = blind && !s.excluded && !s.excludable && !hint.empty();
      if (explains_more(s) || s.excluded) continue;
      if (s.excludable) {
        report_.undecided.push_back(what_decides(s));
      } else {
        report_.unchecked.push_back(to_string(s.fault) + hint);
      }
    }
    if (blind && !report_.unchecked.empty())
      report_.undecided.push_back("no mistake would show in these records");
    const auto is_update = [](const auto& one) { return one.first.signal == Signal::update; };
    if (std::none_of(records_.all().begin(), records_.all().end(), is_update))
      report_.unchecked.emplace_back("exponents of rates that are off (updates would show them)");
    if (prediction_.roles() != nullptr) {
      for (std::string& line : unseen_of_list(scales_))
        report_.unchecked.push_back(std::move(line));
    }
    open_slips();
  }

  /// The activation that shows a mistake best, where it was not recorded.
  std::string what_would_show(const Fault& fault) const {
    using enum Ingredient;
    std::string_view shown;
    if (fault.ingredient == attention_scale) shown = architecture::observable("attention.scores");
    if (fault.ingredient == branch_multiplier) shown = architecture::observable("mlp.stream");
    const bool listed = plan_.shape.blocks == Blocks::listed;
    if (shown.empty() || listed || records_.find({Signal::value, std::string(shown)}, 0)) return "";
    return fmt::format(" (layer.*.{} would show it)", shown);
  }

  bool explains_more(const Standing& s) {
    if (s.worse >= -likelier) return false;
    report_.wants_larger_size = true;
    report_.undecided.push_back(
        fmt::format("{}: it explains the records better than the rule does; more seeds or a larger "
                    "size are needed to decide",
                    to_string(s.fault)));
    return true;
  }

  std::string what_decides(const Standing& s) {
    const Judgement& j = *s.witness;
    const double times = report_.thresholds.failure / s.separation;
    std::string what = "one larger size";
    if (j.measured && j.measured->scatter * times * 1.5 > j.measured->tail_error) {
      const std::size_t runs = j.curve.points.front().runs;
      const double enough = std::ceil(static_cast<double>(runs) * times * times);
      what = fmt::format("{:.0f} seeds instead of {} at the smallest size",
                         (std::max)(enough, static_cast<double>(runs + 1)), runs);
    } else {
      report_.wants_larger_size = true;
    }
    return fmt::format("{}: {} ({}) decides with {}", to_string(s.fault), j.curve.quantity.name,
                       word(signal_words, j.curve.quantity.signal), what);
  }

  /// Exponents of multipliers that are off by little need not be ruled out, but are listed: of each
  /// multiplier how far off it may be.
  void open_slips() {
    std::map<Ingredient, Band> open;
    for (const Standing& s : standings_of(multiplier_slips(scales_, plan_.shape.blocks))) {
      if (explains_more(s) || s.excluded) continue;
      report_.open_slips.push_back(s.fault);
      Band& range = open[s.fault.ingredient];
      range = {(std::min)(range.low, s.fault.off), (std::max)(range.high, s.fault.off)};
    }
    for (const auto& [ingredient, range] : open) {
      std::string name(word(ingredient_words, ingredient));
      std::replace(name.begin(), name.end(), '-', ' ');
      const bool one_side = range.low == 0 || range.high == 0;
      report_.unchecked.push_back(
          fmt::format("exponent of the {} off by {}", name,
                      one_side ? "up to " + slope_text(range.low + range.high) : band_text(range)));
    }
  }

  Records records_;
  const Plan& plan_;
  Judgeable judgeable_;
  Assumptions assumptions_;
  Criteria criteria_;
  Scales scales_;
  Prediction prediction_;
  Report report_;
};

}  // namespace detail

/// Does training follow the rule? Fits every recorded quantity's growth with the size, step by step,
/// and compares it with the prediction from the rule's plans and with those of every mistake. The
/// same place in all layers is taken together.
/// Source:   the check by eye is that of Yang et al. 2022 (arXiv:2203.03466v2), section D.1
/// Accuracy: error rates are measured, see docs/checks/coordinate_check.md.
/// Requires: `family`, the plans of the recorded sizes, smallest first.
/// Throws:   InvalidInput when nothing was recorded, or fewer than two sizes are given, or records
///           have a size that the family lacks, or an update at step 0.
inline Report coordinate_check(const Records& records, const std::vector<Member>& family,
                               const Assumptions& assumptions = {}, const Criteria& criteria = {}) {
  if (records.empty()) throw InvalidInput("records", "none", "something recorded");
  if (family.size() < 2) {
    throw InvalidInput("family", std::to_string(family.size()) + " plans", "at least two sizes");
  }
  detail::require_plans(records, family);
  detail::require_updates_from_1(records);
  const Records used = detail::without_idle_experts(records, family.front().plan);
  return detail::CoordinateCheck(used, family, assumptions, criteria).run();
}

}  // namespace scalewise::check
