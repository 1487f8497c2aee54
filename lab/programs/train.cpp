// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// train: trains the reference transformer from a plan, on the bytes of a text or on small images.
//
//   train --rule maximal-update --width 128 --base 64 --log run.csv --checkpoint run.ckpt
//   train --task denoising --rule bert
//   train --digits digits.csv --steps 300

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/network_plan.hpp"
#include "check/report.hpp"
#include "frame/program.hpp"
#include "frame/progress.hpp"
#include "lab/programs/train/output.hpp"
#include "lab/programs/train/train_model.hpp"
#include "planning/rule_options.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/exact_text.hpp"
#include "scalewise/policy/muon_names.hpp"
#include "train/divergence.hpp"
#include "train/model.hpp"
#include "train/options.hpp"
#include "train/threads.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::train;

void add_options(frame::Options& o, Settings& s) {
  o.group("Data");
  o.add("--text", s.text, "text to learn from, byte by byte").reads();
  o.add("--digits", s.digits, "images to learn from, a CSV file").reads().excludes("--text");
  o.add("--task", s.task, task_words, "what to learn from a text").excludes("--digits");

  o.group("Plan");
  tools::add_rule_option(o, s.rule);
  o.add("--base", s.base_width, "size that the rate was tuned at (a width; 0: none)");
  o.add("--base-std", s.base_std,
        "initial standard deviation of the base model (0: 1/sqrt(base width))")
      .from(0)
      .below(1e30);
  tools::add_start_option(o, s.start).excludes("--base-std");
  tools::add_set_option(o, s.set);
  tools::add_constant_option(o, s.constants);

  o.group("Model");
  o.add("--width", s.width, "features of a token, d_model").from(1);
  o.add("--depth", s.depth, "layers").from(1);
  o.add("--heads", s.heads, "attention heads").from(1);
  o.add("--seq", s.seq, "tokens per sequence; of a text, bytes").from(1);
  o.add("--patch", s.patch, "side of an image's patches").from(1);
  add_model_options(o, s);
  o.add("--dropout", s.dropout, "dropout probability").from(0).below(1);

  o.group("Training");
  o.add("--steps", s.steps, "optimizer steps").from(1);
  o.add("--batch", s.batch, "sequences or images per batch").from(1);
  add_optimizer_option(o, s);
  o.add("--rate", s.rate, "learning rate (at the peak, before the plan's factors)")
      .above(0)
      .below(1e30);
  add_schedule_options(o, s);
  add_decay_options(o, s);
  o.add("--clip", s.clip, "largest norm of the gradient (0: off)").from(0).below(1e30);
  o.add("--seed", s.seed, "random seed (initial values, batches and dropout)");
  o.add("--precision", s.twice, precision_words, "precision of numbers");
  o.add("--threads", s.threads, "0: all cores; results do not depend on it")
      .to(1024)
      .not_an_input();

  o.group("Output");
  o.add("--validate-every", s.validate_every, "steps from one validation to the next").from(1);
  o.add("--log", s.log, "CSV file with a row per step").writes(files::try_file);
  o.add("--checkpoint", s.checkpoint, "file that keeps the run; the same command resumes from it")
      .writes(files::try_file);
  o.add("--checkpoint-every", s.checkpoint_every, "steps from one checkpoint to the next")
      .from(1)
      .not_an_input();
  o.add("--overwrite", s.overwrite, "start again, and write over an old checkpoint and log")
      .not_an_input();
  frame::add_format(o, s.format);
  o.add("--quiet", frame::quiet, "no progress (and of the result, one line)").not_an_input();
}

/// Inputs that have to be the same when a run is resumed. With a constant rate the number of steps does not
/// matter, so such a run can be made longer.
files::Inputs inputs_of(const frame::Options& options, const Settings& s) {
  files::Inputs inputs = options.inputs();
  if (s.schedule == nn::Decline::constant) {
    std::erase_if(inputs, [](const files::Setting& input) { return input.name == "--steps"; });
  }
  return inputs;
}

