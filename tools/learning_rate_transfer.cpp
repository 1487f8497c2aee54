// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// learning_rate_transfer: whether the best learning rate of a small model is that of a large one, or
// its best weight decay.
//
//   learning_rate_transfer --rule maximal-update --sizes 32,64,128 --out transfer
//   learning_rate_transfer --judge losses.csv
//
// Exit code: 0 pass, 1 fail, 3 inconclusive, 2 bad input.

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "check/experiment.hpp"
#include "check/html.hpp"
#include "check/report.hpp"
#include "check/tasks.hpp"
#include "check/transfer_page.hpp"
#include "check/transfer_report.hpp"
#include "check/transfer_runs.hpp"
#include "check/transfer_tables.hpp"
#include "check/transfer_tasks.hpp"
#include "frame/program.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "planning/rule_options.hpp"
#include "scalewise/check/transfer_chance.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/io/fit_table.hpp"
#include "train/options.hpp"
#include "train/threads.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;

/// How long to look for a verdict; 0: for a fixed number of seeds.
struct Budget {
  double seconds = 0;
};

TransferReport judged_report(const Experiment& e, const std::vector<check::RateRun>& runs,
                             double width = 1) {
  const SweepSubject subject = subject_of(e);
  TransferReport report;
  report.runs = runs;
  report.transfer = check::analyse_transfer(runs);
  report.judged = check::judge(check::widened(report.transfer, width), subject.axis, subject.centre,
                               subject.tuned);
  return report;
}

/// Where the runs go; empty without --out.
std::string journal_path(const Experiment& e) {
  return e.out.empty() ? std::string() : e.out + "/runs.jsonl";
}

/// Decides what to run until there is a verdict.
class Program {
 public:
  Program(const Experiment& e, const Budget& budget, const frame::Options& options)
      : e_(e), budget_(budget), runs_(e, options, journal_path(e)) {}

  /// No result if it was stopped.
  std::optional<TransferReport> run() {
    if (limited()) begin();
    if (!limited() && !frame::quiet) expected_ = runs_.expected(e_.seeds).seconds;
    std::optional<TransferReport> last;
    long seeds = e_.seeds;
    for (;;) {
      std::optional<TransferReport> report = sweep(seeds);
      if (frame::stop_requested() != 0) return {};
      if (!report) return last ? with_forecast(*last) : too_short();
      last = report;
      const TransferReport strict = judged_report(e_, report->runs, check::early_stop);
      const long next = limited() ? next_seeds(seeds, strict) : seeds;
      if (next == seeds) return with_forecast(*report);
      seeds = next;
    }
  }

  std::size_t finished() const { return runs_.finished().size(); }

 private:
  bool limited() const { return budget_.seconds > 0; }
  double deadline() const { return limited() ? budget_.seconds : HUGE_VAL; }

  /// Runs what is missing until nothing is.
  std::optional<TransferReport> sweep(long seeds) {
    for (;;) {
      const check::Sweep sweep = runs_.sweep(seeds);
      if (sweep.missing.empty()) return judged_report(e_, sweep.runs);
      const std::size_t before = finished();
      runs_.make(sweep.missing, deadline());
      if (frame::stop_requested() != 0 || finished() - before < sweep.missing.size()) return {};
    }
  }

  /// More seeds, as many as would decide but at most twice as many, and as the time left allows; the
  /// same if there is a verdict, no time, or an optimum that more seeds do not find.
  long next_seeds(long seeds, const TransferReport& report) const {
    if (report.judged.verdict != check::Verdict::inconclusive) return seeds;
    for (const check::SizeTransfer& size : report.transfer.sizes) {
      if (!size.bracketed) return seeds;
    }
    const double wanted =
        std::ceil(static_cast<double>(seeds) * std::min(report.judged.factor, 2.0));
    long next = std::max(seeds + 1, static_cast<long>(wanted));
    const double left = budget_.seconds - runs_.times().elapsed();
    while (next > seeds && runs_.times().seconds(runs_.sweep(next).missing) > left) --next;
    return next;
  }

  /// Times a run of each size, and says how far the budget goes.
  void begin() {
    std::map<long, check::SweepTask> tasks;
    for (const long seeds : {e_.seeds, 2 * e_.seeds}) {
      for (const check::SweepTask& task : runs_.sweep(seeds).missing) {
        tasks.try_emplace(task.size, task);
      }
    }
    std::vector<check::SweepTask> first;
    for (const auto& [size, task] : tasks) first.push_back(task);
    runs_.make(first, deadline());
    if (frame::quiet || frame::stop_requested() != 0) return;
    std::cerr << forecast() << '\n';
  }

