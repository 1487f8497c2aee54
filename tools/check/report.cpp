// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "check/tasks.hpp"
#include "frame/machine.hpp"
#include "frame/program.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/files/inputs.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/fit_table.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/exact_text.hpp"
#include "scalewise/plot/figure.hpp"
#include "train/threads.hpp"

namespace scalewise::experiment {

namespace {

namespace fs = std::filesystem;

/// The "settings" of the file PROGRAM.json that an earlier run has left in a folder; none without such a file.
/// Throws:   InvalidInput for a file of something else.
std::optional<nlohmann::ordered_json> settings_in(const std::string& file,
                                                  const std::string& option,
                                                  const std::string& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (!fs::exists(status)) return {};
  if (fs::is_regular_file(status)) {  // reading a pipe would wait for ever
    try {
      const nlohmann::ordered_json saved =
          io::parse_json(files::read_file(file, std::size_t{1} << 30U), file);
      if (saved.at("settings").is_object()) return saved["settings"];
    } catch (const std::invalid_argument&) {  // the message below says what to do
    } catch (const nlohmann::ordered_json::exception&) {
    }
  }
  throw InvalidInput(option, messages::printable(folder), "a folder without another " + file,
                     "use another folder, or delete that file");
}

/// Compares the inputs of this run with those among the settings that a report carries.
/// Throws:   InvalidInput naming the first that differs.
void require_same_settings(nlohmann::ordered_json saved, const std::string& file,
                           const frame::Options& options) {
  const files::Inputs here = options.inputs();
  files::Inputs there;  // in the order of the options of today
  for (const files::Setting& input : here) {
    const auto found = saved.find(input.name.substr(2));
    if (found != saved.end()) there.push_back({input.name, frame::input_text(*found)});
  }
  const nlohmann::ordered_json settings = options.settings();
  for (const auto& [key, value] : settings.items()) saved.erase(key);
  for (const auto& [key, value] : saved.items())
    there.push_back({"--" + key, frame::input_text(value)});
  files::require_same_inputs(here, there, file);
}

/// Four digits for people, all of them for programs.
std::string text_of(const Value& cell, TableFormat format) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* whole = std::get_if<long>(&cell)) return std::to_string(*whole);
  const double number = std::get<double>(cell);
  const bool people = format == TableFormat::text;
  if (!std::isfinite(number)) return people ? "-" : "";
  if (!people) return numeric::exact_text(number);
  return fmt::format("{:.4g}", number);
}

std::string render(const Section& section, TableFormat format) {
  Table table{section.caption, {}, {}};
  if (section.rows.empty()) return "";
  for (const auto& [name, value] : section.rows[0]) table.header.push_back(name);
  for (const Cells& row : section.rows) {
    std::vector<std::string> cells;
    for (const auto& [name, value] : row) cells.push_back(text_of(value, format));
    table.rows.push_back(std::move(cells));
  }
  if (format == TableFormat::text) return io::render_to_fit(table, frame::terminal_columns());
  return scalewise::render(table, format);
}

/// The tables of the CSV files, with an empty line between them. The verdict goes to standard error, so
/// that programs can read the rest.
void print_csv(const Report& report) {
  bool first = true;
  for (const Section& section : report.sections) {
    if (!section.in_file) continue;
    fmt::print("{}{}", std::exchange(first, false) ? "" : "\n", render(section, TableFormat::csv));
  }
  fmt::print(stderr, "{}: {}\n", check::to_string(report.verdict), report.reason);
}

nlohmann::ordered_json json_of(const Cells& row) {
  nlohmann::ordered_json object;
  for (const auto& [name, cell] : row) {
    std::visit([&, key = name](const auto& value) { object[key] = value; }, cell);
  }
  return object;
}

/// Numbers that are not finite become null.
nlohmann::ordered_json json_of(const Report& report, const frame::Program& program) {
  nlohmann::ordered_json json = begin_report(program.name, 1, *program.options);
  for (const Section& section : report.sections) {
    if (!section.in_file) continue;
    auto& rows = json[section.name] = nlohmann::ordered_json::array();
    for (const Cells& row : section.rows) rows.push_back(json_of(row));
  }
  json["verdict"] = check::to_string(report.verdict);
  json["reason"] = report.reason;
  return json;
}

