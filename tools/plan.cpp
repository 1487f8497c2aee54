// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// plan: every tensor's initial variance, learning rate, decay and multiplier for a real model under
// a published rule, or under several rules side by side.
//
//   plan --rule maximal-update --optimizer adamw --preset gpt2-xl --base-preset gpt2
//   plan --compare gpt2,neural-tangent --config config.json

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "frame/program.hpp"
#include "instances/registry.hpp"
#include "scalewise/architecture/presets.hpp"
#include "scalewise/architecture/shape_fields.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/io/dialect_json.hpp"
#include "scalewise/io/named_plan_json.hpp"
#include "scalewise/io/named_table.hpp"
#include "scalewise/io/plan_json.hpp"
#include "scalewise/io/plan_table.hpp"
#include "scalewise/io/tensor_rows.hpp"
#include "scalewise/io/training_code.hpp"
#include "scalewise/plan/fold.hpp"
#include "scalewise/plan/set_up_warnings.hpp"
#include "scalewise/plan/single_rate.hpp"
#include "scalewise/scalewise.hpp"
#include "set_option.hpp"

namespace {

using scalewise::InvalidInput;
using scalewise::Plan;
using scalewise::Shape;
using scalewise::Table;
using scalewise::TableFormat;

struct Arguments {
  std::string rule;
  std::vector<std::string> compare;
  std::string optimizer = "adamw";
  std::string decay = "coupled";
  std::string preset;
  std::string config;
  std::string base_preset;
  std::string base_config;
  std::vector<std::string> set;
  std::string names;
  bool strict = false;
  bool fold = false;
  bool single_rate = false;
  bool layers = false;
  std::string format = "table";
  std::string out;
  bool list_rules = false;
  bool list_presets = false;
  bool list_names = false;
};

/// Formats of the tensors of a code base.
using Writer = std::string (*)(const scalewise::dialect::NamedPlan&);
constexpr std::pair<std::string_view, Writer> named_formats[] = {
    {"tsv", &scalewise::tensor_tsv},
    {"c-header", &scalewise::c_header},
    {"torch-groups", &scalewise::torch_groups},
    {"torchtitan", &scalewise::torchtitan_groups},
    {"megatron", &scalewise::megatron_overrides},
    {"fairseq", &scalewise::fairseq_groups},
    {"neox", &scalewise::neox_groups}};

std::vector<std::string> formats() {
  std::vector<std::string> all{"table", "json", "csv", "latex", "markdown"};
  for (const auto& [name, writer] : named_formats) all.emplace_back(name);
  return all;
}

TableFormat table_format(const std::string& name) {
  return name == "csv"        ? TableFormat::csv
         : name == "latex"    ? TableFormat::latex
         : name == "markdown" ? TableFormat::markdown
                              : TableFormat::text;
}

/// JSON has an object per row.
std::string list(const Table& table, TableFormat format, bool json) {
  if (!json) return render(table, format);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::vector<std::string>& cells : table.rows) {
    nlohmann::ordered_json row;
    for (std::size_t i = 0; i < cells.size(); ++i) row[table.header[i]] = cells[i];
    rows.push_back(std::move(row));
  }
  return rows.dump(1) + "\n";
}

Table rule_list() {
  Table table{{}, {"rule", "base", "optimizer", "parameters", "source"}, {}};
  for (const scalewise::RuleInfo& rule : scalewise::rules()) {
    std::string parameters;
    for (const scalewise::Parameter& p : rule.parameters) {
      parameters +=
          (parameters.empty() ? "" : " ") + p.name + "=" + scalewise::number_text(p.value);
    }
    table.rows.push_back({std::string(rule.id), rule.needs_base ? "needed" : "-",
                          fmt::format("{}", fmt::join(scalewise::names_of(rule.optimizers), ", ")),
                          parameters.empty() ? "-" : parameters,
                          std::string(rule.source.authors) + " " + std::string(rule.source.year) +
                              ", " + std::string(rule.source.id) + ", " +
                              std::string(rule.source.where)});
  }
  return table;
}

Table preset_list() {
  Table table{
      {}, {"preset", "d_model", "depth", "heads", "kv_heads", "d_ff", "vocab", "context"}, {}};
  for (const scalewise::Preset& preset : scalewise::presets()) {
    const Shape s = resolved(preset.shape);
    const std::string depth = (s.encoder_depth > 0 ? std::to_string(s.encoder_depth) + "+" : "") +
                              std::to_string(s.depth);
    table.rows.push_back({std::string(preset.id), std::to_string(s.d_model), depth,
                          std::to_string(s.heads), std::to_string(s.kv_heads),
                          std::to_string(s.d_ff), s.vocab > 0 ? std::to_string(s.vocab) : "-",
                          s.context > 0 ? std::to_string(s.context) : "-"});
  }
  return table;
}