  /// The runs that the budget allows, by the times of the runs so far.
  std::string forecast() const {
    const std::vector<check::SweepTask> usual = runs_.usual(e_.seeds);
    const double seconds = runs_.times().seconds(usual);
    const auto count = static_cast<double>(usual.size());
    const double times = budget_.seconds / seconds;  // the budget in sweeps of the fewest seeds
    const std::string text =
        fmt::format("{} s allow about {:.0f} runs; the first verdict takes about {:.0f}, {:.1f} s",
                    digits(budget_.seconds), count * times, count, seconds);
    if (times < 1) return text;
    const long most = std::lround(std::fmin(static_cast<double>(e_.seeds) * times, 1e6));
    return text + fmt::format("; the chance of a verdict is about {:.0f} %",
                              100 * check::chance_of_verdict(runs_.seeds_of(most)));
  }

  /// The report with the time of the runs that it asks for, where it is known.
  TransferReport with_forecast(TransferReport report) const {
    report.budget = budget_.seconds;
    report.seconds = runs_.times().elapsed();
    report.expected_seconds = expected_;
    double more = 0;
    for (const check::MoreSeeds& size : report.judged.more) {
      more += static_cast<double>(size.seeds) * check::rates_per_seed *
              runs_.times().seconds(size.size) / numeric::thread_count();
    }
    report.more_seconds = more;
    return report;
  }

  /// The report on a sweep that the budget did not suffice for.
  TransferReport too_short() const {
    TransferReport report;
    report.runs = runs_.finished();
    report.judged.reason = "the budget is spent after " + std::to_string(finished()) +
                           " runs, before the smallest sweep: " + forecast();
    return with_forecast(report);
  }

  const Experiment& e_;
  const Budget& budget_;
  TransferRuns runs_;
  double expected_ = 0;
};

/// A report with all that its files and its text show.
struct Result {
  SweepSubject subject;
  TransferReport report;
};

/// Where it goes.
struct Output {
  frame::Format format = frame::Format::table;
  std::string folder = {};
};

void write_files(const Result& r, const Output& output, const Table& sizes,
                 const nlohmann::ordered_json& json, const frame::Options& options) {
  if (output.folder.empty()) return;
  const std::string stem = output.folder + "/learning_rate_transfer";
  files::write_file(stem + ".json", json.dump(1) + "\n");
  files::write_file(output.folder + "/sizes.csv", render(sizes, TableFormat::csv));
  const plot::Figure figure = transfer_figure(r.subject, r.report);
  const plot::Drawing drawing = plot::draw_figure(figure);
  const std::string told = plot::write_figure(figure, stem, drawing);
  const Page page = transfer_page(r.subject, r.report, sizes, json, drawing, options);
  files::write_file(stem + ".html", html(page));
  if (!frame::quiet || !drawing.problem.empty()) std::cerr << told << '\n';
  if (!frame::quiet) std::cerr << "wrote " << stem << ".html\n";
}

/// The verdict is the last line, or the last before a comparison.
void show_text(const Result& r, const Table& sizes) {
  const TransferReport& report = r.report;
  std::cout << r.subject.title << ", " << used_text(report) << "\n\n"
            << io::render_to_fit(sizes, frame::terminal_columns()) << '\n';
  for (const std::string& what : report.judged.not_judged) {
    std::cout << "not judged: " << what << '\n';
  }
  std::cout << painted(report.judged.verdict) << ": " << report.judged.reason
            << (report.budget > 0 ? more_text(report) : "") << '\n';
  if (r.subject.compared.is_null()) return;
  std::cout << '\n';
  for (const auto& line : r.subject.compared.at("sentences")) {
    std::cout << line.get<std::string>() << '\n';
  }
}

void show(const Result& r, const Output& output, const Table& sizes,
          const nlohmann::ordered_json& json) {
  const TransferReport& report = r.report;
  if (output.format == frame::Format::json) {
    std::cout << json.dump(1) << '\n';
  } else if (output.format ==
             frame::Format::csv) {  // the verdict apart, so that programs can read the rest
    std::cout << render(sizes, TableFormat::csv);
    std::cerr << check::to_string(report.judged.verdict) << ": " << report.judged.reason << '\n';
  } else {
    show_text(r, sizes);
  }
  if (report.budget == 0 && !frame::quiet && report.seconds > 0) {
    std::cerr << report.runs.size() << " runs, " << digits(report.seconds) << " s"
              << (report.expected_seconds > 0
                      ? " (expected " + digits(report.expected_seconds, "{:.2g}") + ")"
                      : "")
              << more_text(report) << '\n';
  }
}

int finish(const Result& r, const Output& output, const frame::Options& options) {
  const nlohmann::ordered_json json = transfer_json(r.subject, r.report, options);
  const Table sizes = transfer_table(r.subject, r.report.transfer);
  show(r, output, sizes, json);
  write_files(r, output, sizes, json, options);
  return check::exit_code(r.report.judged.verdict);
}

int finish(const Experiment& e, const TransferReport& report, const frame::Options& options) {
  SweepSubject subject = subject_of(e);
  subject.check = same_models(e, options);
  subject.check.insert(subject.check.end(), {"--out", "check"});
  return finish({subject, report}, {e.format, e.out}, options);
}

