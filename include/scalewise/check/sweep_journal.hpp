// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "scalewise/check/rate_curve.hpp"
#include "scalewise/files/inputs.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/io/line_file.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::check {

/// The finished runs of a sweep in a file: the inputs in its first line, then a line per run, each
/// with a checksum. A run is on disk when append() returns. One process at a time writes a journal.
/// Without a path, runs are kept in memory only.
class SweepJournal {
 public:
  /// Begins a journal, or resumes one. `inputs` are all that a run depends on besides size,
  /// rate and seed. Damaged lines are left out, so that their runs are missing; see damage().
  /// Throws:   InvalidInput for a file that is not a journal, has other inputs or another version,
  ///           has a damaged first line, has two results of one run, is being written by another
  ///           process, or cannot be written.
  SweepJournal(const std::string& path, const files::Inputs& inputs) {
    if (path.empty()) return;
    file_ = std::make_unique<io::LineFile>(path, schema, files::IfLocked::refuse);
    const io::CheckedLines& lines = file_->lines();
    if (lines.size == 0) {  // new, or an interrupted first write
      file_->append(io::checked_line({{"schema", schema}, {"inputs", io::inputs_json(inputs)}}));
      return;
    }
    if (lines.good.empty() || lines.good[0].number != 1) {
      throw InvalidInput(path + " line 1", "(damaged)", "the inputs of the sweep",
                         "give another folder and run again");
    }
    check_inputs(lines.good[0].json, path, inputs);
    for (std::size_t i = 1; i < lines.good.size(); ++i) add(lines.good[i], path);
    damage_ = io::damage_text(path, lines.damaged);
  }

  /// In the order in which they finished.
  const std::vector<RateRun>& runs() const { return runs_; }

  /// A sentence about the lines that were left out; empty if there were none.
  const std::string& damage() const { return damage_; }

  /// Adds a run. Threads may call it at the same time.
  /// Throws:   InvalidInput when it cannot be written.
  void append(const RateRun& run) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (file_ != nullptr) {
      const bool finite = std::isfinite(run.loss);
      file_->append(
          io::checked_line({{"size", run.size},
                            {"octave", octave_json(run.octave)},
                            {"seed", run.seed},
                            {"loss", finite ? nlohmann::ordered_json(run.loss) : nullptr}}));
    }
    runs_.push_back(run);
  }

 private:
  static constexpr std::string_view schema = "scalewise.sweep/2";

  /// Whole octaves as integers.
  static nlohmann::ordered_json octave_json(double octave) {
    if (octave == std::floor(octave) && std::fabs(octave) <= 1000) return std::lround(octave);
    return octave;
  }

  static double octave_of(const io::JsonReader& reader) {
    const double octave = reader.number();
    if (std::fabs(octave) <= 1000) return octave;
    throw InvalidInput(reader.path(), std::to_string(octave), "a number from -1000 to 1000");
  }

  static void check_inputs(const std::string& line, const std::string& path,
                           const files::Inputs& inputs) {
    const std::string name = path + " line 1";
    const nlohmann::ordered_json json = io::parse_json(line, name);
    const io::JsonReader header(json, name);
    header.only({"schema", "inputs"});
    if (const std::string saved = header.at("schema").string(); saved != schema) {
      throw InvalidInput(path, messages::printable(saved), std::string(schema));
    }
    files::require_same_inputs(inputs, io::inputs_of(header.at("inputs")), path);
  }

  void add(const io::CheckedLine& line, const std::string& path) {
    const std::string name = path + " line " + std::to_string(line.number);
    const nlohmann::ordered_json json = io::parse_json(line.json, name);
    const io::JsonReader reader(json, name);
    reader.only({"size", "octave", "seed", "loss"});
    const bool diverged = reader.at("loss").is_null();
    RateRun run{.size = reader.at("size").integer(),
                .octave = octave_of(reader.at("octave")),
                .seed = reader.at("seed").integer()};
    run.loss = diverged ? std::numeric_limits<double>::infinity() : reader.at("loss").number();
    const auto [first, is_new] =
        lines_.try_emplace({run.size, run.octave, run.seed}, line.number, run.loss);
    if (is_new) {
      runs_.push_back(run);
    } else if (first->second.second != run.loss) {
      throw InvalidInput(name, "(another loss of the same run)",
                         "that of line " + std::to_string(first->second.first),
                         "delete the wrong one");
    }
  }

  std::unique_ptr<io::LineFile> file_;
  std::vector<RateRun> runs_;
  std::map<std::tuple<long, double, long>, std::pair<std::size_t, double>> lines_;  // by run
  std::string damage_;
  std::mutex mutex_;
};

}  // namespace scalewise::check
