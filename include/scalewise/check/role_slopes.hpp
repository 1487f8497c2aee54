// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "scalewise/check/moving.hpp"
#include "scalewise/check/scales.hpp"

namespace scalewise::check {

/// Slopes of a model of which only the tensors are known, and not how they are put together.
/// Equation: activations that grow with the width begin with order one, and change by what moves them most: by
///           their own matrix, or through it by others, of which norms leave order one; gradients reach all of
///           them through the head
/// Units:    exponents of the width
struct RoleSlopes {
  Band change = Band::zero();    // of activations that grow
  Band gradient = Band::zero();  // of the loss by activations that grow
  Moving logits;
  // Outputs that begin smaller and smaller, by the tensor that gives them: it has an output's role, though they grow.
  std::map<std::string, Band> shrinking;

  /// Whether all activations change by order one: then none may begin smaller or change less.
  bool learns_features() const { return change == Band(0); }
};

namespace detail {

/// Both slopes of a model's tensors, from their rows of the table.
class RoleWalk {
 public:
  RoleWalk(const Scales& scales, const Band& alignment) : s_(scales), alignment_(alignment) {}

  RoleSlopes run() const {
    RoleSlopes slopes;
    const GroupExponents* head = find_head();
    if (head != nullptr) slopes.gradient = s_.logit_multiplier + head->deviation;
    for (int pass = 0; pass < 3; ++pass) {  // each feeds what changed into the next matrix
      for (const auto& [name, tensor] : s_.tensors) {
        if (!tensor.present || tensor.fan_out == 0) continue;
        const bool reads = architecture::is_matrix(tensor.group) && tensor.fan_in > 0;
        const Band through = reads ? output_of(tensor, slopes).change
                                   : tensor.multiplier + moved(tensor, slopes.gradient);
        slopes.change = sum(slopes.change, through);
      }
    }
    if (head != nullptr) slopes.logits = of_head(*head, slopes);
    if (slopes.learns_features()) find_shrinking(slopes);
    return slopes;
  }

  /// The slopes of a matrix's output for an activation of order one.
  Moving output_of(const GroupExponents& tensor, const RoleSlopes& slopes) const {
    return matrix(tensor, slopes).times({0, bounded(slopes.change)});
  }

 private:
  MovingMatrix matrix(const GroupExponents& t, const RoleSlopes& slopes) const {
    const bool by_matrix = t.normalization == policy::Normalization::by_matrix;
    const double share = s_.width > 0 ? t.fan_out / s_.width : 1;
    return {t.multiplier,
            t.deviation,
            moved(t, slopes.gradient),
            t.fan_in,
            t.fan_out,
            by_matrix ? Band(1) : alignment_,
            {0.5, (std::max)(0.5, 1 - share / 2)}};
  }

  void find_shrinking(RoleSlopes& slopes) const {
    for (const auto& [name, tensor] : s_.tensors) {
      if (!tensor.present || tensor.group != Group::head || tensor.fan_out == 0) continue;
      const Band start = output_of(tensor, slopes).start;
      if (start.high < 0 && !start.is_zero()) slopes.shrinking.emplace(name, start);
    }
  }

  const GroupExponents* find_head() const {
    const auto found = s_.tensors.find(s_.head);
    return found == s_.tensors.end() || !found->second.present ? nullptr : &found->second;
  }

  /// The head may be an embedding, whose rows it reads.
  Moving of_head(GroupExponents head, const RoleSlopes& slopes) const {
    head.multiplier = s_.logit_multiplier;
    head.fan_in = s_.width;
    head.fan_out = 0;
    MovingMatrix as_matrix = matrix(head, slopes);
    if (head.normalization == policy::Normalization::none) {
      as_matrix.change =
          head.rate + s_.logit_multiplier;  // its own gradient does not come through it
    }
    return as_matrix.times({0, bounded(slopes.change)});
  }

  /// The slope of a tensor's entries after a step.
  static Band moved(const GroupExponents& t, const Band& gradient) {
    if (t.normalization == policy::Normalization::none) return t.rate + t.multiplier + gradient;
    if (t.normalization == policy::Normalization::by_entry) return t.rate;
    return t.rate + Band(-(t.fan_in + t.fan_out) / 2);
  }

  const Scales& s_;
  Band alignment_;
};

}  // namespace detail

}  // namespace scalewise::check
