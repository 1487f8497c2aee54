// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "planning/writing.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "scalewise/io/fairseq_groups.hpp"
#include "scalewise/io/fit_table.hpp"
#include "scalewise/io/megatron_overrides.hpp"
#include "scalewise/io/named_plan_json.hpp"
#include "scalewise/io/named_table.hpp"
#include "scalewise/io/neox_groups.hpp"
#include "scalewise/io/plan_json.hpp"
#include "scalewise/io/plan_table.hpp"
#include "scalewise/io/shape_json.hpp"
#include "scalewise/io/tensor_rows.hpp"
#include "scalewise/io/torch_groups.hpp"
#include "scalewise/io/torchtitan_groups.hpp"
#include "scalewise/messages/problems.hpp"
#include "scalewise/plan/code_factors.hpp"
#include "scalewise/plan/fold.hpp"

namespace scalewise::tools {

namespace {

/// A format of the tensors of a code base; groups of an optimizer say nothing of the forward pass.
struct NamedFormat {
  std::string_view name;
  std::string (*write)(const dialect::NamedPlan&);
  bool of_model = false;  // has the multipliers of the model, too
};
constexpr NamedFormat named_formats[] = {{"tsv", &tensor_tsv},
                                         {"c-header", &c_header, true},
                                         {"torch-groups", &torch_groups},
                                         {"torchtitan", &torchtitan_groups},
                                         {"megatron", &megatron_overrides},
                                         {"fairseq", &fairseq_groups},
                                         {"neox", &neox_groups}};

std::string as_json(const std::vector<Plan>& plans, bool compare) {
  if (!compare) return to_json(plans.front()).dump(1) + "\n";
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Plan& plan : plans) all.push_back(to_json(plan));
  return nlohmann::ordered_json{{"schema", "scalewise.plans/1"}, {"plans", all}}.dump(1) + "\n";
}

std::string as_tables(const std::vector<Plan>& plans, bool compare, bool layers, TableFormat format,
                      std::size_t columns) {
  std::string out;
  const bool prose = format == TableFormat::text;
  const auto render = [&](const Table& table, TableFormat style) {
    return prose ? io::render_to_fit(table, columns) : scalewise::render(table, style);
  };
  if (compare) {
    for (const Table& table : comparison_tables(plans, layers)) {
      out += render(table, format) + "\n";
    }
    if (prose) {
      for (const Plan& plan : plans) out += plan.rule + ": " + citation(plan) + "\n";
      const auto relative = std::find_if(plans.begin(), plans.end(),
                                         [](const Plan& plan) { return plan.base.has_value(); });
      if (relative != plans.end()) out += "base: " + base_text(*relative) + "\n";
      out += "\n";
    }
  } else {
    if (prose) out += heading(plans.front(), columns) + "\n";
    out += render(model_table(plans), format) + "\n";
    out += render(plan_table(plans.front(), layers), format) + "\n";
  }
  return out + (prose ? footing(plans) : "");
}

void say_what_is_left(const Plan& plan, const Say& say) {
  const std::vector<std::string> left = plan::left_to_multiply(plan);
  if (left.empty()) return;
  std::string all;
  for (const std::string& line : left) all += (all.empty() ? "" : ", ") + line;
  const bool folds = plan::left_to_multiply(fold(plan).plan) != left;
  say("note: the model itself has to multiply: " + all +
      (folds ? " (hint: --fold puts it into the weights)" : ""));
}

}  // namespace

