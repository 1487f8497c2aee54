// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/check/record_csv.hpp"
#include "scalewise/check/record_json.hpp"
#include "scalewise/check/records.hpp"
#include "scalewise/check/require_record.hpp"
#include "scalewise/files/inputs.hpp"
#include "scalewise/files/lock.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/io/line_file.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::check {

inline constexpr std::string_view record_schema = "scalewise.coordinates/2";

/// The contents of files of records.
struct RecordFile {
  Records records;
  files::Inputs inputs;  // the same for all records
  std::set<Run> runs;    // each is there completely
  std::string damage;    // a sentence per file about damaged lines, which were left out
};

namespace detail {

/// The lines of records, one per run.
inline std::string record_lines(const Records& records, const files::Inputs& inputs) {
  std::string text;
  for (auto& [run, list] : records_json(records)) {
    nlohmann::ordered_json line{{"schema", record_schema},
                                {"inputs", io::inputs_json(inputs)},
                                {"size", run.size},
                                {"seed", run.seed}};
    const auto plan = records.plans().find(run);
    if (plan != records.plans().end()) line["plan"] = plan->second;
    line["records"] = std::move(list);
    text += io::checked_line(line);
  }
  return text;
}

/// Throws:   InvalidInput for what no plan_fingerprint() is.
inline std::string fingerprint_of(const io::JsonReader& json) {
  std::string digits = json.string();
  if (digits.size() == 16 && digits.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return digits;
  }
  throw InvalidInput(json.path(), messages::printable(digits),
                     "16 hexadecimal digits, a plan's fingerprint");
}

/// Reads files line by line.
class RecordReader {
 public:
  /// Waits for a process that appends.
  void read(const std::string& path) {
    const files::OpenFile file(std::fopen(path.c_str(), "rb"));
    if (file != nullptr) files::lock_file(file.get(), files::IfLocked::wait);
    const std::string text = files::read_file(path, (std::numeric_limits<std::size_t>::max)());
    if (path.ends_with(".csv")) {
      const RecordCsv csv(path, text);
      for (const auto& [run, found] : csv.runs()) add(run, found, {});
      return;
    }
    const io::CheckedLines lines = io::checked_lines(text);
    io::require_schema(path, text, lines, record_schema);
    read(path, lines);
  }

  void read(const std::string& path, const io::CheckedLines& lines) {
    for (const io::CheckedLine& line : lines.good) add(line, path);
    if (lines.damaged.empty()) return;
    file_.damage += (file_.damage.empty() ? "" : "\n") + io::damage_text(path, lines.damaged);
  }

  RecordFile take() && { return std::move(file_); }

 private:
  void add(const io::CheckedLine& line, const std::string& path) {
    const std::string name = path + " line " + std::to_string(line.number);
    const nlohmann::ordered_json json = io::parse_json(line.json, name);
    const io::JsonReader reader(json, name);
    if (const std::string schema = reader.at("schema").string(); schema != record_schema) {
      throw InvalidInput(name + ".schema", messages::printable(schema), std::string(record_schema));
    }
    reader.only({"schema", "inputs", "size", "seed", "plan", "records"});
    constexpr long most = (std::numeric_limits<long>::max)();
    const Run run{reader.at("size").integer(1, most), reader.at("seed").natural()};
    Records records = records_of(reader.at("records"), run);
    if (reader.has("plan")) records.set_plan(run, fingerprint_of(reader.at("plan")));
    add(run, {name, std::move(records)}, io::inputs_of(reader.at("inputs")));
  }

  void add(const Run& run, const PlacedRecords& found, files::Inputs inputs) {
    if (sources_.empty()) {
      file_.inputs = std::move(inputs);
      first_ = found.place;
    } else {
      files::require_same_inputs(inputs, file_.inputs, first_);
    }
    const auto [source, is_new] = sources_.try_emplace(run, found);
    if (is_new) {
      file_.records.merge(found.records);
      file_.runs.insert(run);
    } else if (!(source->second.records == found.records)) {
      throw InvalidInput(found.place,
                         "(other records of size " + std::to_string(run.size) + ", seed " +
                             std::to_string(run.seed) + ")",
                         "those of " + source->second.place,
                         "runs of one size need seeds that differ, and the width or depth as their "
                         "size; parts of one run are added up before one process appends them");
    }
  }

  RecordFile file_;
  std::string first_;
  std::map<Run, PlacedRecords> sources_;
};

/// Throws:   InvalidInput for lines that read_records() would refuse, which would block a file for all others.
inline void require_readable(const std::string& lines) {
  RecordReader().read("records", io::checked_lines(lines));
}

/// Throws:   InvalidInput for a name that read_records() takes for CSV.
inline void require_name_of_lines(const std::string& path) {
  if (!path.ends_with(".csv")) return;
  throw InvalidInput("file of records", messages::printable(path),
                     "a name that does not end in .csv",
                     "records are written as lines of JSON, such as records.jsonl");
}

}  // namespace detail

/// Appends runs to a file, a line per run, in one write. Any process may append to a file at any
/// time, and files put one after the other are one file. A run is on disk when this returns.
/// Requires: all records of a run in one call. Ranks add their parts up before.
/// Throws:   InvalidInput, and appends nothing, when not all can be written, when the file's name ends in
///           ".csv", which read_records() reads as CSV, for records that read_records() would refuse,
///           such as a name that is not UTF-8 or has control characters,
///           and when the file has records of other inputs, naming the first.
inline void append_records(const std::string& path, const Records& records,
                           const files::Inputs& inputs = {}) {
  detail::require_name_of_lines(path);
  for (const auto& [quantity, steps] : records.all()) {
    messages::require_name("name of a record", quantity.name);
  }
  const std::string text = detail::record_lines(records, inputs);
  if (text.empty()) return;
  detail::require_readable(text);
  io::LineFile file(path, record_schema, files::IfLocked::wait);
  if (!file.lines().good.empty()) {
    const nlohmann::ordered_json first = io::parse_json(file.lines().good[0].json, path);
    files::require_same_inputs(inputs, io::inputs_of(io::JsonReader(first, path).at("inputs")),
                               path);
  }
  file.append(text);
}

/// Reads what append_records() has written, and files whose names end in ".csv", which have a record
/// per line and no inputs. Damaged lines of the first, and a last one without its end, are left
/// out and named in RecordFile::damage. Records given twice that agree count once.
/// Throws:   InvalidInput naming file and line: for another kind of file or another version; for
///           records of other inputs, naming the first; for two runs of one size and seed that
///           differ; for any damage of a CSV file, which has no checksums.
inline RecordFile read_records(const std::vector<std::string>& paths) {
  detail::RecordReader reader;
  for (const std::string& path : paths) reader.read(path);
  return std::move(reader).take();
}
inline RecordFile read_records(const std::string& path) {
  return read_records(std::vector<std::string>{path});
}

/// The runs with these inputs that a file has; they need not be repeated. Makes an empty
/// file where there is none, so that a file that cannot be written shows before the work.
/// Throws:   as append_records() and read_records() do.
inline RecordFile resume_records(const std::string& path, const files::Inputs& inputs) {
  detail::require_name_of_lines(path);
  const io::LineFile file(path, record_schema, files::IfLocked::wait);
  detail::RecordReader reader;
  reader.read(path, file.lines());
  RecordFile saved = std::move(reader).take();
  if (!saved.runs.empty()) files::require_same_inputs(inputs, saved.inputs, path);
  return saved;
}

}  // namespace scalewise::check
