// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// plan: every tensor's initial variance, learning rate, decay and multiplier for a real model under
// a published rule, or under several rules side by side.
//
//   plan --rule maximal-update --optimizer adamw --preset gpt2-xl --base-preset gpt2
//   plan --compare gpt2,neural-tangent --config config.json

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "instances/registry.hpp"
#include "scalewise/core/shape_set.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/io/file.hpp"
#include "scalewise/io/plan_json.hpp"
#include "scalewise/io/plan_table.hpp"
#include "scalewise/presets.hpp"
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
  bool layers = false;
  std::string format = "table";
  std::string out;
  bool list_rules = false;
  bool list_presets = false;
};

std::string rule_list() {
  Table table{{}, {"rule", "base", "optimizer", "parameters", "source"}, {}};
  for (const scalewise::RuleInfo& rule : scalewise::rules()) {
    std::string parameters;
    for (const scalewise::Parameter& p : rule.parameters) {
      parameters +=
          (parameters.empty() ? "" : " ") + p.name + "=" + scalewise::number_text(p.value);
    }
    table.rows.push_back({std::string(rule.id), rule.needs_base ? "needed" : "-",
                          rule.sgd ? "sgd, adamw" : "adamw", parameters.empty() ? "-" : parameters,
                          std::string(rule.source.authors) + " " + std::string(rule.source.year) +
                              ", " + std::string(rule.source.id) + ", " +
                              std::string(rule.source.where)});
  }
  return render(table, TableFormat::text);
}

std::string preset_list() {
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
  return render(table, TableFormat::text);
}

std::optional<Shape> shape_of(const std::string& preset, const std::string& config) {
  if (!preset.empty()) return scalewise::preset_shape(preset);
  if (!config.empty()) return scalewise::shape_from_config_file(config);
  return {};
}

/// Each parameter goes to the rules that have it; one that no rule has is an error.
std::vector<Plan> make_plans(const Arguments& arguments, const Shape& target,
                             const std::optional<Shape>& base,
                             const std::vector<scalewise::Parameter>& parameters) {
  const auto optimizer = value_of(scalewise::optimizer_words, "--optimizer", arguments.optimizer);
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
  text += "\nsource     " + citation(plan) + "\noptimizer  " +
          std::string(word(scalewise::optimizer_words, plan.optimizer)) + ", " +
          std::string(word(scalewise::decay_words, plan.decay)) + " weight decay\nparameters " +
          std::to_string(plan.parameter_count()) + "\n";
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

std::string write_plans(const std::vector<Plan>& plans, const Arguments& arguments) {
  const bool compare = !arguments.compare.empty();
  if (arguments.format == "json") {
    if (!compare) return to_json(plans.front()).dump(1) + "\n";
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Plan& plan : plans) all.push_back(to_json(plan));
    return nlohmann::ordered_json{{"schema", "scalewise.plans/1"}, {"plans", all}}.dump(1) + "\n";
  }
  if (arguments.format == "csv") return render(flat_table(plans), TableFormat::csv);
  const TableFormat format = arguments.format == "latex"      ? TableFormat::latex
                             : arguments.format == "markdown" ? TableFormat::markdown
                                                              : TableFormat::text;
  return as_tables(plans, compare, arguments.layers, format);
}

std::string run(const Arguments& arguments) {
  if (arguments.list_rules) return rule_list();
  if (arguments.list_presets) return preset_list();
  if (arguments.rule.empty() && arguments.compare.empty()) {
    throw InvalidInput("--rule", "none", "the id of a rule", "see --list-rules, or use --compare");
  }
  std::optional<Shape> target = shape_of(arguments.preset, arguments.config);
  if (!target) {
    throw InvalidInput("--preset", "none", "a model", "see --list-presets, or give --config");
  }
  std::optional<Shape> base = shape_of(arguments.base_preset, arguments.base_config);
  const auto parameters = scalewise::examples::apply_settings(
      arguments.set, *target, base, "give --base-preset or --base-config");
  return write_plans(make_plans(arguments, *target, base, parameters), arguments);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{
      "Every tensor's initial variance, learning rate, decay and multiplier under a published "
      "rule."};
  auto* rule = app.add_option("--rule", arguments.rule, "rule id, see --list-rules");
  app.add_option("--compare", arguments.compare, "several rule ids side by side")
      ->delimiter(',')
      ->excludes(rule);
  app.add_option("--optimizer", arguments.optimizer, "sgd or adamw")->capture_default_str();
  app.add_option("--decay", arguments.decay, "coupled, independent or l2")->capture_default_str();
  auto* preset =
      app.add_option("--preset", arguments.preset, "published shape, see --list-presets");
  app.add_option("--config", arguments.config, "Hugging Face config.json")->excludes(preset);
  auto* base =
      app.add_option("--base-preset", arguments.base_preset, "shape that rates were tuned on");
  app.add_option("--base-config", arguments.base_config, "the same from a config.json")
      ->excludes(base);
  app.add_option(
      "--set", arguments.set,
      "key=value: a field of the shape (base.key for the base) or a parameter of the rule");
  app.add_flag("--layers", arguments.layers, "one row per tensor instead of one per kind");
  app.add_option("--format", arguments.format, "how to write the plan")
      ->check(CLI::IsMember({"table", "json", "csv", "latex", "markdown"}))
      ->capture_default_str();
  auto* out = app.add_option("--out", arguments.out, "file to write instead of the terminal");
  app.add_flag("--list-rules", arguments.list_rules, "print the rules");
  app.add_flag("--list-presets", arguments.list_presets, "print the presets");
  try {
    app.parse(argc, argv);
    const std::string text = run(arguments);
    if (out->count() == 0) {
      std::cout << text << std::flush;
      if (!std::cout) throw InvalidInput("output", "(terminal)", "a place that takes all of it");
    } else {
      scalewise::write_file(arguments.out, text);
    }
    return 0;
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = app.exit(error) == 0;
    return asked_for_help && std::cout.flush() ? 0 : 2;
  } catch (const std::exception& error) {
    const auto* input = dynamic_cast<const InvalidInput*>(&error);
    const bool base_missing = input != nullptr && input->field() == "base";
    std::cerr << "plan: " << error.what()
              << (base_missing ? "; give --base-preset or --base-config" : "") << '\n';
    return 2;
  }
}
