// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/dialect/candidates.hpp"
#include "scalewise/dialect/dialect.hpp"
#include "scalewise/dialect/owner_tensor.hpp"
#include "scalewise/dialect/pattern_index.hpp"
#include "scalewise/dialect/shape_fit.hpp"
#include "scalewise/dialect/table_problems.hpp"
#include "scalewise/dialect/wrappers.hpp"
#include "scalewise/messages/folded.hpp"
#include "scalewise/messages/sizes_text.hpp"
#include "scalewise/messages/utf8.hpp"

namespace scalewise::dialect {

/// A tensor of somebody's model. Tensors that share memory have the same storage; null: not known.
struct ModelTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  const void* storage = nullptr;
};

/// Another name of a tensor: an alias is absent or the same storage, an alternative is there instead.
struct TensorAlias {
  std::string name;
  std::string of;
};

/// The meaning of every tensor of a model. Nothing is left out: each name is in one of the lists, and
/// where something is wrong there is a line in `problems`.
struct Assignment {
  std::string dialect;
  std::string prefix;  // that names may lack
  std::vector<OwnerTensor> tensors;
  std::vector<TensorAlias> aliases;
  std::vector<std::string> buffers;
  std::vector<std::string> unplanned;  // known to the code base, but in no plan
  std::vector<std::string> problems;
  std::vector<TensorAlias> alternatives = {};  // of usual_tensors() alone
};

namespace detail {

/// Finds what each tensor of a model is.
class Classifier {
 public:
  Classifier(const Dialect& dialect, const Shape& shape, const std::vector<Extra>& extras)
      : dialect_(dialect), shape_(shape), candidates_(dialect, shape, extras), index_(dialect) {
    const std::vector<Candidate>& all = candidates_.all();
    for (std::size_t c = 0; c < all.size(); ++c) by_name_.emplace(all[c].tensor.name, c);
    found_.assign(all.size(), nullptr);
  }

  Assignment run(const std::vector<ModelTensor>& model) {
    result_.dialect = dialect_.id;
    result_.prefix = dialect_.prefix;
    result_.problems = TableProblems(dialect_, shape_, candidates_).take();
    std::vector<std::string> names = plain_names(model);
    std::set<std::string_view> seen;
    std::vector<std::pair<std::string, const ModelTensor*>> rest;
    for (std::size_t i = 0; i < model.size(); ++i) {
      if (!seen.insert(model[i].name).second) {
        problem(model[i].name, "given twice");
      } else if (!find(model[i].name, model[i]) && !find(names[i], model[i])) {
        rest.emplace_back(std::move(names[i]), &model[i]);
      }
    }
    owners();
    aliases();
    storages();
    missing();
    for (const auto& [name, tensor] : rest) leftover(name, *tensor);
    for (std::string& line : messages::folded(problems_))
      result_.problems.push_back(std::move(line));
    return std::move(result_);
  }

 private:
  void problem(std::string_view name, const std::string& text) {
    problems_.push_back(messages::printable(name) + ": " + text);
  }

  /// Names without wrappers, and without what all begin with where no name is known with it.
  std::vector<std::string> plain_names(const std::vector<ModelTensor>& model) {
    std::vector<std::string> names;
    names.reserve(model.size());
    for (const ModelTensor& tensor : model) names.push_back(unwrapped(tensor.name));
    if (knows_any(names, "")) return names;
    for (const std::string& prefix : common_prefixes(names)) {
      if (!knows_any(names, prefix)) continue;
      result_.problems.push_back("all names begin with " + messages::printable(prefix) +
                                 ", which " + std::string(dialect_.id) +
                                 " does not have (hint: give the module that it names)");
      for (std::string& name : names) name.erase(0, prefix.size());
      break;
    }
    return names;
  }

  bool knows_any(const std::vector<std::string>& names, const std::string& without) const {
    for (const std::string& name : names) {
      const std::string rest = name.substr(without.size());
      if (by_name_.contains(rest) || !index_.lines_of(rest).empty()) return true;
    }
    return false;
  }

  bool find(const std::string& name, const ModelTensor& tensor) {
    auto at = by_name_.find(name);
    if (at == by_name_.end()) at = by_name_.find(std::string(dialect_.prefix) + name);
    if (at == by_name_.end()) return false;
    if (found_[at->second] != nullptr) {
      problem(tensor.name, "the same tensor as " + messages::printable(found_[at->second]->name));
    } else {
      found_[at->second] = &tensor;
    }
    return true;
  }

  void owners() {
    const std::vector<Candidate>& all = candidates_.all();
    for (std::size_t c = 0; c < all.size(); ++c) {
      if (found_[c] == nullptr || !all[c].alias_of.empty()) continue;
      for (const OwnedPart& part : all[c].tensor.parts) {
        const auto [at, first] = owner_of_.emplace(part.entry, found_[c]);
        if (first) continue;
        problem(found_[c]->name, "is " + part.entry + ", as " +
                                     messages::printable(at->second->name) + " is already");
        break;
      }
      OwnerTensor tensor = all[c].tensor;
      const std::string wrong = fit(all[c], shape_, found_[c]->shape, tensor);
      if (!wrong.empty()) problem(found_[c]->name, wrong);
      tensor.name = found_[c]->name;
      tensor.shape = found_[c]->shape;
      result_.tensors.push_back(std::move(tensor));
    }
  }

