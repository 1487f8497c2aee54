// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "scalewise/core/print.hpp"
#include "scalewise/core/spelling.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/plan.hpp"

namespace scalewise {

namespace detail {

/// A number as tables show it: four digits.
inline std::string short_number(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.4g", x);
  return buffer;
}

inline std::string latex_number(double x) {
  std::string text = short_number(x);
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;
  return text.substr(0, e) + "\\cdot 10^{" + std::to_string(std::stoi(text.substr(e + 1))) + "}";
}

/// "value = formula", or the value alone where the formula says nothing more.
template <Kind kind>
std::string cell(const Number<kind>& number, TableFormat format) {
  const bool plain = number.formula == number_text(number.value);
  if (format == TableFormat::latex) {
    return "$" + latex_number(number.value) + (plain ? "" : " = " + number.latex) + "$";
  }
  return short_number(number.value) + (plain ? "" : " = " + number.formula);
}

/// One cell for many layers: their common number, or the range.
template <Kind kind>
std::string cell(const std::vector<const Entry*>& entries, Number<kind> Entry::*field,
                 TableFormat format) {
  const Number<kind>* low = &(entries.front()->*field);
  const Number<kind>* high = low;
  for (const Entry* entry : entries) {
    const Number<kind>& number = entry->*field;
    if (number.value < low->value) low = &number;
    if (number.value > high->value) high = &number;
  }
  if (low->value == high->value) return cell(*low, format);
  if (format == TableFormat::latex) {
    return "$" + latex_number(low->value) + "\\ldots " + latex_number(high->value) + " = " +
           low->latex + "$";
  }
  return short_number(low->value) + "…" + short_number(high->value) + " = " + low->formula;
}

/// "layer.3.query" is "query", "encoder.3.query" is "encoder.query".
inline std::string without_layer(const Entry& entry) {
  if (entry.layer < 0) return entry.name;
  const std::size_t name = entry.name.rfind('.') + 1;
  const std::string stack = entry.name.substr(0, entry.name.find('.') + 1);
  return (stack == "layer." ? "" : stack) + entry.name.substr(name);
}

/// Entries that one row of a table shows, in each of the plans side by side.
struct TableRow {
  std::string label;
  std::vector<std::vector<const Entry*>> entries;  // [plan][layer]
};

inline std::vector<TableRow> table_rows(const std::vector<Plan>& plans, bool layers) {
  std::vector<TableRow> rows;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    for (const Entry& entry : plans[p].entries) {
      const std::string label = layers ? entry.name : without_layer(entry);
      std::size_t at = 0;
      while (at < rows.size() && rows[at].label != label) ++at;
      if (at == rows.size())
        rows.push_back({label, std::vector<std::vector<const Entry*>>(plans.size())});
      rows[at].entries[p].push_back(&entry);
    }
  }
  return rows;
}

/// Joins neighbours whose cells are the same: "query, key, value".
inline void join_equal_rows(Table& table, std::size_t widest_label) {
  std::vector<std::vector<std::string>> joined;
  for (const auto& row : table.rows) {
    const bool same =
        !joined.empty() && std::equal(row.begin() + 1, row.end(), joined.back().begin() + 1);
    if (same && display_width(joined.back()[0]) + display_width(row[0]) + 2 <= widest_label) {
      joined.back()[0] += ", " + row[0];
    } else {
      joined.push_back(row);
    }
  }
  table.rows = std::move(joined);
}

inline std::string label_text(std::string label, TableFormat format) {
  return format == TableFormat::latex ? escaped(label, "_", "\\") : label;
}

}  // namespace detail

/// One plan as a table: a row per tensor, or per kind of tensor when `layers` is false.
inline Table plan_table(const Plan& plan, TableFormat format, bool layers) {
  Table table{
      {},
      {"tensor", plan.reference == Reference::base ? "init variance / base" : "init variance",
       "init mean", "multiplier", "learning rate", "weight decay", "epsilon", "source"},
      {}};
  const std::vector<Plan> one{plan};
  for (const detail::TableRow& row : detail::table_rows(one, layers)) {
    const auto& entries = row.entries[0];
    table.rows.push_back({detail::label_text(row.label, format),
                          detail::cell(entries, &Entry::init_variance, format),
                          detail::cell(entries, &Entry::init_mean, format),
                          detail::cell(entries, &Entry::multiplier, format),
                          detail::cell(entries, &Entry::learning_rate, format),
                          detail::cell(entries, &Entry::weight_decay, format),
                          detail::cell(entries, &Entry::epsilon, format), entries[0]->source});
  }
  if (!layers && format != TableFormat::csv) detail::join_equal_rows(table, 48);
  return table;
}