Table name_list() {
  Table table{{}, {"names", "code base"}, {}};
  for (const scalewise::dialect::Dialect* dialect : scalewise::dialect::all_dialects) {
    table.rows.push_back({std::string(dialect->id), std::string(dialect->title)});
  }
  return table;
}

std::optional<Shape> shape_of(const std::string& preset, const std::string& config) {
  if (!preset.empty()) return scalewise::preset_shape(preset);
  if (!config.empty()) return scalewise::shape_from_config_file(config);
  return {};
}

/// Says what a plan was hardly meant to be; with --strict that is an error.
void warn(const Plan& plan, bool strict) {
  const std::vector<std::string> warnings = set_up_warnings(plan);
  if (strict && !warnings.empty()) {
    throw std::invalid_argument(
        fmt::format("{} in a strict plan:\n  {}", plan.rule, fmt::join(warnings, "\n  ")));
  }
  for (const std::string& text : warnings) std::cerr << "plan: warning: " << text << '\n';
}

/// As --single-rate and --fold ask for; what cannot be moved is said.
Plan rewritten(const Plan& plan, const Arguments& arguments) {
  if (!arguments.single_rate && !arguments.fold) return plan;
  const char* option = arguments.fold ? "--fold" : "--single-rate";
  const scalewise::RewrittenPlan result =
      arguments.fold ? scalewise::fold(plan) : scalewise::single_rate(plan);
  for (const std::string& line : result.left) {
    std::cerr << fmt::format("plan: {} of {} leaves {}\n", option, plan.rule, line);
  }
  return result.plan;
}

/// Each parameter goes to the rules that have it; one that no rule has is an error.
std::vector<Plan> make_plans(const Arguments& arguments, const Shape& target,
                             const std::optional<Shape>& base,
                             const std::vector<scalewise::Parameter>& parameters) {
  const auto optimizer = scalewise::optimizer_named("--optimizer", arguments.optimizer);
  const auto decay = value_of(scalewise::decay_words, "--decay", arguments.decay);
  std::vector<std::string> ids = arguments.compare;
  if (ids.empty()) ids.push_back(arguments.rule);

  std::vector<bool> used(parameters.size(), false);
  std::vector<std::string> known = scalewise::shape_fields();
  std::vector<Plan> plans;
  for (const std::string& id : ids) {
    const std::vector<std::string> names = scalewise::parameter_names(id);
    known.insert(known.end(), names.begin(), names.end());
    std::vector<scalewise::Parameter> own;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (std::find(names.begin(), names.end(), parameters[i].name) == names.end()) continue;
      own.push_back(parameters[i]);
      used[i] = true;
    }
    plans.push_back(scalewise::make_plan(id, optimizer, target, base, own, decay));
  }
  for (Plan& plan : plans) {
    warn(plan, arguments.strict);
    plan = rewritten(plan, arguments);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (used[i]) continue;
    throw InvalidInput("--set", parameters[i].name,
                       "a field of the shape or a parameter of the rule",
                       scalewise::did_you_mean(parameters[i].name, known));
  }
  return plans;
}

/// What a reader needs around the tables: which rule, from where, and what the letters are.
std::string heading(const Plan& plan) {
  std::string text = "rule       " + plan.rule;
  for (const scalewise::Parameter& p : plan.parameters) {
    text += " " + p.name + "=" + scalewise::number_text(p.value);
  }
  text += "\nsource     " + citation(plan) + "\noptimizer  " + std::string(plan.optimizer.name) +
          ", " + std::string(word(scalewise::decay_words, plan.decay)) +
          " weight decay\nparameters " + std::to_string(plan.parameter_count()) + "\n";
  return text;
}

std::string footing(const std::vector<Plan>& plans) {
  std::string text;
  for (const std::string& line : legend(plans)) {
    text += (text.empty() ? "where " : "      ") + line + "\n";
  }
  return text;
}

std::string as_tables(const std::vector<Plan>& plans, bool compare, bool layers,
                      TableFormat format) {
  std::string out;
  const bool prose = format == TableFormat::text;
  if (compare) {
    for (const Table& table : comparison_tables(plans, format, layers)) {
      out += render(table, format) + "\n";
    }
    if (prose) {
      for (const Plan& plan : plans) out += plan.rule + ": " + citation(plan) + "\n";
      out += "\n";
    }
  } else {
    if (prose) out += heading(plans.front()) + "\n";
    out += render(model_table(plans, format), format) + "\n";
    out += render(plan_table(plans.front(), format, layers), format) + "\n";
  }
  return out + (prose ? footing(plans) : "");
}

/// All problems at once: each line names its tensor.
void require_complete(const scalewise::dialect::Assignment& assignment) {
  if (assignment.problems.empty()) return;
  throw std::invalid_argument(fmt::format("cannot name the tensors as {} does:\n  {}",
                                          assignment.dialect,
                                          fmt::join(assignment.problems, "\n  ")));
}

