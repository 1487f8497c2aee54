// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The training loop. It is compiled once per precision, in run_float.cpp and run_double.cpp.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "instances/transformer.hpp"
#include "lab/programs/train/log.hpp"
#include "lab/programs/train/output.hpp"
#include "lab/programs/train/train_model.hpp"
#include "scalewise/check/moments.hpp"
#include "scalewise/nn/checkpoint.hpp"
#include "scalewise/nn/initialize.hpp"
#include "scalewise/nn/normalize_matrices.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "train/batches.hpp"
#include "train/divergence.hpp"
#include "train/model.hpp"

namespace scalewise::train {

/// One run of the program.
template <class Scalar>
class Run {
 public:
  Run(const Settings& settings, const Data& data, const Plan& plan, const files::Inputs& inputs,
      Outputs& outputs)
      : s_(settings),
        data_(data),
        plan_(plan),
        outputs_(outputs),
        model_(plan, config_of(settings)),
        optimizer_(plan, optimizer_of(settings)),
        schedule_(schedule_of(settings)),
        watch_(settings, data.guess()),
        log_(settings.log, score_name(data)) {
    info_.plan = plan::plan_fingerprint(plan);
    info_.inputs = inputs;
  }

  /// Initial values, or those of the checkpoint.
  void prepare() {
    resumed_ = !outputs_.begins(run_name());
    if (resumed_) {
      resume();
    } else {
      nn::initialize(model_.parameters(), plan_, s_.seed, base_deviation(s_, plan_));
      nn::normalize_matrices(model_.parameters(), plan_);
    }
  }

