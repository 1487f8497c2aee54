// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// plan: every tensor's initial variance, learning rate, decay and multiplier for a real model under
// a published rule, or under several rules side by side.
//
//   plan --rule maximal-update --optimizer adamw --preset gpt2-xl --base-preset gpt2
//   plan --compare gpt2,neural-tangent --config config.json
//   plan --rule complete-p --config mixtral.json --base-width 1024

#include <fmt/format.h>

#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frame/program.hpp"
#include "planning/arguments.hpp"
#include "planning/picture.hpp"
#include "planning/writing.hpp"
#include "scalewise/architecture/numbered_tensors.hpp"
#include "scalewise/architecture/presets.hpp"
#include "scalewise/dialect/all.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/io/describe_config.hpp"
#include "scalewise/io/fit_table.hpp"
#include "scalewise/io/published_configs.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/policy/rule.hpp"
#include "scalewise/policy/rule_id.hpp"
#include "scalewise/scalewise.hpp"

namespace {

using scalewise::InvalidInput;
using scalewise::Plan;
using scalewise::Shape;
using scalewise::Table;
using scalewise::tools::cut_of;
using scalewise::tools::table_format;

struct Arguments : scalewise::tools::PlanArguments {
  std::string names;
  bool layers = false;
  std::string format = "table";
  std::string save;
  bool list_rules = false;
  bool list_presets = false;
  bool list_names = false;

