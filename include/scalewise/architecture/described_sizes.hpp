// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/described_experts.hpp"
#include "scalewise/architecture/extra.hpp"

namespace scalewise::detail {

/// The sizes that sides of tensors grow with: the width, or one that has a name.
class DescribedSizes : protected DescribedExperts {
 protected:
  DescribedSizes(const ModelDescription& target, const ModelDescription& base,
                 const std::vector<architecture::RoleOverride>& roles, const Shape& shape,
                 const Shape& base_shape)
      : DescribedExperts(target, base, roles, shape, base_shape), same_(target == base) {}

  /// Refuses two vocabularies: a head whose outputs differ as the rows of an embedding do would be taken for hidden.
  void require_one_vocabulary() const {
    for (std::size_t i = 0; i < target_.tensors.size(); ++i) {
      const SideSizes rows = side(i, 'i');
      if (target_.tensors[i].kind != TensorKind::embedding || rows.target == rows.base) continue;
      if (rows.target == model_.shape.d_model && rows.base == model_.base.d_model) continue;
      for (std::size_t j = 0; j < target_.tensors.size(); ++j) {
        const SideSizes outputs = side(j, 'o');
        if (target_.tensors[j].kind != TensorKind::linear || outputs.target != rows.target ||
            outputs.base != rows.base)
          continue;
        throw InvalidInput("tensor " + messages::printable(target_.tensors[j].name) + ", outputs",
                           growth(outputs.base, outputs.target), "as many in both models",
                           "they are the rows of " + messages::printable(target_.tensors[i].name) +
                               ": describe a base with as many");
      }
    }
  }

  /// The width is what most inputs and outputs grow with, where the user has not said it.
  void find_width() {
    if (model_.shape.d_model > 0 && model_.base.d_model > 0) {
      return say("d_model", {model_.shape.d_model, model_.base.d_model}, "given");
    }
    std::map<std::pair<long, long>, std::size_t> sides;
    for (std::size_t i = 0; i < target_.tensors.size(); ++i) {
      for (const char letter : {'i', 'o'}) {
        const SideSizes size = side(i, letter);
        if (size.grows() && !is_number_of_experts(size)) ++sides[{size.target, size.base}];
      }
    }
    if (sides.empty()) {
      throw InvalidInput("base", same_ ? "the target itself" : "as wide as the target",
                         "the same model at another width",
                         depth_.grows()
                             ? "for another depth alone give both widths and the roles: --set "
                               "d_model=N --set base.d_model=N --role PATTERN=hidden"
                             : "build it with the sizes that rates were tuned on");
    }
    const auto most =
        std::max_element(sides.begin(), sides.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    model_.shape.d_model = most->first.first;
    model_.base.d_model = most->first.second;
    say("d_model", {most->first.first, most->first.second},
        "what most inputs and outputs grow with");
  }

  /// A size, some times, by those that have a name: "4*d_model", "43*d_model/16", "64".
  std::string size_text(std::size_t i, const char* which, const SideSizes& size,
                        long some = 1) const {
    if (!size.grows() || !names_sizes_) return std::to_string(some * size.target);
    for (const NamedSize& named : named_sizes) {
      const long target = model_.shape.*named.field, base = model_.base.*named.field;
      if (target == base || base <= 0 || !same_ratio(size, {target, base})) continue;
      const long common = std::gcd(some * size.target, target);
      const long times = some * size.target / common, over = target / common;
      return (times == 1 ? "" : std::to_string(times) + "*") + std::string(named.name) +
             (over == 1 ? "" : "/" + std::to_string(over));
    }
    const std::string name = free_name();
    throw InvalidInput("tensor " + messages::printable(target_.tensors[i].name) + ", " + which,
                       growth(size.base, size.target),
                       "a multiple of d_model, which grows from " +
                           growth(model_.base.d_model, model_.shape.d_model),
                       "give the size that it grows with a name, as in --set " + name + "=" +
                           std::to_string(size.target) + " --set base." + name + "=" +
                           std::to_string(size.base));
  }

  /// The inputs of copies of a matrix side by side.
  std::string inputs_text(std::size_t i, const SideSizes& copies = {}) const {
    return times_copies(copies, [&](long some) {
      return size_text(i, "inputs", side(i, 'i'), some * side(i, 'k').target);
    });
  }

  /// A size of one, times as many as there are of them.
  static std::string times_copies(const SideSizes& copies, const auto& text) {
    return copies.grows() ? "experts*" + text(1) : text(copies.target);
  }

  bool names_sizes_ = true;

 private:
  /// A name of a size that the model does not use otherwise.
  const char* free_name() const {
    return model_.shape.d_ff == 0 ? "d_ff" : model_.shape.expert_ff == 0 ? "expert_ff" : "vocab";
  }

  bool same_ = false;  // target and base
};

}  // namespace scalewise::detail
