// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "scalewise/check/judge_sweep.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/csv_cells.hpp"
#include "scalewise/io/line_file.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise::check {

/// The columns of a table of runs. Empty: a name that is usual for it, of those that differ between the
/// rows.
struct SweepColumns {
  std::string size = {};
  std::string rate = {};
  std::string seed = {};  // without such a column, all runs are of one seed
  std::string loss = {};
  std::vector<std::string> where = {};  // "column=value": of the rows that count
};

/// The runs of a table, and how it was read.
struct SweepTable {
  std::vector<SweepRow> rows = {};
  SweepColumns columns = {};              // those that were read; no seed: there is none
  std::size_t all = 0;                    // rows of the file
  std::vector<std::size_t> missing = {};  // lines whose loss is empty
  std::vector<long> empty = {};           // sizes all of whose losses are
};

namespace detail {

/// A row of a table, as text.
struct TextRow {
  std::size_t line = 0;
  std::map<std::string, std::string> cells = {};
};

/// Python writes numbers that JSON does not have.
inline std::string with_nulls(std::string_view line) {
  std::string text;
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) quoted = !quoted;
    const auto is = [&](std::string_view word) {
      return !quoted && line.substr(i, word.size()) == word;
    };
    const std::size_t skipped = is("NaN") ? 3 : is("Infinity") ? 8 : is("-Infinity") ? 9 : 0;
    text += skipped > 0 ? "null" : std::string(1, line[i]);
    if (skipped > 0) i += skipped - 1;
  }
  return text;
}

/// Reads CSV with a header, or a JSON object on each line.
class TextRows {
 public:
  TextRows(std::string_view text, std::string path) : path_(std::move(path)) {
    text = scalewise::detail::after_mark(text);
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) {
      throw InvalidInput(path_, "(empty)", "a table of runs",
                         "CSV with a header, or a JSON object on each line");
    }
    const bool json = text[first] == '{' || text[first] == '[';
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::size_t end = (std::min)(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix((std::min)(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
      json ? add_json(line, number) : add_csv(line, number);
    }
    if (rows_.empty())
      throw InvalidInput(path_, "(no rows)", "a run on each line below the header");
  }

  const std::vector<TextRow>& rows() const { return rows_; }
  const std::set<std::string>& names() const { return names_; }
  std::string place(std::size_t line) const { return path_ + " line " + std::to_string(line); }
  const std::string& path() const { return path_; }

 private:
  void add_json(std::string_view line, std::size_t number) {
    const nlohmann::ordered_json json = io::parse_json(with_nulls(line), place(number));
    if (!json.is_object()) {
      throw InvalidInput(place(number), scalewise::detail::value_text(json), "an object",
                         "a JSON object on each line, one for each run");
    }
    TextRow row{number};
    for (const auto& [name, value] : json.items()) {
      row.cells[name] = value.is_string() ? value.get<std::string>() : value.dump();
      names_.insert(name);
    }
    rows_.push_back(std::move(row));
  }

  void add_csv(std::string_view line, std::size_t number) {
    const std::vector<std::string> cells = io::csv_cells(line, place(number));
    if (header_.empty()) {
      for (const std::string& name : cells) {
        const std::string trimmed = stripped(name);
        if (!names_.insert(trimmed).second) {
          throw InvalidInput(place(number), messages::printable(trimmed) + " (given twice)",
                             "each column once");
        }
        header_.push_back(trimmed);
      }
      return;
    }
    if (cells.size() != header_.size()) {
      throw InvalidInput(place(number),
                         std::to_string(cells.size()) + (cells.size() == 1 ? " cell" : " cells"),
                         std::to_string(header_.size()) + " of them, as in the header");
    }
    TextRow row{number};
    for (std::size_t i = 0; i < cells.size(); ++i) row.cells[header_[i]] = stripped(cells[i]);
    rows_.push_back(std::move(row));
  }

  static std::string stripped(const std::string& text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string::npos) return "";
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
  }

  std::string path_;
  std::vector<std::string> header_;
  std::set<std::string> names_;
  std::vector<TextRow> rows_;
};