/// Says where the picture is only to people, and why there is none to everybody.
void write_files(const Report& report, const std::string& json, const std::string& stem,
                 bool people) {
  const frame::Uninterrupted now;
  files::write_file(stem + ".json", json);
  for (const Section& section : report.sections) {
    if (!section.in_file) continue;
    files::write_file(stem + "_" + section.name + ".csv", render(section, TableFormat::csv));
  }
  if (report.figure.panels.empty()) return;
  const plot::Drawing drawing = plot::draw_figure(report.figure);
  const std::string told = plot::write_figure(report.figure, stem, drawing);
  if (people) {
    fmt::print("{}\n", told);
  } else if (!drawing.problem.empty()) {
    fmt::print(stderr, "{}\n", told);
  }
}

/// The contents and format of the output.
struct Output {
  int threads = 0;
  frame::Format format = frame::Format::table;
  std::string out;
};

/// The result is printed first, so that it is there even where files cannot be written.
int publish(const Report& report, const frame::Program& program, const Output& output) {
  const std::string json = json_of(report, program).dump(1) + "\n";
  if (output.format == frame::Format::json) {
    fmt::print("{}", json);
  } else if (output.format == frame::Format::csv) {
    print_csv(report);
  } else {
    for (const Section& section : report.sections) {
      if (section.in_text) fmt::print("{}\n", render(section, TableFormat::text));
    }
    fmt::print("{}: {}\n", painted(report.verdict), report.reason);
  }
  std::fflush(stdout);
  if (!output.out.empty()) {
    const std::string stem = (fs::path(output.out) / program.name).string();
    write_files(report, json, stem, output.format == frame::Format::table);
  }
  return check::exit_code(report.verdict);
}

}  // namespace

std::string painted(check::Verdict verdict) {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): never set here
    return std::string(value == nullptr ? "" : value);
  };
  const std::string text(check::to_string(verdict));
  const bool colors =
      frame::terminal_columns() > 0 && set("NO_COLOR").empty() && set("TERM") != "dumb";
  const int color = verdict == check::Verdict::pass   ? 32
                    : verdict == check::Verdict::fail ? 31
                                                      : 33;
  return colors ? fmt::format("\x1b[1;{}m{}\x1b[0m", color, text) : text;
}

nlohmann::ordered_json begin_report(const std::string& name, int version,
                                    const frame::Options& options) {
  return {{"schema", "scalewise." + name + "/" + std::to_string(version)},
          {"settings", options.settings()},
          {"machine",
           {{"products", frame::products()},
            {"vectors", frame::vectors()},
            {"threads", frame::threads()}}}};
}

frame::Option& add_out_option(frame::Options& o, std::string& out, const std::string& program) {
  const auto attempt = [&o, program](const std::string& folder, const std::string& option) {
    files::try_folder(folder, option);
    const std::string file = (fs::path(folder) / (program + ".json")).string();
    if (auto saved = settings_in(file, option, folder)) require_same_settings(*saved, file, o);
  };
  const auto names = [program](const std::string& file) {
    const bool own = file.starts_with(program + ".") || file.starts_with(program + "_");
    const std::vector<std::string> kinds{".json", ".csv", ".svg", ".png", ".html"};
    return file == "sizes.csv" ||  // of learning_rate_transfer
           (own &&
            std::find(kinds.begin(), kinds.end(), fs::path(file).extension()) != kinds.end());
  };
  return o.add("--out", out, "folder for CSV, JSON and pictures").writes(attempt, names);
}

void make_report(frame::Program& program, std::function<Report()> run,
                 std::function<std::optional<int>()> before) {
  const auto output = std::make_shared<Output>();
  frame::Options& o = *program.options;
  o.add("--threads", output->threads, "0: all cores; results do not depend on it")
      .to(1024)
      .not_an_input();
  o.group("Output");
  frame::add_format(o, output->format);
  add_out_option(o, output->out, program.name);
  o.add("--quiet", frame::quiet, "no progress").not_an_input();
  if (program.expected) {
    program.expected = [expected = program.expected, output, options = program.options] {
      train::use_threads(threads_of(output->threads, *options));
      return expected();
    };
  }
  program.run = [run = std::move(run), before = std::move(before), output, name = program.name,
                 options = program.options](const std::vector<std::string>&) {
    train::use_threads(threads_of(output->threads, *options));
    if (const std::optional<int> code = before ? before() : std::nullopt) return *code;
    return publish(run(), {name, "", options}, *output);
  };
}

void stopped_early(Report& report, long finished, long all, const std::string& what) {
  report.verdict = check::Verdict::inconclusive;
  report.reason =
      "stopped after " + std::to_string(finished) + " of " + std::to_string(all) + " " + what;
}

}  // namespace scalewise::experiment
