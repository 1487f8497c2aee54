// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/description.hpp"

namespace scalewise::detail {

/// True for a text that a pattern with * for any text describes.
inline bool matches_glob(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (text.size() < star || text.substr(0, star) != pattern.substr(0, star)) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  const std::size_t next = (std::min)(pattern.find('*'), pattern.size());
  if (next == pattern.size()) return text.ends_with(pattern);
  const std::size_t found = text.find(pattern.substr(0, next));
  return found != std::string_view::npos &&
         matches_glob(pattern.substr(next), text.substr(found + next));
}

/// The size of a tensor along the axes of one letter, in the target and in the base.
struct SideSizes {
  long target = 1;
  long base = 1;
  bool grows() const { return target != base; }
};

/// True where two sides grow alike; sizes may be too large to multiply.
inline bool same_ratio(const SideSizes& a, const SideSizes& b) {
  const long of_a = std::gcd(a.target, a.base), of_b = std::gcd(b.target, b.base);
  return a.target / of_a == b.target / of_b && a.base / of_a == b.base / of_b;
}

/// A name with the number that may be its layer's: "h.", 3, ".attn.weight".
struct NumberedName {
  std::string before;
  long number = -1;
  std::string after;
};

/// All parts between dots that are numbers as programs write them, not 01, or end in "expert_" and a number, each with
/// what stands around it.
inline std::vector<NumberedName> numbers_in(const std::string& name) {
  std::vector<NumberedName> all;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = (std::min)(name.find('.', begin), name.size());
    constexpr std::string_view word = "expert_";
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    if (const std::size_t at = part.rfind(word); at != std::string_view::npos)
      begin += at + word.size();
    long number = 0;
    const auto [stop, error] = std::from_chars(name.data() + begin, name.data() + end, number);
    const bool is_number = error == std::errc{} && stop == name.data() + end && number >= 0 &&
                           number <= architecture::largest_size;
    if (is_number && std::to_string(number).size() == end - begin)
      all.push_back({name.substr(0, begin), number, name.substr(end)});
    begin = end + 1;
  }
  return all;
}

/// Splits at the first number; it is -1 where there is none.
inline NumberedName split_number(const std::string& name) {
  const std::vector<NumberedName> numbers = numbers_in(name);
  return numbers.empty() ? NumberedName{name, -1, ""} : numbers.front();
}

/// Splits at the number that is an expert's: the first under a name with "expert" and without "shared" in it, as in
/// "h.3.mlp.experts.5.up". Of names that are `given` as experts' it is otherwise the second number, after the layer's.
inline NumberedName split_expert(const std::string& name, bool given = false) {
  const std::vector<NumberedName> numbers = numbers_in(name);
  for (const NumberedName& at : numbers) {
    if (at.before.empty()) continue;
    const std::size_t last = at.before.rfind('.', at.before.size() - 2);
    const std::string list = at.before.substr(last == std::string::npos ? 0 : last);
    if (list.find("expert") != std::string::npos && list.find("shared") == std::string::npos)
      return at;
  }
  return given && numbers.size() > 1 ? numbers[1] : NumberedName{name, -1, ""};
}

/// A name with * for each number in it.
inline std::string with_stars(const std::string& name) {
  std::string text = name;
  for (NumberedName at = split_number(text); at.number >= 0; at = split_number(text))
    text = at.before + "*" + at.after;
  return text;
}

/// The first names of a list, and how many more there are.
inline std::string up_to_three(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 3; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > 3) text += " and " + std::to_string(names.size() - 3) + " more";
  return text;
}

/// The tensors of one description, by name, and what is numbered in it.
class NumberedTensors {
 public:
  explicit NumberedTensors(const ModelDescription& model) {
    for (const DescribedTensor& tensor : model.tensors) {
      by_name_.emplace(tensor.name, &tensor);
      NumberedName name = split_number(tensor.name);
      if (name.number >= 0) lists_[name.before][name.number].emplace(name.after, tensor.axes);
    }
  }

  const DescribedTensor* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  const std::map<std::string, const DescribedTensor*>& by_name() const { return by_name_; }

  /// How many modules stand under "h.0", "h.1", …; 0 where the numbers have gaps.
  long count(const std::string& before) const {
    const auto list = lists_.find(before);
    if (list == lists_.end()) return 0;
    const auto size = static_cast<long>(list->second.size());
    return list->second.rbegin()->first == size - 1 ? size : 0;
  }