  /// Requires: prepare() has been called.
  /// Throws:   Diverged, naming the checkpoint if this run has one.
  Result train() {
    try {
      return train_on();
    } catch (const Diverged& error) {
      if (saved_ < 0) throw;
      throw Diverged(error.what() + ("; " + s_.checkpoint) +
                     " is the last good checkpoint, of step " + std::to_string(saved_));
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  Result train_on() {
    frame::Progress progress("steps", s_.steps, 0, info_.step);
    if (resumed_) progress.say("resumed at step " + std::to_string(info_.step));
    const auto begin = Clock::now();
    const auto seconds = [&] {
      return seconds_before_ + std::chrono::duration<double>(Clock::now() - begin).count();
    };
    if (!resumed_) {
      const Score score = measure();
      outputs_.remove_leftovers();
      rehearse();
      outputs_.begin(run_name());
      log_.start();
      log_.write({.score = score, .seconds = seconds()});
      say_score(progress);
      save();
      outputs_.done();
    }
    while (info_.step < s_.steps && frame::stop_requested() == 0) {
      LogRow row = step();
      if (row.step % s_.validate_every == 0 || row.step == s_.steps) row.score = measure();
      row.seconds = seconds();
      log_.write(row);
      progress.at(row.step, fmt::format("loss {:.4g}", row.loss));
      if (row.score) say_score(progress);
      if (row.step % s_.checkpoint_every == 0) save_if_good();
    }
    const bool early = info_.step < s_.steps;
    if (!early) {
      if (!measured_) measure();
      watch_.check_end(info_.step, judged(score_.nats));
    }
    if (saved_ != info_.step) save_if_good();
    return {info_.step, saved_, score_, seconds(), early, tensor_sizes()};
  }

  std::vector<TensorSize> tensor_sizes() {
    std::vector<TensorSize> sizes;
    nn::Parameters<Scalar>& parameters = model_.parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      check::Moments moments;
      const View<Scalar> values = parameters.value(i);
      moments.add(values.data(), static_cast<std::size_t>(values.size()));
      sizes.push_back({parameters.name(i), moments.rms(), moments.mean_abs()});
    }
    return sizes;
  }

  /// Stands for all that the run depends on.
  std::string run_name() const {
    files::Inputs all = info_.inputs;
    all.push_back({"plan", info_.plan});
    return files::fingerprint(all);
  }

  /// Tries what a step needs before the first file is touched: memory, and a place to save.
  void rehearse() {
    model_.loss_and_gradient(training_batch<Scalar>(s_, data_, 0), 0);
    if (s_.checkpoint.empty()) return;
    try_to_write("--checkpoint", s_.checkpoint, [&](const std::string& path) {
      save_checkpoint(path, model_.parameters(), optimizer_.state(), info_);
    });
  }

  void resume() {
    info_ = load_checkpoint(s_.checkpoint, model_.parameters(), optimizer_.state(), info_);
    watch_.recall(info_.notes);
    if (info_.step > s_.steps) {
      throw InvalidInput("--steps", std::to_string(s_.steps),
                         "at least " + std::to_string(info_.step) + ", where the checkpoint is");
    }
    saved_ = info_.step;
    outputs_.done();  // in case the run was killed before it could say so
    outputs_.remove_leftovers();
    log_.recall(info_.notes);
    if (s_.log.empty()) return;
    if (log_.has_rows()) {
      seconds_before_ = log_.resume(info_.step);
    } else {
      log_.start_after(info_.step);
      save();  // the checkpoint has to know where this log begins
    }
  }

  /// One step of training; the matrices of a normalized transformer are of unit length after it.
  LogRow step() {
    const auto batch = training_batch<Scalar>(s_, data_, info_.step);
    const double factor = schedule_.factor(info_.step);
    LogRow row{.step = info_.step + 1, .rate = s_.rate * factor};
    row.loss = model_.loss_and_gradient(batch, static_cast<std::uint64_t>(info_.step));
    row.gradient_norm = nn::gradient_norm(model_.parameters());
    watch_.check(row.step, row.loss, row.gradient_norm, model_.parameters());
    optimizer_.step(model_.parameters(), factor);
    nn::normalize_matrices(model_.parameters(), plan_);
    info_.step = row.step;
    measured_ = false;
    return row;
  }

  Score measure() {
    score_ = validate(s_, data_, model_);
    watch_.check_validation(info_.step, score_.nats);
    measured_ = true;
    return score_;
  }

  /// The loss that tells how good the parameters are: that of validation, but where it is high, of a
  /// batch of training, since overfitting does not count as divergence.
  double judged(double nats) {
    if (watch_.good(nats) || !std::isfinite(nats)) return nats;
    return model_.loss(training_batch<Scalar>(s_, data_, info_.step));
  }

  void say_score(frame::Progress& progress) const {
    progress.say("step " + std::to_string(info_.step) + ": validation " + describe(data_, score_));
  }

  /// A good checkpoint stays until there is another good one.
  void save_if_good() {
    if (s_.checkpoint.empty()) return;
    const double nats = model_.loss(first_validation_batch<Scalar>(s_, data_));
    if (watch_.good(judged(nats))) save();
  }

  /// The log goes to disk first, so that it never ends before the checkpoint.
  void save() {
    if (s_.checkpoint.empty()) return;
    log_.flush();
    info_.notes = watch_.notes();
    for (files::Setting& note : log_.notes()) info_.notes.push_back(std::move(note));
    save_checkpoint(s_.checkpoint, model_.parameters(), optimizer_.state(), info_);
    saved_ = info_.step;
  }

  const Settings& s_;
  const Data& data_;
  const Plan& plan_;
  Outputs& outputs_;
  nn::Transformer<Scalar> model_;
  nn::PlannedOptimizer<Scalar> optimizer_;
  nn::Schedule schedule_;
  DivergenceWatch watch_;
  Log log_;
  nn::CheckpointInfo info_;
  Score score_;
  double seconds_before_ = 0;
  bool resumed_ = false;
  bool measured_ = false;
  long saved_ = -1;
};

template <class Scalar>
Result train_model(const Settings& settings, const Data& data, const Plan& plan,
                   const files::Inputs& inputs, Outputs& outputs,
                   const std::function<void()>& when_ready) {
  Run<Scalar> run(settings, data, plan, inputs, outputs);
  run.prepare();
  when_ready();
  return run.train();
}

}  // namespace scalewise::train
