// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// tune: the constants of a rule that train a small model best, and the plan of a large one with them.
//
//   tune --results tuning --carry-to width=256
//   tune --config base.json --command 'python3 train.py --plan {plan} --seed {seed} --steps {steps}' --results tuning
//
// Exit code: 0, 1 where no draw trained, 2 bad input, 4 runs are missing; with --verify that of its verdict.

#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "check/final_loss.hpp"
#include "frame/program.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "planning/rule_options.hpp"
#include "scalewise/check/verdict.hpp"
#include "scalewise/dense/product.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/numeric/parallel.hpp"
#include "scalewise/plan/fingerprint.hpp"
#include "train/data.hpp"
#include "train/model.hpp"
#include "train/options.hpp"
#include "train/threads.hpp"
#include "tune/report.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::tune;
namespace fs = std::filesystem;

/// Runs what is missing until nothing is, here or as tasks.
class Tuner {
 public:
  Tuner(const Tuning& t, const dialect::Dialect* dialect, const frame::Options& options)
      : t_(t), options_(options), model_(t, dialect), verify_(verified(t, model_.shape())) {
    settings_ = t.run;
    settings_.rate = 1;  // the plans have it
    settings_.seq = model_.shape().context;
    if (const auto& activation = model_.shape().activation) settings_.activation = *activation;
    settings_.rotary = !model_.shape().learned_positions;
    settings_.rule = t.plan.rule;  // whose text may say what the plan leaves open
    if (t.command.empty()) {
      train::settle(settings_);
      data_ = train::read_data(settings_);
    }
    for (const auto& [option, size] :
         {std::pair{"--carry-to", t.carry_to}, std::pair{"--verify", t.verify}})
      static_cast<void>(model_.plan({}, size_of(option, size), option));
    if (!t.tasks.results.empty()) {
      files::Inputs inputs = options.inputs();
      inputs.push_back({"plan", plan::plan_fingerprint(model_.base())});
      folder_.emplace(t.tasks.results, "tune", inputs);
      const bool task = t.tasks.emit || t.tasks.collect || options.given("--run-one");
      if (!task) lock_ = files::lock_folder(t.tasks.results);  // or each of two would make all runs
    }
  }

  int run() {
    const experiment::TaskOptions& tasks = t_.tasks;
    if (options_.given("--run-one")) return run_task(tasks.one);
    for (;;) {
      if (folder_) rows_ = folder_->results();
      const State state = state_of(t_, verify_, rows_);
      if (state.missing.empty() && !tasks.emit) return finish(state);
      if (tasks.emit || tasks.collect) return print(state);
      make(state.missing);
      if (frame::stop_requested() != 0) return stopped();
    }
  }

 private:
  double cost_of(const Job& job) const {
    const double grown =
        job.size == 0 ? 1 : static_cast<double>(job.size) / static_cast<double>(verify_.sizes[0]);
    return static_cast<double>(job.trial.steps) * (verify_.width ? grown * grown : grown);
  }

  void make(const std::vector<Job>& jobs) {
    double cost = 0;
    for (const Job& job : jobs) cost += cost_of(job);
    frame::Progress progress("runs", static_cast<long>(jobs.size()), cost);
    std::mutex mutex;
    numeric::parallel_for(static_cast<std::ptrdiff_t>(jobs.size()), [&](std::ptrdiff_t i) {
      const Job& job = jobs[static_cast<std::size_t>(i)];
      if (frame::stop_requested() != 0) return;
      const auto row = row_of(job);
      if (!row) return;
      if (folder_) folder_->write(folder_->id(job.name()), *row);
      const std::lock_guard lock(mutex);
      rows_[job.name()] = *row;
      progress.done(cost_of(job));
    });
  }

  /// Searches of other seeds train with other ones.
  std::uint64_t seed_of(const Job& job) const {
    constexpr auto each = static_cast<std::uint64_t>(before_verify + verify_seeds);
    return (t_.seed - 1) * each + static_cast<std::uint64_t>(job.trial.seed);
  }

  /// A finished run, good or failed; none if it was stopped.
  std::optional<nlohmann::ordered_json> row_of(const Job& job) const {
    std::vector<Parameter> constants = model_.constants(job.trial.draw);
    for (Parameter& c : constants) {
      if (c.name == "rate") c.value = model_.rate(job.trial.draw, job.octave);
    }
    const Base size = job.size == 0 ? Base{} : verify_.at(job.size);
    const auto outcome =
        t_.command.empty() ? by_reference(job, constants, size) : by_command(job, constants, size);
    if (!outcome) return {};
    nlohmann::ordered_json row{{"seed", seed_of(job)}, {"steps", job.trial.steps}};
    if (job.size > 0) row["size"] = job.size;
    row["constants"] = constants_text(constants);
    row["loss"] = nullptr;
    if (std::isfinite(outcome->loss)) row["loss"] = outcome->loss;
    if (!outcome->reason.empty()) row["reason"] = outcome->reason;
    return row;
  }

