// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "scalewise/check/normalized_slopes.hpp"
#include "scalewise/check/residual_slopes.hpp"
#include "scalewise/check/role_slopes.hpp"
#include "scalewise/check/scales.hpp"

namespace scalewise::check {

/// The slopes that a rule predicts, of activations, gradients and updates, step by step. They come
/// from the rule's table alone: a model's training is walked through once with exponents in place
/// of numbers.
/// Equation: exponents of a product add; of a sum the largest counts; Δw ~ rate · gradient, rate,
///           or rate √r/√(fi fo), as the optimizer normalizes nothing, entries or matrices, r the rank of the
///           gradient, from that of a fixed number of tokens to min(fi, fo); products with a moved matrix as in MovingMatrix (moving.hpp)
/// Units:    exponents of the size, of root mean squares over entries
/// Accuracy: of large sizes. Bands come from the alignment, which is assumed, and for values from
///           the two terms, start and change, of which either may be the larger at finite sizes.
///           Epsilon, decay and clipping are taken as negligible.
class Prediction {
 public:
  Prediction(const Scales& scales, const Shape& shape, const Assumptions& assumptions)
      : scales_(scales),
        assumptions_(assumptions),
        normalized_(shape.blocks == Blocks::normalized),
        near_limit_(normalized_ ||
                    (scales.layers > 0
                         ? norms_keep_depths_alike(scales, assumptions)
                         : assumptions.norms || layers_of(shape) <= deepest_without_norms)) {
    if (shape.blocks == Blocks::listed) {
      near_limit_ = !along_depth();
      roles_ = detail::RoleWalk(scales_, assumptions.alignment).run();
      return;
    }
    GroupSlopes change;
    change.fill(Band::zero());
    update_.fill(Band::zero());
    for (std::size_t step = 0; step < steps; ++step) {
      State state = normalized_ ? normalized_slopes(scales, change, assumptions.alignment)
                                : residual_slopes(scales, shape, change, assumptions);
      updates_.push_back(update_);
      for (std::size_t g = 0; g < architecture::group_count; ++g) {
        const GroupExponents& group = scales.groups[g];
        if (!group.present) continue;
        update_[g] = update_of(group, state.gradients[g]);
        change[g] = sum(change[g], moves_by(group, update_[g]));
      }
      states_.push_back(std::move(state));
    }
    for (const GroupExponents& group : scales.groups) {
      if (group.present && group.normalization == policy::Normalization::none) follows_ = true;
    }
    if (follows_ && !states_.front().gradients_have_limit) near_limit_ = false;
  }

  /// The slopes by role of a model of which only the tensors are known; null for others.
  const RoleSlopes* roles() const { return roles_ ? &*roles_ : nullptr; }

  /// The slopes of what a matrix of such a model makes of its inputs.
  Moving output_of(const GroupExponents& tensor) const {
    return detail::RoleWalk(scales_, assumptions_.alignment).output_of(tensor, *roles_);
  }
  const std::string& head() const { return scales_.head; }

  bool along_depth() const { return scales_.layers > 0; }
  bool along_width() const { return scales_.width > 0 && !along_depth(); }

  /// Whether sizes that train in minutes are near the limit of large ones. Along the depth they are
  /// not where signals or gradients are multiplied from layer to layer: without norms, and after
  /// norms of a stream of which each layer adds more than one and a half times. Along the width they are not
  /// in deep models without norms.
  /// Measured: without norms, of correct set-ups at widths 8 to 64 none of 59 fails at depth 4, and most do at 6.
  bool has_limit() const { return near_limit_; }

  /// Why they are not; empty where they are.
  std::string_view why_no_limit() const {
    if (near_limit_) return "";
    if (roles_) return "along the depth a model known by its tensors alone is not judged";
    if (!has_norms())
      return along_depth() ? "along the depth a model without norms is not judged"
                           : "a model without norms is judged up to a depth of 4";
    if (along_depth() && !norms_keep_depths_alike(scales_, assumptions_)) {
      return "along the depth a model with norms after branches is judged where their multiplier "
             "begins at 1.5 or less";
    }
    return "under SGD a model with a tied head is not judged where its logits grow";
  }

  /// Whether later steps are predicted: where norms and a normalized gradient keep them in bounds.
  bool has_later_steps() const { return has_norms() && !follows_; }

  /// The visible slope of a change: vectors of norms cannot move by more than twice their length, so
  /// that large steps look alike at all sizes.
  Band shown(const Band& change) const {
    if (!has_norms() || !assumptions_.large_steps || change.is_zero()) return change;
    return {(std::min)(change.low, 0.0), (std::max)(change.high, 0.0)};
  }

  /// Whether gradients are near their limit at the sizes at hand. Without norms the tokens of a deep model
  /// are alike, and so is what a sharp softmax makes of them: gradients are larger than where smaller
  /// logits leave it flat.
  bool has_first_gradients() const {
    const std::optional<Band> logits = value("logits", 0);
    return has_norms() || !assumptions_.sharp_softmax || !logits || *logits == Band(0);
  }

