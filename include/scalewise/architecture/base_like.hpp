// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <numeric>
#include <string>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise {

/// How a base differs from its target: in its width, its depth and its number of experts. 0: not in this.
struct Base {
  long width = 0;
  long depth = 0;
  long experts = 0;

  friend constexpr bool operator==(const Base&, const Base&) = default;
};

namespace detail {

/// The least width with a whole number of what there are `size` of at width `n`.
constexpr long step_of(long size, long n) { return n / std::gcd(size, n); }

/// A single key head stays one at any width.
constexpr bool is_multi_query(const Shape& shape) {
  return shape.kv_heads == 1 && shape.heads != 1;
}

/// Throws:   InvalidInput where heads, key heads, d_ff or expert_ff would not be whole.
inline void require_base_width(const Shape& whole, long width, const char* whose) {
  const std::string field = std::string(whose) + " width";
  if (width < 0 || width > architecture::largest_size) {
    throw InvalidInput(field, std::to_string(width), "a positive integer, at most 2^30");
  }
  const long n = whole.d_model;
  const long heads = step_of(whole.heads, n);
  const long keys = is_multi_query(whole) ? 1 : step_of(whole.kv_heads, n);
  const long d_ff = step_of(whole.d_ff, n);
  const long expert_ff = step_of(whole.expert_ff, n);
  const auto require = [&](long step, const char* what, long size) {
    if (width % step == 0) return;
    throw InvalidInput(field, std::to_string(width),
                       "a multiple of " + std::to_string(std::lcm(std::lcm(heads, keys),
                                                                  std::lcm(d_ff, expert_ff))),
                       "it has " + std::string(what) + ", " + std::to_string(size) +
                           " at a width of " + std::to_string(n));
  };
  require(heads, "heads of the same size", whole.heads);
  require(keys, "key and value heads in proportion", whole.kv_heads);
  require(d_ff, "d_ff in proportion", whole.d_ff);
  require(expert_ff, "expert_ff in proportion", whole.expert_ff);
}

/// Throws:   InvalidInput where the encoder's depth would not be whole.
inline void require_base_depth(const Shape& whole, long depth, const char* whose) {
  const std::string field = std::string(whose) + " depth";
  if (depth < 0 || depth > architecture::most_layers) {
    throw InvalidInput(field, std::to_string(depth),
                       "a positive integer, at most " + std::to_string(architecture::most_layers));
  }
  const long step = step_of(whole.encoder_depth, whole.depth);
  if (depth % step == 0) return;
  throw InvalidInput(field, std::to_string(depth), "a multiple of " + std::to_string(step),
                     "it has an encoder in proportion, of " + std::to_string(whole.encoder_depth) +
                         " layers at a depth of " + std::to_string(whole.depth));
}

/// The experts that a token activates in a base of another number of them: the same share.
/// `active`: those of the target, 0 where it is not known
/// Throws:   InvalidInput for a target without experts, and where the number would not be whole.
constexpr long active_in_base(long active, long experts, long base_experts) {
  if (experts == 0) {
    throw InvalidInput("base experts", std::to_string(base_experts),
                       "none: the model has no experts");
  }
  if (base_experts < 1 || base_experts > architecture::largest_size) {
    throw InvalidInput("base experts", std::to_string(base_experts),
                       "a positive integer, at most 2^30");
  }
  if (active == 0) return 0;
  const long step = step_of(active, experts);
  if (base_experts % step == 0) return active / (experts / step) * (base_experts / step);
  throw InvalidInput("base experts", std::to_string(base_experts),
                     "a multiple of " + std::to_string(step),
                     "a token activates the same share of them, " + std::to_string(active) +
                         " of " + std::to_string(experts));
}

}  // namespace detail

/// A base that is like the target except for its width, depth or number of experts: heads have the same size, and their
/// number, that of key heads, d_ff, expert_ff, the encoder's depth and the experts that a token activates are in proportion.
/// A single key head stays one; what the target leaves open stays open. Messages say `whose` width and depth are wrong.
///
///     make_plan("mup", {.model = target, .base = base_like(target, {.width = 256})})
///
/// Throws:   InvalidInput for a target that is not a shape, and for a width, depth or number of experts at which one of these
///           would not be whole.
inline Shape base_like(const Shape& target, const Base& base, const char* whose = "base") {
  const Shape whole = resolved(target);
  detail::require_base_width(whole, base.width, whose);
  detail::require_base_depth(whole, base.depth, whose);
  Shape shape = target;
  const auto scale = [](long& size, long from, long to) {
    const long step = detail::step_of(size, from);
    size = size / (from / step) * (to / step);
  };
  if (base.width > 0) {
    scale(shape.heads, target.d_model, base.width);
    scale(shape.d_ff, target.d_model, base.width);
    scale(shape.expert_ff, target.d_model, base.width);
    if (!detail::is_multi_query(whole)) scale(shape.kv_heads, target.d_model, base.width);
    shape.d_model = base.width;
  }
  if (base.depth > 0) {
    scale(shape.encoder_depth, target.depth, base.depth);
    shape.depth = base.depth;
  }
  if (base.experts != 0) {
    shape.experts_per_token =
        detail::active_in_base(target.experts_per_token, target.experts, base.experts);
    shape.experts = base.experts;
  }
  return shape;
}

}  // namespace scalewise
