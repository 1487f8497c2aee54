// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "scalewise/architecture/tensor.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::nn {

/// The matrices of a model whose gradients are known at the same time in a backward pass: those of one block, such as the
/// attention of layer 3, but of an MLP the matrix down on its own, which comes first. By default what is in no block.
struct BlockId {
  Stack stack = Stack::none;
  int layer = -1;  // from 0
  BlockKind kind = BlockKind::none;
  bool down = false;

  friend auto operator<=>(const BlockId&, const BlockId&) = default;
};

/// The block of each matrix that is in one, by name.
/// Requires: a plan whose shape is resolved, as make_plan() makes it.
inline std::map<std::string, BlockId> blocks_of(const Plan& plan) {
  std::map<std::string, BlockId> blocks;
  architecture::for_each_tensor(plan.shape, plan.shape, [&](const auto& tensor) {
    if (role_of(tensor.group) != Role::hidden) return;
    const bool down = tensor.group == Group::mlp_down;
    blocks[tensor.name] = {tensor.stack, tensor.layer, tensor.block, down};
  });
  return blocks;
}

}  // namespace scalewise::nn
