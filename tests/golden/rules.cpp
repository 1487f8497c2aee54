// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// rules.json: plans of every policy, to a relative 1e-12. A case has "tensors", a whole plan, where
// every tensor has exactly one row and every row a tensor; or "groups", where what it leaves out is
// not checked. README.md describes both.

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "golden/files.hpp"
#include "scalewise/io/shape_json.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/deep_scale_lm.hpp"
#include "scalewise/scalewise.hpp"

namespace scalewise::golden {

namespace {

std::vector<const Entry*> entries_of(const Plan& plan, const std::string& id) {
  for (const architecture::GroupInfo& info : architecture::group_table) {
    if (info.id == id) return plan.of(info.group);
  }
  return {};
}

/// A parameter that names the member of a family which the policy is.
bool is_fixed(const std::string& policy, const Parameter& parameter) {
  return (policy == "neural-tangent" && parameter.name == "s" && parameter.value == 0) ||
         (policy == "depth-mup" && parameter.name == "alpha" && parameter.value == 0.5);
}

void check_group(const io::JsonReader& expected, const std::string& quantity, const Entry& entry,
                 Tally& tally) {
  const io::JsonReader value = expected.at(quantity);
  if (quantity == "init_variance") return tally.compare(value, entry.init_variance.value);
  if (quantity == "multiplier") return tally.compare(value, entry.multiplier.value);
  if (quantity == "learning_rate") return tally.compare(value, entry.learning_rate.value);
  if (quantity == "weight_decay") return tally.compare(value, entry.weight_decay.value);
  if (quantity == "epsilon") return tally.compare(value, entry.epsilon.value);
  tally.complain(value.path(), "no such quantity");
}

void compare_correlation(const io::JsonReader& expected, const std::vector<double>& correlations,
                         std::size_t at, Tally& tally) {
  if (at < correlations.size()) return tally.compare(expected, correlations[at]);
  tally.complain(expected.path(), "this rule tracks no such correlation");
}

/// DeepScaleLM's cases list their variances layer by layer, with the token correlations.
void check_layers(const io::JsonReader& groups, const nlohmann::json& json, const Plan& plan,
                  const std::vector<double>& correlations, Tally& tally) {
  const std::vector<io::JsonReader> layers = groups.at("layers").items();
  if (static_cast<long>(layers.size()) != plan.shape.depth) {
    tally.complain(groups.path() + ".layers", "not as many as the shape has");
    return;
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (const auto& [key, unused] : json["layers"][l].items()) {
      if (key == "correlation") {
        compare_correlation(layers[l].at(key), correlations, l, tally);
      } else {
        tally.compare(layers[l].at(key),
                      plan.at("layer." + std::to_string(l) + "." + key).init_variance.value);
      }
    }
  }
}

void check_groups(const io::JsonReader& groups, const nlohmann::json& json, const Plan& plan,
                  const std::vector<double>& correlations, Tally& tally) {
  for (const auto& [key, quantities] : json.items()) {
    if (key == "layers") {
      check_layers(groups, json, plan, correlations, tally);
    } else if (key == "embedding_variance") {
      tally.compare(groups.at(key), plan.at("token_embedding").init_variance.value);
    } else if (key == "final_correlation") {
      compare_correlation(groups.at(key), correlations, correlations.size() - 1, tally);
    } else {
      const std::vector<const Entry*> entries = entries_of(plan, key);
      if (entries.empty()) tally.complain(groups.path() + "." + key, "no such entry in the plan");
      for (const Entry* entry : entries) {
        for (const auto& [quantity, unused] : quantities.items()) {
          check_group(groups.at(key), quantity, *entry, tally);
        }
      }
    }
  }
}

/// The name of a tensor with a star for its layer: layer.*.query.
std::string starred(const Entry& entry) {
  std::string name = entry.name;
  const std::string layer = "." + std::to_string(entry.layer) + ".";
  if (entry.layer >= 0) name.replace(name.find(layer), layer.size(), ".*.");
  return name;
}

/// A row: names, distribution, and numbers in the order of the columns. Null is not checked.
void check_row(const io::JsonReader& row, const Entry& entry, Tally& tally) {
  const std::vector<io::JsonReader> cells = row.items();
  const std::array<double, 6> numbers{entry.init_variance.value, entry.init_mean.value,
                                      entry.multiplier.value,    entry.learning_rate.value,
                                      entry.weight_decay.value,  entry.epsilon.value};
  if (cells.size() != numbers.size() + 2) return tally.complain(row.path(), "is no row of 8 cells");
  tally.same(cells[1], std::string(word(policy::distribution_words, entry.distribution)),
             entry.name);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!cells[i + 2].is_null()) tally.compare(cells[i + 2], numbers[i], 1e-12, 0, entry.name);
  }
}

void check_tensors(const io::JsonReader& tensors, const Plan& plan, Tally& tally) {
  struct Named {
    io::JsonReader row;
    bool met = false;
  };
  std::map<std::string, Named> rows;
  for (const io::JsonReader& row : tensors.items()) {
    std::istringstream names(row.items().at(0).string());
    for (std::string name; names >> name;) {
      if (!rows.try_emplace(name, Named{row}).second) tally.complain(row.path(), name + " again");
    }
  }
  for (const Entry& entry : plan.entries) {
    auto found = rows.find(entry.name);
    if (found == rows.end()) found = rows.find(starred(entry));
    if (found == rows.end()) {
      tally.complain(tensors.path(), "has no row for " + entry.name);
    } else {
      found->second.met = true;
      check_row(found->second.row, entry, tally);
    }
  }
  for (const auto& [name, named] : rows) {
    if (!named.met) tally.complain(named.row.path(), "the plan has no " + name);
  }
}