std::string base_text(const Plan& plan) {
  const nlohmann::ordered_json target = to_json(plan.shape);
  const nlohmann::ordered_json base = to_json(*plan.base);
  std::string text;
  const auto differs = [&](const std::string& name, const std::string& value) {
    text += (text.empty() ? "" : " ") + name + "=" + value;
  };
  for (const auto& [name, value] : base.items()) {
    if (target.contains(name) && target.at(name) == value) continue;
    differs(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  for (const auto& [name, value] : target.items()) {
    if (base.contains(name)) continue;  // left out where it is the default
    differs(name, value.is_boolean() ? "false" : value.is_number() ? "0" : "none");
  }
  return text.empty() ? "as the target" : text + ", otherwise as the target";
}

std::vector<std::string> plan_formats() {
  std::vector<std::string> all{"table", "json", "csv", "latex", "markdown"};
  for (const NamedFormat& known : named_formats) all.emplace_back(known.name);
  return all;
}

bool is_named_format(const std::string& format) {
  for (const NamedFormat& known : named_formats) {
    if (format == known.name) return true;
  }
  return false;
}

void require_of_list(const std::string& names, const std::string& format) {
  if (format == "svg") {
    throw InvalidInput("--format", format, "another format", "a list of tensors has no picture");
  }
  if (!names.empty()) {
    throw InvalidInput("--names", names, "none for a list of tensors",
                       "its tensors have their own names");
  }
  if (!is_named_format(format)) return;
  throw InvalidInput("--format", format,
                     "table, json, csv, latex or markdown for a list of tensors",
                     "python/scalewise.py and libtorch/planned_module.hpp apply its JSON");
}

TableFormat table_format(const std::string& format) {
  return format == "csv"        ? TableFormat::csv
         : format == "latex"    ? TableFormat::latex
         : format == "markdown" ? TableFormat::markdown
                                : TableFormat::text;
}

namespace {

/// A line of the heading, cut at spaces to fit a terminal.
std::string heading_line(const std::string& name, const std::string& text, std::size_t columns) {
  constexpr std::size_t indent = 11;
  std::string line = name + std::string(indent - name.size(), ' ');
  if (columns <= indent) return line + text + "\n";
  bool first = true;
  for (const std::string& part : scalewise::detail::lines_of_cell(text, columns - indent)) {
    line += (std::exchange(first, false) ? "" : std::string(indent, ' ')) + part + "\n";
  }
  return line;
}

}  // namespace

std::string heading(const Plan& plan, std::size_t columns) {
  std::string rule = plan.rule;
  for (const Parameter& p : plan.parameters)
    rule += " " + p.name + "=" + numeric::number_text(p.value);
  if (!plan.start.empty()) rule += ", from a base initialized by " + plan.start;
  std::string optimizer(plan.optimizer.name);
  if (plan.optimizer.normalization == policy::Normalization::by_matrix) {
    optimizer += " (its own factor is " +
                 std::string(policy::own_factor_text(plan.optimizer.own_factor)) + ")";
  }
  optimizer += ", " + std::string(word(policy::decay_words, plan.decay)) + " weight decay";
  return heading_line("rule", rule, columns) + heading_line("source", citation(plan), columns) +
         (plan.base ? heading_line("base", base_text(plan), columns) : "") +
         heading_line("optimizer", optimizer, columns) +
         heading_line("parameters", std::to_string(plan.parameter_count()), columns);
}

std::string footing(const std::vector<Plan>& plans) {
  std::string text;
  for (const std::string& line : legend(plans)) {
    text += (text.empty() ? "where " : "      ") + line + "\n";
  }
  return text;
}

std::string write_plans(const std::vector<Plan>& plans, bool compare, const std::string& format,
                        bool layers, std::size_t columns) {
  if (is_named_format(format)) {
    throw InvalidInput("--format", format, "--names as well", "whose tensors? see --list-names");
  }
  if (format == "json") return as_json(plans, compare);
  const TableFormat style = table_format(format);
  if (style == TableFormat::csv) return render(flat_table(plans), style);
  return as_tables(plans, compare, layers, style, columns);
}

std::string write_named(const dialect::NamedPlan& named, const std::string& format, bool layers,
                        std::size_t columns, const Say& say) {
  messages::require_none("cannot name the tensors as " + named.assignment.dialect + " does:",
                         named.assignment.problems);
  for (const NamedFormat& known : named_formats) {
    if (format != known.name) continue;
    if (!known.of_model) say_what_is_left(named.plan, say);
    return known.write(named);
  }
  if (format == "json") return to_json(named).dump(1) + "\n";
  if (format == "svg") {
    throw InvalidInput("--format", format, "no --names", "a picture has the names of the plan");
  }
  const TableFormat style = table_format(format);
  if (style == TableFormat::csv) {
    say_what_is_left(named.plan, say);
    return render(flat_table(named), style);
  }
  const Table table = named_table(named, layers);
  if (style != TableFormat::text) return render(table, style);
  return heading(named.plan, columns) + "\n" +
         io::render_to_fit(model_table({named.plan}), columns) + "\n" +
         io::render_to_fit(table, columns) + "\n" + footing({named.plan});
}

}  // namespace scalewise::tools
