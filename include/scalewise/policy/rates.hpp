// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "scalewise/policy/cell.hpp"
#include "scalewise/policy/optimizer.hpp"

namespace scalewise {

namespace policy {

/// The learning rate of one optimizer.
struct RateOf {
  Optimizer optimizer;
  Rate rate = 0;
};

}  // namespace policy

/// The learning rates of a row: one for each optimizer that it tells apart, or one for all.
///
///     .rates = 1 / n
///     .rates = {{sgd, fo / fi}, {adamw, 1 / fi}}
///
/// Units:    factors on the global learning rate
/// Requires: at most 4 optimizers.
class Rates {
 public:
  constexpr Rates(double all) : all_(all) {}
  constexpr Rates(const Scaling& all) : all_(all) {}
  constexpr Rates(const Rate& all) : all_(all) {}
  constexpr Rates(std::initializer_list<policy::RateOf> each) : all_(0), for_all_(false) {
    for (const policy::RateOf& one : each) set(one.optimizer, one.rate);
  }

  /// True where there is a rate for an optimizer, or for the one that it is a case of.
  constexpr bool has(const Optimizer& optimizer) const {
    return for_all_ || index_of(optimizer) < size_;
  }
  /// Throws: InvalidInput for an optimizer without one.
  constexpr const Rate& of(const Optimizer& optimizer) const {
    const std::size_t i = index_of(optimizer);
    if (i < size_) return each_[i].rate;
    if (for_all_) return all_;
    throw InvalidInput("optimizer", std::string(optimizer.name), "one with a rate in the table");
  }

  constexpr void set(const Optimizer& optimizer, const Rate& rate) {
    std::size_t i = 0;
    while (i < size_ && each_[i].optimizer != optimizer) ++i;
    each_.at(i) = {optimizer, rate};
    if (i == size_) ++size_;
  }

 private:
  constexpr std::size_t index_of(const Optimizer& optimizer) const {
    for (const std::string_view name : {optimizer.name, optimizer.case_of}) {
      for (std::size_t i = 0; i < size_; ++i) {
        if (each_[i].optimizer.name == name) return i;
      }
    }
    return size_;
  }

  std::array<policy::RateOf, 4> each_{};
  std::size_t size_ = 0;
  Rate all_;
  bool for_all_ = true;
};

}  // namespace scalewise