  /// Whether what the first step changes is near its limit at the sizes at hand: not where gradients are
  /// not, whose direction it has, nor where more and more heads share keys and values.
  /// Measured: under maximal update with one shared head, changes of the attention's output grow as n^0.4
  ///           from width 64 to 512, and no more to 1024.
  bool has_first_changes() const { return has_first_gradients() && scales_.queries_per_key == 0; }

  /// Whether an activation begins with this power of the size at every size, on average over initializations.
  bool starts_exactly(const std::string& place) const {
    const auto& all = states_.front().exact_starts;
    return std::find(all.begin(), all.end(), place) != all.end();
  }

  /// The exponents of a place such as "mlp.output" after that many updates; none where nothing is predicted.
  std::optional<Band> value(const std::string& place, long step) const {
    const Moving* found = activation(place, step);
    if (found == nullptr) return {};
    return mixture(found->start, found->change);
  }
  std::optional<Band> change(const std::string& place, long step) const {
    const Moving* found = activation(place, step);
    return found == nullptr ? std::nullopt : std::optional(found->change);
  }
  /// Whether gradients are those of tensors over that of the logits. What the softmax leaves of a gradient
  /// depends on the size of the logits, and not on the rest of the model.
  bool per_logits() const { return assumptions_.per_logits; }

  std::optional<Band> gradient(Group group, long step) const {
    const State& state = states_[at(step)];
    const std::optional<Band>& absolute = state.gradients[static_cast<std::size_t>(group)];
    // Where a tied head predicts the token itself, p - y sums to the first token less the last: nothing is
    // left for the bias of the final norm. Without norms tokens are alike as well, and all gradients cancel.
    const bool cancels = group == Group::final_norm_bias || !has_norms();
    const bool judged = state.gradients_have_limit || (per_logits() && !cancels);
    if (!judged) return {};
    if (!per_logits()) return absolute;
    if (!absolute || absolute->is_zero()) return absolute;
    const Band& logits = state.logit_gradient;  // a factor of both ends
    return Band(absolute->low - logits.low, absolute->high - logits.high);
  }
  /// The plan's own numbers for a tensor, by its name without the layer; null for no tensor.
  const GroupExponents* tensor(const std::string& place) const {
    const auto found = scales_.tensors.find(place);
    return found == scales_.tensors.end() ? nullptr : &found->second;
  }

  /// Of the entries of a tensor before the first step.
  Band parameter(const std::string& place, Group group) const {
    if (normalized_ && architecture::is_matrix(group))
      return -scales_.width / 2;  // vectors of unit length
    const GroupExponents& g = *tensor(place);
    return sum(g.deviation, g.mean);
  }

  /// Of the updates of a tensor whose optimizer normalizes gradients.
  Band normalized_update(const std::string& place) const {
    return normalized_update(*tensor(place));
  }

  /// Of update number `step`, from 1.
  Band update(Group group, long step) const {
    return updates_[at(step)][static_cast<std::size_t>(group)];
  }

 private:
  static constexpr long deepest_without_norms = 4;
  static long layers_of(const Shape& shape) { return shape.depth + shape.encoder_depth; }
  static bool norms_keep_depths_alike(const Scales& scales, const Assumptions& assumptions) {
    return assumptions.norms && !(assumptions.post_norm && scales.first_branch > 1.5);
  }

  // After so many steps everything that ever moves has moved everything that it moves.
  static constexpr std::size_t steps = 6;

  static std::size_t at(long step) {
    return (std::min)(static_cast<std::size_t>((std::max)(step, 0L)), steps - 1);
  }

  /// The update that a step adds to a tensor. A gradient that is not predicted is not zero.
  static Band update_of(const GroupExponents& group, const std::optional<Band>& gradient) {
    if (gradient && gradient->is_zero()) return Band::zero();
    if (group.normalization != policy::Normalization::none) return normalized_update(group);
    return gradient ? group.rate + *gradient : Band::zero();
  }

  static Band normalized_update(const GroupExponents& group) {
    if (group.normalization == policy::Normalization::by_entry) return group.rate;
    return group.rate +
           Band(-(group.fan_in + group.fan_out) / 2, -(std::max)(group.fan_in, group.fan_out) / 2);
  }

  /// The size of an update in products. Whatever its rank, a step of singular values 1 makes r x of a vector of its own
  /// tokens, as does one of rank one that is aligned with it.
  static Band moves_by(const GroupExponents& group, const Band& update) {
    if (group.normalization != policy::Normalization::by_matrix || update.is_zero()) return update;
    return group.rate + Band(-(group.fan_in + group.fan_out) / 2);
  }

  const Moving* activation(const std::string& place, long step) const {
    const auto& all = states_[at(step)].activations;
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const auto& named) { return named.first == place; });
    return found == all.end() ? nullptr : &found->second;
  }

  bool has_norms() const { return assumptions_.norms || normalized_; }

  Scales scales_;
  Assumptions assumptions_;
  bool normalized_;
  bool follows_ = false;  // steps are multiples of gradients
  bool near_limit_;
  GroupSlopes update_;
  std::vector<State> states_;
  std::vector<GroupSlopes> updates_;
  std::optional<RoleSlopes> roles_;
};

}  // namespace scalewise::check
