// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "scalewise/io/table.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/numeric/exact_text.hpp"
#include "scalewise/plan/code_factors.hpp"
#include "scalewise/plan/constants.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise {

namespace detail {

/// A number as tables show it: four digits.
inline std::string short_number(double x) { return fmt::format("{:.4g}", x); }

inline std::string latex_number(double x) {
  std::string text = short_number(x);
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;
  return text.substr(0, e) + "\\cdot 10^{" + std::to_string(std::stoi(text.substr(e + 1))) + "}";
}

/// A cell with a formula, as plain text and as LaTeX.
struct FormulaText {
  std::string text;
  std::string latex;
};

/// "value = formula", or the value alone where the formula says nothing more.
template <Kind kind>
FormulaText formula_text(const Number<kind>& number) {
  const std::string formula = number.formula();
  const bool plain = formula == numeric::number_text(number.value);
  return {short_number(number.value) + (plain ? "" : " = " + formula),
          "$" + latex_number(number.value) + (plain ? "" : " = " + number.latex()) + "$"};
}

/// One cell for many layers: their common number, or the range.
template <Kind kind>
FormulaText formula_text(const std::vector<const Entry*>& entries, Number<kind> Entry::*field) {
  const Number<kind>* low = &(entries.front()->*field);
  const Number<kind>* high = low;
  for (const Entry* entry : entries) {
    const Number<kind>& number = entry->*field;
    if (number.value < low->value) low = &number;
    if (number.value > high->value) high = &number;
  }
  if (low->value == high->value) return formula_text(*low);
  return {short_number(low->value) + "…" + short_number(high->value) + " = " + low->formula(),
          "$" + latex_number(low->value) + "\\ldots " + latex_number(high->value) + " = " +
              low->latex() + "$"};
}

/// The text of a cell of a table, which gets to know its LaTeX.
template <class... Of>
std::string cell(Table& table, const Of&... of) {
  const auto [text, latex] = formula_text(of...);
  table.latex.emplace(text, latex);
  return text;
}

/// "layer.3.query" is "query", "encoder.3.query" is "encoder.query".
inline std::string without_layer(architecture::TensorName name) {
  name.layer = -1;
  return to_string(name);
}

/// Entries that one row of a table shows, in each of the plans side by side.
struct TableRow {
  std::string label;
  std::string part;  // the label without "encoder." or "decoder."
  Group group = Group::query;
  std::vector<std::vector<const Entry*>> entries;  // [plan][layer]
  std::vector<std::string> cells;
};

inline std::vector<TableRow> table_rows(const std::vector<Plan>& plans, bool layers) {
  std::vector<TableRow> rows;
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    for (const Entry& entry : plans[p].entries) {
      const architecture::TensorName name = scalewise::detail::name_of(plans[p], entry);
      const std::string label = layers ? entry.name : without_layer(name);
      const auto [place, is_new] = places.try_emplace(label, rows.size());
      const std::size_t at = place->second;
      if (is_new) {
        rows.push_back({label,
                        name.part,
                        entry.group,
                        std::vector<std::vector<const Entry*>>(plans.size()),
                        {}});
      }
      rows[at].entries[p].push_back(&entry);
    }
  }
  return rows;
}

/// Replaces the rows for which `in` holds by one at the place of the first, if their cells agree.
template <class In>
bool merge_rows(std::vector<TableRow>& rows, const std::string& label, In&& in) {
  const auto first = std::find_if(rows.begin(), rows.end(), in);
  if (first == rows.end()) return true;
  const bool agree = std::all_of(first, rows.end(), [&](const TableRow& row) {
    return !in(row) || row.cells == first->cells;
  });
  if (!agree) return false;
  const bool several = std::count_if(rows.begin(), rows.end(), in) > 1;
  if (several) first->label = label;
  rows.erase(std::remove_if(first + 1, rows.end(), in), rows.end());
  return true;
}