  std::optional<Outcome> by_reference(const Job& job, const std::vector<Parameter>& constants,
                                      const Base& size) const {
    train::Settings s = settings_;
    s.seed = seed_of(job);
    s.steps = job.trial.steps;
    if (s.warmup < 0) s.warmup = s.steps / 20;
    const auto loss = experiment::final_loss(model_.plan(constants, size), s, data_);
    if (!loss) return {};
    return Outcome{*loss, std::isfinite(*loss) ? "" : "diverged"};
  }

  std::optional<Outcome> by_command(const Job& job, const std::vector<Parameter>& constants,
                                    const Base& size) const {
    const fs::path folder = fs::absolute(fs::path(t_.tasks.results)) / "plans";
    fs::create_directories(folder);
    const std::string path = (folder / (job.name() + ".json")).string();
    const Plan plan = model_.plan(constants, size);
    files::write_file(path, model_.text(plan));
    const std::string command =
        filled(t_.command, {{"plan", path},
                            {"seed", std::to_string(seed_of(job))},
                            {"steps", std::to_string(job.trial.steps)},
                            {"rate", numeric::exact_text(model_.rate(job.trial.draw, job.octave))},
                            {"constants", constants_text(model_.planned(constants))},
                            {"width", std::to_string(plan.shape.d_model)},
                            {"depth", std::to_string(plan.shape.depth)}});
    return run_command(command, t_.loss_from,
                       (folder / (job.name() + "-" + experiment::own_name())).string());
  }

  int run_task(const std::string& id) const {
    const Job job = Job::named(folder_->run_of(id), t_.run.steps);
    frame::abandon_on_signal();
    return folder_->make(id, [&] { return row_of(job); });
  }

  int print(const State& state) const {
    std::vector<std::string> names;
    for (const Job& job : state.missing) names.push_back(job.name());
    folder_->print(names, options_);
    return t_.tasks.collect ? experiment::tasks_missing : 0;
  }

  int stopped() const {
    std::cerr << "tune: stopped after " << rows_.size() << " finished runs; "
              << (folder_ ? "the same command resumes from them\n"
                          : "nothing is saved without --results\n");
    return 128 + frame::stop_requested();
  }

  int finish(const State& state) {
    Report report = report_of(t_, model_, verify_, state, rows_);
    const bool found = report.state.search.best.index >= 0 && state.search.confirmed > 0;
    if (found && !t_.carry_to.empty()) carry(report);
    const auto json = report_json(report, model_, options_);
    if (folder_) files::write_file(t_.tasks.results + "/report.json", json.dump(1) + "\n");
    if (t_.format == frame::Format::json) {
      std::cout << json.dump(1) << '\n';
    } else if (t_.format == frame::Format::csv) {
      std::cout << render(effect_table(report, model_), TableFormat::csv);
    } else {
      show_text(report, model_, t_.command.find("{rate}") != std::string::npos);
    }
    if (!found) return 1;
    return report.verified ? check::exit_code(report.verified->judged.verdict) : 0;
  }

  void carry(Report& report) const {
    const Plan target = model_.plan(report.constants, size_of("--carry-to", t_.carry_to));
    report.target =
        experiment::product_weights(target) / experiment::product_weights(model_.base());
    std::string name;
    for (const std::string& size : t_.carry_to) name += (name.empty() ? "" : ",") + size;
    report.carried = t_.tasks.results + "/" + name + ".json";
    files::write_file(report.carried, model_.text(target));
  }

  const Tuning& t_;
  const frame::Options& options_;
  TunedModel model_;
  Verified verify_;
  train::Settings settings_;
  train::Data data_;
  std::optional<experiment::TaskFolder> folder_;
  files::OpenFile lock_;
  Rows rows_;
};

/// Without a verb of tasks, results are a folder of the program itself.
void check_tasks(const Tuning& t, const frame::Options& options) {
  bool verb = t.tasks.results.empty();
  for (const char* name : {"--emit-tasks", "--run-one", "--collect"})
    verb = verb || options.given(name);
  if (verb) experiment::check(t.tasks, options, {});
}

