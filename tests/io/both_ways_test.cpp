// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The plan of a list of tensors, whose roles are read off two sizes of it, against the plan of a shape by the names of a
// code base. Tables of tensors and dialects were typed apart.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/architecture/presets.hpp"
#include "scalewise/dialect/all.hpp"
#include "scalewise/dialect/classify.hpp"
#include "scalewise/io/describe_config.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/by_role.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"

namespace both_ways {

using namespace scalewise;
using json = nlohmann::ordered_json;

/// Layers are alike, so some of them do.
constexpr long most_layers = 4;

json shipped(const std::string& name) {
  return io::read_config_file(std::string(SCALEWISE_TEST_DIR) + "/data/configs/" + name + ".json");
}

/// A published configuration of the same type as a preset; empty where transformers has no such type.
std::string_view like(std::string_view preset) {
  constexpr std::pair<std::string_view, std::string_view> types[] = {
      {"gpt", "gpt2"},         {"cerebras", "gpt2"},    {"llama", "llama-3-8b"},
      {"bert", "bert-base"},   {"vit", "vit-b16"},      {"t5-1.1", "t5-1.1-xxl"},
      {"t5", "t5-base"},       {"bart", "bart-large"},  {"r2c2", ""},
      {"olmo-2", "olmo-2-7b"}, {"qwen3", "qwen3-0.6b"}, {"pythia", "pythia-160m"}};
  for (const auto& [begin, config] : types) {
    if (preset.starts_with(begin)) return config;
  }
  FAIL("no configuration is like " << preset << ": add one to this list");
  return "";
}

/// Puts the sizes of a shape into a configuration, under whichever keys it has.
json with_sizes(json config, const Shape& shape) {
  const bool after_two = config["model_type"] == "bart";  // positions
  const auto put = [&](std::initializer_list<const char*> keys, long value) {
    for (const char* key : keys) {
      if (config.contains(key)) config[key] = value;
    }
  };
  put({"n_embd", "hidden_size", "d_model"}, shape.d_model);
  put({"n_layer", "num_hidden_layers", "num_decoder_layers", "decoder_layers"}, shape.depth);
  put({"num_layers", "encoder_layers"}, shape.encoder_depth);
  put({"n_head", "num_attention_heads", "num_heads", "encoder_attention_heads",
       "decoder_attention_heads"},
      shape.heads);
  put({"num_key_value_heads"}, shape.kv_heads);
  put({"head_dim", "d_kv"}, shape.head_dim);
  put({"n_inner", "intermediate_size", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim"}, shape.d_ff);
  put({"vocab_size"}, shape.vocab);
  put({"n_positions", "max_position_embeddings"}, shape.context - (after_two ? 2 : 0));
  put({"patch_size"}, std::lround(std::sqrt(static_cast<double>(shape.patch_dim) / 3)));
  config["tie_word_embeddings"] = shape.tied_head.value_or(false);
  return config;
}

/// Fewer layers, wherever a configuration says how many.
json shallow(json config) {
  for (const char* key : {"n_layer", "num_hidden_layers", "num_layers", "num_decoder_layers",
                          "decoder_layers", "encoder_layers"}) {
    if (config.contains(key)) config[key] = (std::min)(most_layers, config[key].get<long>());
  }
  return config;
}

/// Configurations of all presets and of all published models that have a shape, by name.
std::map<std::string, json> configurations() {
  std::map<std::string, json> all;
  for (const Preset& preset : presets()) {
    const std::string_view name = like(preset.id);
    if (name.empty()) continue;
    const Shape whole = resolved(preset.shape);
    const json config = with_sizes(shipped(std::string(name)), whole);
    const auto sizes_of = [](const Shape& shape) {
      std::set<std::string> lines;
      for (const Tensor& tensor : tensors(shape))
        lines.insert(tensor.name + " " + std::to_string(tensor.rows) + " x " +
                     std::to_string(tensor.columns));
      return lines;
    };
    if (sizes_of(whole) != sizes_of(resolved(shape_from_config(config))))
      FAIL_CHECK("the configuration of " << preset.id << " is not like it");
    all.emplace(preset.id, config);
  }
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(SCALEWISE_TEST_DIR) + "/data/configs"))
    all.emplace(file.path().stem().string(), shipped(file.path().stem().string()));
  std::ifstream lines(std::string(SCALEWISE_TEST_DIR) + "/data/seen_configs.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const json model = json::parse(line);
    if (model.contains("count") && !io::has_no_shape(model["config"], "config.json"))
      all.emplace(model["name"], model["config"]);
  }
  for (auto& [name, config] : all) config = shallow(config);
  return all;
}

/// The widest base of at most half the width that has whole heads, and half of the layers.
std::optional<Base> smaller(const json& config) {
  const Shape shape = shape_from_config(config);
  for (long part = 2; part <= shape.d_model; ++part) {
    const Base base{.width = shape.d_model / part, .depth = (shape.depth + 1) / 2};
    try {
      static_cast<void>(io::describe_config(config, "", base));
      static_cast<void>(base_like(shape, base));
      return base;
    } catch (const InvalidInput&) {
      continue;
    }
  }
  return {};
}

/// The answer of the first dialect that knows all tensors of a model by their names and sizes.
std::optional<dialect::Assignment> assigned(const Shape& shape, const ModelDescription& model) {
  std::vector<dialect::ModelTensor> given;
  for (const DescribedTensor& tensor : model.tensors) {
    if (tensor.tied_to.empty())
      given.push_back({tensor.name, {tensor.sizes.begin(), tensor.sizes.end()}});
  }
  std::vector<const dialect::Dialect*> all(std::begin(dialect::all_dialects),
                                           std::end(dialect::all_dialects));
  for (const auto& [id, other] : dialect::other_ids) all.push_back(other);
  for (const dialect::Dialect* dialect : all) {
    dialect::Assignment found = classify(*dialect, shape, given);
    if (found.problems.empty()) return found;
  }
  return {};
}

bool is_by_role(const Rule& rule) {
  try {
    policy::require_by_role(rule);
    return rule.reference == Reference::base;
  } catch (const InvalidInput&) {
    return false;
  }
}

/// The name of the first number that differs; empty where none does.
std::string number_that_differs(const Entry& a, const Entry& b) {
  std::vector<double> others;
  plan::for_each_number(b,
                        [&](const char*, const auto& number) { others.push_back(number.value); });
  std::string found;
  std::size_t next = 0;
  plan::for_each_number(a, [&](const char* what, const auto& number) {
    const double other = others.at(next++);
    if (std::abs(number.value - other) > 1e-12 * std::abs(other) && found.empty())
      found = a.name + ", " + b.name + ": " + what;
  });
  return found;
}

std::string model_number_that_differs(const Plan& by_shape, const Plan& by_table) {
  const Model &a = by_shape.model, &b = by_table.model;
  if (a.attention_scale.value != b.attention_scale.value) return "attention scale";
  // Without a tie it is on the head.
  if (by_shape.shape.tied_head == true && a.logit_multiplier.value != b.logit_multiplier.value)
    return "logit multiplier";
  if (a.residuals.back().branch.value != b.residuals.back().branch.value) return "branch";
  return "";
}

/// Compares the two plans of a configuration under all rules by role.
class Comparison {
 public:
  Comparison(const std::string& name, const json& config) : name_(name) {
    shape_ = resolved(shape_from_config(config));
    const std::optional<Base> base = smaller(config);
    REQUIRE(base);
    base_ = base_like(shape_, *base);
    list(io::describe_config(config), io::describe_config(config, "", *base));
  }

