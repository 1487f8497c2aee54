// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/plan/plan.hpp"

namespace scalewise {

namespace detail {

/// Whether any number of a plan has a scaling of this kind.
inline bool has_scaling(const Plan& plan, const auto& kind) {
  bool found = false;
  const auto look = [&](const char*, const auto& number) { found = found || kind(number.scaling); };
  for (const Entry& entry : plan.entries) plan::for_each_number(entry, look);
  for (const Residual& residual : plan.model.residuals)
    look("", residual.branch), look("", residual.skip);
  look("", plan.model.logit_multiplier);
  look("", plan.model.embedding_multiplier);
  return found;
}

/// Whether any number of a plan depends on how many layers there are, or on which one it is.
inline bool scales_with_depth(const Plan& plan) {
  return has_scaling(plan, [](const Scaling& scaling) {
    return depends_on_depth(scaling) || depends_on(scaling, {&symbols::layer});
  });
}

/// The logit that a tied head gives the token just read, at the start.
/// Equation: h = (b E + P)/√(b² v + p), or b E + P without a norm, and a gain g; logit = a g E.h
///           = a g b n v/√(b² v + p), as E.P is about 0: n v the size of the embedding, p the variance of
///           positions and segments, a and b the multipliers at the ends
/// Accuracy: leaves out what the blocks add to the stream: 7 to 9 % too large where E has variance 1
inline double logit_of_own_token(const Plan& plan) {
  double token = 0, others = 0, gain = 1;
  for (const Entry& entry : plan.entries) {
    if (entry.stack == Stack::encoder) continue;
    const double own = entry.init_variance.value * entry.multiplier.value * entry.multiplier.value;
    if (entry.group == Group::token_embedding) token = entry.init_variance.value;
    if (entry.group == Group::position_embedding || entry.group == Group::segment_embedding)
      others += own;
    if (entry.group == Group::final_norm_gain)
      gain = entry.init_mean.value * entry.multiplier.value;
  }
  const double b = plan.model.embedding_multiplier.value;
  const double size = static_cast<double>(plan.shape.d_model) * token;
  const bool normalized = plan.shape.final_norm || plan.shape.embedding_norm;
  const double spread = normalized ? std::sqrt(b * b * token + others) : 1;
  return spread > 0 ? plan.model.logit_multiplier.value * gain * b * size / spread : 0;
}

/// Looks for what a plan was hardly meant to be.
class SetUp {
 public:
  explicit SetUp(const Plan& plan) : plan_(plan) {}

  std::vector<std::string> take() {
    if (plan_.base) {
      sizes(*plan_.base);
      kinds(*plan_.base);
    }
    heads("head_dim", plan_.shape);
    if (plan_.base) heads("base.head_dim", *plan_.base);
    steps();
    gains();
    branch_norms();
    tied_start();
    return std::move(found_);
  }

 private:
  void warn(const std::string& text) { found_.push_back(text); }

  void sizes(const Shape& base) {
    const Shape& shape = plan_.shape;
    smaller("d_model", shape.d_model, base.d_model);
    smaller("depth", shape.depth, base.depth);
    smaller("encoder_depth", shape.encoder_depth, base.encoder_depth);
    if (scales_with_depth(plan_)) return;
    deeper("depth", shape.depth, base.depth);
    deeper("encoder_depth", shape.encoder_depth, base.encoder_depth);
  }

  void smaller(const std::string& field, long target, long base) {
    if (target >= base) return;
    warn(field + " = " + std::to_string(target) + " is less than the base's " +
         std::to_string(base) + ": are target and base swapped?");
  }

  void deeper(const std::string& field, long target, long base) {
    if (target == base) return;
    warn(field + " = " + std::to_string(target) + ", but the base's is " + std::to_string(base) +
         ": " + plan_.rule + " does not scale with depth, so the learning rate may not transfer");
  }

  /// Unset is as false.
  static std::vector<std::pair<std::string, bool>> flags_of(const Shape& shape) {
    std::vector<std::pair<std::string, bool>> flags;
    architecture::for_each_flag(
        shape, [&](const char* name, const auto& flag) { flags.emplace_back(name, flag == true); });
    return flags;
  }