std::string write_named(const Plan& plan, const Arguments& arguments) {
  std::unique_ptr<scalewise::OwnDialect> own;
  if (arguments.names.ends_with(".json")) own = scalewise::read_dialect_file(arguments.names);
  const auto named = name_plan(
      plan, own ? own->get() : scalewise::dialect::dialect_named("--names", arguments.names));
  require_complete(named.assignment);
  for (const auto& [name, writer] : named_formats) {
    if (arguments.format == name) return writer(named);
  }
  if (arguments.format == "json") return scalewise::to_json(named).dump(1) + "\n";
  const TableFormat format = table_format(arguments.format);
  const std::string table = render(named_table(named, format, arguments.layers), format);
  if (format != TableFormat::text) return table;
  return heading(plan) + "\n" + render(model_table({plan}, format), format) + "\n" + table + "\n" +
         footing({plan});
}

std::string write_plans(const std::vector<Plan>& plans, const Arguments& arguments) {
  const bool compare = !arguments.compare.empty();
  if (!arguments.names.empty()) return write_named(plans.front(), arguments);
  for (const auto& [name, writer] : named_formats) {
    if (arguments.format != name) continue;
    throw InvalidInput("--format", arguments.format, "--names as well",
                       "whose tensors? see --list-names");
  }
  if (arguments.format == "json") {
    if (!compare) return to_json(plans.front()).dump(1) + "\n";
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Plan& plan : plans) all.push_back(to_json(plan));
    return nlohmann::ordered_json{{"schema", "scalewise.plans/1"}, {"plans", all}}.dump(1) + "\n";
  }
  const TableFormat format = table_format(arguments.format);
  if (format == TableFormat::csv) return render(flat_table(plans), format);
  return as_tables(plans, compare, arguments.layers, format);
}

std::string run(const Arguments& arguments) {
  const bool json = arguments.format == "json";
  const TableFormat format = table_format(arguments.format);
  if (arguments.list_rules) return list(rule_list(), format, json);
  if (arguments.list_presets) return list(preset_list(), format, json);
  if (arguments.list_names) return list(name_list(), format, json);
  if (arguments.rule.empty() && arguments.compare.empty()) {
    throw InvalidInput("--rule", "none", "the id of a rule", "see --list-rules, or use --compare");
  }
  std::optional<Shape> target = shape_of(arguments.preset, arguments.config);
  if (!target) {
    throw InvalidInput("--preset", "none", "a model", "see --list-presets, or give --config");
  }
  std::optional<Shape> base = shape_of(arguments.base_preset, arguments.base_config);
  const auto parameters = scalewise::tools::apply_settings(arguments.set, *target, base,
                                                           "give --base-preset or --base-config");
  try {
    return write_plans(make_plans(arguments, *target, base, parameters), arguments);
  } catch (const InvalidInput& error) {
    if (error.field() != "base") throw;
    throw std::invalid_argument(std::string(error.what()) +
                                "; give --base-preset or --base-config");
  }
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto a = std::make_shared<Arguments>();
  Program program{"plan",
                  "Every tensor's initial variance, learning rate, decay and multiplier under a "
                  "published rule."};
  Options& o = *program.options;
  o.add("--rule", a->rule, "rule id, see --list-rules");
  o.add("--compare", a->compare, "several rule ids side by side").excludes("--rule");
  o.add("--optimizer", a->optimizer, "").words(names_of(known_optimizers));
  o.add("--decay", a->decay, "form of weight decay").words(decay_words);
  o.add("--preset", a->preset, "published shape, see --list-presets");
  o.add("--config", a->config, "Hugging Face config.json").reads().excludes("--preset");
  o.add("--base-preset", a->base_preset, "shape that rates were tuned on");
  o.add("--base-config", a->base_config, "the same from a config.json")
      .reads()
      .excludes("--base-preset");
  o.add("--set", a->set,
        "key=value: a field of the shape (base.key for the base) or a parameter of the rule")
      .repeated();
  o.add("--strict", a->strict, "make warnings errors");
  o.add("--fold", a->fold, "put the multipliers of the forward pass into the weights");
  o.add("--single-rate", a->single_rate, "one learning rate for all, as multipliers instead")
      .excludes("--fold");
  o.group("Output");
  o.add("--names", a->names,
        "name tensors as a code base does, see --list-names, or as a file says (.json)")
      .excludes("--compare");
  o.add("--layers", a->layers, "one row per tensor instead of one per kind").not_an_input();
  o.add("--format", a->format, "").words(formats()).not_an_input();
  o.add("--out", a->out, "file to write instead of the terminal").writes_file();
  o.add("--list-rules", a->list_rules, "print the rules").not_an_input();
  o.add("--list-presets", a->list_presets, "print the presets").not_an_input();
  o.add("--list-names", a->list_names, "print the code bases that --names knows").not_an_input();
  program.run = [a](const std::vector<std::string>&) {
    const std::string text = ::run(*a);
    if (a->out.empty()) {
      std::cout << text;
    } else {
      write_file(a->out, text);
    }
    return 0;
  };
  return program;
}