/// A number as tables write it, such as .5, 1. and +1e-3; NaN of what is none.
inline double table_number(std::string text) {
  if (text.starts_with('+')) text.erase(0, 1);
  if (text.starts_with('.')) text.insert(0, 1, '0');
  if (text.ends_with('.')) text += '0';
  const auto json =
      nlohmann::ordered_json::parse(text.data(), text.data() + text.size(), nullptr, false);
  const double none = std::numeric_limits<double>::quiet_NaN();
  return json.is_number() ? json.get<double>() : none;
}

/// Whether a cell says that a run diverged.
inline bool says_diverged(const std::string& cell) {
  const std::string text = messages::in_lower_case(cell);
  return io::says_not_finite(cell) || text == "null" || text == "diverged";
}

/// Finds the columns of a table and reads the runs.
class SweepReader {
 public:
  SweepReader(const TextRows& text, const SweepColumns& asked) : text_(text) {
    table_.all = text.rows().size();
    table_.columns = asked;
    select(asked.where);
    SweepColumns& c = table_.columns;
    c.rate = column(asked.rate, "rate", {"rate", "lr", "learning_rate", "max_lr"}, false);
    c.loss = column(asked.loss, "loss",
                    {"loss", "val_loss", "valid_loss", "validation_loss", "eval_loss", "val",
                     "final_loss", "test_loss", "train_loss"},
                    false);
    c.size = column(
        asked.size, "size",
        {"size", "width", "depth", "d_model", "n_embd", "hidden_size", "n_layer", "layers"}, true);
    c.seed = seed_column(asked.seed);
    for (const TextRow* row : rows_) add(*row);
    if (table_.rows.empty()) {
      throw InvalidInput(text_.path(), "(no loss)", "a loss in one of its rows");
    }
    for (const SweepRow& run : table_.rows) sizes_.erase(run.size);
    table_.empty.assign(sizes_.begin(), sizes_.end());
  }

  SweepTable take() && { return std::move(table_); }

 private:
  [[noreturn]] void no_column(const std::string& name, const std::string& hint = {}) const {
    std::string known;
    for (const std::string& other : text_.names()) {
      known += (known.empty() ? "" : ", ") + messages::printable(other);
    }
    std::string alike = messages::did_you_mean(name, text_.names());
    if (text_.names().size() == 1 && known.find_first_of("; ") != known.npos)
      alike = "cells are separated by commas";
    throw InvalidInput(text_.path(), "(no column " + messages::printable(name) + ")",
                       "one of its columns: " + known, alike.empty() ? hint : alike);
  }

  static bool same(const std::string& a, const std::string& b) {
    return a == b || table_number(a) == table_number(b);
  }

  void select(const std::vector<std::string>& where) {
    for (const TextRow& row : text_.rows()) rows_.push_back(&row);
    for (const std::string& condition : where) {
      const std::size_t equals = condition.find('=');
      if (equals == std::string::npos) {
        throw InvalidInput("where", messages::printable(condition), "column=value");
      }
      const std::string name = condition.substr(0, equals);
      const std::string value = condition.substr(equals + 1);
      if (!text_.names().contains(name)) no_column(name);
      std::set<std::string> values;
      for (const TextRow& row : text_.rows()) {
        if (row.cells.contains(name)) values.insert(row.cells.at(name));
      }
      std::erase_if(rows_, [&](const TextRow* row) {
        return !row->cells.contains(name) || !same(row->cells.at(name), value);
      });
      if (rows_.empty()) {
        throw InvalidInput("where", messages::printable(condition),
                           "a value of " + messages::printable(name) + " in " + text_.path(),
                           values.contains(value) ? "conditions have to hold together"
                                                  : messages::did_you_mean(value, values));
      }
    }
  }

  std::size_t values_of(const std::string& name) const {
    std::set<std::string> values;
    for (const TextRow* row : rows_) {
      if (row->cells.contains(name)) values.insert(row->cells.at(name));
    }
    return values.size();
  }

