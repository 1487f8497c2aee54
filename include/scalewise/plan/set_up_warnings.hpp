// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/plan/plan.hpp"

namespace scalewise::inline plan {

namespace detail {

inline bool scales_with_depth(const std::vector<SymbolValue>& symbols) {
  for (const SymbolValue& symbol : symbols) {
    for (const std::string_view text : {"L", "m_L", "N_e", "m_Ne", "N_d", "m_Nd", "l"}) {
      if (symbol.text == text) return true;
    }
  }
  return false;
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
    gains();
    return std::move(found_);
  }

 private:
  void warn(const std::string& text) { found_.push_back(text); }

  void sizes(const Shape& base) {
    const Shape& shape = plan_.shape;
    smaller("d_model", shape.d_model, base.d_model);
    smaller("depth", shape.depth, base.depth);
    smaller("encoder_depth", shape.encoder_depth, base.encoder_depth);
    bool depth = scales_with_depth(plan_.symbols);
    for (const Entry& entry : plan_.entries) depth = depth || scales_with_depth(entry.where);
    for (const Residual& r : plan_.model.residuals) depth = depth || scales_with_depth(r.where);
    if (depth) return;
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
    for_each_flag(
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
    warn(std::string(field) + " = " + std::to_string(shape.head_dim) +
         ": heads narrower than 32 have noisy scores, and the best rate may drift");
  }

  void gains() {
    for (const Entry& entry : plan_.entries) {
      if (!is_norm_gain(entry.group) || entry.weight_decay.value == 0) continue;
      warn("gains are decayed (" + entry.name + " and others): " + plan_.rule +
           " does not exempt them, but most code bases do");
      return;
    }
  }

  const Plan& plan_;
  std::vector<std::string> found_;
};

}  // namespace detail

/// One line for each choice that a plan was hardly meant to have: target and base swapped; another depth
/// under a rule that has none; a head that is tied, biases, gates, norms, an activation that the base has
/// otherwise; heads narrower than 32; gains that decay.
/// Requires: a plan that check_plan() accepts.
template <class P = Plan>  // compiled only if used
std::vector<std::string> set_up_warnings(const P& plan) {
  return detail::SetUp(plan).take();
}

}  // namespace scalewise::inline plan