/// Refuses options without those they need; a dry run only names them.
void check(const Tuning& t, const frame::Options& options) {
  const bool own = !t.command.empty();
  for (const char* name : {"--preset", "--config", "--names", "--loss-from", "--cut"}) {
    if (!own && options.given(name))
      throw InvalidInput(name, "(given)", "it with --command",
                         "the reference transformer has its own");
  }
  for (const char* name : {"--text", "--batch", "--warmup", "--schedule", "--min-rate",
                           "--weight-decay", "--epsilon"}) {
    if (own && options.given(name))
      throw InvalidInput(name, "(given)", "none with --command", "the command knows");
  }
  if (own && t.plan.preset.empty() && t.plan.config.empty())
    throw InvalidInput("--preset", "none", "a model", "the base, by --preset or --config");
  for (const char* value : {"{plan}", "{seed}", "{steps}"}) {
    if (own && t.command.find(value) == std::string::npos)
      throw InvalidInput("--command", t.command, std::string(value) + " in it");
  }
  for (const char* value :
       {"{plan}", "{seed}", "{steps}", "{rate}", "{constants}", "{width}", "{depth}"}) {
    for (const char* quote : {"'", "\""}) {
      if (!own || t.command.find(std::string(quote) + value + quote) == std::string::npos) continue;
      throw InvalidInput("--command", t.command, std::string(value) + " without quotes around it",
                         "values are filled in as words of the shell, quoted where they need it");
    }
  }
  if (own && t.tasks.results.empty())
    throw InvalidInput("--command", t.command,
                       "--results as well, the folder of plans and results");
  if (!t.carry_to.empty() && t.tasks.results.empty())
    throw InvalidInput("--carry-to", t.carry_to.front(),
                       "--results as well, the folder that the plan goes to");
  if (t.run.warmup >= std::max(1L, t.run.steps / short_part))
    throw InvalidInput("--warmup", std::to_string(t.run.warmup), "fewer than a quarter of --steps");
}

int run(const Tuning& t, const frame::Options& options) {
  ::check(t, options);
  if (!t.command.empty()) frame::abandon_on_signal();
  // Commands run one at a time unless --threads says otherwise.
  const bool commands = !t.command.empty() && !options.given("--threads");
  train::use_threads(commands ? 1 : experiment::threads_of(t.run.threads, options));
  dense::keep_to_one_thread();  // for the fit, where all runs are there and no model does it
  if (t.names.empty()) return Tuner(t, nullptr, options).run();
  int code = 0;
  tools::with_names("tune", t.names, [&](const dialect::Dialect& dialect) {
    code = Tuner(t, &dialect, options).run();
  });
  return code;
}

void add_run_options(frame::Options& o, Tuning& t) {
  o.group("Runs");
  o.add("--space", t.space,
        "NAME=LOW:HIGH, or several with commas: constants to tune, and their ranges")
      .repeated();
  o.add("--trials", t.trials, "runs in all (without those of --verify)").from(12).to(1e6).of_runs();
  o.add("--steps", t.run.steps, "optimizer steps").from(1);
  o.add("--seed", t.seed, "random seed (of draws and runs)").from(1);
  o.add("--command", t.command,
        "command that makes a run: {plan} is a file, {seed} and {steps} are numbers; also {rate}, "
        "{constants}, "
        "{width}, {depth}");
  o.add("--loss-from", t.loss_from, loss_from_words,
        "where it prints the loss (json: its last line with \"loss\"; number: the end of its last "
        "line)");
  o.group("Reference transformer, without --command");
  o.add("--text", t.run.text, "text to learn from, byte by byte").reads();
  o.add("--batch", t.run.batch, "sequences or images per batch").from(1);
  train::add_schedule_options(o, t.run);
  o.add("--weight-decay", t.run.weight_decay, "weight decay, before the plan's factors")
      .from(0)
      .below(1e30);
  o.group("Larger models");
  o.add("--carry-to", t.carry_to,
        "width=N,depth=N: writes the plan of this size with the best constants")
      .of_runs();
  o.add("--verify", t.verify,
        "width=N or depth=N: whether the best rate stays, from runs of the base and of this size")
      .of_runs();
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto t = std::make_shared<Tuning>();
  t->plan.program = "tune";
  t->plan.rule = "maximal-update";
  t->run.width = 32, t->run.heads = 2, t->run.seq = 32;
  t->run.batch = 8, t->run.steps = 200;
  Program program{
      "tune",
      "The constants that train a small model best, and the plan of a large one with them."};
  Options& o = *program.options;
  tools::add_rule_option(o, t->plan.rule);
  o.add("--preset", t->plan.preset, "published shape, see plan --list-presets");
  o.add("--config", t->plan.config, "Hugging Face config.json").reads().excludes("--preset");
  tools::add_set_option(o, t->plan.set);
  add_plan_options(o, t->plan);
  o.add("--names", t->names,
        "code base whose names tensors have, see plan --list-names, or a file that says them "
        "(.json)")
      .reads(".json");
  add_run_options(o, *t);
  o.add("--threads", t->run.threads, "0: all cores; results do not depend on it")
      .to(1024)
      .not_an_input();
  experiment::add_task_options(o, t->tasks);
  o.group("Output");
  add_format(o, t->format);
  o.add("--quiet", quiet, "no progress").not_an_input();
  program.check = [t, &o] {
    if (!t->command.empty() && !o.given("--text")) t->run.text.clear();  // which the command knows
    check_tasks(*t, o);
  };
  program.expected = [t] {
    return fmt::format("{} draws, {} runs at most", draws_of(t->trials), t->trials);
  };
  program.run = [t, options = program.options](const std::vector<std::string>&) {
    return ::run(*t, *options);
  };
  return program;
}
