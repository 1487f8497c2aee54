// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The training loop.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "scalewise/nn/checkpoint.hpp"
#include "scalewise/nn/initialize.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "scalewise/nn/transformer.hpp"
#include "train/data.hpp"
#include "train/divergence.hpp"
#include "train/interrupt.hpp"
#include "train/log.hpp"
#include "train/model.hpp"
#include "train/progress.hpp"

namespace scalewise::train {

/// Where a run ended.
struct Result {
  long step = 0;
  Score score;
  double seconds = 0;
  int signal = 0;  // that stopped it early
};

inline std::string score_name(const Data& data) { return data.text ? "bits_per_byte" : "accuracy"; }

inline std::string describe(const Data& data, const Score& score) {
  char text[80];
  std::snprintf(text, sizeof(text),
                data.text ? "%.4f nats, %.4f bits per byte" : "%.4f nats, %.4f accuracy",
                score.nats, score.score);
  return text;
}

/// Refuses to write over files that a fresh run did not make.
inline void require_new_files(const Settings& s) {
  namespace fs = std::filesystem;
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code error;
    return !a.empty() && !b.empty() && (a == b || fs::equivalent(a, b, error));
  };
  const std::string& data = s.digits.empty() ? s.text : s.digits;
  const auto check = [&](const char* option, const std::string& path, const std::string& other) {
    if (path.empty()) return;
    if (same(path, data) || same(path, other)) {
      throw InvalidInput(option, path, "a file of its own");
    }
    const fs::path folder = fs::path(path).parent_path();
    if (fs::is_directory(path) || (!folder.empty() && !fs::is_directory(folder))) {
      throw InvalidInput(option, path, "a file in a folder that is there");
    }
    if (!s.resume && !s.overwrite && fs::is_regular_file(path)) {
      throw InvalidInput(option, path, "a file that is not there yet",
                         "--resume goes on with it, --overwrite writes over it");
    }
  };
  check("--checkpoint", s.checkpoint, s.log);
  check("--log", s.log, s.checkpoint);
}

/// One run of the program.
template <class Scalar>
class Run {
 public:
  Run(const Settings& settings, const Data& data, const Plan& plan)
      : s_(settings),
        data_(data),
        plan_(plan),
        model_(plan, config_of(settings)),
        optimizer_(plan, optimizer_of(settings)),
        schedule_(schedule_of(settings)),
        watch_(settings, std::log(data.text ? 256.0 : 10.0)),
        log_(settings.log, score_name(data)) {
    info_.plan = plan_fingerprint(plan);
    info_.settings = lasting(settings, data.fingerprint);
  }

  /// Initial values, or those of the checkpoint.
  void prepare() {
    if (s_.resume) {
      resume();
    } else {
      nn::initialize(model_.parameters(), plan_, s_.seed, base_deviation(s_, plan_));
      nn::normalize_matrices(model_.parameters(), plan_);
      log_.start();
    }
  }

  /// Requires: prepare() has been called.
  Result train() {
    Progress progress(info_.step, s_.steps, s_.quiet);
    if (s_.resume) progress.say("resumed at step " + std::to_string(info_.step));
    const auto begin = Clock::now();
    const auto seconds = [&] {
      return seconds_before_ + std::chrono::duration<double>(Clock::now() - begin).count();
    };
    if (!s_.resume) {
      log_.write({.score = measure(), .seconds = seconds()});
      say_score(progress);
      save();
    }
    while (info_.step < s_.steps && stop_request() == 0) {
      LogRow row = step();
      if (row.step % s_.validate_every == 0 || row.step == s_.steps) row.score = measure();
      row.seconds = seconds();
      log_.write(row);
      progress.step(row.step, row.loss);
      if (row.score) say_score(progress);
      if (row.step % s_.checkpoint_every == 0 && watch_.calm()) save();
    }
    if (saved_ != info_.step) save();
    const bool early = info_.step < s_.steps;
    if (!early && !measured_) measure();
    return {info_.step, score_, seconds(), early ? stop_request() : 0};
  }

 private:
  using Clock = std::chrono::steady_clock;

  void resume() {
    info_ = load_checkpoint(s_.checkpoint, model_.parameters(), optimizer_.state(), info_);
    watch_.recall(info_.notes);
    if (info_.step > s_.steps) {
      throw InvalidInput("--steps", std::to_string(s_.steps),
                         "at least " + std::to_string(info_.step) + ", where the checkpoint is");
    }
    saved_ = info_.step;
    log_.recall(info_.notes);
    if (s_.log.empty()) return;
    if (log_.has_rows()) {
      seconds_before_ = log_.resume(info_.step);
    } else {
      log_.start_behind(info_.step);
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

  void say_score(Progress& progress) const {
    progress.say("step " + std::to_string(info_.step) + ": validation " + describe(data_, score_));
  }

  /// The log goes to disk first, so that it never ends before the checkpoint.
  void save() {
    if (s_.checkpoint.empty()) return;
    log_.flush();
    info_.notes = watch_.notes();
    for (nn::Setting& note : log_.notes()) info_.notes.push_back(std::move(note));
    save_checkpoint(s_.checkpoint, model_.parameters(), optimizer_.state(), info_);
    saved_ = info_.step;
  }

  const Settings& s_;
  const Data& data_;
  const Plan& plan_;
  nn::Transformer<Scalar> model_;
  nn::PlannedOptimizer<Scalar> optimizer_;
  nn::Schedule schedule_;
  DivergenceWatch watch_;
  Log log_;
  nn::CheckpointInfo info_;
  Score score_;
  double seconds_before_ = 0;
  bool measured_ = false;
  long saved_ = -1;
};

}  // namespace scalewise::train