  /// The column that was asked for, or else the first of the usual names; of sizes, that which varies.
  std::string column(const std::string& asked, const std::string& what,
                     const std::vector<std::string>& usual, bool varies) const {
    const std::string option = "name it by --" + what + "-column";
    if (!asked.empty()) {
      if (!text_.names().contains(asked)) no_column(asked);
      return asked;
    }
    std::vector<std::string> found;
    for (const std::string& name : usual) {
      if (text_.names().contains(name) && (!varies || values_of(name) > 1)) found.push_back(name);
    }
    if (varies && found.size() > 1) {
      throw InvalidInput(text_.path(), "(both " + found[0] + " and " + found[1] + " differ)",
                         "one " + what + " that differs", option + ", or select rows by --where");
    }
    if (!found.empty()) return found.front();
    for (const std::string& name : usual) {
      if (text_.names().contains(name)) return name;
    }
    no_column(what, option);
  }

  std::string seed_column(const std::string& asked) const {
    if (!asked.empty()) return column(asked, "seed", {}, false);
    return text_.names().contains("seed") ? "seed" : "";
  }

  const std::string& cell(const TextRow& row, const std::string& name) const {
    const auto found = row.cells.find(name);
    if (found == row.cells.end()) {
      throw InvalidInput(text_.place(row.line), "(no " + messages::printable(name) + ")",
                         "a value of it");
    }
    return found->second;
  }

  [[noreturn]] void refuse(const TextRow& row, const std::string& name,
                           const std::string& expected) const {
    const std::string& value = cell(row, name);
    throw InvalidInput(text_.place(row.line) + ", " + messages::printable(name),
                       value.empty() ? "(empty)" : messages::printable(value), expected);
  }

  long whole(const TextRow& row, const std::string& name, double least) const {
    const double value = table_number(cell(row, name));
    if (!(value >= least && value <= 1e15) || value != std::floor(value)) {
      refuse(row, name,
             std::string("a whole number from ") + (least > 0 ? "1" : "-1e15") + " to 1e15");
    }
    return static_cast<long>(value);
  }

  void add(const TextRow& row) {
    const SweepColumns& c = table_.columns;
    SweepRow run;
    run.size = whole(row, c.size, 1);
    sizes_.insert(run.size);
    run.rate = table_number(cell(row, c.rate));
    if (!(run.rate > 1e-300 && run.rate < 1e300))
      refuse(row, c.rate, "a number above 1e-300 and below 1e300");
    if (!c.seed.empty()) run.seed = whole(row, c.seed, -1e15);
    const auto [other, is_new] = lines_.try_emplace({run.size, run.rate, run.seed}, row.line);
    if (!is_new) {
      throw InvalidInput(text_.place(row.line),
                         "(the run of line " + std::to_string(other->second) + ")",
                         "another size, rate or seed",
                         "select rows by --where, or name the column of seeds by --seed-column");
    }
    const std::string& loss = cell(row, c.loss);
    if (loss.empty()) {
      table_.missing.push_back(row.line);
      return;
    }
    run.loss = says_diverged(loss) ? std::numeric_limits<double>::infinity() : table_number(loss);
    if (!(run.loss > 0)) refuse(row, c.loss, "a number above 0, nan, inf, diverged or nothing");
    table_.rows.push_back(run);
  }

  const TextRows& text_;
  std::vector<const TextRow*> rows_;
  SweepTable table_;
  std::map<std::tuple<long, double, long>, std::size_t> lines_;
  std::set<long> sizes_;
};

}  // namespace detail

/// Reads a table of runs from text: CSV with a header, or a JSON object on each line. `path` is what
/// messages call it. A loss that is nan, inf, null or "diverged" is that of a diverged run; one that is
/// empty is missing.
/// Throws:   InvalidInput, naming file and line, for what is no such table, a column that is not there or
///           could be one of several, a value that is not a number, or two rows of one run.
inline SweepTable parse_sweep_table(std::string_view text, const std::string& path,
                                    const SweepColumns& columns = {}) {
  return detail::SweepReader(detail::TextRows(text, path), columns).take();
}

/// Judges a table, and does not pass one with a size that has no loss.
inline JudgedSweep judge_sweep_table(const SweepTable& table) {
  return judge_sweep(table.rows, table.columns.size, "rate", 0, table.empty);
}

/// The runs in a file, as parse_sweep_table() reads them.
inline SweepTable read_sweep_table(const std::string& path, const SweepColumns& columns = {}) {
  return parse_sweep_table(files::read_file(path, std::size_t{1} << 26), path, columns);
}

}  // namespace scalewise::check