/// Merges the rows of one group: all of them if their cells agree; otherwise those of one name in
/// both stacks, and then the largest set that agrees as "other <group>".
inline void merge_group(std::vector<TableRow>& rows, Group group) {
  const std::string name(to_string(group));
  const auto in_group = [&](const TableRow& row) { return row.group == group; };
  if (merge_rows(rows, name, in_group)) return;
  std::vector<std::string> names;
  for (const TableRow& row : rows) {
    if (in_group(row)) names.push_back(row.part);
  }
  for (const std::string& one : names) {
    merge_rows(rows, one, [&](const TableRow& r) { return in_group(r) && r.part == one; });
  }
  std::vector<std::string> most;
  std::ptrdiff_t most_rows = 2;
  for (const TableRow& row : rows) {
    const std::ptrdiff_t alike = std::count_if(rows.begin(), rows.end(), [&](const TableRow& r) {
      return in_group(r) && in_group(row) && r.cells == row.cells;
    });
    if (alike > most_rows) {
      most_rows = alike;
      most = row.cells;
    }
  }
  if (most.empty()) return;
  const auto alike = [&](const TableRow& r) { return in_group(r) && r.cells == most; };
  merge_rows(rows, "other " + name, alike);
  const auto first = std::find_if(rows.begin(), rows.end(), in_group);
  std::stable_partition(first, rows.end(),
                        [&](const TableRow& r) { return in_group(r) && !alike(r); });
}

/// Fewer rows that say the same: matrices before gains and biases, one row per group where its
/// cells agree, and neighbours with the same cells side by side: "query, key, value".
inline void condense(std::vector<TableRow>& rows) {
  const auto matrix = [](const TableRow& row) { return architecture::is_matrix(row.group); };
  std::stable_partition(rows.begin(), rows.end(), matrix);
  for (std::size_t g = 0; g < architecture::group_count; ++g)
    merge_group(rows, static_cast<Group>(g));
  constexpr std::size_t widest_label = 48;
  std::vector<TableRow> joined;
  for (TableRow& row : rows) {
    const bool same =
        !joined.empty() && joined.back().cells == row.cells && matrix(joined.back()) == matrix(row);
    if (same && joined.back().label.size() + row.label.size() + 2 <= widest_label) {
      joined.back().label += ", " + row.label;
    } else {
      joined.push_back(std::move(row));
    }
  }
  rows = std::move(joined);
}

inline void fill(Table& table, const std::vector<TableRow>& rows) {
  for (const TableRow& row : rows) {
    auto& line = table.rows.emplace_back(1, row.label);
    line.insert(line.end(), row.cells.begin(), row.cells.end());
  }
}

/// The columns of flat_table() for an entry, and their texts.
inline std::vector<std::pair<std::string, std::string>> flat_row(const std::string& rule,
                                                                 const Entry& e) {
  return {{"rule", rule},
          {"name", e.name},
          {"group", std::string(to_string(e.group))},
          {"stack", std::string(word(architecture::stack_words, e.stack))},
          {"layer", e.layer < 0 ? "" : std::to_string(e.layer)},
          {"rows", std::to_string(e.rows)},
          {"columns", std::to_string(e.columns)},
          {"fan_in", numeric::exact_text(e.fan_in)},
          {"fan_out", numeric::exact_text(e.fan_out)},
          {"distribution", std::string(word(policy::distribution_words, e.distribution))},
          {"init_variance", numeric::exact_text(e.init_variance.value)},
          {"init_std", numeric::exact_text(std_dev(e.init_variance))},
          {"init_mean", numeric::exact_text(e.init_mean.value)},
          {"multiplier", numeric::exact_text(e.multiplier.value)},
          {"learning_rate", numeric::exact_text(e.learning_rate.value)},
          {"weight_decay", numeric::exact_text(e.weight_decay.value)},
          {"epsilon", numeric::exact_text(e.epsilon.value)},
          {"init_variance_formula", e.init_variance.formula()},
          {"init_mean_formula", e.init_mean.formula()},
          {"multiplier_formula", e.multiplier.formula()},
          {"learning_rate_formula", e.learning_rate.formula()},
          {"weight_decay_formula", e.weight_decay.formula()},
          {"epsilon_formula", e.epsilon.formula()},
          {"source", e.source}};
}

}  // namespace detail

