// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scalewise/dense/matrix.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::nn {

/// Values and gradients of every tensor of a plan, in the plan's order, each in one block of memory.
/// Shapes:   a matrix is (fan-in, fan-out), an embedding (entries, features), a vector (1, size).
template <class Scalar>
class Parameters {
 public:
  /// Reads the plan's entries alone, so that any list of tensors will do.
  /// Throws:   InvalidInput for a tensor without numbers.
  explicit Parameters(const Plan& plan) {
    Eigen::Index offset = 0;
    for (const Entry& entry : plan.entries) {
      if (entry.rows < 1 || entry.columns < 1) {
        throw InvalidInput(entry.name,
                           std::to_string(entry.rows) + " x " + std::to_string(entry.columns),
                           "positive sizes");
      }
      const Role role = role_of(entry.group);
      const bool matrix = role == Role::input || role == Role::hidden || role == Role::output;
      const bool vector = entry.columns == 1 && (!matrix || entry.group == Group::class_token);
      const Item item{entry.name, vector ? 1 : entry.rows, vector ? entry.rows : entry.columns,
                      offset};
      offset += static_cast<Eigen::Index>(entry.size());
      index_[entry.name] = items_.size();
      items_.push_back(item);
    }
    values_.setZero(1, offset);
    gradients_.setZero(1, offset);
  }

  // Layers point into the memory, so it may not be exchanged: assign to values() instead.
  Parameters(const Parameters&) = default;
  Parameters& operator=(const Parameters&) = delete;

  std::size_t size() const { return items_.size(); }
  const std::string& name(std::size_t i) const { return items_[i].name; }

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

  View<Scalar> value(std::size_t i) { return at(values_, i); }
  View<Scalar> gradient(std::size_t i) { return at(gradients_, i); }
  ConstView<Scalar> value(std::size_t i) const { return at(values_, i); }
  ConstView<Scalar> gradient(std::size_t i) const { return at(gradients_, i); }

  /// All values, or gradients, as one row.
  View<Scalar> values() { return view(values_); }
  View<Scalar> gradients() { return view(gradients_); }
  ConstView<Scalar> values() const { return read(values_); }
  ConstView<Scalar> gradients() const { return read(gradients_); }

 private:
  struct Item {
    std::string name;
    Eigen::Index rows;
    Eigen::Index columns;
    Eigen::Index offset;
  };

  View<Scalar> at(Matrix<Scalar>& all, std::size_t i) {
    const Item& item = items_[i];
    return {all.data() + item.offset, item.rows, item.columns, Eigen::OuterStride<>(item.columns)};
  }

  ConstView<Scalar> at(const Matrix<Scalar>& all, std::size_t i) const {
    const Item& item = items_[i];
    return {all.data() + item.offset, item.rows, item.columns, Eigen::OuterStride<>(item.columns)};
  }

  std::vector<Item> items_;
  std::map<std::string, std::size_t> index_;
  Matrix<Scalar> values_;
  Matrix<Scalar> gradients_;
};

}  // namespace scalewise::nn
