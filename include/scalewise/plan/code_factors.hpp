// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/values.hpp"
#include "scalewise/plan/check_plan.hpp"
#include "scalewise/plan/move_multiplier.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise {

namespace plan {

/// Factors that the forward pass of a code base itself applies, in the sizes of the model.
/// Equation: scores * q.k; embedding * E[token]; logits * W h, of a tied head tied_logits * E h;
///           x + branch * f(x)
struct CodeFactors {
  Scaling scores = 1 / sqrt(symbols::C);
  Scaling embedding = 1;
  Scaling logits = 1;
  Scaling tied_logits = 1;
  Scaling branch = 1;

  friend bool operator==(const CodeFactors&, const CodeFactors&) = default;
};

}  // namespace plan

namespace detail {

inline std::string four_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

/// The powers of a scaling, of target over base.
inline Scaling over_base(const Scaling& scaling) {
  const Scaling over = ratio(scaling);
  return over / over.number();
}

/// Puts a code base's factors into a plan.
class PlanCode {
 public:
  PlanCode(Plan plan, const plan::CodeFactors& code, const plan::CodeFactors& of_base)
      : plan_(std::move(plan)), code_(code), of_base_(of_base) {
    if (plan_.base) base_.emplace(*plan_.base, last_stack(*plan_.base));
  }

  Plan run() && {
    const bool tied = plan_.shape.tied_head.value_or(false);
    Model& model = plan_.model;
    scores();
    model.code =
        plan::CodeNumbers{listed(code_.scores), at_ends(code_.embedding, of_base_.embedding),
                          at_ends(tied ? code_.tied_logits : code_.logits,
                                  tied ? of_base_.tied_logits : of_base_.logits),
                          at_ends(code_.branch, of_base_.branch)};
    return std::move(plan_);
  }

 private:
  /// A plan that scales a base, perhaps initialized by another rule: what the code does in the base stays.
  bool relative() const {
    return plan_.base && (plan_.reference == Reference::base || !plan_.start.empty());
  }

  /// The scores of a base whose code does not divide them by √C.
  void scores() {
    if (!relative()) return;
    using namespace symbols;
    const Scaling plain = sqrt(C) / sqrt(m_C);  // √(the base's head size)
    const bool same = code_.scores == of_base_.scores;
    const Scaling base = same ? code_.scores / over_base(code_.scores) * plain
                              : Scaling(architecture::evaluate(of_base_.scores, *base_)) * plain;
    if (base == Scaling(1)) return;
    Number<Kind::multiplier> factor = listed(base);
    times_power(factor, plan_.model.attention_scale, 1);
    plan_.model.attention_scale = factor;
  }

  /// Over the base's where the plan is.
  Number<Kind::multiplier> at_ends(const Scaling& target, const Scaling& base) {
    if (!relative()) return listed(target);
    if (target == base) return listed(over_base(target));
    return listed(Scaling(architecture::evaluate(target, sizes_of(plan_, last_stack(plan_.shape))) /
                          architecture::evaluate(base, *base_)));
  }

  /// As a number, with its symbols in the plan's list.
  Number<Kind::multiplier> listed(const Scaling& scaling) {
    list_symbols(plan_, scaling);
    return {architecture::evaluate(scaling, sizes_of(plan_, last_stack(plan_.shape))), scaling};
  }

  Plan plan_;
  const plan::CodeFactors& code_;
  const plan::CodeFactors& of_base_;
  std::optional<architecture::Values> base_;
};

}  // namespace detail

