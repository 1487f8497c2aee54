// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// step: time of one training step of the reference transformer, next to the same step in PyTorch.
// Writes JSON; lab/timing/README.md explains it.
// Exit code: 0 done, 1 the two sides do not agree, 2 wrong arguments or a run that failed.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <exception>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "child_process.hpp"
#include "machine.hpp"
#include "product_rates.hpp"
#include "step_model.hpp"
#include "step_settings.hpp"
#include "summary.hpp"
#include "support/allocations.hpp"
#include "torch_worker.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::benchmark;
using nlohmann::ordered_json;

/// Threads of the other side that still wait for work are asleep after this.
constexpr auto pause = std::chrono::milliseconds(100);

/// One step that is not timed, then `steps` that are. Returns their seconds; `allocations` grows by
/// what all of them took from the heap.
double run(StepModel& model, long steps, long& allocations) {
  const long before = allocation_count();
  model.step();
  const auto start = std::chrono::steady_clock::now();
  for (long i = 0; i < steps; ++i) model.step();
  const double seconds = seconds_since(start);
  allocations += allocation_count() - before;
  return seconds;
}

/// Milliseconds per step of every round; `theirs` is empty without PyTorch.
struct Times {
  std::vector<double> ours, theirs;

  /// Theirs over ours, round by round.
  std::vector<double> ratios() const {
    std::vector<double> all;
    for (std::size_t i = 0; i < theirs.size(); ++i) all.push_back(theirs[i] / ours[i]);
    return all;
  }
};

/// One round that warms up, and then s.rounds that count. They take turns in who goes first, so
/// that a machine that slows down or speeds up favours none.
Times alternate(const StepSettings& s, long width, StepModel& model, TorchWorker* torch,
                long& allocations) {
  Times times;
  const auto per_step = [&](double seconds) {
    return seconds * 1e3 / static_cast<double>(s.steps);
  };
  for (long round = 0; round <= s.rounds; ++round) {
    double ours = 0;
    double theirs = 0;
    for (const bool turn : {round % 2 == 0, round % 2 != 0}) {
      std::this_thread::sleep_for(pause);
      if (turn) ours = per_step(run(model, s.steps, allocations));
      if (!turn && torch != nullptr) theirs = per_step(torch->run(s.steps));
    }
    std::cerr << "width " << width << ", round " << round << " of " << s.rounds << ": " << ours
              << " ms";
    if (torch != nullptr) std::cerr << ", PyTorch " << theirs << " ms";
    std::cerr << "\n";
    if (round == 0) continue;
    times.ours.push_back(ours);
    if (torch != nullptr) times.theirs.push_back(theirs);
  }
  return times;
}

/// The results that both sides report.
ordered_json side(const std::vector<double>& milliseconds, double gflop) {
  ordered_json report;
  report["ms_per_step"] = summary(milliseconds);
  report["gflop_per_s"] = gflop / (median(milliseconds) / 1e3);
  return report;
}

/// Whether both compute the same thing: as many parameters, and first losses where logits of
/// variance s² put them, at log V + s²/2, to five standard errors of the mean over the targets.
ordered_json agreement(const StepSettings& s, long width, const ordered_json& ours,
                       const ordered_json& theirs) {
  const double variance = static_cast<double>(width) * init_std * init_std;
  const double expected = std::log(static_cast<double>(s.vocab)) + variance / 2;
  const double accepted =
      0.02 + 5 * std::sqrt(variance / static_cast<double>(s.batch * s.seq)) + 0.1 * variance;
  const auto near = [&](const ordered_json& report) {
    return std::abs(report["first_loss"].get<double>() - expected) <= accepted;
  };
  return {{"same_parameters", ours["parameters"] == theirs["parameters"]},
          {"expected_first_loss", expected},
          {"accepted_difference", accepted},
          {"first_losses_as_expected", near(ours) && near(theirs)}};
}

/// Allocations in the first step, and on average in each later one.
ordered_json allocations_report(const StepSettings& s, long first, long later) {
  const std::string counted = counted_allocations();
  ordered_json report = {{"counted", counted}};
  if (counted == "nothing") return report;
  report["first_step"] = first;
  report["per_later_step"] =
      static_cast<double>(later) / static_cast<double>((s.rounds + 1) * (s.steps + 1));
  return report;
}