  Comparison(const std::string& name, const json& config, const json& base)
      : name_(name),
        shape_(resolved(shape_from_config(config))),
        base_(resolved(shape_from_config(base))) {
    list(io::describe_config(config), io::describe_config(base));
  }

  /// The differences, one line for each plan.
  std::vector<std::string> under(const Rule& rule) const {
    std::vector<std::string> all;
    for (const Optimizer& optimizer : rule.optimizers) {
      const Plan by_shape =
          make_plan(rule.id, {.model = shape_, .base = base_, .optimizer = optimizer});
      const Plan by_table = make_plan(rule.id, {.model = listed_.shape,
                                                .base = listed_.base,
                                                .optimizer = optimizer,
                                                .extras = listed_.tensors});
      const std::string found = difference(by_shape, by_table);
      if (found.empty()) continue;
      all.push_back(name_ + ", " + std::string(rule.id) + ", " + std::string(optimizer.name) +
                    ": " + found);
    }
    return all;
  }

 private:
  void list(const io::ConfigDescription& target, const io::ConfigDescription& small) {
    listed_ = from_descriptions(target.model, small.model, target.roles, target.shape, small.shape);
    const auto found = assigned(shape_, target.model);
    REQUIRE(found);
    names_ = *found;
  }

  std::string difference(const Plan& by_shape, const Plan& by_table) const {
    std::string found = model_number_that_differs(by_shape, by_table);
    std::map<std::string, const Entry*> of_table, of_shape;
    for (const Entry& entry : by_table.entries) of_table.emplace(entry.name, &entry);
    for (const Entry& entry : by_shape.entries) of_shape.emplace(entry.name, &entry);
    for (const dialect::OwnerTensor& owner : names_.tensors) {
      const auto entry = of_table.find(owner.name);
      if (entry == of_table.end()) return owner.name + " is in no list";
      for (const dialect::OwnedPart& part : owner.parts) {
        if (found.empty()) found = number_that_differs(*of_shape.at(part.entry), *entry->second);
      }
    }
    if (found.empty() && of_table.size() != names_.tensors.size() + names_.unplanned.size())
      return "tensors without an owner";
    return found;
  }

