// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scalewise/numeric/power.hpp"
#include "scalewise/plan/check_plan.hpp"
#include "scalewise/plan/code_factors.hpp"
#include "scalewise/plan/move_multiplier.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise {

/// A plan for the same training with other weights, and what could not be moved: one line each.
struct RewrittenPlan {
  Plan plan;
  std::vector<std::string> left;
};

namespace detail {

/// Moves every forward multiplier of a plan into the weights.
class PlanFold {
 public:
  explicit PlanFold(const Plan& plan) : result_{plan, {}}, code_(plan::code_of(plan)) {}

  RewrittenPlan run() && {
    Plan& plan = result_.plan;
    if (plan.shape.blocks == Blocks::normalized) {
      leave("all multipliers: the normalized transformer sets the size of its matrices");
      return std::move(result_);
    }
    if (plan.shape.blocks == Blocks::listed) {
      for (Entry& entry : plan.entries) fold_tensor(entry);
      logits_of_list();
      leave_model();
      return std::move(result_);
    }
    ends();
    for (Entry& entry : plan.entries) {
      if (!plan::is_at_end(plan, entry)) fold_tensor(entry);
    }
    residuals();
    attention();
    return std::move(result_);
  }

 private:
  static Number<Kind::multiplier> one() { return {1, 1}; }

  /// The logits' multiplier into the head, where a list has one.
  void logits_of_list() {
    Number<Kind::multiplier>& total = result_.plan.model.logit_multiplier;
    const Number<Kind::multiplier> logits = plan::left_over(total, code_.logit_multiplier);
    if (is_one(logits)) return;
    std::vector<Entry*> heads;
    for (Entry& entry : result_.plan.entries) {
      if (entry.group == Group::head && entry.layer < 0) heads.push_back(&entry);
    }
    if (heads.size() != 1) {
      return leave(heads.empty()
                       ? "logit_multiplier: the head is tied"
                       : "logit_multiplier: the list does not say which head makes logits");
    }
    into(*heads.front(), {logits});
    total = code_.logit_multiplier;
  }

  /// A list does not say which matrix ends a branch, or makes the queries.
  void leave_model() {
    const Model& model = result_.plan.model;
    const double scores = plan::left_over(model.attention_scale, code_.attention_scale).value;
    const bool is_left = scores < 1 - 1e-15 || scores > 1 + 1e-15;
    if (architecture::has_heads(result_.plan.shape) && is_left)
      leave("attention_scale: the list does not say which matrix makes queries");
    if (!is_one(plan::left_over(model.embedding_multiplier, code_.embedding_multiplier)))
      leave("embedding_multiplier: the list does not say what the code multiplies");
    for (const Residual& residual : model.residuals) {
      if (is_one(plan::left_over(residual.branch, code_.branch))) continue;
      return leave("residual_branch: the list does not say which matrix ends a branch");
    }
  }

  void leave(std::string text) { result_.left.push_back(std::move(text)); }
  void into(Entry& entry, const plan::MovedFactor& factor) {
    plan::store_times(result_.plan, entry, factor);
  }

  void fold_tensor(Entry& entry) {
    if (entry.distribution == Distribution::own) {
      if (!is_one(entry.multiplier)) leave(entry.name + ": its initial values are the model's own");
      return;
    }
    into(entry, {entry.multiplier, entry.where});
    entry.multiplier = one();
  }

  bool has(Group group) const {
    for (const Entry& entry : plan::entries_of_shape(result_.plan)) {
      if (entry.group == group) return true;
    }
    return false;
  }

  /// The embedding's multiplier into the embedding, the logits' into the head. A tied table takes
  /// the first; what the logits then lack goes into the final norm, whose output they read.
  void ends() {
    Plan& plan = result_.plan;
    Model& model = plan.model;
    const bool tied = !has(Group::head);
    const plan::MovedFactor embedding{
        plan::left_over(model.embedding_multiplier, code_.embedding_multiplier)};
    plan::MovedFactor logits{plan::left_over(model.logit_multiplier, code_.logit_multiplier)};
    if (is_one(embedding.number) && is_one(logits.number)) return;
    if (tied && !is_one(embedding.number)) times_power(logits.number, embedding.number, -1);
    if (tied && !is_one(logits.number) && !has(Group::final_norm_gain)) {
      leave("embedding_multiplier, logit_multiplier: the head is tied, without a final gain");
      return;
    }
    for (Entry& entry : plan::entries_of_shape(plan)) {
      const bool stem =
          entry.group == Group::token_embedding || entry.group == Group::patch_embedding;
      const bool end = entry.stack != Stack::encoder && (entry.group == Group::final_norm_gain ||
                                                         entry.group == Group::final_norm_bias);
      if (stem) into(entry, embedding);
      if (tied ? end : entry.group == Group::head) into(entry, logits);
      if (plan::is_at_end(plan, entry)) entry.multiplier = one();
    }
    model.embedding_multiplier = code_.embedding_multiplier;
    model.logit_multiplier = code_.logit_multiplier;
  }

