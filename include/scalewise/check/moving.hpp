// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include "scalewise/check/band.hpp"

namespace scalewise::check {

/// Slopes of an activation: at initialization, and of what training has added to it.
struct Moving {
  Band start = Band::zero();
  Band change = Band::zero();

  Band now() const { return sum(start, change); }
};

/// Both terms of a sum.
inline Moving sum(const Moving& a, const Moving& b) {
  return {sum(a.start, b.start), sum(a.change, b.change)};
}

/// A product of two, entry by entry.
inline Moving product(const Moving& a, const Moving& b) {
  return {a.start + b.start, sum(a.change + b.start, a.start + b.change, a.change + b.change)};
}

/// How far a vector moves in units of its length.
inline Band relative_change(const Moving& x) {
  return x.start.is_zero() ? x.change : x.change - x.start;
}

/// How far a normalized vector moves: no farther than its length.
inline Band turn(const Moving& x) { return bounded(relative_change(x)); }

/// A matrix in the middle of training, and what the size of its products depends on.
/// Equation: z = m x W, W = W0 + ΔW, over a fan-in f:
///           z0 ~ m w f^1/2 x; Δz ~ m Δw f^α x + m w f^ω Δx + m Δw f^ν Δx
/// Source:   Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2), Definition 3.1
struct MovingMatrix {
  Band multiplier;
  Band start;   // entries of W0
  Band change;  // entries of ΔW
  double fan_in = 0;
  double fan_out = 0;
  Band alignment;  // α and ν
  Band omega;      // of W0 with Δx: ½ where both fans grow alike, up to 1 where the fan-out stays

  Moving times(const Moving& x) const {
    return {multiplier + start + fan_in / 2 + x.start,
            sum(multiplier + change + fan_in * alignment + x.start,
                multiplier + start + fan_in * omega + x.change,
                multiplier + change + fan_in * alignment + x.change)};
  }

  /// The gradient with respect to x, from that with respect to z.
  Band back(const Band& dz) const {
    return multiplier + dz + sum(start + fan_out / 2, change + fan_out * alignment);
  }
};

/// A mean of what the matrices `down` of a token's active experts make of their hidden features. Fresh matrices are
/// independent; what training adds to each of them may be aligned. What it adds to the scores of the router changes the
/// weights of experts, and where it `chooses`, which are active.
/// `active`: the power with which their number grows
inline Moving mean_of_experts(const MovingMatrix& down, const Moving& hidden, const Moving& router,
                              double active, bool chooses) {
  MovingMatrix fresh = down, added = down;
  fresh.change = added.start = Band::zero();
  const Moving independent = fresh.times(hidden);
  const Band start = independent.start + Band(-active / 2);
  Band weights = bounded(router.change);
  // As soon as scores move by as much as they are apart, other experts are active.
  if (chooses && !router.change.is_zero()) {
    weights.high = (std::max)(weights.high, relative_change(router).high / 2);
  }
  const Band change = sum(added.times(hidden).change + active * (down.alignment + Band(-1)),
                          independent.change + Band(-active / 2));
  return {start, mixture(change, start + weights)};
}

}  // namespace scalewise::check