  void aliases() {
    const std::vector<Candidate>& all = candidates_.all();
    for (std::size_t c = 0; c < all.size(); ++c) {
      if (found_[c] == nullptr || all[c].alias_of.empty()) continue;
      const ModelTensor& alias = *found_[c];
      const auto owner = owner_of_.find(all[c].alias_of);
      if (owner == owner_of_.end()) continue;  // missing() says so
      const ModelTensor& of = *owner->second;
      result_.aliases.push_back({alias.name, of.name});
      if (alias.shape != of.shape) {
        problem(alias.name, messages::sizes_text(alias.shape) + ", but it is another name of " +
                                messages::printable(of.name) + ", which is " +
                                messages::sizes_text(of.shape));
      } else if (alias.storage != nullptr && of.storage != nullptr && alias.storage != of.storage) {
        const bool head = all[c].group == Group::token_embedding &&
                          dialect_.patterns[all[c].pattern].packing != Packing::alias;
        problem(alias.name, "not the same storage as " + messages::printable(of.name) +
                                ", whose other name it is" +
                                (head ? " (hint: tie them, or plan with tied_head=false)" : ""));
      }
    }
  }

  /// One storage is one tensor.
  void storages() {
    std::map<const void*, const OwnerTensor*> first;
    std::map<std::string_view, const void*> storage;
    for (const ModelTensor* tensor : found_) {
      if (tensor != nullptr) storage.emplace(tensor->name, tensor->storage);
    }
    for (const OwnerTensor& tensor : result_.tensors) {
      const void* own = storage.at(tensor.name);
      if (own == nullptr) continue;
      const auto [at, is_first] = first.emplace(own, &tensor);
      if (is_first) continue;
      const std::string other = at->second->parts.front().entry;
      problem(
          tensor.name,
          "the same storage as " + messages::printable(at->second->name) + ", but one is " +
              tensor.parts.front().entry + " and the other " + other +
              (tensor.parts.front().entry == "head" ? " (hint: plan with tied_head=true)" : ""));
    }
  }

  /// One problem for each tensor, and one for all layers of a stack that are missing as a whole.
  void missing() {
    const std::vector<Candidate>& all = candidates_.all();
    std::set<std::pair<Stack, int>> layers;
    for (std::size_t c = 0; c < all.size(); ++c) {
      if (found_[c] != nullptr) layers.insert(all[c].layer);
    }
    std::vector<const Candidate*> tensors;
    std::map<Stack, std::set<int>, std::greater<>> gone;
    for (const Candidate& candidate : all) {
      if (!candidate.alias_of.empty()) continue;
      bool none = true;
      for (const OwnedPart& part : candidate.tensor.parts) {
        none = none && !owner_of_.contains(part.entry);
      }
      if (!none) continue;
      for (const OwnedPart& part : candidate.tensor.parts) owner_of_.emplace(part.entry, nullptr);
      const auto [stack, layer] = candidate.layer;
      if (layer >= 0 && !layers.contains(candidate.layer)) {
        gone[stack].insert(layer);
      } else {
        tensors.push_back(&candidate);
      }
    }
    for (const auto& [stack, numbers] : gone) {
      std::vector<std::string> texts;
      for (const int number : numbers) texts.push_back(std::to_string(number));
      problem(scalewise::detail::layer_name(stack, messages::detail::in_runs(texts)),
              "no tensor found, but depth = " + std::to_string(depth_of(stack)));
    }
    for (const Candidate* tensor : tensors) missing(*tensor);
  }

  void missing(const Candidate& candidate) {
    const std::vector<OwnedPart>& parts = candidate.tensor.parts;
    std::string text = parts.front().entry;
    for (std::size_t i = 1; i < parts.size() && i < 3; ++i) {
      text.append(", ").append(parts[i].entry);
    }
    if (text == "head") text += " (hint: or --set tied_head=true, if it is the embedding)";
    problem(candidate.tensor.name,
            "missing: expected " + messages::sizes_text(candidate.tensor.shape) + " for " + text);
  }

  /// The line of the dialect that a name is of, in a stack that the model has if there is such a line.
  const TensorPattern* line_of(const std::string& name, long& layer) const {
    const TensorPattern* found = nullptr;
    for (const LineOfName& of : index_.lines_of(name)) {
      const TensorPattern& pattern = dialect_.patterns[of.line];
      if (found != nullptr && !has_stack_of(pattern.entries)) continue;
      found = &pattern;
      layer = of.layer;
      if (has_stack_of(pattern.entries)) break;
    }
    return found;
  }