  /// The tensors that a branch ends with: a matrix and its bias, or a norm's gain and bias.
  static bool ends_branch(const Shape& shape, const std::string& name) {
    if (shape.branch_norm) return name.find("_branch_norm_") != std::string::npos;
    return name.ends_with("attention_output") || name.ends_with("attention_output_bias") ||
           name == "mlp_down" || name == "mlp_down_bias" || name == "expert_down";
  }

  /// Branch multipliers into what ends the branch.
  void residuals() {
    Plan& plan = result_.plan;
    bool skips = false;
    for (Residual& residual : plan.model.residuals) {
      skips = skips || residual.skip.value != 1;
      const plan::MovedFactor branch{plan::left_over(residual.branch, code_.branch),
                                     residual.where};
      if (is_one(branch.number)) continue;
      if (plan.shape.branch_norm && !plan.shape.norm_gain) {
        leave("residual_branch: branches end with norms that have no gain");
        return;
      }
      for (Entry& entry : plan::entries_of_shape(plan)) {
        if (entry.stack != residual.stack || entry.layer != residual.layer) continue;
        if (ends_branch(plan.shape, architecture::tensor_name(entry.name).part)) {
          into(entry, branch);
        }
      }
      residual.branch = code_.branch;
    }
    if (skips) {
      leave("skip multipliers of the residual connections: no weight acts on the stream alone");
    }
  }

  /// Moves the attention scale over the code's into the queries, or into their norm.
  void attention() {
    Plan& plan = result_.plan;
    if (plan.shape.blocks == Blocks::shallow_encoder) {
      if (!is_one(plan.model.attention_scale)) {
        leave(
            "attention_scale: the shallow encoder's single head has that scale in its definition");
      }
      return;
    }
    const plan::MovedFactor factor{
        plan::left_over(plan.model.attention_scale, code_.attention_scale)};
    if (factor.number.value > 1 - 1e-15 && factor.number.value < 1 + 1e-15) return;
    const bool norm = plan.shape.qk_norm != QkNorm::none && plan.shape.norm_gain;
    if (plan.shape.qk_norm != QkNorm::none && !norm) {
      leave("attention_scale: queries are normalized, and their norm has no gain");
      return;
    }
    for (Entry& entry : plan::entries_of_shape(plan)) {
      const std::string name = architecture::tensor_name(entry.name).part;
      const bool query =
          norm ? name.ends_with("query_norm_gain") || name.ends_with("query_norm_bias")
               : entry.group == Group::query || name.ends_with("query_bias");
      if (query) into(entry, factor);
    }
    plan.model.attention_scale = code_.attention_scale;
  }

  RewrittenPlan result_;
  plan::CodeNumbers code_;
};

}  // namespace detail

/// The same training without multipliers in the forward pass: they are in the weights, in their initialization,
/// rate, decay and epsilon. A checkpoint is then one of a plain transformer, whose scores are divided by
/// √(head size), or of the code base of with_code(), whose own factors stay.
/// Equation: W = t W' trains as W' with the multiplier t: std t, rate t (t² where gradients are not
///           normalized), epsilon 1/t, and decay so that rate · decay stays
/// Source:   Yang, Hu et al. 2022 (arXiv:2203.03466v2), Lemma J.1
/// Accuracy: exact: trajectories agree to rounding. Clipping by the norm of all gradients is not the same,
///           as gradients become 1/t of what they were.
/// Throws:   InvalidInput for a plan that check_plan() refuses.
/// Differs:  `left` names what stays: skip multipliers, everything of the normalized transformer, a tied
///           head without a final norm, and of a listed model all but the multipliers of its tensors. The factor of the scores goes into the queries, whose rate and
///           epsilon may then differ from those of keys in one matrix; name_plan() says so.
inline RewrittenPlan fold(const Plan& plan) {
  check_plan(plan);
  return detail::PlanFold(plan).run();
}

}  // namespace scalewise
