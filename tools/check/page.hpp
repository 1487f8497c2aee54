// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The contents of a page for readers: made from a report in JSON, so that both have the same numbers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "frame/options.hpp"
#include "scalewise/io/table.hpp"

namespace scalewise::experiment {

struct Cell {
  std::string text;
  std::string exact = {};  // of numbers: all digits; the column is sorted by the first of them
  std::string mood = {};   // pass, fail or inconclusive: its colour
};

struct PageTable {
  std::vector<std::string> header = {};
  std::vector<std::vector<Cell>> rows = {};
  bool sortable = false;
};

/// Empty parts are omitted, and so is a section that has no other parts.
struct PageSection {
  std::string title;
  std::vector<std::string> lines = {};
  std::string command = {};
  std::string svg = {};  // a picture; `lines` say what it shows
  PageTable table = {};
};

struct Page {
  std::string title;
  std::string about;    // what was checked
  std::string verdict;  // pass, fail or inconclusive
  std::string reason;   // what the verdict rests on, or what is wrong most likely
  std::vector<PageSection> sections = {};
};

/// A text with a capital letter first, if it begins with one of ASCII.
std::string sentence(std::string text);

/// Four digits of a number, its exact value on demand; "–" for null.
Cell cell_of(const nlohmann::ordered_json& value);

/// Rows that are objects with the same members. A list of two numbers is what they span.
PageTable table_of(const nlohmann::ordered_json& rows);

/// A table of texts, in which cells may end in "FAIL" or "?".
PageTable table_of(const Table& table);

/// Some members of an object, a row each; those of objects within it by both names.
PageTable values_table(const nlohmann::ordered_json& object, const std::vector<std::string>& names);

/// Adds how every page ends: all settings, the command that has this result, version and machine.
/// Requires: a report that begins as begin_report() says.
void add_origin(Page& page, const nlohmann::ordered_json& report, const std::string& program,
                const frame::Options& options);

/// A command of words, for a shell.
std::string command_line(const std::string& program, const std::vector<std::string>& words);

}  // namespace scalewise::experiment