  void leftover(const std::string& name, const ModelTensor& tensor) {
    long layer = 0;
    const TensorPattern* pattern = line_of(name, layer);
    if (pattern == nullptr) {
      return problem(tensor.name, "is none of the tensors of " + std::string(dialect_.id));
    }
    if (pattern->entries.empty()) return result_.buffers.push_back(tensor.name);
    if (pattern->entries == "-") return result_.unplanned.push_back(tensor.name);
    const std::string_view entry = words_of(pattern->entries).front();
    const long depth = depth_of(stack_of(entry));
    if (placeholder(entry) && has_stack_of(entry) && layer >= depth) {
      return problem(tensor.name, "of layer " + std::to_string(layer) +
                                      ", but depth = " + std::to_string(depth));
    }
    problem(tensor.name, "is " + filled(entry, layer) +
                             ", which a model of this shape does not have under this name");
  }

  static Stack stack_of(std::string_view entries) {
    return architecture::tensor_name(filled(entries, 0)).stack;
  }

  bool has_stack_of(std::string_view entries) const {
    const Stack stack = stack_of(entries);
    return stack == Stack::none || (stack == Stack::main) == (shape_.encoder_depth == 0);
  }

  long depth_of(Stack stack) const {
    return stack == Stack::encoder ? shape_.encoder_depth : shape_.depth;
  }

  const Dialect& dialect_;
  const Shape& shape_;
  Candidates candidates_;
  PatternIndex index_;
  std::map<std::string, std::size_t> by_name_;
  std::vector<const ModelTensor*> found_;               // by candidate
  std::map<std::string, const ModelTensor*> owner_of_;  // by entry
  std::vector<std::string> problems_;                   // with tensors
  Assignment result_;
};

}  // namespace detail

/// The meaning of each tensor of a model under a dialect: the entries of the plan in it, where they lie, and
/// all that is wrong at once: tensors that match no entry; entries and layers that no tensor has; other sizes, with
/// what to set, transposed matrices; one storage in two roles, tied heads that are not. Tensors that differ in
/// the layer alone share a line, see folded(). Segments of wrappers in names do not matter; a
/// prefix of all names that the dialect does not have is a problem of its own.
/// Shapes:   the shape resolved, as it is in a plan. A vocabulary may be padded, to a multiple of 64 and
///           by less than 1024 rows. Tensors of `extras` have their own names.
/// Time:     linear in the number of tensors.
/// Errors:   lines of a dialect that no tensor can be like are the first problems.
/// Differs:  From shapes alone it cannot see the parts of a fused tensor in another order, or a square
///           matrix that is transposed.
inline Assignment classify(const Dialect& dialect, const Shape& shape,
                           const std::vector<ModelTensor>& model,
                           const std::vector<Extra>& extras = {}) {
  return detail::Classifier(dialect, shape, extras).run(model);
}

/// The tensors that a model of a shape has under a dialect, by their usual names.
inline Assignment usual_tensors(const Dialect& dialect, const Shape& shape,
                                const std::vector<Extra>& extras = {}) {
  const detail::Candidates candidates(dialect, shape, extras);
  Assignment usual;
  usual.dialect = dialect.id;
  usual.prefix = dialect.prefix;
  usual.problems = detail::TableProblems(dialect, shape, candidates).take();
  std::map<std::string, std::size_t> owner_of;  // an entry, among the tensors
  for (const detail::Candidate& candidate : candidates.all()) {
    if (!candidate.alias_of.empty()) continue;
    const std::vector<OwnedPart>& parts = candidate.tensor.parts;
    if (const auto owner = owner_of.find(parts.front().entry); owner != owner_of.end()) {
      const OwnerTensor& first = usual.tensors[owner->second];
      if (first.parts == parts) usual.alternatives.push_back({candidate.tensor.name, first.name});
      continue;
    }
    usual.tensors.push_back(candidate.tensor);
    std::string twice;
    for (const OwnedPart& part : parts) {
      const auto [at, is_new] = owner_of.emplace(part.entry, usual.tensors.size() - 1);
      if (is_new || !twice.empty()) continue;
      twice = "has " + part.entry + ", as " + messages::printable(usual.tensors[at->second].name) +
              " has already";
    }
    if (!twice.empty()) {
      usual.problems.push_back(
          messages::printable(candidate.tensor.name).append(": ").append(twice));
    }
  }
  for (const detail::Candidate& candidate : candidates.all()) {
    const auto owner = owner_of.find(candidate.alias_of);
    if (owner == owner_of.end()) continue;
    usual.aliases.push_back({candidate.tensor.name, usual.tensors[owner->second].name});
  }
  for (const auto& [entry, tensor] : candidates.entries()) {
    if (!owner_of.contains(entry)) {
      usual.problems.push_back(entry + ": " + std::string(dialect.id) + " has no tensor for it");
    }
  }
  for (const TensorPattern& pattern : dialect.patterns) {
    if (pattern.entries.empty()) usual.buffers.emplace_back(pattern.name);
    if (pattern.entries == "-") usual.unplanned.emplace_back(pattern.name);
  }
  return usual;
}

}  // namespace scalewise::dialect