  std::string name_;
  Shape shape_, base_;
  DescribedModel listed_;
  dialect::Assignment names_;
};

TEST_CASE("A list of tensors and a dialect have the same plan, under all rules by role") {
  std::size_t plans = 0, tried = 0;
  std::set<std::string> types, rules_compared, differences;
  for (const auto& [name, config] : configurations()) {
    if (test::sanitized && tried++ % 30 != 0) continue;
    INFO(name);
    types.insert(config.at("model_type"));
    std::optional<Comparison> compared;
    try {
      compared.emplace(name, config);
    } catch (const InvalidInput& error) {
      differences.insert(name + ": " + error.what());
      continue;
    }
    const Comparison& comparison = *compared;
    for (const Rule& rule : rules()) {
      if (!is_by_role(rule)) continue;
      rules_compared.insert(std::string(rule.id));
      plans += rule.optimizers.size();
      for (std::string& line : comparison.under(rule)) differences.insert(std::move(line));
    }
  }
  std::string text = std::to_string(differences.size()) + " of " + std::to_string(plans) + ":\n";
  for (const std::string& line : differences) text += line + "\n";
  INFO(text);
  CHECK(differences.empty());
  for (const char* rule : {"maximal-update", "depth-mup", "complete-p"})
    CHECK(rules_compared.contains(rule));
  if (test::sanitized) return;
  CHECK(plans > 400);
  for (const std::string_view type : io::described_types()) {
    if (detail::has_shape(std::string(type))) CHECK(types.contains(std::string(type)));
  }
}

TEST_CASE("Keys and values of a fixed number of heads are hidden matrices, listed or not") {
  const json config = shipped("llama-3-8b");
  json base = config;  // the sizes of no published model
  base["hidden_size"] = 2048;
  base["num_attention_heads"] = 16;
  base["intermediate_size"] = 7168;
  base["num_hidden_layers"] = 8;
  REQUIRE(config["num_key_value_heads"] == 8);
  const Comparison comparison("llama", config, base);
  for (const Rule& rule : rules()) {
    if (is_by_role(rule)) CHECK(comparison.under(rule).empty());
  }
}

}  // namespace both_ways
