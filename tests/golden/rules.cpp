// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// rules.json: plans of every policy, to a relative 1e-12. Every tensor has exactly one row, and every
// row a tensor. README.md describes a case.

#include <array>
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
#include "scalewise/scalewise.hpp"

namespace scalewise::golden {

namespace {

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
  if (cells.size() != numbers.size() + 2)
    return tally.complain(row.path(), "is not a row of 8 cells");
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

void check_model(const io::JsonReader& model, const Plan& plan, Tally& tally) {
  tally.compare(model.at("parameters"), static_cast<double>(plan.parameter_count()), 0);
  tally.compare(model.at("attention_scale"), plan.model.attention_scale.value);
  tally.compare(model.at("logit_multiplier"), plan.model.logit_multiplier.value);
  tally.compare(model.at("embedding_multiplier"), plan.model.embedding_multiplier.value);
  check_residuals(model.at("residuals"), plan, tally);
}

void check_case(const io::JsonReader& reader, const nlohmann::ordered_json& json, Tally& tally) {
  reader.only({"policy", "optimizer", "shape", "base", "params", "tensors", "model"});
  const std::string policy = reader.at("policy").string();
  const Optimizer optimizer =
      policy::optimizer_named(reader.path(), reader.at("optimizer").string());
  const Shape shape = shape_from_json(reader.at("shape"));
  std::optional<Shape> base;
  if (reader.has("base")) base = shape_from_json(reader.at("base"));
  std::vector<Parameter> parameters;
  if (reader.has("params")) {
    for (const auto& [name, unused] : json["params"].items()) {
      parameters.push_back({name, reader.at("params").at(name).number()});
    }
  }
  const Plan plan = make_plan(
      policy, {.model = shape, .base = base, .optimizer = optimizer, .parameters = parameters});
  check_tensors(reader.at("tensors"), plan, tally);
  check_model(reader.at("model"), plan, tally);
}

}  // namespace

long check_rules(const nlohmann::ordered_json& file, Tally& tally) {
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

std::vector<std::string> rules_without_case(const nlohmann::ordered_json& file) {
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