  /// True where each of them has the same tensors, with the same axes, or a module with the same matrix, as the attention of
  /// layers that have experts and of those that have not: a convolution and its norm are not layers.
  bool alike(const std::string& before) const {
    const auto& list = lists_.at(before);
    const auto& first = list.begin()->second;
    const auto in_each = [&](const auto& tensor) {
      return std::all_of(list.begin(), list.end(), [&](const auto& layer) {
        const auto found = layer.second.find(tensor.first);
        return found != layer.second.end() && found->second == tensor.second;
      });
    };
    const auto is_shared = [&](const auto& tensor) {
      const auto& [name, axes] = tensor;
      return name.find('.') != std::string::npos && axes.find('i') != std::string::npos &&
             axes.find('o') != std::string::npos && in_each(tensor);
    };
    return std::any_of(first.begin(), first.end(), is_shared) ||
           std::all_of(list.begin(), list.end(),
                       [&](const auto& layer) { return layer.second == first; });
  }

  std::vector<std::string> lists() const {
    std::vector<std::string> names;
    for (const auto& [before, layers] : lists_) names.push_back(before);
    return names;
  }

 private:
  std::map<std::string, const DescribedTensor*> by_name_;
  std::map<std::string, std::map<long, std::map<std::string, std::string>>> lists_;  // axes by name
};

/// Finds of tensors of one size of a model those of another.
/// Requires: both outlive it.
class Twins {
 public:
  Twins(const NumberedTensors& from, const NumberedTensors& in) : from_(from), in_(in) {
    std::map<std::pair<long, long>, std::size_t> ratios;
    for (const auto& [name, tensor] : from.by_name()) {
      const DescribedTensor* twin = in.find(name);
      if (twin == nullptr || twin->sizes.size() != tensor->sizes.size()) continue;
      for (std::size_t axis = 0; axis < tensor->sizes.size(); ++axis) {
        const SideSizes size{tensor->sizes[axis], twin->sizes[axis]};
        const long common = std::gcd(size.target, size.base);
        const std::size_t count = ++ratios[{size.target / common, size.base / common}];
        if (!size.grows() || count <= most_) continue;
        most_ = count;
        growth_ = size;
      }
    }
  }

  /// That of this name, or of the first expert or a layer that has one.
  /// `expert`: the name split at an expert's number, which is -1 where it has none
  const DescribedTensor* find(const DescribedTensor& tensor, const NumberedName& expert,
                              bool in_layers) const {
    const std::string first = expert.number < 0 ? tensor.name : expert.before + "0" + expert.after;
    for (const std::string& one : {tensor.name, first}) {
      const DescribedTensor* twin = in_layers ? find_in_layers(tensor, one) : in_.find(one);
      if (twin != nullptr) return twin;
    }
    return nullptr;
  }

 private:
  /// That of the layer of this number, where both models have it before their last layer, or it is the last of both. Of
  /// others that of the layer whose sizes grow as most do or stay, since the last layer may be special, or every other
  /// one: of those that are tied like it, of last ones the last.
  const DescribedTensor* find_in_layers(const DescribedTensor& tensor,
                                        const std::string& name) const {
    const NumberedName at = split_number(name);
    const long last = in_.count(at.before) - 1;
    if (last < 0) return in_.find(name);  // no layers are numbered so
    const bool is_last = at.number == from_.count(at.before) - 1;
    const auto in = [&](long layer) {
      return in_.find(at.before + std::to_string(layer) + at.after);
    };
    if (is_last == (at.number == last) && at.number <= last && in(at.number) != nullptr)
      return in(at.number);
    const DescribedTensor* found = nullptr;
    std::pair<bool, std::size_t> least{};
    for (long step = 0; step <= last; ++step) {
      const DescribedTensor* one = in(is_last ? last - step : step);
      if (one == nullptr) continue;
      const std::pair rank{one->tied_to != tensor.tied_to, unusual(tensor, *one)};
      if (found != nullptr && rank >= least) continue;
      found = one;
      least = rank;
    }
    return found;
  }

  /// How many sizes neither stay nor grow as most do.
  std::size_t unusual(const DescribedTensor& tensor, const DescribedTensor& twin) const {
    if (tensor.sizes.size() != twin.sizes.size()) return tensor.sizes.size();
    std::size_t count = 0;
    for (std::size_t axis = 0; axis < tensor.sizes.size(); ++axis) {
      const SideSizes size{tensor.sizes[axis], twin.sizes[axis]};
      if (size.grows() && !same_ratio(size, growth_)) ++count;
    }
    return count;
  }

  const NumberedTensors &from_, &in_;
  SideSizes growth_;  // of most sizes of the same name
  std::size_t most_ = 0;
};

}  // namespace scalewise::detail