/// One width, in this process.
ordered_json measure(const StepSettings& s, long width) {
  std::optional<TorchWorker> torch;
  if (!s.no_torch) {
    const bool choose = s.torch_foreach == "auto";
    torch.emplace(s, width, choose ? foreach_is_faster(s, width) : s.torch_foreach == "on");
  }
  const double start_memory = peak_memory();
  StepModel model(s, width);
  const long before = allocation_count();
  const double first_loss = model.step();
  const long first_allocations = allocation_count() - before;
  long allocations = 0;
  const Times times = alternate(s, width, model, torch ? &*torch : nullptr, allocations);

  const double gflop = matrix_gflop(s, width);
  ordered_json ours = side(times.ours, gflop);
  ours["parameters"] = model.parameters();
  ours["first_loss"] = first_loss;
  ours["start_memory_mib"] = start_memory;
  ours["peak_memory_mib"] = peak_memory();
  ours["allocations"] = allocations_report(s, first_allocations, allocations);
  double best = 0;
  for (const auto& [name, product] : product_libraries()) {  // last: they take memory
    const double rate = std::max(product_rate(product, {2048, 512, 512}, 256),
                                 product_rate(product, {2048, 1024, 1024}, 256));
    ours["best_products_gflop_per_s"][name] = rate;
    best = std::max(best, rate);
  }
  ours["share_of_best_product"] = ours["gflop_per_s"].get<double>() / best;
  ordered_json report = {{"width", width},
                         {"heads", s.heads_at(width)},
                         {"matrix_gflop_per_step", gflop},
                         {"scalewise", ours}};
  if (!torch) return report;
  ordered_json theirs = side(times.theirs, gflop);
  theirs.update(torch->about());
  theirs.update(torch->status());
  report["pytorch"] = theirs;
  report["times_as_fast_as_pytorch"] = summary(times.ratios());
  report["agreement"] = agreement(s, width, ours, theirs);
  return report;
}

ordered_json build_report() {
  ordered_json report;
#if defined(__clang__)
  report["compiler"] = "clang " __clang_version__;
#elif defined(__GNUC__)
  report["compiler"] = "gcc " __VERSION__;
#else
  report["compiler"] = "unknown";
#endif
  report["flags"] = SCALEWISE_BENCHMARK_FLAGS;
  report["eigen"] = std::to_string(EIGEN_WORLD_VERSION) + "." +
                    std::to_string(EIGEN_MAJOR_VERSION) + "." + std::to_string(EIGEN_MINOR_VERSION);
  report["simd"] = Eigen::SimdInstructionSetsInUse();
#if defined(SCALEWISE_ONEDNN)
  report["products"] = "oneDNN";
#else
  report["products"] = "Eigen";
#endif
#ifdef _OPENMP
  report["openmp"] = true;
#else
  report["openmp"] = false;
#endif
#ifndef NDEBUG
  std::cerr << "warning: assertions are on; build with CMAKE_BUILD_TYPE=Release\n";
  report["assertions"] = true;
#endif
  return report;
}

ordered_json settings_report(const StepSettings& s) {
  return {{"depth", s.depth},
          {"seq", s.seq},
          {"batch", s.batch},
          {"vocab", s.vocab},
          {"steps", s.steps},
          {"rounds", s.rounds},
          {"threads", s.threads},
          {"torch", s.no_torch ? "none" : s.torch},
          {"torch_threads", s.torch_threads},
          {"torch_blas_threads", s.torch_blas_threads}};
}

/// One width in a process of its own, so that its peak memory is its own.
ordered_json measure_apart(const StepSettings& s, long width, std::vector<std::string> command) {
  command.insert(command.end(), {"--apart", std::to_string(width), "--torch", s.torch});
  ChildProcess process(command, {{"OMP_NUM_THREADS", std::to_string(s.threads)}});
  const std::optional<std::string> line = process.read_line();
  if (process.wait() != 0 || !line) {
    throw std::runtime_error("no result for width " + std::to_string(width));
  }
  return ordered_json::parse(*line);
}

