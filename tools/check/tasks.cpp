// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/tasks.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <random>
#include <regex>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "frame/machine.hpp"
#include "frame/program.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "scalewise/files/bytes.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/io/line_file.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::experiment {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view schema = "scalewise.task/1";
constexpr std::string_view suffix = ".json";
constexpr std::size_t fingerprint_size = 16;

/// Whether a text ends as ids do: other files in the folder are left alone.
bool looks_like_id(const std::string& text) {
  static const std::regex form(".+-[0-9a-f]{16}");
  return std::regex_match(text, form);
}

/// Whether a file in the folder is the result of a run, or one that `tune` makes of all.
bool is_result(const std::string& file) {
  return file.ends_with(suffix) &&
         (looks_like_id(file.substr(0, file.size() - suffix.size())) || file == "report.json" ||
          file.starts_with("width=") || file.starts_with("depth="));
}

/// The id in the name of a file that is renamed once it is complete: .ID.RANDOM.tmp; empty for other names.
std::string id_of_temporary(const std::string& name) {
  static const std::regex form("\\.(.+-[0-9a-f]{16})\\.[0-9a-f]{16}\\.tmp");
  std::smatch found;
  return std::regex_match(name, found, form) ? found[1].str() : "";
}

/// An id without its fingerprint.
std::string name_in(const std::string& id) {
  return id.substr(0, id.size() - fingerprint_size - 1);
}

/// As the shell finds the program from any folder.
std::string program_path() {
  const std::string& path = frame::called_as;
  return path.find('/') == std::string::npos ? path : fs::absolute(path).string();
}

std::string listed_paths(const std::vector<std::string>& paths) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(paths.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + paths[i];
  }
  if (paths.size() > most) text += " and " + std::to_string(paths.size() - most) + " more";
  return text;
}

}  // namespace

std::string own_name() {
  std::random_device random;
  std::string seed;
  for (int i = 0; i < 4; ++i) seed += std::to_string(random()) + " ";
  return files::fingerprint(seed);
}

void add_task_options(frame::Options& o, TaskOptions& tasks) {
  o.group("Tasks, for any engine that runs command lines");
  o.add("--emit-tasks", tasks.emit, "print a command line for each run that is missing")
      .not_an_input();
  o.add("--run-one", tasks.one, "ID: make this run, write its result, and print it as JSON")
      .not_an_input();
  o.add("--collect", tasks.collect,
        "read the results: print the verdict, or the next command lines (exit code 4)")
      .not_an_input();
  o.add("--results", tasks.results, "folder of the results, one file per run")
      .writes(
          [&tasks](const std::string& folder, const std::string& option) {
            if (!tasks.collect) files::try_folder(folder, option);  // --collect only reads
          },
          is_result);
}

void check(const TaskOptions& tasks, const frame::Options& options,
           std::initializer_list<const char*> others) {
  frame::one_of_many = options.given("--run-one");
  std::string verb;
  for (const char* name : {"--emit-tasks", "--run-one", "--collect"}) {
    if (!options.given(name)) continue;
    if (!verb.empty()) throw InvalidInput(name, "(given)", "it without " + verb);
    verb = name;
  }
  if (verb.empty() && tasks.asked()) {
    throw InvalidInput("--results", messages::printable(tasks.results),
                       "it with --emit-tasks, --run-one or --collect");
  }
  if (!verb.empty() && !tasks.asked()) {
    throw InvalidInput(verb, "(given)", "it with --results, the folder of the results");
  }
  for (const char* other : others) {
    if (!tasks.asked() || !options.given(other)) continue;
    throw InvalidInput(other, "(given)", "none with --results",
                       "a task is one run, and which runs there are must not depend on time");
  }
}

int threads_of(int threads, const frame::Options& options) {
  return options.given("--run-one") && !options.given("--threads") ? 1 : threads;
}

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

TaskFolder::TaskFolder(std::string folder, std::string program, files::Inputs inputs)
    : folder_(std::move(folder)), program_(std::move(program)), inputs_(std::move(inputs)) {}

std::string TaskFolder::id(const std::string& run) const {
  files::Inputs all = inputs_;
  all.push_back({"program", program_});
  all.push_back({"run", run});
  return run + "-" + files::fingerprint(all);
}

std::string TaskFolder::run_of(const std::string& id) const {
  if (looks_like_id(id)) {
    std::string run = name_in(id);
    if (this->id(run) == id) return run;
  }
  throw InvalidInput("--run-one", id.empty() ? "(empty)" : messages::printable(id),
                     "an id that --emit-tasks prints with the same options and data");
}

std::string TaskFolder::path_of(const std::string& id) const {
  return (fs::path(folder_) / (id + std::string(suffix))).string();
}

