// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "scalewise/architecture/tensor.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::nn {

/// A block of a model, such as the MLP of layer 3; by default what is in no block.
struct BlockId {
  Stack stack = Stack::none;
  int layer = -1;  // from 0
  BlockKind kind = BlockKind::none;

  friend auto operator<=>(const BlockId&, const BlockId&) = default;
};

/// The block of each tensor that is in one, by name. Norms and gains on a branch belong to its block.
/// Requires: a plan whose shape is resolved, as make_plan() makes it.
inline std::map<std::string, BlockId> blocks_of(const Plan& plan) {
  std::map<std::string, BlockId> blocks;
  for_each_tensor(plan.shape, plan.shape, [&](const auto& tensor) {
    if (tensor.block == BlockKind::none) return;  // the final norm of a stack, for instance
    blocks[tensor.name] = {tensor.stack, tensor.layer, tensor.block};
  });
  return blocks;
}

}  // namespace scalewise::nn