/// Plans as one flat table for CSV: a row per tensor, numbers with all their digits.
inline Table flat_table(const std::vector<Plan>& plans) {
  Table table{{},
              {"rule",
               "name",
               "group",
               "stack",
               "layer",
               "rows",
               "columns",
               "fan_in",
               "fan_out",
               "distribution",
               "init_variance",
               "init_std",
               "init_mean",
               "multiplier",
               "learning_rate",
               "weight_decay",
               "epsilon",
               "init_variance_formula",
               "multiplier_formula",
               "learning_rate_formula",
               "weight_decay_formula",
               "epsilon_formula",
               "source"},
              {}};
  for (const Plan& plan : plans) {
    for (const Entry& e : plan.entries) {
      table.rows.push_back({plan.rule,
                            e.name,
                            std::string(to_string(e.group)),
                            std::string(word(stack_words, e.stack)),
                            e.layer < 0 ? "" : std::to_string(e.layer),
                            std::to_string(e.rows),
                            std::to_string(e.columns),
                            number_text(e.fan_in),
                            number_text(e.fan_out),
                            std::string(word(distribution_words, e.distribution)),
                            number_text(e.init_variance.value),
                            number_text(std_dev(e.init_variance)),
                            number_text(e.init_mean.value),
                            number_text(e.multiplier.value),
                            number_text(e.learning_rate.value),
                            number_text(e.weight_decay.value),
                            number_text(e.epsilon.value),
                            e.init_variance.formula,
                            e.multiplier.formula,
                            e.learning_rate.formula,
                            e.weight_decay.formula,
                            e.epsilon.formula,
                            e.source});
    }
  }
  return table;
}

/// The model's own numbers of several plans side by side.
inline Table model_table(const std::vector<Plan>& plans, TableFormat format) {
  Table table{"Model", {"multiplier"}, {}};
  using Get = std::function<std::string(const Plan&)>;
  const auto residual = [&](const Plan& plan, auto member) {
    std::vector<std::string> seen;
    for (const Residual& r : plan.model.residuals) {
      const std::string text = detail::cell(r.*member, format);
      if (std::find(seen.begin(), seen.end(), text) == seen.end()) seen.push_back(text);
    }
    return detail::joined(seen, "", "; ", "");
  };
  const std::vector<std::pair<std::string, Get>> lines{
      {"attention_scale",
       [&](const Plan& p) { return detail::cell(p.model.attention_scale, format); }},
      {"residual_skip", [&](const Plan& p) { return residual(p, &Residual::skip); }},
      {"residual_branch", [&](const Plan& p) { return residual(p, &Residual::branch); }},
      {"embedding_multiplier",
       [&](const Plan& p) { return detail::cell(p.model.embedding_multiplier, format); }},
      {"logit_multiplier",
       [&](const Plan& p) { return detail::cell(p.model.logit_multiplier, format); }}};
  for (const Plan& plan : plans) table.header.push_back(plan.rule);
  for (const auto& [name, get] : lines) {
    std::vector<std::string> row{detail::label_text(name, format)};
    for (const Plan& plan : plans) row.push_back(get(plan));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Several plans side by side: one table per quantity, one column per rule.
inline std::vector<Table> comparison_tables(const std::vector<Plan>& plans, TableFormat format,
                                            bool layers) {
  const std::vector<detail::TableRow> rows = detail::table_rows(plans, layers);
  const auto table_of = [&](const std::string& caption, auto field) {
    Table table{caption, {"tensor"}, {}};
    for (const Plan& plan : plans) table.header.push_back(plan.rule);
    for (const detail::TableRow& row : rows) {
      std::vector<std::string> cells{detail::label_text(row.label, format)};
      for (const auto& entries : row.entries) {
        cells.push_back(entries.empty() ? "-" : detail::cell(entries, field, format));
      }
      table.rows.push_back(std::move(cells));
    }
    if (!layers && format != TableFormat::csv) detail::join_equal_rows(table, 44);
    return table;
  };
  const std::string optimizer(word(optimizer_words, plans.front().optimizer));
  const std::string decay(word(decay_words, plans.front().decay));
  std::vector<Table> tables{
      table_of("Initial variance (of a relative rule: over the base model's)",
               &Entry::init_variance),
      table_of("Initial mean", &Entry::init_mean),
      table_of("Forward multiplier", &Entry::multiplier),
      table_of("Learning rate, " + optimizer + " (factor on the global rate)",
               &Entry::learning_rate),
      table_of("Weight decay, " + decay + " (factor on the global decay)", &Entry::weight_decay)};
  if (plans.front().optimizer == Optimizer::adamw) {
    tables.push_back(table_of("Epsilon (factor on Adam's epsilon)", &Entry::epsilon));
  }
  tables.push_back(model_table(plans, format));
  return tables;
}

/// Where the rule is published, in one line.
inline std::string citation(const Plan& plan) {
  return plan.authors + " " + plan.year + ", \"" + plan.title + "\", " + plan.paper + ", " +
         plan.where;
}

/// The symbols of plans with their values: "n = 1600 (d_model)".
inline std::vector<std::string> legend(const std::vector<Plan>& plans) {
  std::vector<std::string> lines;
  for (const Plan& plan : plans) {
    for (const Symbol& symbol : plan.symbols) {
      const std::string line =
          symbol.text + " = " + detail::short_number(symbol.value) + " (" + symbol.meaning + ")";
      if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
    }
  }
  return lines;
}

}  // namespace scalewise
