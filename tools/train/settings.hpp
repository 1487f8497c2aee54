// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Settings of a training run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frame/options.hpp"
#include "scalewise/architecture/norm_placement.hpp"
#include "scalewise/architecture/shape.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/nn/checkpoint.hpp"
#include "scalewise/nn/config.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "scalewise/nn/schedule.hpp"
#include "scalewise/policy/optimizer.hpp"
#include "scalewise/policy/parameter.hpp"
#include "train/number.hpp"

namespace scalewise::train {

inline constexpr messages::Spelling<nn::Decline, 3> schedule_words{
    {{nn::Decline::constant, "constant"},
     {nn::Decline::linear, "linear"},
     {nn::Decline::cosine, "cosine"}}};
enum class Task { next_token, denoising, permuted_denoising, masked };
inline constexpr messages::Spelling<Task, 4> task_words{
    {{Task::next_token, "next-token"},
     {Task::denoising, "denoising"},
     {Task::permuted_denoising, "permuted-denoising"},
     {Task::masked, "masked"}}};
inline constexpr messages::Spelling<bool, 2> precision_words{{{false, "float"}, {true, "double"}}};
inline constexpr messages::Spelling<NormPlacement, 2> placement_words{
    {{NormPlacement::pre, "pre"}, {NormPlacement::post, "post"}}};
inline constexpr messages::Spelling<nn::Norm, 3> norm_words{
    {{nn::Norm::layer, "layer"}, {nn::Norm::rms, "rms"}, {nn::Norm::none, "none"}}};
inline constexpr auto optimizer_words = [] {
  messages::Spelling<Optimizer, policy::known_optimizers.size()> words{};
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = {policy::known_optimizers[i], policy::known_optimizers[i].name};
  return words;
}();

/// The path of a file that ships with the programs: in ../share/scalewise/data next to an installed
/// program, or in the sources that it was built from.
std::string data_file(const std::string& name);

struct Settings {
  std::string text = data_file("austen_persuasion.txt");
  std::string digits;
  Task task = Task::next_token;  // of a text

  std::string rule = "standard";
  DecayForm decay = DecayForm::coupled;
  std::vector<Parameter> parameters;  // of the rule, unless --set says otherwise
  std::vector<std::string> set;
  std::vector<std::string> constants;  // of the base, each a list with commas
  std::optional<bool> tied_head;       // unless --set says otherwise
  long base_width = 0;                 // 0: no base
  long base_depth = 0;                 // of the base, where they are not 0 and not as the target's
  long base_heads = 0;
  long base_iterations = 0;
  long iterations = 0;  // that the plan knows of; 0: none
  double base_std = 0;  // 0: 1/√(base width)
  std::string start;    // instead of base_std: the rule by which the base model starts

  long width = 64;
  long depth = 2;
  long heads = 4;
  long seq = 64;
  long patch = 2;
  std::optional<NormPlacement> placement;  // unset, also activation: as in the rule's text
  nn::Norm norm = nn::Norm::layer;
  std::optional<Activation> activation;
  bool rotary = false;  // where the rule's text has it, without being asked for, too
  bool parallel = false;
  nn::Gates gates = nn::Gates::softmax;
  double score_cap = 0;  // 0: none, also logit_cap
  double logit_cap = 0;
  bool causal = true;  // of text; without, a model sees what it is to predict
  double dropout = 0;

  long steps = 1000;
  long batch = 32;
  Optimizer optimizer = adamw;
  double rate = 5e-3;
  long warmup = -1;  // a twentieth of the steps
  nn::Decline schedule = nn::Decline::cosine;
  double min_rate = 0;  // at the end of the schedule, over the peak
  double weight_decay = 0;
  double epsilon = nn::OptimizerConfig{}.epsilon;
  double clip = 0;
  std::uint64_t seed = 1;
  bool twice = false;  // numbers in double precision
  int threads = 0;     // 0: all

  long validate_every = 200;
  std::string log;
  std::string checkpoint;
  long checkpoint_every = 100;
  bool overwrite = false;
  frame::Format format = frame::Format::table;
};

/// Whether text is for this task. Images have none.
inline bool has_task(const Settings& s, Task task) { return s.digits.empty() && s.task == task; }
/// Whether the sentences of what an encoder sees are in another order.
inline bool permutes(const Settings& s) { return has_task(s, Task::permuted_denoising); }
/// Whether an encoder-decoder restores a text.
inline bool denoises(const Settings& s) { return has_task(s, Task::denoising) || permutes(s); }
/// Whether an encoder predicts masked tokens.
inline bool unmasks(const Settings& s) { return has_task(s, Task::masked); }

/// Checks settings against each other.
/// Throws:   InvalidInput.
inline void check(const Settings& s) {
  if (s.warmup >= s.steps) {
    throw InvalidInput("--warmup", std::to_string(s.warmup), "fewer than --steps");
  }
  if (denoises(s) && s.seq < 2) {
    throw InvalidInput("--seq", std::to_string(s.seq), "2 or more tokens, some of them to mask");
  }
}

}  // namespace scalewise::train