std::optional<TaskFolder::Json> TaskFolder::read(const std::string& id) const {
  const std::string path = path_of(id);
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};  // reading a pipe would wait for ever
  const io::CheckedLines lines = io::checked_lines(files::read_file(path, std::size_t{1} << 30U));
  if (lines.good.size() != 1 || !lines.damaged.empty()) return {};
  const nlohmann::ordered_json json = io::parse_json(lines.good[0].json, path);
  const io::JsonReader file(json, path);
  if (const std::string saved = file.at("schema").string(); saved != schema) {
    throw InvalidInput(path, messages::printable(saved), std::string(schema));
  }
  if (const std::string saved = file.at("program").string(); saved != program_) {
    throw InvalidInput(path, "(a result of " + messages::printable(saved) + ")",
                       "one of " + program_, "use another folder for another experiment");
  }
  files::require_same_inputs(inputs_, io::inputs_of(file.at("inputs")), path);
  file.only({"schema", "program", "id", "inputs", "machine", "result"});
  if (file.at("id").string() != id || this->id(name_in(id)) != id) return {};
  static_cast<void>(file.at("result"));
  return Json::parse(lines.good[0].json);
}

void TaskFolder::write(const std::string& id, const Json& result) const {
  const std::string line =
      io::checked_line({{"schema", schema},
                        {"program", program_},
                        {"id", id},
                        {"inputs", io::inputs_json(inputs_)},
                        {"machine", frame::products() + ", " + frame::vectors()},
                        {"result", result}});
  const std::string path = path_of(id);
  const std::string temporary =
      (fs::path(folder_) / ("." + id + "." + own_name() + ".tmp")).string();
  const frame::Uninterrupted now;
  std::error_code error;
  files::OpenFile file(std::fopen(temporary.c_str(), "wbx"));
  bool written = file != nullptr &&
                 std::fwrite(line.data(), 1, line.size(), file.get()) == line.size() &&
                 files::flush_to_disk(file.get());
  // A network file system may report at the end only that it has no room.
  written = file != nullptr && std::fclose(file.release()) == 0 && written;
  if (written) fs::rename(temporary, path, error);
  // Where it is gone, another process has collected the same result, and takes this file for a killed one's.
  if (written && error && !fs::exists(temporary) && read(id)) return;
  if (!written || error) {
    const std::string why = error ? error.message() : "is there room?";
    fs::remove(temporary, error);
    throw InvalidInput(path, "(cannot be written)", "a file that can be written", why);
  }
  files::flush_folder(folder_);
}

std::map<std::string, TaskFolder::Json> TaskFolder::results() const {
  std::map<std::string, Json> all;
  std::vector<std::string> damaged;
  std::set<std::string> machines;
  std::vector<fs::path> temporaries;
  std::error_code problem;
  const fs::directory_iterator entries(folder_, problem);
  if (problem && problem != std::errc::no_such_file_or_directory) {  // no task has made it
    throw InvalidInput("--results", messages::printable(folder_), "a folder that can be read",
                       problem.message());
  }
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (!id_of_temporary(name).empty()) temporaries.push_back(entry.path());
    if (!name.ends_with(suffix) || !looks_like_id(name.substr(0, name.size() - suffix.size()))) {
      continue;
    }
    const std::string id = name.substr(0, name.size() - suffix.size());
    if (const std::optional<Json> file = read(id)) {
      all[name_in(id)] = (*file)["result"];
      machines.insert((*file)["machine"].dump());
    } else {
      damaged.push_back(path_of(id));
    }
  }
  for (const fs::path& path : temporaries) {  // of processes that were killed
    std::error_code error;
    if (all.count(name_in(id_of_temporary(path.filename().string()))) > 0) fs::remove(path, error);
  }
  std::sort(damaged.begin(), damaged.end());
  if (!damaged.empty()) {
    std::cerr << program_
              << ": left out damaged results, whose runs are missing: " << listed_paths(damaged)
              << '\n';
  }
  if (machines.size() > 1) {
    std::cerr << program_ << ": results of several kinds of machines: "
              << listed_paths({machines.begin(), machines.end()})
              << "; on one kind alone they may differ in the last digits\n";
  }
  return all;
}

int TaskFolder::make(const std::string& id, const std::function<std::optional<Json>()>& run) const {
  const std::string path = path_of(id);
  std::error_code error;
  std::optional<Json> result;
  if (fs::exists(path, error)) result = read(id);
  if (result) {
    if (!frame::quiet) std::cerr << program_ << ": " << path << " is there; nothing is run\n";
    result = (*result)["result"];
  } else {
    result = run();
    if (!result) {
      std::cerr << program_ << ": stopped before the run was finished; nothing is written\n";
      return 128 + frame::stop_requested();
    }
    write(id, *result);
  }
  Json line{{"id", id}};
  for (const auto& [key, value] : result->items()) {
    if (!value.is_array()) line[key] = value;
  }
  std::cout << line.dump() << '\n';
  return 0;
}

void TaskFolder::print(const std::vector<std::string>& runs, const frame::Options& options) const {
  std::string command = shell_quoted(program_path());
  for (const std::string& word : options.given_words(true)) command += " " + shell_quoted(word);
  const std::string end = " --results " + shell_quoted(fs::absolute(folder_).string()) + "\n";
  if (command.find('\n') != std::string::npos || std::count(end.begin(), end.end(), '\n') > 1) {
    throw InvalidInput("--emit-tasks", "(a line break in an option)", "one line per task",
                       "use names of files without line breaks");
  }
  for (const std::string& run : runs) std::cout << command << " --run-one " << id(run) << end;
}

}  // namespace scalewise::experiment
