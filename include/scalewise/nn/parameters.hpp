// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "scalewise/dense/matrix.hpp"
#include "scalewise/dense/memory.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/nn/block_id.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::nn {

/// Which gradients are in memory at the same time: those of all tensors, or the matrices of one block and all tensors in
/// no block, which is enough for train_step().
enum class Gradients { all, block_by_block };

/// Values and gradients of every tensor of a plan, in the plan's order, each in one block of memory.
/// Shapes:   a matrix is (fan-in, fan-out), an embedding (entries, features), a vector (1, size).
/// With Gradients::block_by_block the gradients of all blocks begin at the same place.
template <class Scalar>
class Parameters {
 public:
  /// Reads the plan's entries alone, so that any list of tensors will do.
  /// Throws:   InvalidInput for a tensor without numbers, and for 2^63 numbers or more.
  explicit Parameters(const Plan& plan, Gradients kept = Gradients::all) : kept_(kept) {
    static_cast<void>(plan.parameter_count());  // so that no sum below overflows
    Eigen::Index offset = 0;
    std::map<std::string, BlockId> blocks;
    if (kept == Gradients::block_by_block) blocks = blocks_of(plan);
    std::map<BlockId, Eigen::Index> sizes;  // of what has its gradients in memory together
    for (const Entry& entry : plan.entries) {
      const bool vector = entry.columns == 1 && architecture::is_vector(entry.group);
      const BlockId block = blocks[entry.name];
      Eigen::Index& size = sizes[block];
      const Item item{
          entry.name, vector ? 1 : entry.rows, vector ? entry.rows : entry.columns, offset, size,
          block};
      offset += static_cast<Eigen::Index>(entry.size());
      size += static_cast<Eigen::Index>(entry.size());
      index_[entry.name] = items_.size();
      items_.push_back(item);
    }
    in_no_block_ = sizes[BlockId{}];
    Eigen::Index largest = 0;
    for (const auto& [block, size] : sizes) {
      if (block != BlockId{}) largest = (std::max)(largest, size);
    }
    values_ = dense::Memory<Scalar>(offset);
    gradients_ = dense::Memory<Scalar>(in_no_block_ + largest);
  }

  // Layers point into the memory, so it may not be exchanged: assign to values() instead.
  Parameters(const Parameters&) = default;
  Parameters& operator=(const Parameters&) = delete;

  std::size_t size() const { return items_.size(); }
  const std::string& name(std::size_t i) const { return items_[i].name; }
  /// The block of a tensor; with Gradients::all no tensor has one.
  const BlockId& block(std::size_t i) const { return items_[i].block; }

  /// Throws:   InvalidInput for a plan of other tensors.
  void require_plan(const Plan& plan) const {
    const auto differ = [](const Item& item, const Entry& entry) {
      return item.name != entry.name || item.rows * item.columns != entry.size();
    };
    for (std::size_t i = 0; i < items_.size() || i < plan.entries.size(); ++i) {
      const bool both = i < items_.size() && i < plan.entries.size();
      if (both && !differ(items_[i], plan.entries[i])) continue;
      throw InvalidInput("plan.entries[" + std::to_string(i) + "]",
                         i < plan.entries.size() ? plan.entries[i].name : "(missing)",
                         i < items_.size() ? items_[i].name + " as in the parameters" : "no more");
    }
  }

  /// Position of a tensor, or -1 when the model has none of that name.
  long find(const std::string& name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? -1 : static_cast<long>(found->second);
  }

  View<Scalar> value(std::size_t i) { return at(values_, i, items_[i].offset); }
  View<Scalar> gradient(std::size_t i) { return at(gradients_, i, gradient_offset(i)); }
  ConstView<Scalar> value(std::size_t i) const { return at(values_, i, items_[i].offset); }
  ConstView<Scalar> gradient(std::size_t i) const { return at(gradients_, i, gradient_offset(i)); }

  /// All values as one row.
  View<Scalar> values() { return values_.row(); }
  ConstView<Scalar> values() const { return values_.row(); }

  /// All gradients as one row.
  /// Throws:   InvalidInput with Gradients::block_by_block.
  View<Scalar> gradients() {
    require_all_gradients();
    return gradients_.row();
  }
  /// All gradients as one row.
  /// Throws:   InvalidInput with Gradients::block_by_block.
  ConstView<Scalar> gradients() const {
    require_all_gradients();
    return gradients_.row();
  }

  /// Throws:   InvalidInput with Gradients::block_by_block.
  void require_all_gradients() const {
    if (kept_ == Gradients::all) return;
    throw InvalidInput("gradients", "block by block", "all",
                       "only train_step() can do with those of one block at a time");
  }

 private:
  struct Item {
    std::string name;
    Eigen::Index rows;
    Eigen::Index columns;
    Eigen::Index offset;
    Eigen::Index gradient_offset;  // within its block
    BlockId block;
  };

  Eigen::Index gradient_offset(std::size_t i) const {
    return items_[i].gradient_offset + (items_[i].block == BlockId{} ? 0 : in_no_block_);
  }

  View<Scalar> at(dense::Memory<Scalar>& all, std::size_t i, Eigen::Index offset) {
    const Item& item = items_[i];
    return {all.data() + offset, item.rows, item.columns, Eigen::OuterStride<>(item.columns)};
  }

  ConstView<Scalar> at(const dense::Memory<Scalar>& all, std::size_t i, Eigen::Index offset) const {
    const Item& item = items_[i];
    return {all.data() + offset, item.rows, item.columns, Eigen::OuterStride<>(item.columns)};
  }

  Gradients kept_;
  std::vector<Item> items_;
  Eigen::Index in_no_block_ = 0;  // numbers of the gradients that share no memory
  std::map<std::string, std::size_t> index_;
  dense::Memory<Scalar> values_;
  dense::Memory<Scalar> gradients_;
};

}  // namespace scalewise::nn