/// One plan as a table: a row per tensor, or per kind of tensor when `layers` is false.
inline Table plan_table(const Plan& plan, bool layers) {
  const std::string variance =
      plan.reference == Reference::base ? "init variance / base" : "init variance";
  const bool has_epsilon = plan::uses_epsilon(plan);
  Table table{
      {}, {"tensor", variance, "init mean", "multiplier", "learning rate", "weight decay"}, {}};
  if (has_epsilon) table.header.push_back("epsilon");
  table.header.push_back("source");
  const std::vector<Plan> one{plan};
  std::vector<detail::TableRow> rows = detail::table_rows(one, layers);
  for (detail::TableRow& row : rows) {
    const auto& entries = row.entries[0];
    const bool own = entries[0]->distribution == Distribution::own;  // values of the model's own
    row.cells = {own ? "own" : detail::cell(table, entries, &Entry::init_variance),
                 own ? "own" : detail::cell(table, entries, &Entry::init_mean),
                 detail::cell(table, entries, &Entry::multiplier),
                 detail::cell(table, entries, &Entry::learning_rate),
                 detail::cell(table, entries, &Entry::weight_decay)};
    if (has_epsilon) row.cells.push_back(detail::cell(table, entries, &Entry::epsilon));
    row.cells.push_back(entries[0]->source);
  }
  if (!layers) detail::condense(rows);
  detail::fill(table, rows);
  return table;
}

/// Plans as one flat table for CSV: a row per tensor, numbers with all their digits.
inline Table flat_table(const std::vector<Plan>& plans) {
  Table table;
  for (const auto& [column, text] : detail::flat_row("", {})) table.header.push_back(column);
  for (const Plan& plan : plans) {
    for (const Entry& entry : plan.entries) {
      auto& row = table.rows.emplace_back();
      for (const auto& [column, text] : detail::flat_row(plan.rule, entry)) row.push_back(text);
    }
  }
  return table;
}

namespace detail {

/// Different numbers in one cell, each once.
inline std::string cell_of_all(Table& table, const std::vector<Number<Kind::multiplier>>& numbers) {
  std::vector<std::string> seen, latex;
  for (const auto& number : numbers) {
    const FormulaText one = formula_text(number);
    if (std::find(seen.begin(), seen.end(), one.text) != seen.end()) continue;
    seen.push_back(one.text);
    latex.push_back(one.latex);
  }
  std::string all = joined(seen, "", "; ", "");
  table.latex.emplace(all, joined(latex, "", "; ", ""));
  return all;
}

/// Columns for the factors of the code that a plan is for, and for what is left to do.
inline void add_code_columns(Table& table, const Plan& plan) {
  const plan::CodeNumbers code = plan::code_of(plan);
  const Model& model = plan.model;
  std::vector<Number<Kind::multiplier>> branches;
  for (const Residual& residual : model.residuals) {
    branches.push_back(plan::left_over(residual.branch, code.branch));
  }
  const auto row = [&](std::size_t at, const auto& total, const auto& own) {
    table.rows[at].push_back(cell(table, own));
    table.rows[at].push_back(cell(table, plan::left_over(total, own)));
  };
  table.header.insert(table.header.end(), {"by the code", "left to do"});
  row(0, model.attention_scale, code.attention_scale);
  table.rows[1].insert(table.rows[1].end(), {"", ""});
  table.rows[2].push_back(cell(table, code.branch));
  table.rows[2].push_back(cell_of_all(table, branches));
  row(3, model.embedding_multiplier, code.embedding_multiplier);
  row(4, model.logit_multiplier, code.logit_multiplier);
}

}  // namespace detail

/// The model's own numbers of several plans side by side; of one for a code base with factors of its own,
/// what is left to do.
inline Table model_table(const std::vector<Plan>& plans) {
  Table table{"Model", {"multiplier"}, {}};
  using Get = std::function<std::string(const Plan&)>;
  const auto residual = [&](const Plan& plan, auto member) {
    std::vector<Number<Kind::multiplier>> all;
    for (const Residual& one : plan.model.residuals) all.push_back(one.*member);
    return detail::cell_of_all(table, all);
  };
  const bool listed = !plans.empty() && plans.front().shape.blocks == Blocks::listed;
  const std::string rest = listed ? " (besides the rows' own)" : "";
  const std::vector<std::pair<std::string, Get>> lines{
      {"attention_scale",
       [&](const Plan& p) {
         return architecture::has_heads(p.shape) ? detail::cell(table, p.model.attention_scale)
                                                 : "needs head_dim";
       }},
      {"residual_skip", [&](const Plan& p) { return residual(p, &Residual::skip); }},
      {"residual_branch", [&](const Plan& p) { return residual(p, &Residual::branch); }},
      {"embedding_multiplier",
       [&](const Plan& p) { return detail::cell(table, p.model.embedding_multiplier); }},
      {"logit_multiplier",
       [&](const Plan& p) { return detail::cell(table, p.model.logit_multiplier); }}};
  for (const Plan& plan : plans) table.header.push_back(plan.rule);
  for (const auto& [name, get] : lines) {
    auto& row = table.rows.emplace_back(1, name + (name.ends_with("_multiplier") ? rest : ""));
    for (const Plan& plan : plans) row.push_back(get(plan));
  }
  if (plans.size() == 1 && plans.front().model.code) {
    detail::add_code_columns(table, plans.front());
  }
  return table;
}

