// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/io/json_reader.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/io/shape_json.hpp"
#include "scalewise/plan/check_plan.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/plan/set_up_warnings.hpp"
#include "scalewise/scaling/read_formula.hpp"

namespace scalewise {

namespace io {

/// Name and major version of the plan's JSON; docs/plan_schema.md writes it down.
inline constexpr std::string_view plan_schema = "scalewise.plan/1";

}  // namespace io

namespace detail {

using Json = nlohmann::ordered_json;

template <Kind kind>
Json number_json(const Number<kind>& number) {
  return {{"value", number.value}, {"formula", number.formula()}, {"latex", number.latex()}};
}

/// Formulas are read back, and written as LaTeX anew.
template <Kind kind>
void read_number(const io::JsonReader& json, const scaling::FormulaSymbols& symbols,
                 Number<kind>& number) {
  json.only({"value", "formula", "latex"});
  static_cast<void>(json.at("latex").string());
  const io::JsonReader formula = json.at("formula");
  number = {json.at("value").number(), symbols.read(formula.path(), formula.string())};
}

inline Json symbols_json(const std::vector<plan::SymbolValue>& symbols) {
  Json array = Json::array();
  for (const plan::SymbolValue& symbol : symbols) {
    array.push_back({{"symbol", symbol.text},
                     {"latex", symbol.latex},
                     {"meaning", symbol.meaning},
                     {"value", symbol.value}});
  }
  return array;
}

/// A list of symbols, which formulas may then have.
inline std::vector<plan::SymbolValue> read_symbols(const io::JsonReader& json,
                                                   scaling::FormulaSymbols& known) {
  std::vector<plan::SymbolValue> symbols;
  std::set<std::string> seen;
  for (const io::JsonReader& item : json.items()) {
    item.only({"symbol", "latex", "meaning", "value"});
    symbols.push_back({item.at("symbol").string(), item.at("latex").string(),
                       item.at("meaning").string(), item.at("value").number()});
    if (const std::string& text = symbols.back().text; !seen.insert(text).second)
      throw InvalidInput(item.path() + ".symbol", messages::printable(text), "each symbol once");
    known.add(symbols.back().text, symbols.back().latex, symbols.back().meaning);
  }
  return symbols;
}

inline Json entry_json(const Entry& entry, const Optimizer& optimizer) {
  Json json;
  json["name"] = entry.name;
  json["group"] = to_string(entry.group);
  json["stack"] = word(architecture::stack_words, entry.stack);
  json["layer"] = entry.layer < 0 ? Json(nullptr) : Json(entry.layer);
  json["rows"] = entry.rows;
  json["columns"] = entry.columns;
  json["fan_in"] = entry.fan_in;
  json["fan_out"] = entry.fan_out;
  if (entry.optimizer != optimizer) json["optimizer"] = entry.optimizer.name;
  json["distribution"] = word(policy::distribution_words, entry.distribution);
  plan::for_each_number(
      entry, [&](const char* key, const auto& planned) { json[key] = number_json(planned); });
  json["source"] = entry.source;
  json["where"] = symbols_json(entry.where);
  return json;
}

inline Optimizer read_optimizer(const io::JsonReader& json) {
  return policy::optimizer_named(json.path(), json.string());
}

/// Requires: the plan's own optimizer, which is that of an entry that names no other.
inline Entry read_entry(const io::JsonReader& json, const Optimizer& optimizer,
                        scaling::FormulaSymbols& symbols) {
  json.only({"name", "group", "stack", "layer", "rows", "columns", "fan_in", "fan_out", "optimizer",
             "distribution", "init_variance", "init_mean", "multiplier", "learning_rate",
             "weight_decay", "epsilon", "source", "where"});
  Entry entry;
  entry.optimizer = json.has("optimizer") ? read_optimizer(json.at("optimizer")) : optimizer;
  entry.name = json.at("name").string();
  entry.group = architecture::group_named(json.path() + ".group", json.at("group").string());
  entry.stack = json.at("stack").word(architecture::stack_words);
  if (!json.at("layer").is_null())
    entry.layer = static_cast<int>(json.at("layer").integer(0, architecture::most_layers));
  entry.rows = json.at("rows").integer(1, architecture::largest_size);
  entry.columns = json.at("columns").integer(1, architecture::largest_size);
  entry.fan_in = json.at("fan_in").number();
  entry.fan_out = json.at("fan_out").number();
  entry.distribution = json.at("distribution").word(policy::distribution_words);
  entry.where = read_symbols(json.at("where"), symbols);
  plan::for_each_number(
      entry, [&](const char* key, auto& planned) { read_number(json.at(key), symbols, planned); });
  entry.source = json.at("source").string();
  return entry;
}

inline Json parameters_json(const std::vector<Parameter>& parameters) {
  Json array = Json::array();
  for (const Parameter& parameter : parameters)
    array.push_back({{"name", parameter.name}, {"value", parameter.value}});
  return array;
}

inline std::vector<Parameter> read_parameters(const io::JsonReader& json) {
  std::vector<Parameter> parameters;
  for (const io::JsonReader& item : json.items()) {
    item.only({"name", "value"});
    parameters.push_back({item.at("name").string(), item.at("value").number()});
  }
  return parameters;
}

inline Json extras_json(const std::vector<Extra>& extras) {
  Json array = Json::array();
  for (const Extra& extra : extras) {
    Json json = {{"name", extra.name},
                 {"group", to_string(extra.group)},
                 {"rows", extra.rows},
                 {"columns", extra.columns}};
    if (!extra.fan_in.empty()) json["fan_in"] = extra.fan_in;
    if (extra.own_values) json["own_values"] = true;
    if (extra.in_layers) json["in_layers"] = *extra.in_layers;
    array.push_back(std::move(json));
  }
  return array;
}

inline std::vector<Extra> read_extras(const io::JsonReader& json) {
  std::vector<Extra> extras;
  for (const io::JsonReader& item : json.items()) {
    item.only({"name", "group", "rows", "columns", "fan_in", "own_values", "in_layers"});
    extras.push_back(
        {item.at("name").string(),
         architecture::group_named(item.path() + ".group", item.at("group").string()),
         item.at("rows").string(), item.at("columns").string(),
         item.has("fan_in") ? item.at("fan_in").string() : "",
         item.has("own_values") && item.at("own_values").boolean(),
         item.has("in_layers") ? std::optional(item.at("in_layers").boolean()) : std::nullopt});
  }
  return extras;
}

/// A shape of a plan, with every key that files always have.
inline Shape read_shape(const io::JsonReader& json) {
  for (const std::string_view key : io::shape_json_keys) json.at(std::string(key));
  return shape_from_json(json);
}

inline Json model_json(const Model& model) {
  Json residuals = Json::array();
  for (const Residual& residual : model.residuals) {
    residuals.push_back({{"stack", word(architecture::stack_words, residual.stack)},
                         {"layer", residual.layer},
                         {"skip", number_json(residual.skip)},
                         {"branch", number_json(residual.branch)},
                         {"where", symbols_json(residual.where)}});
  }
  Json json = Json::object();
  if (!model.attention_scale.scaling
           .is_zero()) {  // a listed model may not say how wide its heads are
    json["attention_scale"] = number_json(model.attention_scale);
  }
  json["embedding_multiplier"] = number_json(model.embedding_multiplier);
  json["logit_multiplier"] = number_json(model.logit_multiplier);
  json["residuals"] = residuals;
  json["source"] = model.source;
  if (model.code) {
    json["code"] = {{"attention_scale", number_json(model.code->attention_scale)},
                    {"embedding_multiplier", number_json(model.code->embedding_multiplier)},
                    {"logit_multiplier", number_json(model.code->logit_multiplier)},
                    {"branch", number_json(model.code->branch)}};
  }
  return json;
}

inline plan::CodeNumbers read_code(const io::JsonReader& json,
                                   const scaling::FormulaSymbols& symbols) {
  json.only({"attention_scale", "embedding_multiplier", "logit_multiplier", "branch"});
  plan::CodeNumbers code;
  read_number(json.at("attention_scale"), symbols, code.attention_scale);
  read_number(json.at("embedding_multiplier"), symbols, code.embedding_multiplier);
  read_number(json.at("logit_multiplier"), symbols, code.logit_multiplier);
  read_number(json.at("branch"), symbols, code.branch);
  return code;
}

inline Model read_model(const io::JsonReader& json, scaling::FormulaSymbols& symbols) {
  json.only({"attention_scale", "embedding_multiplier", "logit_multiplier", "residuals", "source",
             "code"});
  Model model;
  if (json.has("code")) model.code = read_code(json.at("code"), symbols);
  if (json.has("attention_scale")) {
    read_number(json.at("attention_scale"), symbols, model.attention_scale);
  }
  read_number(json.at("embedding_multiplier"), symbols, model.embedding_multiplier);
  read_number(json.at("logit_multiplier"), symbols, model.logit_multiplier);
  model.source = json.at("source").string();
  for (const io::JsonReader& item : json.at("residuals").items()) {
    item.only({"stack", "layer", "skip", "branch", "where"});
    Residual residual;
    residual.stack = item.at("stack").word(architecture::stack_words);
    residual.layer = static_cast<int>(item.at("layer").integer(0, architecture::most_layers));
    residual.where = read_symbols(item.at("where"), symbols);
    read_number(item.at("skip"), symbols, residual.skip);
    read_number(item.at("branch"), symbols, residual.branch);
    model.residuals.push_back(std::move(residual));
  }
  return model;
}

}  // namespace detail

/// A plan as JSON.
/// Accuracy: every double is written with the digits it takes, 17 at most, to read back the same.
inline nlohmann::ordered_json to_json(const Plan& plan) {
  detail::Json entries = detail::Json::array();
  for (const Entry& entry : plan.entries)
    entries.push_back(detail::entry_json(entry, plan.optimizer));
  detail::Json json = {{"schema", io::plan_schema},
                       {"rule",
                        {{"id", plan.rule},
                         {"title", plan.title},
                         {"authors", plan.authors},
                         {"year", plan.year},
                         {"paper", plan.paper},
                         {"where", plan.where},
                         {"reference", word(policy::reference_words, plan.reference)},
                         {"parameters", detail::parameters_json(plan.parameters)}}},
                       {"optimizer", plan.optimizer.name},
                       {"decay", word(policy::decay_words, plan.decay)},
                       {"shape", to_json(plan.shape)},
                       {"base", plan.base ? to_json(*plan.base) : detail::Json(nullptr)},
                       {"model", detail::model_json(plan.model)},
                       {"symbols", detail::symbols_json(plan.symbols)},
                       {"entries", entries}};
  if (!plan.start.empty()) json["rule"]["start"] = plan.start;
  if (!plan.extras.empty()) json["extra"] = detail::extras_json(plan.extras);
  const std::vector<std::string> warnings = set_up_warnings(plan);
  if (!warnings.empty()) json["warnings"] = warnings;
  if (!plan.constants.empty()) json["constants"] = detail::parameters_json(plan.constants);
  return json;
}

/// Reads back what to_json(plan) wrote: an equal plan.
/// Throws:   InvalidInput for JSON that is malformed, of another schema or major version, incomplete
///           or of the wrong types, and for a plan that check_plan() refuses.
inline Plan plan_from_json(const nlohmann::ordered_json& json, const std::string& name = "plan") {
  const io::JsonReader root(json, name);
  const std::string schema = root.at("schema").string();
  if (schema != io::plan_schema) {
    throw InvalidInput(name + ".schema", messages::printable(schema), std::string(io::plan_schema),
                       "this version reads no other");
  }
  root.only({"schema", "rule", "optimizer", "decay", "shape", "base", "model", "symbols", "entries",
             "constants", "extra", "warnings"});
  if (root.has("warnings")) {  // for people: set_up_warnings(plan) has them
    for (const io::JsonReader& item : root.at("warnings").items()) static_cast<void>(item.string());
  }
  Plan plan;
  const io::JsonReader rule = root.at("rule");
  rule.only(
      {"id", "title", "authors", "year", "paper", "where", "reference", "parameters", "start"});
  plan.rule = rule.at("id").string();
  plan.title = rule.at("title").string();
  plan.authors = rule.at("authors").string();
  plan.year = rule.at("year").string();
  plan.paper = rule.at("paper").string();
  plan.where = rule.at("where").string();
  plan.reference = rule.at("reference").word(policy::reference_words);
  if (rule.has("start")) plan.start = rule.at("start").string();
  plan.parameters = detail::read_parameters(rule.at("parameters"));
  if (root.has("constants")) plan.constants = detail::read_parameters(root.at("constants"));
  if (root.has("extra")) plan.extras = detail::read_extras(root.at("extra"));
  plan.optimizer = detail::read_optimizer(root.at("optimizer"));
  plan.decay = root.at("decay").word(policy::decay_words);
  plan.shape = detail::read_shape(root.at("shape"));
  if (!root.at("base").is_null()) plan.base = detail::read_shape(root.at("base"));
  scaling::FormulaSymbols symbols;
  plan.symbols = detail::read_symbols(root.at("symbols"), symbols);
  plan.model = detail::read_model(root.at("model"), symbols);
  for (const io::JsonReader& item : root.at("entries").items()) {
    plan.entries.push_back(detail::read_entry(item, plan.optimizer, symbols));
  }
  check_plan(plan, name);
  return plan;
}

/// Reads a plan from text, such as the content of a file called `name`.
/// Throws:   InvalidInput for text that is no JSON, and as plan_from_json().
inline Plan read_plan(std::string_view text, const std::string& name = "plan") {
  return plan_from_json(io::parse_json(text, name), name);
}

}  // namespace scalewise