/// Skip and branch of every layer, which are the same in all layers of a stack.
void check_residuals(const io::JsonReader& stacks, const Plan& plan, Tally& tally) {
  for (const Residual& r : plan.model.residuals) {
    const std::vector<io::JsonReader> pair =
        stacks.at(std::string(word(architecture::stack_words, r.stack))).items();
    tally.compare(pair.at(0), r.skip.value);
    tally.compare(pair.at(1), r.branch.value);
  }
}

/// The gain over Xavier's 2/(fi+fo) that an entry starts with.
double xavier_gain(const Entry& entry) {
  return std::sqrt(entry.init_variance.value * (entry.fan_in + entry.fan_out) / 2);
}

void check_model(const io::JsonReader& model, const nlohmann::json& json, const Plan& plan,
                 Tally& tally) {
  for (const auto& [key, value] : json.items()) {
    const io::JsonReader expected = model.at(key);
    if (key == "parameters") {
      tally.compare(expected, static_cast<double>(plan.parameter_count()), 0);
    } else if (key == "attention_scale") {
      tally.compare(expected, plan.model.attention_scale.value);
    } else if (key == "logit_multiplier") {
      tally.compare(expected, plan.model.logit_multiplier.value);
    } else if (key == "embedding_multiplier") {
      tally.compare(expected, plan.model.embedding_multiplier.value);
    } else if (key == "residuals") {
      check_residuals(expected, plan, tally);
    } else if (key == "residual_skip" || key == "residual_branch") {
      for (const Residual& r : plan.model.residuals) {
        tally.compare(expected, (key == "residual_skip" ? r.skip : r.branch).value);
      }
    } else if (key == "gain_value_output_mlp" || key == "gain_query_key") {
      const bool branch = key == "gain_value_output_mlp";
      const std::vector<std::string> names =
          branch ? std::vector<std::string>{"value", "attention_output", "mlp_up", "mlp_down"}
                 : std::vector<std::string>{"query", "key"};
      for (const std::string& name : names) {
        for (const Entry* entry : entries_of(plan, name)) {
          tally.compare(expected, xavier_gain(*entry));
        }
      }
    } else if (key == "rescalers") {
      for (const auto& [name, unused] : value.items()) {
        const std::vector<const Entry*> entries = entries_of(plan, name);
        if (entries.empty()) tally.complain(expected.path() + "." + name, "no such entry");
        for (const Entry* entry : entries) {
          const io::JsonReader rescaler = expected.at(name);
          tally.compare(rescaler.at("init"), entry->init_mean.value * entry->multiplier.value);
          tally.compare(rescaler.at("scale"), entry->init_mean.value);
        }
      }
    } else {
      tally.complain(expected.path(), "no such quantity");
    }
  }
}

void check_case(const io::JsonReader& reader, const nlohmann::json& json, Tally& tally) {
  reader.only({"policy", "optimizer", "shape", "base", "params", "groups", "tensors", "model"});
  const std::string policy = reader.at("policy").string();
  const Optimizer optimizer =
      policy::optimizer_named(reader.path(), reader.at("optimizer").string());
  const Shape shape = shape_from_json(reader.at("shape"));
  std::optional<Shape> base;
  if (reader.has("base") && !reader.at("base").is_null()) base = shape_from_json(reader.at("base"));
  std::vector<Parameter> parameters;
  if (reader.has("params")) {
    for (const auto& [name, unused] : json["params"].items()) {
      Parameter parameter{name, reader.at("params").at(name).number()};
      if (!is_fixed(policy, parameter)) parameters.push_back(std::move(parameter));
    }
  }
  const Plan plan = make_plan(
      policy, {.model = shape, .base = base, .optimizer = optimizer, .parameters = parameters});
  std::vector<double> correlations;
  const Rule rule = Rule(policy).with(parameters);
  for (const auto& [symbol, by_layer] : rule.policy->own_values({plan.shape})) {
    if (symbol == &DeepScaleLM::token_correlation) correlations = by_layer;
  }
  if (reader.has("tensors")) check_tensors(reader.at("tensors"), plan, tally);
  if (reader.has("groups")) {
    check_groups(reader.at("groups"), json["groups"], plan, correlations, tally);
  }
  if (reader.has("model")) check_model(reader.at("model"), json["model"], plan, tally);
}

}  // namespace

long check_rules(const nlohmann::json& file, Tally& tally) {
  const std::vector<io::JsonReader> cases = io::JsonReader(file, "rules.json").at("cases").items();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    try {
      check_case(cases[i], file["cases"][i], tally);
    } catch (const InvalidInput& error) {
      tally.complain(cases[i].path(), error.what());
    }
  }
  return static_cast<long>(cases.size());
}

std::vector<std::string> rules_without_case(const nlohmann::json& file) {
  std::set<std::string> with_case;
  for (const io::JsonReader& c : io::JsonReader(file, "rules.json").at("cases").items()) {
    with_case.insert(c.at("policy").string() + " under " + c.at("optimizer").string());
  }
  std::vector<std::string> without;
  for (const Rule& rule : rules()) {
    for (const Optimizer& optimizer : rule.optimizers) {
      std::string name = std::string(rule.id) + " under " + std::string(optimizer.name);
      if (!with_case.contains(name)) without.push_back(std::move(name));
    }
  }
  return without;
}

}  // namespace scalewise::golden