/// Warns of what makes the comparison unfair; false when there is nothing to compare.
bool check(const ordered_json& result) {
  if (!result.contains("pytorch")) return true;
  if (!result["pytorch"]["blas"].contains("openblas")) {
    std::cerr << "warning: PyTorch has not loaded OpenBLAS: " << result["pytorch"]["blas"] << "\n";
  }
  const ordered_json& agreement = result["agreement"];
  if (agreement["same_parameters"] == true && agreement["first_losses_as_expected"] == true) {
    return true;
  }
  std::cerr << "error: width " << result["width"] << ": the two sides do not compute the same\n";
  return false;
}

/// `apart` is for a process of one width.
void add_options(CLI::App& app, StepSettings& s, long& apart) {
  app.add_option("--width", s.widths, "d_model; several: a comma list")->delimiter(',');
  app.add_option("--depth", s.depth, "layers");
  app.add_option("--heads", s.heads, "width / 64 and at least 4, if not given");
  app.add_option("--seq", s.seq, "tokens of a sequence");
  app.add_option("--batch", s.batch, "sequences");
  app.add_option("--vocab", s.vocab, "vocabulary");
  app.add_option("--steps", s.steps, "timed steps of a round");
  app.add_option("--rounds", s.rounds, "alternations with PyTorch");
  app.add_option("--threads", s.threads, "of ours; all cores, if not given");
  app.add_option("--torch", s.torch, "Python interpreter that has PyTorch");
  app.add_flag("--no-torch", s.no_torch, "ours alone");
  app.add_option("--torch-threads", s.torch_threads, "torch.set_num_threads");
  app.add_option("--torch-blas-threads", s.torch_blas_threads, "of OpenBLAS; as --threads");
  app.add_option("--torch-foreach", s.torch_foreach, "AdamW by lists: auto takes the faster")
      ->check(CLI::IsMember({"auto", "on", "off"}));
  app.add_option("--apart", apart)->group("");  // this one width, in this process
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name() == "INT") option->check(CLI::Range(1L, 1L << 30, "positive"));
  }
  for (const char* last : {"--apart", "--torch"}) {
    app.get_option(last)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
}

/// Replaces defaults that depend on the machine.
void complete(StepSettings& s) {
  for (const long width : s.widths) resolved(step_shape(s, width));  // throws if it makes no model
  if (s.threads == 0) s.threads = static_cast<long>(std::thread::hardware_concurrency());
  if (s.torch_blas_threads == 0) s.torch_blas_threads = s.threads;
  if (s.torch.empty() && !s.no_torch) {
    s.torch = find_torch();
    if (s.torch.empty()) {
      std::cerr << "warning: no interpreter with PyTorch found (--torch), so ours alone\n";
      s.no_torch = true;
    }
  }
}

/// Measures all widths, each by `command` and its own arguments, and prints the report.
/// Returns:  the exit code.
int measure_all(const StepSettings& s, const std::vector<std::string>& command) {
  ordered_json report = {{"benchmark", "training step"},
                         {"cpu", cpu_model()},
                         {"cores", std::thread::hardware_concurrency()},
                         {"load_average", load_average()},
                         {"thread_variables", thread_variables()},
                         {"build", build_report()},
                         {"settings", settings_report(s)}};
  bool agree = true;
  for (const long width : s.widths) {
    report["results"].push_back(measure_apart(s, width, command));
    agree = check(report["results"].back()) && agree;
  }
  std::cout << std::setw(2) << report << "\n";
  return agree ? 0 : 1;
}

int run_program(int argc, char** argv) {
  StepSettings s;
  long apart = 0;
  CLI::App app{"Time of one training step of the reference transformer, next to PyTorch"};
  add_options(app, s, apart);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  complete(s);
  if (apart > 0) {
    std::cout << measure(s, apart) << "\n";
    return 0;
  }
  std::vector<std::string> command = {"/proc/self/exe"};
  command.insert(command.end(), argv + 1, argv + argc);
  if (s.no_torch) command.emplace_back("--no-torch");
  return measure_all(s, command);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a worker that has ended is reported where it is written to
  try {
    return run_program(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 2;
  }
}
