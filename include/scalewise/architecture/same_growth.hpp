// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "scalewise/architecture/description.hpp"
#include "scalewise/architecture/numbered_tensors.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise {

namespace detail {

/// Compares three sizes of a model.
class GrowthCheck {
 public:
  GrowthCheck(const ModelDescription& target, const ModelDescription& base,
              const ModelDescription& third)
      : target_(target), numbered_(target), base_(base), third_(third) {}

  void run() {
    const Twins in_base(numbered_, base_), in_third(numbered_, third_);
    for (const DescribedTensor& tensor : target_.tensors) {
      if (!tensor.tied_to.empty()) continue;
      const DescribedTensor* of_base = twin(in_base, tensor);
      const DescribedTensor* of_third = twin(in_third, tensor);
      if (of_base == nullptr) continue;  // from_descriptions() says so
      const std::string field = "tensor " + messages::printable(tensor.name);
      if (of_third == nullptr || of_third->axes != tensor.axes) {
        throw InvalidInput("check model",
                           of_third == nullptr ? "without " + messages::printable(tensor.name)
                                               : field + " " + of_third->axes,
                           "the tensors of the target, with the same axes");
      }
      for (const auto& [letter, word] : sides) {
        compare(field + ", " + word, size(tensor, letter), size(*of_base, letter),
                size(*of_third, letter));
      }
    }
    if (grows_) return;
    throw InvalidInput("check model", "as large as the base, or as the target", "a third size");
  }

 private:
  static constexpr std::array<std::pair<char, const char*>, 4> sides{
      {{'i', "inputs"}, {'o', "outputs"}, {'k', "kernel"}, {'e', "copies"}}};

  /// The third model's growth for one growth from the base to the target, with the field where it was first seen.
  struct Seen {
    SideSizes third;  // over the base
    std::string field;
  };

  static const DescribedTensor* twin(const Twins& in, const DescribedTensor& tensor) {
    return in.find(tensor, split_expert(tensor.name), true);
  }

  static long size(const DescribedTensor& tensor, char letter) {
    long product = 1;
    for (std::size_t axis = 0; axis < tensor.axes.size(); ++axis) {
      if (tensor.axes[axis] == letter) product *= tensor.sizes[axis];
    }
    return product;
  }

  void compare(const std::string& field, long target, long base, long third) {
    const SideSizes growth{target, base}, to_third{third, base};
    grows_ = grows_ || (growth.grows() && third != target && third != base);
    const long common = std::gcd(target, base);
    const auto key = std::pair(target / common, base / common);
    const Seen seen = growth.grows() ? seen_.try_emplace(key, Seen{to_third, field}).first->second
                                     : Seen{{1, 1}, ""};
    if (same_ratio(seen.third, to_third)) return;
    const std::string as = seen.field.empty() ? std::to_string(base) + ", as in the two others"
                                              : "growth as of " + seen.field + ", from " +
                                                    std::to_string(seen.third.base) + " to " +
                                                    std::to_string(seen.third.target);
    throw InvalidInput(field,
                       std::to_string(base) + " to " + std::to_string(target) + ", and " +
                           std::to_string(third) + " in the check model",
                       as, "base and target alone do not tell what it grows with");
  }

  const ModelDescription& target_;
  NumberedTensors numbered_, base_, third_;
  std::map<std::pair<long, long>, Seen> seen_;  // by the growth from base to target
  bool grows_ = false;
};

}  // namespace detail

namespace architecture {

/// Requires that a third size of a model confirms what two say: sides that grow alike from the base to the target grow
/// alike from the base to it, and what stays the same in both stays in it.
/// Requires: descriptions of which from_descriptions() takes the first two.
/// Throws:   InvalidInput naming the first side that does not, for tensors of one of them alone, and for a third that is as
///           large as one of the two.
inline void require_same_growth(const ModelDescription& target, const ModelDescription& base,
                                const ModelDescription& third) {
  check_description(third);
  detail::GrowthCheck(target, base, third).run();
}

}  // namespace architecture

}  // namespace scalewise