  /// Of the terminal that text has to fit.
  std::size_t columns() const { return save.empty() ? scalewise::frame::terminal_columns() : 0; }
};

/// JSON has an object per row.
std::string list(const Table& table, const Arguments& a) {
  if (a.format == "table") return scalewise::io::render_to_fit(table, a.columns());
  if (a.format != "json") return render(table, table_format(a.format));
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
  for (const scalewise::Rule& rule : scalewise::rules()) {
    std::string parameters;
    for (const std::string& name : rule.to_give) {
      parameters += (parameters.empty() ? "" : " ") + name + "=?";
    }
    for (const scalewise::Parameter& p : rule.parameters) {
      parameters +=
          (parameters.empty() ? "" : " ") + p.name + "=" + scalewise::numeric::number_text(p.value);
    }
    table.rows.push_back(
        {std::string(rule.id), scalewise::policy::needs_base(rule) ? "needed" : "-",
         fmt::format("{}", fmt::join(scalewise::policy::names_of(rule.optimizers), ", ")),
         parameters.empty() ? "-" : parameters,
         std::string(rule.source.authors) + " " + std::string(rule.source.year) + ", " +
             std::string(rule.source.id) + ", " + std::string(rule.source.where)});
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
  const auto size = [](long value) { return value > 0 ? std::to_string(value) : "-"; };
  for (const scalewise::io::PublishedConfig& config : scalewise::io::published_configs) {
    const Shape s = scalewise::io::describe_config(scalewise::io::parse_json(config.json, std::string(config.id))).shape;
    table.rows.push_back({std::string(config.id), size(s.d_model), size(s.depth), size(s.heads),
                          size(s.kv_heads), size(s.d_ff), size(s.vocab), size(s.context)});
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

std::string write_plans(const std::vector<Plan>& plans, const Arguments& a) {
  if (a.format == "svg") return scalewise::tools::draw_plan(plans, a.layers);
  return scalewise::tools::write_plans(plans, !a.compare.empty(), a.format, a.layers, a.columns());
}

/// The plan by the names of a code base.
std::string write_with_names(const Plan& plan, const Arguments& a) {
  std::string text;
  scalewise::tools::with_names(a.program, a.names, [&](const scalewise::dialect::Dialect& dialect) {
    text = scalewise::tools::write_named(name_plan(plan, dialect, cut_of(a, plan)), a.format,
                                         a.layers, a.columns());
  });
  return text;
}

/// What each tensor of a described model is, and why. Those that differ in numbers of their names alone share a row.
std::string roles_text(const scalewise::DescribedModel& model) {
  Table table{{}, {"tensor", "inputs x outputs", "group", "because"}, {}};
  std::map<std::vector<std::string>, std::size_t> rows;
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    const scalewise::Extra& tensor = model.tensors[i];
    std::vector<std::string> row{
        scalewise::detail::with_stars(tensor.name),
        tensor.columns == "1" ? tensor.rows : tensor.rows + " x " + tensor.columns,
        std::string(to_string(tensor.group)), model.reasons[i]};
    const auto [at, is_first] = rows.emplace(row, table.rows.size());
    if (!is_first) {
      table.rows[at->second][0] = row[0];
    } else {
      row[0] = tensor.name;
      table.rows.push_back(std::move(row));
    }
  }
  std::string text = render(table, scalewise::TableFormat::text);
  for (const std::vector<std::string>& lines : {model.ties, model.sizes}) {
    for (const std::string& line : lines) text += line + "\n";
  }
  return text + "\n";
}

/// Those of inspect, and a picture.
std::vector<std::string> formats() {
  std::vector<std::string> all = scalewise::tools::plan_formats();
  all.emplace_back("svg");
  return all;
}

std::string run(Arguments arguments) {
  if (arguments.list_rules) return list(rule_list(), arguments);
  if (arguments.list_presets) return list(preset_list(), arguments);
  if (arguments.list_names) return list(name_list(), arguments);
  if (arguments.rule.empty() && arguments.compare.empty()) {
    throw InvalidInput("--rule", "none", "the id of a rule", "see --list-rules, or use --compare");
  }
  if (const auto model = described_model(arguments)) {
    if (arguments.format == "svg") {
      throw InvalidInput("--format", "svg", "another format", "a list of tensors has no picture");
    }
    if (!arguments.names.empty()) {
      throw InvalidInput("--names", arguments.names, "none for a list of tensors",
                         "its tensors have their own names");
    }
    const std::vector<Plan> plans = make_plans(arguments, *model);
    return (arguments.format == "table" ? roles_text(*model) : "") + write_plans(plans, arguments);
  }
  const auto target = given_model(arguments);
  if (!target) {
    throw InvalidInput("--preset", "none", "a model", "see --list-presets, or give --config");
  }
  if (!arguments.names.empty()) {
    arguments.names_code = scalewise::tools::code_of_names(arguments.names);
    return write_with_names(make_plans(arguments, *target).front(), arguments);
  }
  if (arguments.cut) {
    throw InvalidInput("--cut", std::string(word(scalewise::dialect::cut_words, *arguments.cut)),
                       "--names as well", "only a code base has tensors to cut");
  }
  return write_plans(make_plans(arguments, *target), arguments);
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto a = std::make_shared<Arguments>();
  Program program{"plan",
                  "Every tensor's initial variance, learning rate, decay and multiplier under a "
                  "published rule."};
  Options& o = *program.options;
  o.add("--rule", a->rule, "name of a rule, see plan --list-rules")
      .names(scalewise::policy::rule_id);
  o.add("--compare", a->compare, "several rules side by side")
      .names(scalewise::policy::rule_id)
      .excludes("--rule");
  add_shape_options(o, *a);
  add_description_options(o, *a);
  add_plan_options(o, *a);
  o.group("Output");
  o.add("--names", a->names,
        "code base whose names tensors have, see plan --list-names, or a file that says them "
        "(.json)")
      .excludes("--compare");
  o.add(
       "--layers", a->layers,
       "one row per tensor instead of one per kind (with --format svg: a heat map, layer by layer)")
      .not_an_input();
  o.add("--format", a->format, "format of the output").words(formats()).not_an_input();
  o.add("--save", a->save, "file to write instead of the terminal").writes_file();
  o.add("--list-rules", a->list_rules, "print the rules").not_an_input();
  o.add("--list-presets", a->list_presets, "print the presets").not_an_input();
  o.add("--list-names", a->list_names, "print the code bases that --names knows").not_an_input();
  program.run = [a](const std::vector<std::string>&) {
    const std::string text = ::run(*a);
    if (a->save.empty()) {
      std::cout << text;
    } else {
      scalewise::files::write_file(a->save, text);
    }
    return 0;
  };
  return program;
}
