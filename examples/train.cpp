// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// train: trains the reference transformer from a plan, on the bytes of a text or on small images.
//
//   train --rule maximal-update --width 128 --base-width 64 --log run.csv --checkpoint run.ckpt
//   train --digits digits.csv --steps 300

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "scalewise/core/error.hpp"
#include "train/divergence.hpp"
#include "train/interrupt.hpp"
#include "train/model.hpp"
#include "train/output.hpp"
#include "train/threads.hpp"
#include "train/train_model.hpp"

namespace {

using scalewise::InvalidInput;
using scalewise::Plan;
using namespace scalewise::train;

void add_options(CLI::App& app, Settings& s) {
  const auto option = [&](const char* name, auto& value, const char* help, const char* group) {
    return app.add_option(name, value, help)->capture_default_str()->take_last()->group(group);
  };
  const auto flag = [&](const char* name, bool& value, const char* help, const char* group) {
    return app.add_flag(name, value, help)->group(group);
  };
  const char* data = "Data";
  auto* text = option("--text", s.text, "file whose next byte is learned", data);
  option("--digits", s.digits, "CSV file of images whose class is learned", data)->excludes(text);

  const char* plan = "Plan";
  option("--rule", s.rule, "rule id, see plan --list-rules", plan);
  option("--decay", s.decay, "form of weight decay: coupled, independent or l2", plan);
  option("--base-width", s.base_width, "width that the rate was tuned at, for a relative rule",
         plan);
  option("--base-std", s.base_std,
         "the base model's initial standard deviation (0: 1/sqrt(base width))", plan);
  option("--set", s.set,
         "key=value: a field of the shape (base.key for the base) or a parameter of the rule",
         plan);

  const char* model = "Model";
  option("--width", s.width, "d_model", model);
  option("--depth", s.depth, "layers", model);
  option("--heads", s.heads, "attention heads", model);
  option("--seq", s.seq, "bytes per sequence", model);
  option("--patch", s.patch, "side of an image's patches", model);
  option("--placement", s.placement, "of the norms: pre or post", model);
  option("--norm", s.norm, "layer, rms or none", model);
  option("--activation", s.activation, "relu, gelu or silu", model);
  flag("--rotary", s.rotary, "rotary instead of learned positions", model);
  option("--dropout", s.dropout, "probability", model);

  const char* training = "Training";
  option("--steps", s.steps, "steps in all", training);
  option("--batch", s.batch, "sequences or images per step", training);
  option("--optimizer", s.optimizer, "adamw, sgd or sign-sgd", training);
  option("--rate", s.rate, "peak learning rate, before the plan's factors", training);
  option("--warmup", s.warmup, "steps of linear warm-up (-1: a twentieth of --steps)", training);
  option("--schedule", s.schedule, "after the warm-up: constant, linear or cosine", training);
  option("--weight-decay", s.weight_decay, "before the plan's factors", training);
  option("--clip", s.clip, "largest norm of the gradient (0: off)", training);
  option("--seed", s.seed, "of initial values, batches and dropout", training)
      ->check([](const std::string& word) {
        check_seed(word);
        return std::string();
      });
  option("--precision", s.precision, "float or double", training);
  option("--threads", s.threads, "0: all cores; results do not depend on it", training);

  const char* output = "Output";
  option("--validate-every", s.validate_every, "steps", output);
  option("--log", s.log, "CSV file with a row per step", output);
  option("--checkpoint", s.checkpoint, "file that keeps the run", output);
  option("--checkpoint-every", s.checkpoint_every, "steps", output);
  auto* resume = flag("--resume", s.resume,
                      "go on from the checkpoint, or begin where there is none yet", output);
  flag("--overwrite", s.overwrite, "write over an old checkpoint and log", output)
      ->excludes(resume);
  option("--format", s.format, "of the result: text or json", output)
      ->check(CLI::IsMember({"text", "json"}));
  flag("--quiet", s.quiet, "no progress, only the result", output);
}

void show_heading(const Settings& s, const Data& data, const Plan& plan) {
  std::cout << "rule        " << plan.rule << ", " << s.optimizer << "\nmodel       width "
            << plan.shape.d_model << ", depth " << plan.shape.depth << ", heads "
            << plan.shape.heads << ", " << plan.parameter_count() << " parameters\ndata        "
            << data.description << std::endl;
}

void show_result(const Settings& s, const Data& data, const Plan& plan, const Result& result) {
  if (s.format == "text") {
    std::cout << (s.quiet ? "" : "validation  ") << describe(data, result.score) << '\n';
    return;
  }
  const nlohmann::ordered_json json{{"schema", "scalewise.train/1"},
                                    {"rule", plan.rule},
                                    {"optimizer", s.optimizer},
                                    {"parameters", plan.parameter_count()},
                                    {"steps", result.step},
                                    {"validation_nats", result.score.nats},
                                    {score_name(data), result.score.score},
                                    {"seconds", result.seconds}};
  std::cout << json.dump(1) << '\n';
}

/// A word as a shell takes it.
std::string quoted(const std::string& word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// What to type to go on, from what was typed.
std::string resume_command(int argc, char** argv) {
  std::string command;
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    if (word != "--resume" && word != "--overwrite") command += quoted(word) + " ";
  }
  return command + "--resume";
}

int run(const Settings& s, int argc, char** argv) {
  check(s);
  require_own_files(s);
  Outputs outputs(s);
  use_threads(s.threads);
  flush_denormals();
  const Data data = read_data(s);
  const Plan plan = plan_of(s, data_shape(s, data));
  constexpr scalewise::Spelling<bool, 2> words{{{false, "float"}, {true, "double"}}};
  const bool twice = scalewise::value_of(words, "--precision", s.precision);
  const auto when_ready = [&] {
    if (!s.quiet && s.format == "text") show_heading(s, data, plan);
    catch_interrupts();
  };
  const Result result = twice ? train_model<double>(s, data, plan, outputs, when_ready)
                              : train_model<float>(s, data, plan, outputs, when_ready);
  if (result.signal == 0) {
    show_result(s, data, plan, result);
    if (!std::cout.flush()) {
      throw InvalidInput("output", "(terminal)", "a place that takes all of it");
    }
    return 0;
  }
  std::cerr << "train: stopped after step " << result.step;
  if (s.checkpoint.empty()) {
    std::cerr << "; nothing is saved without --checkpoint\n";
    return 128 + result.signal;
  }
  if (result.saved < result.step) {
    std::cerr << ", where the loss is too high to be saved; " << s.checkpoint << " is of step "
              << result.saved;
  }
  std::cerr << "; to go on:\n" << resume_command(argc, argv) << '\n';
  return 128 + result.signal;
}

}  // namespace

int main(int argc, char** argv) {
  let_large_writes_fail();
  Settings settings;
  CLI::App app{"Trains the reference transformer from a plan."};
  add_options(app, settings);
  try {
    app.parse(argc, argv);
    if (settings.warmup == -1) settings.warmup = settings.steps / 20;
    return run(settings, argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = app.exit(error) == 0;
    return asked_for_help && std::cout.flush() ? 0 : 2;
  } catch (const Diverged& error) {
    std::cerr << "train: " << error.what() << '\n';
    return 1;
  } catch (const std::bad_alloc&) {
    std::cerr << "train: not enough memory for this model and a --batch of " << settings.batch
              << '\n';
    return 2;
  } catch (const std::exception& error) {
    const auto* input = dynamic_cast<const InvalidInput*>(&error);
    const bool base_missing = input != nullptr && input->field() == "base";
    std::cerr << "train: " << error.what() << (base_missing ? "; give --base-width" : "") << '\n';
    return 2;
  }
}