/// Several plans side by side: one table per quantity, one column per rule. Rows that are 0 (initial
/// mean) or 1 (forward multiplier) under every rule are left out of their table.
/// Throws:   InvalidInput without a plan.
inline std::vector<Table> comparison_tables(const std::vector<Plan>& plans, bool layers) {
  if (plans.empty()) throw InvalidInput("plans", "none", "at least one");
  const std::vector<detail::TableRow> all = detail::table_rows(plans, layers);
  const auto table_of = [&](const std::string& caption, auto field, const std::string& trivial) {
    Table table{caption, {"tensor"}, {}};
    for (const Plan& plan : plans) table.header.push_back(plan.rule);
    std::vector<detail::TableRow> rows = all;
    for (detail::TableRow& row : rows) {
      for (const auto& entries : row.entries) {
        row.cells.push_back(entries.empty() ? "-" : detail::cell(table, entries, field));
      }
    }
    std::erase_if(rows, [&](const detail::TableRow& row) {
      return std::all_of(row.cells.begin(), row.cells.end(),
                         [&](const std::string& cell) { return cell == trivial || cell == "-"; });
    });
    if (!layers) detail::condense(rows);
    detail::fill(table, rows);
    return table;
  };
  const std::string optimizer(plans.front().optimizer.name);
  const std::string decay(word(policy::decay_words, plans.front().decay));
  std::vector<Table> tables{
      table_of("Initial variance (of a relative rule: over the base model's)",
               &Entry::init_variance, ""),
      table_of("Initial mean, where it is not 0", &Entry::init_mean, "0"),
      table_of("Forward multiplier, where it is not 1", &Entry::multiplier, "1"),
      table_of("Learning rate, " + optimizer + " (factor on the global rate)",
               &Entry::learning_rate, ""),
      table_of("Weight decay, " + decay + " (factor on the global decay)", &Entry::weight_decay,
               "")};
  if (plan::uses_epsilon(plans.front())) {
    tables.push_back(table_of("Epsilon (factor on Adam's epsilon)", &Entry::epsilon, ""));
  }
  tables.push_back(model_table(plans));
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

/// Where the rule is published, in one line.
inline std::string citation(const Plan& plan) {
  return plan.authors + " " + plan.year + ", \"" + plan.title + "\", " + plan.paper + ", " +
         plan.where;
}

/// The symbols of plans with their values, and records of the base: "n = 1600 (d_model)".
inline std::vector<std::string> legend(const std::vector<Plan>& plans) {
  std::vector<std::string> lines;
  const auto add = [&](const plan::SymbolValue& symbol) {
    const bool whole = symbol.value < 1e15 && symbol.value == std::floor(symbol.value);
    const std::string value = whole ? std::to_string(static_cast<long>(symbol.value))
                                    : detail::short_number(symbol.value);
    const std::string line = symbol.text + " = " + value + " (" + symbol.meaning + ")";
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  };
  for (const Plan& plan : plans) {
    for (const plan::SymbolValue& symbol : plan.symbols) add(symbol);
    for (const Parameter& c : plan.constants)
      if (plan::is_record(c.name)) add({c.name, "", "of the base, a record", c.value});
    for (const Residual& residual : plan.model.residuals)
      for (const plan::SymbolValue& symbol : residual.where) add(symbol);
  }
  return lines;
}

}  // namespace scalewise