namespace plan {

/// The factors of the code in a plan: that of the plan, or else the 1/√C of the scores alone.
inline CodeNumbers code_of(const Plan& plan) {
  if (plan.model.code) return *plan.model.code;
  const double root_c = numeric::root(static_cast<double>(plan.shape.head_dim), 2);
  return {{1 / root_c, 1 / sqrt(symbols::C)}, {1, 1}, {1, 1}, {1, 1}};
}

/// The factor that is left to multiply: total over code.
inline Number<Kind::multiplier> left_over(Number<Kind::multiplier> total,
                                          const Number<Kind::multiplier>& code) {
  if (total.value == code.value) return {1, 1};
  detail::times_power(total, code, -1);
  return total;
}

/// The plan for a code base that multiplies more, or less, than the usual transformer. The numbers of
/// plan.model stay totals: what the code does is among them, and listed in plan.model.code.
/// Equation: of a relative rule, the score scale of the base is the code's at the base's size, in place of
///           1/√C; the code's other factors are over those at the base
/// Units:    as those of plan.model: of a relative rule, and of one whose base another rule initializes, over the base's
/// Requires: `of_base`, the factors of the base's code, if they differ, as do constants in a config.json.
/// Differs:  plans of the normalized transformer and of the shallow encoder are returned as they are, as is
///           one for code that divides scores by √C and does nothing else, and a list without the size of a head.
inline Plan with_code(Plan plan, const CodeFactors& code, const CodeFactors& of_base) {
  const bool plain = code == CodeFactors{} && of_base == CodeFactors{};
  const bool transformer =
      plan.shape.blocks == Blocks::residual || plan.shape.blocks == Blocks::listed;
  if (!transformer || plain || !architecture::has_heads(plan.shape)) return plan;
  return detail::PlanCode(std::move(plan), code, of_base).run();
}

inline Plan with_code(Plan plan, const CodeFactors& code) {
  return with_code(std::move(plan), code, code);
}

/// One line for each factor that differs from the usual transformer's. `tied`: whether the head is.
inline std::vector<std::string> code_lines(const CodeFactors& code, bool tied) {
  std::vector<std::string> lines;
  const auto say = [&](const char* what, const Scaling& factor, const Scaling& usual) {
    if (factor != usual)
      lines.push_back("the code multiplies " + std::string(what) + " by " + to_text(factor));
  };
  say("scores", code.scores, 1 / sqrt(symbols::C));
  say("embeddings", code.embedding, 1);
  say("logits", tied ? code.tied_logits : code.logits, 1);
  say("branches", code.branch, 1);
  return lines;
}

/// The multiplications that a model's forward pass still needs, one line each: the factors of the plan over those of its
/// code. Empty after fold(), unless that leaves some.
inline std::vector<std::string> left_to_multiply(const Plan& plan) {
  std::vector<std::string> left;
  const CodeNumbers code = code_of(plan);
  const auto say = [&](const std::string& what, double smallest, double largest) {
    const auto is_one = [](double factor) { return factor > 1 - 1e-12 && factor < 1 + 1e-12; };
    if (is_one(smallest) && is_one(largest)) return;  // up to rounding
    std::string line = what + " by " + detail::four_digits(smallest);
    if (largest != smallest) line += " to " + detail::four_digits(largest);
    if (std::find(left.begin(), left.end(), line) == left.end()) left.push_back(std::move(line));
  };
  const auto once = [&](const std::string& what, double factor) { say(what, factor, factor); };
  const Model& model = plan.model;
  once("embeddings", left_over(model.embedding_multiplier, code.embedding_multiplier).value);
  once("logits", left_over(model.logit_multiplier, code.logit_multiplier).value);
  once("scores", left_over(model.attention_scale, code.attention_scale).value);
  std::vector<double> skips, branches;
  for (const Residual& residual : model.residuals) {
    skips.push_back(residual.skip.value);
    branches.push_back(left_over(residual.branch, code.branch).value);
  }
  const auto of_layers = [&](const char* what, const std::vector<double>& factors) {
    if (factors.empty()) return;
    const auto [smallest, largest] = std::minmax_element(factors.begin(), factors.end());
    say(what, *smallest, *largest);
  };
  of_layers("the stream that branches are added to", skips);
  of_layers("branches", branches);
  for (const Entry& entry : plan.entries) {
    if (is_at_end(plan, entry)) continue;
    const bool listed = plan.shape.blocks == Blocks::listed;  // whose names begin as they like
    once(listed ? entry.name : architecture::tensor_name(entry.name).part, entry.multiplier.value);
  }
  return left;
}

/// One line for each factor of the code that differs from the usual transformer's, and what is left
/// to do. Empty without code.
inline std::vector<std::string> code_notes(const Plan& plan) {
  std::vector<std::string> notes;
  if (!plan.model.code) return notes;
  const Model& model = plan.model;
  const CodeNumbers& code = *model.code;
  const auto say = [&](const char* what, const Number<Kind::multiplier>& total,
                       const Number<Kind::multiplier>& does) {
    const Number<Kind::multiplier> left = left_over(total, does);
    const bool over = plan.base && (plan.reference == Reference::base || !plan.start.empty());
    notes.push_back(
        "the code multiplies " + std::string(what) + " by " + does.formula() +
        (over && does.scaling != Scaling(1) && what[0] != 's' ? " times the base's" : "") + ", " +
        (left.value == 1 ? "as planned"
                         : "so that " + detail::four_digits(left.value) + " is left to multiply"));
  };
  if (code.attention_scale.scaling != 1 / sqrt(symbols::C))
    say("scores", model.attention_scale, code.attention_scale);
  if (code.embedding_multiplier.scaling != Scaling(1))
    say("embeddings", model.embedding_multiplier, code.embedding_multiplier);
  if (code.logit_multiplier.scaling != Scaling(1))
    say("logits", model.logit_multiplier, code.logit_multiplier);
  if (code.branch.scaling != Scaling(1))
    say("branches", model.residuals.front().branch, code.branch);
  return notes;
}

}  // namespace plan

}  // namespace scalewise
