// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/parallel.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::kernels {

/// Both kernels between two inputs, after a readout.
struct KernelValue {
  double nngp = 0;
  double ntk = 0;
};

/// Both kernels between sets of inputs.
/// Shapes:   both (n, m)
struct GramMatrices {
  Eigen::MatrixXd nngp;
  Eigen::MatrixXd ntk;
};

/// Called after each block, one call at a time, with the number of pairs of inputs that are done and
/// of all; returns false to stop.
using GramReport = std::function<bool(long done, long all)>;

/// A rectangle of a Gram matrix; where it stands on the diagonal of a symmetric one, its upper half
/// is the work.
struct GramBlock {
  Eigen::Index row = 0;
  Eigen::Index column = 0;
  Eigen::Index rows = 0;
  Eigen::Index columns = 0;
  bool diagonal = false;

  long pairs() const {
    return static_cast<long>(diagonal ? rows * (rows + 1) / 2 : rows * columns);
  }
};

/// The blocks on and above the diagonal of a symmetric matrix, row of blocks after row of blocks.
/// Throws:   InvalidInput for no input, and blocks smaller than 1.
inline std::vector<GramBlock> symmetric_blocks(Eigen::Index n, Eigen::Index block) {
  if (n < 1) throw InvalidInput("inputs", std::to_string(n), "at least one");
  if (block < 1) throw InvalidInput("block", std::to_string(block), "at least 1");
  std::vector<GramBlock> blocks;
  for (Eigen::Index i = 0; i < n; i += block) {
    for (Eigen::Index j = i; j < n; j += block) {
      blocks.push_back({i, j, (std::min)(block, n - i), (std::min)(block, n - j), i == j});
    }
  }
  return blocks;
}

/// Computes one block. pair(i, j) returns the KernelValue of inputs i and j.
/// Throws:   InvalidInput for a kernel that is not finite; what `pair` throws.
template <class Pair>
GramMatrices gram_block(const GramBlock& block, Pair& pair) {
  GramMatrices gram;
  gram.nngp.resize(block.rows, block.columns);
  gram.ntk.resize(block.rows, block.columns);
  for (Eigen::Index i = 0; i < block.rows; ++i) {
    for (Eigen::Index j = block.diagonal ? i : 0; j < block.columns; ++j) {
      const KernelValue value = pair(block.row + i, block.column + j);
      if (!std::isfinite(value.nngp) || !std::isfinite(value.ntk)) {
        throw InvalidInput("kernel of inputs " + std::to_string(block.row + i) + " and " +
                               std::to_string(block.column + j),
                           numeric::number_text(std::isfinite(value.nngp) ? value.ntk : value.nngp),
                           "a finite number", "do variances grow from layer to layer?");
      }
      gram.nngp(i, j) = value.nngp;
      gram.ntk(i, j) = value.ntk;
      if (block.diagonal) {
        gram.nngp(j, i) = value.nngp;
        gram.ntk(j, i) = value.ntk;
      }
    }
  }
  return gram;
}

/// Computes blocks on all cores and hands each to write(block, matrices), which any thread may call
/// at any time. Every block works with its own copy of `pair`, so that it may keep memory.
/// Returns:  false when `report` asked to stop before all was done.
/// Accuracy: no number depends on how many threads there are.
/// Throws:   as gram_block() does; what `write` throws.
template <class Pair, class Write>
bool for_each_gram_block(const std::vector<GramBlock>& blocks, const Pair& pair, const Write& write,
                         const GramReport& report = {}) {
  long all = 0;
  for (const GramBlock& block : blocks) all += block.pairs();
  std::mutex mutex;
  long done = 0;
  std::atomic<bool> stop = false;
  std::atomic<bool> failed = false;
  numeric::parallel_for(static_cast<Eigen::Index>(blocks.size()), [&](Eigen::Index b) {
    if (stop || failed) return;
    const GramBlock& block = blocks[static_cast<std::size_t>(b)];
    try {
      std::decay_t<Pair> own = pair;
      write(block, gram_block(block, own));
      const std::lock_guard lock(mutex);
      done += block.pairs();
      if (report && !report(done, all)) stop = true;
    } catch (...) {
      failed = true;
      throw;
    }
  });
  return done == all;
}

/// Inputs along a side of a block in memory: enough pairs to be worth a task of their own.
inline constexpr Eigen::Index gram_block_in_memory = 32;

/// The symmetric Gram matrices of n inputs.
/// Returns:  empty matrices when `report` asked to stop.
/// Shapes:   (n, n)
/// Accuracy: as for_each_gram_block().
/// Throws:   as it does, and InvalidInput for n < 1.
template <class Pair>
GramMatrices gram(Eigen::Index n, const Pair& pair, const GramReport& report = {}) {
  const std::vector<GramBlock> blocks = symmetric_blocks(n, gram_block_in_memory);
  GramMatrices all{Eigen::MatrixXd(n, n), Eigen::MatrixXd(n, n)};
  const bool complete = for_each_gram_block(
      blocks, pair,
      [&](const GramBlock& block, const GramMatrices& part) {
        const auto put = [&](Eigen::MatrixXd& to, const Eigen::MatrixXd& from) {
          to.block(block.row, block.column, block.rows, block.columns) = from;
          if (block.diagonal) return;
          to.block(block.column, block.row, block.columns, block.rows) = from.transpose();
        };
        put(all.nngp, part.nngp);
        put(all.ntk, part.ntk);
      },
      report);
  return complete ? all : GramMatrices{};
}

}  // namespace scalewise::kernels
