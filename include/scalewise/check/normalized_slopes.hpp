// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include "scalewise/architecture/observables.hpp"
#include "scalewise/check/scales.hpp"
#include "scalewise/check/slopes_state.hpp"

namespace scalewise::check {

namespace detail {

/// The normalized transformer, walked through with slopes in place of numbers. Every vector along
/// d_model and every row or column of a matrix has unit length, before and after each step.
class NormalizedSlopes {
 public:
  NormalizedSlopes(const Scales& scales, const GroupSlopes& change, const Band& alignment)
      : s_(scales), change_(change), alignment_(alignment), unit_(-s_.width / 2) {}

  State walk() && {
    State state;
    embedding_ = {unit_, moved(Group::token_embedding)};
    const Band& unbounded = change_[static_cast<std::size_t>(Group::token_embedding)];
    const Moving shown{unit_, mixture(embedding_.change, unbounded)};  // it may not be there yet
    stream_ = shown_stream_ = embedding_;
    for (int pass = 0; pass < 3; ++pass) blocks();
    MovingMatrix head = matrix(Group::head);
    head.omega = {0.5, 1};
    const Moving raw = head.times(stream_);
    const Moving logits = product(raw, rescaler(Group::logit_scale));
    state.activations = {
        {architecture::observable("embedding"), shown},
        {architecture::observable("attention.scores"), scores_},
        {architecture::observable("attention.output"), attention_},
        {architecture::observable("mlp.hidden"), hidden_},
        {architecture::observable("mlp.output"), mlp_},
        {architecture::observable("final_hidden"), deep() ? shown_stream_ : stream_},
        {architecture::observable("logits"), logits}};
    return state;
  }

 private:
  /// A change, bounded by the unit length of the vector.
  Band no_longer_than_unit(const Band& change) const { return bounded(change - unit_) + unit_; }

  /// Entries of a matrix of unit rows or columns.
  Band moved(Group group) const {
    return no_longer_than_unit(change_[static_cast<std::size_t>(group)]);
  }

  bool deep() const { return s_.layers > 0; }

  /// The slope of a sum; at the depths that train in minutes any of its terms may be the largest.
  template <class... More>
  Band total(const Band& a, const Band& b, const More&... more) const {
    if constexpr (sizeof...(more) > 0) return total(total(a, b), more...);
    return deep() ? mixture(a, b) : sum(a, b);
  }

  Moving times(Group group, const Moving& x) const {
    const MovingMatrix w = matrix(group);
    Moving z = w.times(x);
    if (deep()) {
      z.change = mixture(w.change + w.fan_in * w.alignment + x.start,
                         w.start + w.fan_in * w.omega + x.change);
    }
    return z;
  }

  Moving scaled(const Moving& x, const Moving& by) const {
    Moving z = product(x, by);
    if (deep()) z.change = mixture(x.change + by.start, x.start + by.change);
    return z;
  }

  MovingMatrix matrix(Group group) const {
    return {0, unit_, moved(group), s_.width, s_.width, alignment_, 0.5};
  }

  Moving rescaler(Group group) const {
    const GroupExponents& g = s_.of(group);
    return {g.multiplier + g.mean, g.multiplier + change_[static_cast<std::size_t>(group)]};
  }

  void blocks() {
    const Moving value = times(Group::value, stream_);
    // Queries and keys of a head have unit length, so the dot product of two is 1/√C, and moves by no
    // more than order one; it may not have got there yet.
    const Moving qk = rescaler(Group::qk_scale);
    const Band turned =
        total(turn(times(Group::query, stream_)), turn(times(Group::key, stream_)), qk.change) +
        s_.head_dim * Band(0, 0.5);
    const Band moved = mixture(bounded(turned), turned);
    const Band start = s_.attention_scale + 2 * qk.start - s_.head_dim / 2;
    scores_ = {start, start + moved};
    const Moving mixed{value.start, total(value.change, value.start + moved)};
    attention_ = times(Group::attention_output, mixed);
    const Moving up = scaled(times(Group::mlp_up, stream_), rescaler(Group::up_scale));
    Moving gate = scaled(times(Group::mlp_gate, stream_), rescaler(Group::gate_scale));
    gate.start = gate.start + s_.width / 2;  // the √n of the model's equation
    gate.change = gate.change + s_.width / 2;
    hidden_ = scaled(up, gate);
    mlp_ = times(Group::mlp_down, hidden_);
    const auto step = [&](Group group, const Moving& output) {
      const Moving length = rescaler(group);
      return total(length.start + turn(output), length.change) + unit_;
    };
    const Band steps = sum(step(Group::attention_step, attention_), step(Group::mlp_step, mlp_)) +
                       s_.layers * Band(0.5, 1);
    shown_stream_ = {unit_, total(embedding_.change, steps)};
    stream_ = {unit_, no_longer_than_unit(sum(embedding_.change, steps))};
  }

  const Scales& s_;
  const GroupSlopes& change_;
  Band alignment_;
  Band unit_;  // an entry of a vector of unit length along d_model
  Moving embedding_, stream_, shown_stream_, scores_, attention_, hidden_, mlp_;
};

}  // namespace detail

/// Slopes of a normalized transformer whose weights have moved by `change`. Gradients are not
/// predicted: only their direction moves anything.
/// Source:   Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2), section 2
inline State normalized_slopes(const Scales& scales, const GroupSlopes& change,
                               const Band& alignment) {
  return detail::NormalizedSlopes(scales, change, alignment).walk();
}

}  // namespace scalewise::check
