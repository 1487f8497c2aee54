// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// What a training run can be told.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "scalewise/core/spelling.hpp"
#include "scalewise/nn/checkpoint.hpp"
#include "scalewise/nn/config.hpp"
#include "scalewise/nn/schedule.hpp"
#include "train/number.hpp"

namespace scalewise::train {

struct Settings {
  std::string text = SCALEWISE_DATA_DIR "/austen_persuasion.txt";
  std::string digits;

  std::string rule = "standard";
  std::string decay = "coupled";
  std::vector<std::string> set;
  long base_width = 0;  // 0: no base
  double base_std = 0;  // 0: 1/√(base width)

  long width = 64;
  long depth = 2;
  long heads = 4;
  long seq = 64;
  long patch = 2;
  std::string placement = "pre";
  std::string norm = "layer";
  std::string activation = "gelu";
  bool rotary = false;
  bool causal = true;  // of text; without, a model sees what it is to predict
  double dropout = 0;

  long steps = 1000;
  long batch = 32;
  std::string optimizer = "adamw";
  double rate = 5e-3;
  long warmup = -1;  // a twentieth of the steps
  std::string schedule = "cosine";
  double weight_decay = 0;
  double clip = 0;
  std::uint64_t seed = 1;
  std::string precision = "float";
  int threads = 0;  // 0: all

  long validate_every = 200;
  std::string log;
  std::string checkpoint;
  long checkpoint_every = 100;
  bool resume = false;
  bool overwrite = false;
  bool quiet = false;
  std::string format = "text";
};

inline constexpr Spelling<nn::Update, 3> update_words{
    {{nn::Update::adamw, "adamw"}, {nn::Update::sgd, "sgd"}, {nn::Update::sign_sgd, "sign-sgd"}}};
inline constexpr Spelling<nn::Decline, 3> schedule_words{{{nn::Decline::constant, "constant"},
                                                          {nn::Decline::linear, "linear"},
                                                          {nn::Decline::cosine, "cosine"}}};
inline constexpr Spelling<nn::Placement, 2> placement_words{
    {{nn::Placement::pre, "pre"}, {nn::Placement::post, "post"}}};
inline constexpr Spelling<nn::Norm, 3> norm_words{
    {{nn::Norm::layer, "layer"}, {nn::Norm::rms, "rms"}, {nn::Norm::none, "none"}}};
inline constexpr Spelling<nn::Activation, 3> activation_words{{{nn::Activation::relu, "relu"},
                                                               {nn::Activation::gelu, "gelu"},
                                                               {nn::Activation::silu, "silu"}}};

/// Throws:   InvalidInput for the first number that makes no sense.
inline void check(const Settings& s) {
  const auto require = [](bool good, const char* option, const std::string& value,
                          const char* expectation) {
    if (!good) throw InvalidInput(option, value, expectation);
  };
  const auto from = [&](long least, const char* option, long value) {
    require(value >= least && value <= 1'000'000'000, option, std::to_string(value),
            least == 0 ? "a whole number from 0 to 10^9" : "a whole number from 1 to 10^9");
  };
  from(0, "--base-width", s.base_width);
  from(1, "--width", s.width);
  from(1, "--depth", s.depth);
  from(1, "--heads", s.heads);
  from(1, "--seq", s.seq);
  from(1, "--patch", s.patch);
  from(1, "--steps", s.steps);
  from(1, "--batch", s.batch);
  from(0, "--warmup", s.warmup);
  require(s.threads >= 0 && s.threads <= 1024, "--threads", std::to_string(s.threads),
          "a whole number from 0 (all cores) to 1024");
  from(1, "--validate-every", s.validate_every);
  from(1, "--checkpoint-every", s.checkpoint_every);
  require(s.warmup < s.steps, "--warmup", std::to_string(s.warmup), "fewer than --steps");
  const auto positive = [](double x) { return x > 0 && x < 1e30; };
  require(positive(s.rate), "--rate", text_of(s.rate), "a number above 0 and below 1e30");
  require(s.base_std == 0 || positive(s.base_std), "--base-std", text_of(s.base_std),
          "0 or a number above 0 and below 1e30");
  require(s.weight_decay == 0 || positive(s.weight_decay), "--weight-decay",
          text_of(s.weight_decay), "0 or a number above 0 and below 1e30");
  require(s.clip == 0 || positive(s.clip), "--clip", text_of(s.clip),
          "0 (off) or a number above 0 and below 1e30");
  require(s.dropout >= 0 && s.dropout < 1, "--dropout", text_of(s.dropout),
          "a probability from 0 to below 1");
  require(!s.resume || !s.checkpoint.empty(), "--resume", "given", "--checkpoint FILE beside it");
}

/// Throws:   InvalidInput for a text that is no seed.
inline void check_seed(const std::string& text) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  number_of<std::uint64_t>("--seed", text, 0, most, "a whole number from 0 to 2^64 - 1");
}

/// What has to be the same when a run goes on: all that its numbers and the rows of its log depend
/// on. With a constant rate the number of steps does not matter, so such a run can be made longer.
inline Inputs lasting(const Settings& s, const std::string& data) {
  std::string set;
  for (const std::string& one : s.set) set += (set.empty() ? "" : " ") + one;
  const bool text = s.digits.empty();
  Inputs list{
      {"data", data},
      {"--rule", s.rule},
      {"--decay", s.decay},
      {"--set", set},
      {"--base-width", std::to_string(s.base_width)},
      {"--base-std", text_of(s.base_std)},
      {"--width", std::to_string(s.width)},
      {"--depth", std::to_string(s.depth)},
      {"--heads", std::to_string(s.heads)},
      {text ? "--seq" : "--patch", std::to_string(text ? s.seq : s.patch)},
      {"--placement", s.placement},
      {"--norm", s.norm},
      {"--activation", s.activation},
      {"--rotary", s.rotary ? "yes" : "no"},
      {"--dropout", text_of(s.dropout)},
      {"--batch", std::to_string(s.batch)},
      {"--optimizer", s.optimizer},
      {"--rate", text_of(s.rate)},
      {"--warmup", std::to_string(s.warmup)},
      {"--schedule", s.schedule},
      {"--weight-decay", text_of(s.weight_decay)},
      {"--clip", text_of(s.clip)},
      {"--seed", std::to_string(s.seed)},
      {"--validate-every", std::to_string(s.validate_every)},
  };
  if (s.schedule != "constant") list.push_back({"--steps", std::to_string(s.steps)});
  return list;
}

}  // namespace scalewise::train