void show_heading(const Settings& s, const Data& data, const Plan& plan) {
  std::cout << "rule        " << plan.rule << ", " << s.optimizer.name << "\nmodel       width "
            << plan.shape.d_model << ", depth " << plan.shape.depth << ", heads "
            << plan.shape.heads << ", " << plan.parameter_count() << " parameters\ndata        "
            << data.description << std::endl;
}

/// The result without its tensors, in one row.
Table result_table(const Settings& s, const Data& data, const Plan& plan, const Result& result) {
  return {
      {},
      {"rule", "optimizer", "parameters", "steps", "validation_nats", score_name(data), "seconds"},
      {{plan.rule, std::string(s.optimizer.name), std::to_string(plan.parameter_count()),
        std::to_string(result.step), numeric::exact_text(result.score.nats),
        numeric::exact_text(result.score.score), numeric::exact_text(result.seconds)}}};
}

void show_result(const Settings& s, const frame::Options& options, const Data& data,
                 const Plan& plan, const Result& result) {
  if (s.format == frame::Format::table) {
    std::cout << (frame::quiet ? "" : "validation  ") << describe(data, result.score) << '\n';
    return;
  }
  if (s.format == frame::Format::csv) {
    std::cout << render(result_table(s, data, plan, result), TableFormat::csv);
    return;
  }
  nlohmann::ordered_json json = experiment::begin_report("train", 1, options);
  json.update({{"rule", plan.rule},
               {"optimizer", s.optimizer.name},
               {"parameters", plan.parameter_count()},
               {"steps", result.step},
               {"validation_nats", result.score.nats},
               {score_name(data), result.score.score},
               {"seconds", result.seconds},
               {"tensors", nlohmann::ordered_json::array()}});
  for (const TensorSize& tensor : result.tensors) {
    json["tensors"].push_back(
        {{"name", tensor.name}, {"rms", tensor.rms}, {"mean_absolute", tensor.mean_absolute}});
  }
  std::cout << json.dump(1) << '\n';
}

int end(const Settings& s, const frame::Options& options, const Data& data, const Plan& plan,
        const Result& result) {
  if (!result.stopped) {
    show_result(s, options, data, plan, result);
    return 0;
  }
  std::cerr << "train: stopped after step " << result.step;
  if (s.checkpoint.empty()) {
    std::cerr << "; nothing is saved without --checkpoint\n";
    return 0;
  }
  if (result.saved < result.step) {
    std::cerr << ", where the loss is too high to be saved; " << s.checkpoint << " is of step "
              << result.saved;
  }
  std::cerr << "; the same command" << (s.overwrite ? " without --overwrite" : "")
            << " resumes it\n";
  return 0;
}

/// The plan, or what to do about a rule that needs a base.
Plan plan_for(const Settings& s, const Data& data) {
  try {
    return experiment::network_plan(s, data);
  } catch (const InvalidInput& error) {
    if (error.field() != "base") throw;
    throw InvalidInput("--base", "0", "the width that the rate was tuned at",
                       s.rule + " is relative to a base");
  }
}

int run(const Settings& s, const frame::Options& options) {
  require_own_files(s);
  Outputs outputs(s);
  use_threads(s.threads);
  flush_denormals();
  const Data data = read_data(s);
  const Plan plan = plan_for(s, data);
  const files::Inputs inputs = inputs_of(options, s);
  const auto when_ready = [&] {
    if (!frame::quiet && s.format == frame::Format::table) show_heading(s, data, plan);
  };
  try {
    return end(s, options, data, plan,
               s.twice ? train_model<double>(s, data, plan, inputs, outputs, when_ready)
                       : train_model<float>(s, data, plan, inputs, outputs, when_ready));
  } catch (const Diverged& error) {
    std::cerr << "train: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<Settings>();
  Program program{"train", "Trains the reference transformer from a plan."};
  add_options(*program.options, *s);
  program.check = [s] {
    if (!s->digits.empty()) s->text.clear();
    if (s->warmup == -1) s->warmup = s->steps / 20;
    train::check(*s);
    train::settle(*s);
  };
  program.run = [s, options = program.options](const std::vector<std::string>&) {
    return ::run(*s, *options);
  };
  return program;
}
