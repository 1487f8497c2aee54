// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "kernel/program.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <type_traits>
#include <utility>

#include "scalewise/core/error.hpp"
#include "train/interrupt.hpp"
#include "train/progress.hpp"
#include "train/threads.hpp"

namespace scalewise::experiment {

namespace {

bool quiet = false;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void add(CLI::App& app, const Option& option) {
  std::visit(
      [&](auto* value) {
        using Value = std::remove_pointer_t<decltype(value)>;
        CLI::Option* added = app.add_option("--" + option.name, *value, option.help);
        added->capture_default_str();
        if constexpr (std::is_same_v<Value, std::vector<long>> ||
                      std::is_same_v<Value, std::vector<std::string>>) {
          added->delimiter(',');
        } else {
          added->take_last();
        }
      },
      option.value);
}

}  // namespace

int run_kernel_program(int argc, char** argv, const std::string& name, const std::string& about,
                       const std::vector<Option>& options, const std::function<Report()>& run) {
  int threads = 0;
  std::string format = "table";
  std::string out;
  CLI::App app{about, name};
  for (const Option& option : options) add(app, option);
  app.add_option("--threads", threads, "0: all cores; results do not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_option("--format", format, "table or json")->capture_default_str();
  app.add_option("--out", out, "folder for CSV, JSON and pictures");
  app.add_flag("--quiet", quiet, "no progress");
  try {
    app.parse(argc, argv);
    if (format != "table" && format != "json") {
      throw InvalidInput("--format", printable(format), "table or json");
    }
    train::use_threads(threads);
    make_folder(out);  // before anything takes long
    train::catch_interrupts();
    Report report = run();
    report.program = name;
    for (const Option& option : options) {
      std::visit([&](const auto* value) { report.settings.emplace_back(option.name, *value); },
                 option.value);
    }
    return publish(report, format, out);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const Interrupted&) {
    std::cerr << name << ": stopped\n";
    return 128 + train::stop_request();
  } catch (const std::bad_alloc&) {
    std::cerr << name << ": not enough memory\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 2;
  }
}

Work::Work(std::string what, long all)
    : what_(std::move(what)), all_(all), start_(now()), shown_(start_) {}

Work::~Work() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

bool Work::report(long done) {
  const bool terminal = train::Progress::is_terminal();
  const double time = now();
  if (!quiet && time - shown_ > (terminal ? 0.1 : 30)) {
    shown_ = time;
    const double spent = time - start_;
    const auto left = static_cast<long>(
        spent * static_cast<double>(all_ - done) / static_cast<double>(done > 0 ? done : 1) + 0.5);
    std::fprintf(stderr, "%s%s: %ld of %ld, %.0f s, %ld:%02ld left%s", terminal ? "\r\x1b[K" : "",
                 what_.c_str(), done, all_, spent, left / 60, left % 60, terminal ? "" : "\n");
    std::fflush(stderr);
    visible_ = terminal;
  }
  return train::stop_request() == 0;
}

void Work::done(long done) {
  if (!report(done)) throw Interrupted{};
}

void require_between(const char* option, long value, long least, long most) {
  if (value >= least && value <= most) return;
  throw InvalidInput(
      option, std::to_string(value),
      "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

}  // namespace scalewise::experiment