  /// Tensors that one of the two models has and the other lacks.
  void kinds(const Shape& base) {
    std::vector<std::string> differ;
    const auto own = flags_of(plan_.shape), other = flags_of(base);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i] != other[i]) differ.push_back(own[i].first);
    }
    if (plan_.shape.attention_biases != base.attention_biases)
      differ.emplace_back("attention_biases");
    if (plan_.shape.qk_norm != base.qk_norm) differ.emplace_back("qk_norm");
    if ((plan_.shape.segments > 0) != (base.segments > 0)) differ.emplace_back("segments");
    if ((plan_.shape.relative_buckets > 0) != (base.relative_buckets > 0))
      differ.emplace_back("relative_buckets");
    if (plan_.shape.activation != base.activation) differ.emplace_back("activation");
    if (differ.empty()) return;
    std::string names = differ.front();
    for (std::size_t n = 1; n < differ.size(); ++n) names += ", " + differ[n];
    warn(names + (differ.size() > 1 ? " differ" : " differs") +
         " from the base's: what was tuned on one family of models may not hold for another");
  }

  /// Source:   Yang, Hu et al. 2022 (arXiv:2203.03466v2), section D.4: keep heads at least 32 wide.
  void heads(const char* field, const Shape& shape) {
    constexpr long least = 32;
    if (shape.blocks == Blocks::shallow_encoder || shape.head_dim >= least) return;
    if (!architecture::has_heads(shape)) return;
    warn(std::string(field) + " = " + std::to_string(shape.head_dim) +
         ": heads narrower than 32 have noisy scores, and the best rate may drift");
  }

  /// Numbers of steps that change no number of the plan.
  void steps() {
    const long target = plan_.shape.iterations, base = plan_.base ? plan_.base->iterations : 0;
    const auto with_steps = [](const Scaling& s) { return depends_on(s, {&symbols::iterations}); };
    if (target == base || has_scaling(plan_, with_steps)) return;
    warn("iterations = " + std::to_string(target > 0 ? target : base) + ": " + plan_.rule +
         " does not scale with the number of steps");
  }

  void gains() {
    for (const Entry& entry : plan_.entries) {
      if (!architecture::is_norm_gain(entry.group) || entry.weight_decay.value == 0) continue;
      warn("gains are decayed (" + entry.name + " and others): " + plan_.rule +
           " does not exempt them, but most code bases do (vector.decay = 0 among the constants "
           "exempts "
           "all vectors)");
      return;
    }
  }

  /// A depth that the initial size of the last matrix of a branch follows, in vain: Norm(c x) = Norm(x).
  void branch_norms() {
    if (!plan_.shape.branch_norm) return;
    for (const Entry& entry : plan_.entries) {
      const bool is_last = entry.group == Group::attention_output ||
                           entry.group == Group::mlp_down || entry.group == Group::expert_down;
      if (!is_last || plan::is_extra(plan_, entry)) continue;
      const Scaling& variance = entry.init_variance.scaling;
      bool by_depth = depends_on_depth(variance);
      for (const scaling::Factor& factor : variance.factors())
        by_depth = by_depth || (factor.symbol->varies && factor.symbol != &symbols::fan_total);
      if (!by_depth) continue;
      warn("branch_norm = true: the norm of a branch undoes that " + plan_.rule + " draws " +
           entry.name + " and others by the depth");
      return;
    }
  }

  /// The loss with which a tied model begins where its embedding is large.
  void tied_start() {
    const Shape& shape = plan_.shape;
    if (plan_.reference != Reference::absolute || shape.blocks != Blocks::residual ||
        shape.input != Input::token || !shape.tied_head.value_or(false)) {
      return;
    }
    const double logit = logit_of_own_token(plan_);
    const double usual = std::log(static_cast<double>(shape.vocab));
    if (!(logit > 4 * usual)) return;
    std::array<char, 256> text{};
    std::snprintf(text.data(), text.size(),
                  "the head is tied to an embedding of variance %.3g, so that the token just read "
                  "gets the logit %.0f, and the first loss is about that (ln vocab is %.1f): untie "
                  "the head, or draw the embedding smaller",
                  plan_.at("token_embedding").init_variance.value, logit, usual);
    warn(text.data());
  }

  const Plan& plan_;
  std::vector<std::string> found_;
};

}  // namespace detail

/// One line for each choice that a plan was hardly meant to have: target and base swapped; another depth
/// under a rule that has none, and so of the number of steps; a head that is tied, biases, gates, norms, an activation that the base has
/// otherwise; heads narrower than 32; gains that decay; depths that a norm of
/// branches undoes; a tied head whose first loss is many times ln vocab.
/// Requires: a plan that check_plan() accepts.
inline std::vector<std::string> set_up_warnings(const Plan& plan) {
  return detail::SetUp(plan).take();
}

}  // namespace scalewise
