// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/io/quoting.hpp"

namespace scalewise {

namespace io {

/// The names of one tensor, or of tensors that differ in the layer alone, as patterns: the usual one, then
/// those that a model may have instead.
struct NamePattern {
  std::vector<std::string> names;
  std::size_t tensors = 0;  // of the plan
};

/// Tensors that an optimizer treats alike.
struct PatternGroup {
  dialect::TensorFactors factors;
  std::vector<NamePattern> patterns;
  std::size_t tensors = 0;
};

/// All tensors of a plan; `head` is a pattern of what may stand before any of the names.
struct NamePatterns {
  std::string head;
  std::vector<PatternGroup> groups;
};

/// How a configuration writes patterns of whole names.
enum class PatternStyle {
  regex,  // of Python's re: "h\.\d+\.ln_1\.weight"
  glob,   // of Python's fnmatch: "h.*.ln_1.weight"
};

/// The segments that wrappers of PyTorch add to names, at any place.
inline constexpr std::string_view wrapper_regex =
    R"((?:(?:_orig_mod|_checkpoint_wrapped_module|_fsdp_wrapped_module|module)\.)*)";

}  // namespace io

namespace detail {

/// A name with another text for each number that is a part of it by itself, unlike those of "ln_1" or
/// "fc2", and all else quoted.
template <class Quote>
std::string with_numbers_as(std::string_view name, std::string_view number, Quote&& quote) {
  const auto separates = [&](std::size_t at) { return name[at] == '.' || name[at] == '/'; };
  std::string text;
  std::size_t done = 0;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i;
    while (end < name.size() && is_digit(name[end])) ++end;
    const bool alone =
        end > i && (i == 0 || separates(i - 1)) && (end == name.size() || separates(end));
    if (alone) {
      text += quote(name.substr(done, i - done)) + std::string(number);
      done = end;
    }
    i = end > i ? end : i + 1;
  }
  return text + quote(name.substr(done));
}

}  // namespace detail

