// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/check/records.hpp"
#include "scalewise/check/require_record.hpp"
#include "scalewise/io/csv_cells.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/io/line_file.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::check::detail {

/// The records of a run with the place where it begins, for messages.
struct PlacedRecords {
  std::string place;
  Records records;
};

/// Reads records from text with commas, one record per line, under a line that names the columns.
/// Blank lines below that are passed over.
class RecordCsv {
 public:
  /// Throws:   InvalidInput naming file, line and column: for a column that is missing, unknown or
  ///           there twice, a line with more or fewer cells, a cell that is no such number or word, a
  ///           name that is not UTF-8 or has control characters, sums that no numbers have, a record
  ///           given twice, or a last line without its end.
  RecordCsv(std::string path, std::string_view text) : path_(std::move(path)) {
    text = scalewise::detail::after_mark(text);
    for (; !text.empty(); ++line_) {
      const std::size_t end = text.find('\n');
      if (end == std::string_view::npos) {
        refuse("(no newline at its end)", "whole lines", "was the program stopped while it wrote?");
      }
      std::string_view line = text.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) {
        const std::vector<std::string> cells = io::csv_cells(line, place());
        if (order_.empty()) {
          read_columns(cells);
        } else {
          add(cells);
        }
      }
      text.remove_prefix(end + 1);
    }
    if (order_.empty()) refuse("(empty)", "a line with the names of the columns", all_columns());
  }

  const std::map<Run, PlacedRecords>& runs() const { return runs_; }

 private:
  static constexpr std::array<std::string_view, 8> columns{
      "size", "seed", "step", "signal", "name", "sum_abs", "sum_squares", "count"};

  static std::string all_columns() {
    std::string text = "the columns are ";
    for (const std::string_view column : columns) {
      text += (column == columns.front() ? "" : ",") + std::string(column);
    }
    return text + ", in any order";
  }

  std::string place() const { return path_ + " line " + std::to_string(line_); }

  [[noreturn]] void refuse(const std::string& value, const std::string& expectation,
                           const std::string& hint = {}) const {
    throw InvalidInput(place(), value, expectation, hint);
  }

  void read_columns(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const auto* const column = std::find(columns.begin(), columns.end(), name);
      if (column == columns.end())
        refuse(messages::printable(name), "the name of a column", all_columns());
      const auto at = static_cast<std::size_t>(column - columns.begin());
      if (std::count(order_.begin(), order_.end(), at) > 0) {
        refuse(name + " (given twice)", "each column once");
      }
      order_.push_back(at);
    }
    for (std::size_t at = 0; at < columns.size(); ++at) {
      if (std::count(order_.begin(), order_.end(), at) > 0) continue;
      refuse("(no " + std::string(columns[at]) + ")", "a column of this name", all_columns());
    }
  }

  /// A number or word as JSON writes it, so that both forms of records mean the same.
  class CsvCell {
   public:
    CsvCell(const std::string& text, const std::string& place, bool is_text)
        : json_(is_text ? nlohmann::ordered_json(text) : parsed(text)), reader_(json_, place) {
      if (!is_text && !json_.is_number()) {
        throw InvalidInput(place, text.empty() ? "(empty)" : messages::printable(text), "a number");
      }
    }

    const io::JsonReader& read() const { return reader_; }

   private:
    static nlohmann::ordered_json parsed(const std::string& text) {
      return nlohmann::ordered_json::parse(text.data(), text.data() + text.size(), nullptr, false);
    }

    nlohmann::ordered_json json_;
    io::JsonReader reader_;
  };

  static double sum(const std::string& text, const std::string& place) {
    if (io::says_not_finite(text)) return HUGE_VAL;
    const double value = CsvCell(text, place, false).read().number();
    if (!(value >= 0)) throw InvalidInput(place, text, "a sum of absolute values");
    return value;
  }

  void add(const std::vector<std::string>& all) {
    if (all.size() != columns.size()) {
      refuse(std::to_string(all.size()) + (all.size() == 1 ? " cell" : " cells"),
             std::to_string(columns.size()) + " of them, one of each column");
    }
    std::array<std::string, columns.size()> cell;
    for (std::size_t i = 0; i < all.size(); ++i) cell.at(order_[i]) = all[i];
    const auto at = [&](std::size_t i) { return place() + ", " + std::string(columns.at(i)); };
    const auto number = [&](std::size_t i) { return CsvCell(cell.at(i), at(i), false); };
    constexpr long most = (std::numeric_limits<long>::max)();
    const Run run{number(0).read().integer(1, most), number(1).read().natural()};
    const long step = number(2).read().integer(0, most);
    const Quantity quantity{CsvCell(cell[3], at(3), true).read().word(signal_words), cell[4]};
    messages::require_name(at(4), quantity.name);
    PlacedRecords& found = runs_.try_emplace(run, PlacedRecords{place(), {}}).first->second;
    if (found.records.has(quantity, step, run)) {
      refuse("(given twice)", "one record of each quantity, step, size and seed",
             "add up the parts that several ranks have");
    }
    const Moments moments{sum(cell[5], at(5)), sum(cell[6], at(6)), number(7).read().natural()};
    require_possible_sums(place(), quantity, moments);
    found.records.add(quantity, step, run, moments);
  }

  std::string path_;
  std::size_t line_ = 1;
  std::vector<std::size_t> order_;  // the column of each cell
  std::map<Run, PlacedRecords> runs_;
};

}  // namespace scalewise::check::detail
