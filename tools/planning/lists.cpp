// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "planning/lists.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "planning/writing.hpp"
#include "scalewise/architecture/numbered_tensors.hpp"
#include "scalewise/architecture/presets.hpp"
#include "scalewise/dialect/all.hpp"
#include "scalewise/io/describe_config.hpp"
#include "scalewise/io/fit_table.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/io/published_configs.hpp"
#include "scalewise/numeric/number_text.hpp"
#include "scalewise/policy/rule.hpp"

namespace scalewise::tools {

std::string write_list(const Table& table, const std::string& format, std::size_t columns) {
  if (format == "table") return io::render_to_fit(table, columns);
  if (format != "json") return render(table, table_format(format));
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
  for (const Rule& rule : rules()) {
    std::string parameters;
    for (const std::string& name : rule.to_give) {
      parameters += (parameters.empty() ? "" : " ") + name + "=?";
    }
    for (const Parameter& p : rule.parameters) {
      parameters += (parameters.empty() ? "" : " ") + p.name + "=" + numeric::number_text(p.value);
    }
    table.rows.push_back({std::string(rule.id), policy::needs_base(rule) ? "needed" : "-",
                          fmt::format("{}", fmt::join(policy::names_of(rule.optimizers), ", ")),
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
  for (const Preset& preset : presets()) {
    const Shape s = resolved(preset.shape);
    const std::string depth = (s.encoder_depth > 0 ? std::to_string(s.encoder_depth) + "+" : "") +
                              std::to_string(s.depth);
    table.rows.push_back({std::string(preset.id), std::to_string(s.d_model), depth,
                          std::to_string(s.heads), std::to_string(s.kv_heads),
                          std::to_string(s.d_ff), s.vocab > 0 ? std::to_string(s.vocab) : "-",
                          s.context > 0 ? std::to_string(s.context) : "-"});
  }
  const auto size = [](long value) { return value > 0 ? std::to_string(value) : "-"; };
  for (const io::PublishedConfig& config : io::published_configs) {
    const Shape s = io::describe_config(io::parse_json(config.json, std::string(config.id))).shape;
    table.rows.push_back({std::string(config.id), size(s.d_model), size(s.depth), size(s.heads),
                          size(s.kv_heads), size(s.d_ff), size(s.vocab), size(s.context)});
  }
  return table;
}

Table name_list() {
  Table table{{}, {"names", "code base"}, {}};
  for (const dialect::Dialect* dialect : dialect::all_dialects) {
    table.rows.push_back({std::string(dialect->id), std::string(dialect->title)});
  }
  return table;
}

Table roles_table(const DescribedModel& model) {
  Table table{{}, {"tensor", "inputs x outputs", "group", "because"}, {}};
  std::map<std::vector<std::string>, std::size_t> rows;
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    const Extra& tensor = model.tensors[i];
    std::vector<std::string> row{
        detail::with_stars(tensor.name),
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
  return table;
}

std::string roles_text(const DescribedModel& model) {
  std::string text = render(roles_table(model), TableFormat::text);
  for (const std::vector<std::string>& lines : {model.ties, model.sizes}) {
    for (const std::string& line : lines) text += line + "\n";
  }
  return text + "\n";
}

}  // namespace scalewise::tools