namespace io {

/// A name with * for its numbers, for people.
inline std::string name_of_any_layer(std::string_view name) {
  return detail::with_numbers_as(name, "*",
                                 [](std::string_view text) { return std::string(text); });
}

/// A name as a pattern, that of any layer where asked for.
inline std::string name_pattern(std::string_view name, PatternStyle style, bool any_number) {
  const bool regex = style == PatternStyle::regex;
  const auto quote = [&](std::string_view text) {
    return regex ? regex_text(text) : glob_text(text);
  };
  if (!any_number) return quote(name);
  return detail::with_numbers_as(name, regex ? "\\d+" : "*", quote);
}

/// Whether a glob that name_pattern() wrote matches a name; its stars match dots too.
/// Time:     that of a product of the lengths at most
inline bool glob_matches(std::string_view glob, std::string_view name) {
  constexpr std::size_t none = std::string_view::npos;
  std::size_t g = 0, n = 0;
  std::size_t star = none, from = 0;  // after the last star, and where what follows it begins
  while (n < name.size()) {
    const bool quoted = g + 2 < glob.size() && glob[g] == '[' && glob[g + 2] == ']';
    if (g < glob.size() && glob[g] == '*') {
      star = ++g;
      from = n;
    } else if (g < glob.size() && glob[quoted ? g + 1 : g] == name[n]) {
      g += quoted ? 3 : 1;
      ++n;
    } else if (star != none) {
      g = star;
      n = ++from;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == none;
}

}  // namespace io

namespace detail {

/// Finds short patterns of which one matches each name: without a prefix that models may have or lack, and
/// those of all layers in one, where no other name looks the same.
class PatternWriter {
 public:
  PatternWriter(const dialect::NamedPlan& named, io::PatternStyle style)
      : prefix_(named.assignment.prefix), style_(style) {
    const dialect::Assignment& all = named.assignment;
    std::map<std::string_view, std::size_t> index;
    for (const dialect::OwnerTensor& tensor : all.tensors) {
      index.emplace(tensor.name, tensors_.size());
      tensors_.push_back({.names = {tensor.name}});
    }
    for (const auto* others : {&all.alternatives, &all.aliases}) {
      for (const dialect::TensorAlias& other : *others) {
        if (const auto of = index.find(other.of); of != index.end()) {
          tensors_[of->second].names.push_back(other.name);
        }
      }
    }
    std::map<std::pair<std::size_t, std::string>, std::size_t> kinds;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      tensors_[i].group = group(named.factors[i]);
      const std::pair kind(tensors_[i].group, io::name_of_any_layer(tensors_[i].names.front()));
      tensors_[i].kind = kinds.emplace(kind, kinds.size()).first->second;
    }
  }

  io::NamePatterns write() {
    read_names();
    const auto clear = [&](const NamedTensor& tensor) {
      return is_clear(tensor, true) || is_clear(tensor, false);
    };
    if (!std::all_of(tensors_.begin(), tensors_.end(), clear)) {
      any_prefix_ = false;
      read_names();
    }
    for (const NamedTensor& tensor : tensors_) add(tensor);
    const bool regex = style_ == io::PatternStyle::regex;
    return {any_prefix_ ? (regex ? "(?:.*\\.)?" : "*") : "", std::move(groups_)};
  }

 private:
  /// Tensors of one kind are in one group, and differ in the layer alone.
  struct NamedTensor {
    std::vector<std::string> names;
    std::size_t group = 0;
    std::size_t kind = 0;
  };

  /// The tensors that a pattern is found in.
  struct Found {
    const NamedTensor* tensor = nullptr;
    bool tensors = false;  // several
    bool kinds = false;    // several

    void add(const NamedTensor& other) {
      if (tensor == nullptr) tensor = &other;
      tensors = tensors || tensor != &other;
      kinds = kinds || tensor->kind != other.kind;
    }
  };

  std::size_t group(const dialect::TensorFactors& factors) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].factors.same(factors)) return g;
    }
    groups_.push_back({factors, {}, 0});
    return groups_.size() - 1;
  }

  /// The pattern of a name, without the prefix where any may stand before it.
  std::string pattern(std::string_view name, bool any_number) const {
    if (any_prefix_ && name.starts_with(prefix_)) name.remove_prefix(prefix_.size());
    return io::name_pattern(name, style_, any_number);
  }

  const Found& found(const std::string& pattern) {
    const auto [at, is_new] = found_.emplace(pattern, Found{});
    if (!is_new || style_ == io::PatternStyle::regex) return at->second;
    const std::string glob = (any_prefix_ ? "*" : "") + pattern;
    for (const NamedTensor& tensor : tensors_) {
      for (const std::string& name : tensor.names) {
        if (io::glob_matches(glob, name)) at->second.add(tensor);
      }
    }
    return at->second;
  }

  /// Where regular expressions are found: in names, and with any prefix also in their ends.
  void read_names() {
    found_.clear();
    if (style_ == io::PatternStyle::glob) return;
    for (const NamedTensor& tensor : tensors_) {
      for (std::string_view name : tensor.names) {
        for (std::size_t begin = 0; begin != std::string_view::npos;) {
          name.remove_prefix(begin);
          for (const bool any_number : {false, true}) {
            found_[io::name_pattern(name, style_, any_number)].add(tensor);
          }
          begin = any_prefix_ ? name.find('.') : std::string_view::npos;
          if (begin != std::string_view::npos) ++begin;
        }
      }
    }
  }

  /// Whether the patterns of a tensor are found in no other, or no other kind.
  bool is_clear(const NamedTensor& tensor, bool any_number) {
    return std::all_of(tensor.names.begin(), tensor.names.end(), [&](const std::string& name) {
      const Found& in = found(pattern(name, any_number));
      return any_number ? !in.kinds : !in.tensors;
    });
  }

  void add(const NamedTensor& tensor) {
    io::PatternGroup& group = groups_[tensor.group];
    ++group.tensors;
    const bool any_number = is_clear(tensor, true);
    const std::pair shown(tensor.group, pattern(tensor.names.front(), any_number));
    const auto [at, is_new] = written_.emplace(shown, group.patterns.size());
    if (is_new) group.patterns.emplace_back();
    io::NamePattern& written = group.patterns[at->second];
    ++written.tensors;
    for (const std::string& name : tensor.names) {
      std::string text = pattern(name, any_number);
      const bool known =
          std::find(written.names.begin(), written.names.end(), text) != written.names.end();
      if (!known) written.names.push_back(std::move(text));
    }
  }

  std::string_view prefix_;
  io::PatternStyle style_;
  bool any_prefix_ = true;
  std::vector<NamedTensor> tensors_;
  std::vector<io::PatternGroup> groups_;
  std::map<std::string, Found> found_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> written_;
};

}  // namespace detail

namespace io {

/// Patterns of the names of all tensors, in groups in the order of their first tensor. Names that differ in the
/// layer share a pattern where all names that it matches are in one group.
/// Requires: a plan without problems.
inline NamePatterns name_patterns(const dialect::NamedPlan& named, PatternStyle style) {
  return detail::PatternWriter(named, style).write();
}

/// The names of a pattern as one regular expression, within wrappers too: "^(?:.*\\.)?h\\.\\d+\\.…$".
inline std::string whole_name_regex(const std::string& head, const NamePattern& pattern) {
  std::string all;
  for (const std::string& name : pattern.names) {
    all += all.empty() ? "" : "|";
    for (std::size_t i = 0; i < name.size(); ++i) {
      all += name[i];
      if (name[i] != '\\' || i + 1 == name.size()) continue;
      all += name[++i];
      if (name[i] == '.') all += wrapper_regex;
    }
  }
  return "^" + (head.empty() ? std::string(wrapper_regex) : head) + "(?:" + all + ")$";
}

}  // namespace io

}  // namespace scalewise