/// Judges a table of runs, and compares it with another if there is one.
int judge_tables(const JudgedTables& tables, const Output& output, const frame::Options& options) {
  const JudgedTable judged = judged_table(tables.path, tables.columns);
  if (!frame::quiet) std::cerr << reading_text(judged) << '\n';
  SweepSubject subject = subject_of(judged);
  if (!tables.against.empty()) {
    check::SweepColumns columns = tables.columns;
    if (!tables.against_where.empty()) columns.where = tables.against_where;
    const JudgedTable other = judged_table(tables.against, columns);
    if (!frame::quiet) std::cerr << reading_text(other) << '\n';
    subject.compared = comparison_json(judged, other);
  }
  return finish({subject, report_of(judged)}, output, options);
}

int run_tasks(const Experiment& e, const TaskOptions& asked, const frame::Options& options) {
  TransferRuns runs(e, options, "");
  const TaskFolder folder(asked.results, "learning_rate_transfer", runs.inputs());
  if (options.given("--run-one")) {
    const check::SweepTask task = task_named(folder.run_of(asked.one));
    return folder.make(asked.one, [&]() -> std::optional<nlohmann::ordered_json> {
      frame::abandon_on_signal();
      const std::optional<double> loss = runs.loss(task);
      if (!loss) return {};
      return result_json(e, {task.size, task.octave, task.seed, *loss});
    });
  }
  for (const auto& [name, result] : folder.results()) runs.add(run_of_result(name, result));
  const check::Sweep sweep = runs.sweep(e.seeds);
  if (asked.collect && sweep.missing.empty()) {
    return finish(e, judged_report(e, sweep.runs), options);
  }
  std::vector<std::string> names;
  for (const check::SweepTask& task : runs.longest_first(sweep.missing)) {
    names.push_back(task_name(e, task));
  }
  folder.print(names, options);
  return asked.collect ? tasks_missing : 0;
}

int run(const Experiment& e, const Budget& budget, const frame::Options& options) {
  Program program(e, budget, options);
  const std::optional<TransferReport> report = program.run();
  if (report) return finish(e, *report, options);
  std::cerr << "learning_rate_transfer: stopped after " << program.finished() << " finished runs; "
            << (e.out.empty() ? "nothing is saved without --out\n"
                              : "the same command resumes from them\n");
  return 128 + frame::stop_requested();
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto e = std::make_shared<Experiment>();
  const auto budget = std::make_shared<Budget>();
  const auto tasks = std::make_shared<TaskOptions>();
  const auto tables = std::make_shared<JudgedTables>();
  e->sizes = {32, 64, 128, 256};
  e->model.steps = 200;
  e->model.batch = 8;
  Program program{"learning_rate_transfer",
                  "Whether the best learning rate of a small model is the best of larger ones."};
  Options& o = *program.options;
  add_options(o, *e);
  o.at("--axis").words(all_axes());
  o.at("--sizes").of_runs();
  o.at("--seeds").of_runs();
  o.group("Rule");
  tools::add_start_option(o, e->model.start);
  o.group("Runs");
  o.add("--budget", budget->seconds,
        "seconds after which no new runs begin (or until the verdict is clear, with more seeds "
        "than --seeds; 0: --seeds alone, as with --results)")
      .from(0)
      .to(1e9)
      .of_runs();
  o.add("--digits", e->model.digits, "images to learn from, a CSV file").reads().excludes("--text");
  o.add("--patch", e->model.patch, "side of an image's patches").from(1);
  o.group("Training");
  train::add_schedule_options(o, e->model);
  train::add_decay_options(o, e->model);
  o.add("--tune", e->tuned, tuning_words,
        "what each size is tuned in, around --rate or --weight-decay");
  add_output_options(o, *e, program.name);
  add_task_options(o, *tasks);
  add_table_options(o, *tables);
  program.check = [e, tasks, tables, &o] {
    check_table_options(*tables, o);
    if (!tables->path.empty()) return;
    experiment::check(*tasks, o, {"--budget"});
    experiment::check(*e);
    if (tunes_decay(*e) && e->model.weight_decay == 0) {
      throw InvalidInput("--weight-decay", "0", "above 0 with --tune weight-decay",
                         "the sweep begins there");
    }
    if (e->base == 0) e->base = e->sizes.front();
  };
  program.expected = [e, tables, options = program.options] {
    if (!tables->path.empty()) return std::string("no runs: those of --judge");
    train::use_threads(threads_of(e->model.threads, *options));
    return cost_text(TransferRuns(*e, *options, "").expected(e->seeds));
  };
  program.run = [e, budget, tasks, tables,
                 options = program.options](const std::vector<std::string>&) {
    if (!tables->path.empty()) return judge_tables(*tables, {e->format, e->out}, *options);
    train::use_threads(threads_of(e->model.threads, *options));
    return tasks->asked() ? run_tasks(*e, *tasks, *options) : ::run(*e, *budget, *options);
  };
  return program;
}
