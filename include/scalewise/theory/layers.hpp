// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <variant>
#include <vector>

#include "scalewise/core/spelling.hpp"
#include "scalewise/theory/attention.hpp"
#include "scalewise/theory/cross_attention.hpp"
#include "scalewise/theory/mlp.hpp"

namespace scalewise::theory {

/// Where the norms of a block stand.
/// Equation: pre:  y = λ x + β f(norm x);  post: y = norm(λ x + β f(x));  none: y = λ x + β f(x)
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), appendix E.
/// Differs:  its section 2.3 has the post-norm in front of the skip connection.
enum class Placement { pre, post, none };

inline constexpr Spelling<Placement, 3> placement_words{
    {{Placement::pre, "pre"}, {Placement::post, "post"}, {Placement::none, "none"}}};

/// A block f with its residual connection.
/// Units:    skip and branch are λ² and β².
struct Block {
  double skip = 1;
  double branch = 1;
  std::variant<Attention, CrossAttention, Mlp> inner;
};

/// The blocks of a stack of layers, first to last.
struct Layers {
  Placement placement = Placement::pre;
  double norm_epsilon = 0;
  int blocks_per_layer = 2;
  std::vector<Block> blocks;

  std::size_t depth() const { return blocks.size() / static_cast<std::size_t>(blocks_per_layer); }
};

}  // namespace scalewise::theory
