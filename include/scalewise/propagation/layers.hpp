// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <variant>
#include <vector>

#include "scalewise/architecture/norm_placement.hpp"
#include "scalewise/propagation/attention.hpp"
#include "scalewise/propagation/cross_attention.hpp"
#include "scalewise/propagation/mlp.hpp"

namespace scalewise::propagation {

/// A block f with its residual connection.
/// Units:    skip and branch are λ² and β².
struct Block {
  double skip = 1;
  double branch = 1;
  std::variant<Attention, CrossAttention, Mlp> inner;
};

/// The blocks of a stack of layers, first to last.
struct Layers {
  NormPlacement placement = NormPlacement::pre;
  double norm_epsilon = 0;
  int blocks_per_layer = 2;
  std::vector<Block> blocks;

  std::size_t depth() const { return blocks.size() / static_cast<std::size_t>(blocks_per_layer); }
};

}  // namespace scalewise::propagation
