// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The JSON of a dialect, and plans and lists of tensors under what it says.

#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "fuzz/json_edit.hpp"
#include "scalewise/dialect/classify.hpp"
#include "scalewise/dialect/flat_blocks.hpp"
#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/io/dialect_json.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/maximal_update.hpp"

namespace scalewise::fuzz::dialect_target {

namespace {

Shape small() {
  return Shape{
      .d_model = 8, .depth = 2, .heads = 4, .kv_heads = 2, .d_ff = 12, .context = 3, .vocab = 5};
}

/// Two stacks, gates and a tied head; and one with neither biases nor a table of positions.
const std::vector<Plan>& plans() {
  static const std::vector<Plan> all = [] {
    Shape both = small();
    both.encoder_depth = 1;
    both.gated_mlp = true;
    both.tied_head = true;
    Shape bare = small();
    bare.biases = bare.norm_bias = bare.learned_positions = false;
    std::vector<Plan> made;
    for (const Shape& shape : {small(), both, bare}) {
      made.push_back(make_plan(MaximalUpdate{}, {.model = shape, .base = shape}));
    }
    return made;
  }();
  return all;
}

/// A dialect that extends another, with some of its lines again; all of them are too long for an input.
std::string part_of(const dialect::Dialect& dialect, std::size_t from) {
  nlohmann::ordered_json patterns = nlohmann::ordered_json::array();
  for (const dialect::TensorPattern& p : dialect.patterns.subspan(from).first(3)) {
    patterns.push_back({p.name, p.entries, word(io::packing_words, p.packing)});
  }
  return nlohmann::ordered_json{{"schema", io::dialect_schema},
                                {"id", "own"},
                                {"extends", dialect.id},
                                {"prefix", dialect.prefix},
                                {"layout", word(io::layout_words, dialect.layout)},
                                {"patterns", patterns}}
      .dump();
}

/// Names and entries that every table has, so that an edit says something.
const std::vector<std::string>& words() {
  static const std::vector<std::string> all = [] {
    std::set<std::string> found{"{}", "{1}", "{2}", "!", "-", "a.{}.b.{}", "nanogpt", "marian"};
    for (const dialect::Dialect* dialect : dialect::all_dialects) {
      for (const dialect::TensorPattern& p : dialect->patterns) {
        found.emplace(p.entries);
        for (std::string_view entry : dialect::detail::words_of(p.entries)) found.emplace(entry);
      }
    }
    for (const auto& packing : io::packing_words) found.emplace(packing.text);
    return std::vector<std::string>(found.begin(), found.end());
  }();
  return all;
}

std::int64_t numbers_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t n : shape) count *= n;
  return count;
}

/// Each number of a tensor belongs to one entry, or is padding.
void check_tensor(const dialect::OwnerTensor& tensor, const Plan& plan) {
  const std::int64_t size = numbers_of(tensor.shape);
  if (size <= 0) std::abort();
  std::vector<bool> taken(static_cast<std::size_t>(size));
  std::set<std::string> entries;
  for (const dialect::OwnedPart& part : tensor.parts) {
    if (!entries.insert(part.entry).second) std::abort();
    std::int64_t count = 0;
    for (const dialect::FlatBlock& block : dialect::flat_blocks(tensor, part)) {
      for (std::int64_t r = 0; r < block.repeats; ++r) {
        for (std::int64_t i = 0; i < block.count; ++i, ++count) {
          const std::int64_t at = block.offset + r * block.stride + i;
          if (at < 0 || at >= size || taken[static_cast<std::size_t>(at)]) std::abort();
          taken[static_cast<std::size_t>(at)] = true;
        }
      }
    }
    if (count != plan.at(part.entry).size()) std::abort();
  }
}

}  // namespace

static std::vector<std::string> seeds() {
  std::vector<std::string> all{
      R"({"schema":"scalewise.dialect/1","id":"own","title":"Own","extends":"nanogpt",)"
      R"("patterns":[["model.embedding.weight","token_embedding"],["transformer.wte.weight","-"]]})"};
  for (const dialect::Dialect* dialect : dialect::all_dialects) {
    for (std::size_t from = 0; from + 3 <= dialect->patterns.size(); from += 3) {
      all.push_back(part_of(*dialect, from));
    }
  }
  return all;
}

/// A name, entry or packing is another, or a value is one at which programs fail.
static std::string edited(std::string input, Random& random) {
  auto root = nlohmann::ordered_json::parse(input, nullptr, false);
  const bool usual = root.is_object() && root.contains("patterns") && root["patterns"].is_array() &&
                     !root["patterns"].empty();
  if (!usual || below(3, random) == 0) return edited_json(input, random);
  auto& patterns = root["patterns"];
  auto& pattern = patterns[below(patterns.size(), random)];
  if (!pattern.is_array() || pattern.empty()) return edited_json(input, random);
  auto& text = pattern[below(pattern.size(), random)];
  const std::string& other = words()[below(words().size(), random)];
  const bool append = text.is_string() && below(2, random) == 0;
  text = append ? text.get<std::string>() + ' ' + other : other;
  return root.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

static void run(std::string_view input) {
  const nlohmann::ordered_json json = io::parse_json(input, "own.json");
  const io::OwnDialect own(io::JsonReader(json, "own.json"));
  // One of the plans for each input, so that there are more inputs.
  const Plan& plan = plans()[std::hash<std::string_view>{}(input) % plans().size()];
  const dialect::NamedPlan named = name_plan(plan, own.get());
  std::vector<dialect::ModelTensor> model;
  for (const dialect::OwnerTensor& tensor : named.assignment.tensors) {
    model.push_back({tensor.name, tensor.shape});
  }
  const dialect::Assignment found = classify(own.get(), plan.shape, model);
  if (!named.assignment.problems.empty()) return;
  if (!found.problems.empty() || found.tensors.size() != model.size()) std::abort();
  for (const dialect::OwnerTensor& tensor : found.tensors) check_tensor(tensor, plan);
}

static const Added added{{"dialect", seeds, edited, run}};

}  // namespace scalewise::fuzz::dialect_target
