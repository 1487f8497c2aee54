// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// learning_rate_transfer: whether the best learning rate of a small model is that of a large one.
//
//   learning_rate_transfer --rule maximal-update --sizes 32,64,128 --out transfer
//
// Exit code: 0 pass, 1 fail, 3 inconclusive, 2 bad input.

#include <algorithm>
#include <atomic>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "check/experiment.hpp"
#include "check/final_loss.hpp"
#include "check/transfer_report.hpp"
#include "frame/program.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "scalewise/check/sweep_journal.hpp"
#include "scalewise/dense/blas.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/numeric/parallel.hpp"
#include "scalewise/plan/fingerprint.hpp"
#include "train/threads.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;

train::Settings settings_of(const Experiment& e, const check::SweepTask& task) {
  train::Settings s = settings_at(e, task.size, task.seed);
  s.rate = check::RateRun{.octave = task.octave}.rate(e.model.rate);
  s.warmup = s.steps / 20;
  return s;
}

/// All that a run depends on beside size, rate and seed; sizes and seeds can be added later.
Inputs journal_inputs(const Experiment& e, const train::Data& data, const frame::Options& options) {
  const train::Settings s = settings_of(e, {.size = e.base, .octave = 0, .seed = 1});
  Inputs inputs = options.inputs();
  inputs.push_back({"plan", plan_fingerprint(train::plan_of(s, train::data_shape(s, data)))});
  return inputs;
}

/// Where the runs go; empty without --out.
std::string journal_path(const Experiment& e) {
  return e.out.empty() ? std::string() : e.out + "/runs.jsonl";
}

class Program {
 public:
  Program(const Experiment& e, const frame::Options& options)
      : e_(e),
        data_(train::read_data(e.model)),
        costs_(costs(e, data_)),
        journal_(journal_path(e), journal_inputs(e, data_, options)) {}

  /// Runs what is missing until nothing is; no result if it was stopped.
  std::optional<TransferReport> run() {
    if (!journal_.damage().empty()) std::cerr << journal_.damage() << '\n';
    const std::size_t before = journal_.runs().size();
    if (before > 0 && !frame::quiet()) {
      std::cerr << "resumed with " << before << " finished runs\n";
    }
    for (;;) {
      check::Sweep sweep = check::sweep(e_.sizes, e_.seeds, journal_.runs());
      if (sweep.missing.empty()) {
        TransferReport report;
        report.runs = sweep.runs;
        report.transfer = check::analyse_transfer(sweep.runs);
        report.judged = check::judge(report.transfer, e_.axis);
        return report;
      }
      run_all(sweep.missing);
      if (frame::stop_requested() != 0) return {};
    }
  }

  std::size_t finished() const { return journal_.runs().size(); }

 private:
  using Costs = std::map<long, double>;

  /// The time of a run, in any unit; makes every plan once, so that none is refused later.
  static Costs costs(const Experiment& e, const train::Data& data) {
    Costs costs;
    for (const long size : e.sizes) {
      const train::Settings s = settings_of(e, {.size = size, .octave = 0, .seed = 1});
      train::check(s);
      const Plan plan = train::plan_of(s, train::data_shape(s, data));
      costs[size] = static_cast<double>(plan.parameter_count()) * static_cast<double>(s.steps);
    }
    return costs;
  }

  /// One thread per run. The longest come first, so that no core waits long for the last one.
  void run_all(std::vector<check::SweepTask> tasks) {
    std::stable_sort(tasks.begin(), tasks.end(), [&](const auto& a, const auto& b) {
      return costs_.at(a.size) > costs_.at(b.size);
    });
    double cost = 0;
    for (const check::SweepTask& task : tasks) cost += costs_.at(task.size);
    frame::Progress progress("runs", static_cast<long>(tasks.size()), cost);
    std::atomic<bool> failed = false;
    parallel_for(static_cast<Eigen::Index>(tasks.size()), [&](Eigen::Index i) {
      if (failed) return;
      try {
        const check::SweepTask& task = tasks[static_cast<std::size_t>(i)];
        const std::optional<double> loss = final_loss(settings_of(e_, task), data_);
        if (!loss) return;
        journal_.append({task.size, task.octave, task.seed, *loss});
        progress.done(costs_.at(task.size));
      } catch (...) {
        failed = true;
        throw;
      }
    });
  }

  const Experiment& e_;
  train::Data data_;
  Costs costs_;
  check::SweepJournal journal_;
};

void write_files(const Experiment& e, const TransferReport& report,
                 const nlohmann::ordered_json& json) {
  if (e.out.empty()) return;
  const std::string stem = e.out + "/learning_rate_transfer";
  write_file(stem + ".json", json.dump(1) + "\n");
  write_file(e.out + "/sizes.csv", render(transfer_table(e, report.transfer), TableFormat::csv));
  const std::string told = plot::write_figure(transfer_figure(e, report), stem);
  if (!frame::quiet()) std::cerr << told << '\n';
}

void show(const Experiment& e, const TransferReport& report, const nlohmann::ordered_json& json) {
  if (e.format == "json") {
    std::cout << json.dump(1) << '\n';
  } else {
    std::cout << e.model.rule << ", " << e.model.optimizer << ", " << e.seeds << " seeds\n\n"
              << render(transfer_table(e, report.transfer), TableFormat::text) << '\n'
              << check::to_string(report.judged.verdict) << ": " << report.judged.reason << '\n';
  }
}

int run(Experiment& e, const frame::Options& options) {
  train::use_threads(e.model.threads);
  keep_to_one_thread();
  Program program(e, options);
  const std::optional<TransferReport> report = program.run();
  if (!report) {
    std::cerr << "learning_rate_transfer: stopped after " << program.finished()
              << " finished runs; "
              << (e.out.empty() ? "nothing is saved without --out\n"
                                : "the same command goes on with them\n");
    return 128 + frame::stop_requested();
  }
  const nlohmann::ordered_json json = transfer_json(e, *report, options);
  show(e, *report, json);
  write_files(e, *report, json);
  return check::exit_code(report->judged.verdict);
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto e = std::make_shared<Experiment>();
  e->has_horizon = true;
  e->sizes = {32, 64, 128, 256};
  e->model.steps = 200;
  e->model.batch = 8;
  e->model.warmup = 0;  // settings_of() sets it
  Program program{"learning_rate_transfer",
                  "Whether the best learning rate of a small model is the best of larger ones."};
  Options& o = *program.options;
  add_options(o, *e);
  o.at("--sizes").of_runs();
  o.at("--seeds").of_runs();
  add_output_options(o, *e);
  program.check = [e] {
    experiment::check(*e);
    if (e->base == 0) e->base = e->sizes.front();
  };
  program.run = [e, options = program.options](const std::vector<std::string>&) {
    return ::run(*e, *options);
  };
  return program;
}
