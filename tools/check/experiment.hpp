// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Shared by the programs that check a rule: a family of models along one axis, and its options.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "frame/options.hpp"
#include "frame/progress.hpp"
#include "scalewise/policy/rule_id.hpp"
#include "train/data.hpp"
#include "train/model.hpp"
#include "train/options.hpp"
#include "train/settings.hpp"

namespace scalewise::experiment {

/// What differs between the models of an experiment.
enum class Axis { width, depth, experts, horizon, batch, length, shape, joint };
inline constexpr messages::Spelling<Axis, 8> axis_words{{{Axis::width, "width"},
                                                         {Axis::depth, "depth"},
                                                         {Axis::experts, "experts"},
                                                         {Axis::horizon, "horizon"},
                                                         {Axis::batch, "batch"},
                                                         {Axis::length, "length"},
                                                         {Axis::shape, "shape"},
                                                         {Axis::joint, "joint"}}};

inline std::vector<std::string> all_axes() {
  std::vector<std::string> words;
  for (const auto& [axis, text] : axis_words) words.emplace_back(text);
  return words;
}

/// What each size is tuned in.
enum class Tuned { rate, weight_decay };
inline constexpr messages::Spelling<Tuned, 2> tuning_words{
    {{Tuned::rate, "rate"}, {Tuned::weight_decay, "weight-decay"}}};

/// Models that differ in width, in depth, in their number of experts, in how they train (steps, batch, length of a sequence), or in
/// width and depth together, with or without the steps, each from several seeds.
struct Experiment {
  train::Settings model;  // what all have in common
  Axis axis = Axis::width;
  std::string plans_axis;  // of --plans: the size of a shape that differs
  std::vector<long> sizes{64, 128, 256, 512, 1024};
  long base = 0;       // the size that rates were tuned at; 0: the smallest
  long head_dim = 16;  // fixed while the width grows; 0: --heads is fixed and the heads grow
  long seeds = 5;
  Tuned tuned = Tuned::rate;
  long before_seeds = 0;  // seeds begin after this one
  frame::Format format = frame::Format::table;
  std::string out;
};

inline std::string axis_name(const Experiment& e) {
  return e.plans_axis.empty() ? std::string(word(axis_words, e.axis)) : e.plans_axis;
}
inline std::string optimizer_name(const Experiment& e) {
  return std::string(e.model.optimizer.name);
}

/// Whether the depth grows as the width.
inline bool grows_both(const Experiment& e) {
  return e.axis == Axis::shape || e.axis == Axis::joint;
}

inline bool widens(const Experiment& e) { return e.axis == Axis::width || grows_both(e); }

/// Words for coordinate_check or learning_rate_transfer to train the models of the other one; for wider models where
/// only one of them has the axis.
inline std::vector<std::string> same_models(const Experiment& e, const frame::Options& options) {
  const bool shared = widens(e) || e.axis == Axis::depth || e.axis == Axis::experts;
  std::vector<std::string> words{"--rule",      e.model.rule,
                                 "--optimizer", optimizer_name(e),
                                 "--axis",      shared && !widens(e) ? axis_name(e) : "width"};
  if (shared) {
    words.insert(words.end(), {"--sizes", fmt::format("{}", fmt::join(e.sizes, ",")), "--base",
                               std::to_string(e.base)});
  }
  for (std::string& word :
       options.given_words({"--set", "--width", "--depth", "--head-dim", "--heads", "--placement",
                            "--norm", "--activation", "--rotary", "--parallel", "--gates",
                            "--score-cap", "--logit-cap", "--text", "--seq", "--batch"}))
    words.push_back(std::move(word));
  return words;
}

/// Checks options against each other, and leaves nothing open.
/// Throws:   InvalidInput for what makes no experiment.
inline void check(Experiment& e) {
  train::check(e.model);
  train::settle(e.model);
  if (e.axis == Axis::length && !e.model.digits.empty()) {
    throw InvalidInput("--axis", "length", "no --digits",
                       "an image has as many patches as --patch leaves");
  }
  const long base = e.base > 0 ? e.base : e.sizes.front();
  for (const long size : e.sizes) {
    if (!grows_both(e)) break;
    if (size % (base / std::gcd(e.model.depth, base)) != 0) {
      throw InvalidInput("--sizes", std::to_string(size),
                         "--depth times size / " + std::to_string(base) + ", a number of layers",
                         "sizes that are multiples of the base");
    }
    const double r = static_cast<double>(size) / static_cast<double>(base);
    if (e.axis == Axis::joint && static_cast<double>(e.model.steps) * r * r * r > 1e9) {
      throw InvalidInput(
          "--sizes", std::to_string(size),
          "at most 1e9 steps, which are --steps (size / " + std::to_string(base) + ")³");
    }
  }
  if (!widens(e) || e.head_dim == 0) return;
  for (const long size : e.sizes) {
    if (size % e.head_dim == 0) continue;
    throw InvalidInput("--sizes", std::to_string(size),
                       "a multiple of --head-dim = " + std::to_string(e.head_dim));
  }
}

/// The name of a size: those of shapes and of joint growth are widths.
inline std::string size_name(const Experiment& e) { return grows_both(e) ? "width" : axis_name(e); }

/// Gives a model its depth, and its plan the depth that rates were tuned at.
inline void set_depth(train::Settings& s, long depth, long base) {
  s.depth = depth;
  s.base_depth = base;
}

inline void set_horizon(train::Settings& s, long steps, long base) {
  s.steps = steps;
  s.iterations = steps;
  s.base_iterations = base;
}

/// Sizes that grow with another, such as the width in "experts=width/16" or "expert_ff=width*2", as numbers: of a model and
/// of its base.
/// Throws:   InvalidInput for a size that gives no whole number.
inline std::vector<std::string> at_size(const std::vector<std::string>& set,
                                        const std::string& name, long of_model, long of_base) {
  std::vector<std::string> all;
  for (const std::string& setting : set) {
    const std::size_t at = setting.find("=" + name);
    const std::string by = at == std::string::npos ? "" : setting.substr(at + 1 + name.size());
    const bool times = by.starts_with('*');
    if (at == std::string::npos || !(by.empty() || times || by.starts_with('/'))) {
      all.push_back(setting);
      continue;
    }
    const double factor = by.empty() ? 1
                                     : train::number_of("--set", by.substr(1), 1.0, 1e6,
                                                        name + "/NUMBER or " + name + "*NUMBER");
    for (const auto& [prefix, size] : {std::pair{"", of_model}, std::pair{"base.", of_base}}) {
      const auto whole = static_cast<double>(size);
      const double result = times ? whole * factor : whole / factor;
      if (result != std::floor(result)) {
        throw InvalidInput("--set", setting,
                           "a whole number; the " + name + (name == "experts" ? " are " : " is ") +
                               std::to_string(size));
      }
      all.push_back(prefix + setting.substr(0, at + 1) + std::to_string(std::lround(result)));
    }
  }
  return all;
}

/// The settings of one model: seeds are 1, 2, … after e.before_seeds.
/// Equation: shape: width = size, depth = --depth r, r = size/base; joint: also steps = --steps r³, so that
///           tokens grow as the parameters 12 d_model² depth of the layers.
inline train::Settings settings_at(const Experiment& e, long size, long seed) {
  train::Settings s = e.model;
  const long base = e.base > 0 ? e.base : e.sizes.front();
  s.base_width = widens(e) ? base : s.width;
  if (widens(e)) s.width = size;
  if (e.axis == Axis::depth) set_depth(s, size, base);
  if (e.axis == Axis::horizon) set_horizon(s, size, base);
  if (e.axis == Axis::batch) s.batch = size;
  if (e.axis == Axis::length) s.seq = size;
  const double r = static_cast<double>(size) / static_cast<double>(base);
  if (grows_both(e)) set_depth(s, std::lround(static_cast<double>(s.depth) * r), s.depth);
  if (e.axis == Axis::joint) {
    set_horizon(s, std::lround(static_cast<double>(s.steps) * r * r * r), s.steps);
  }
  s.set = at_size(s.set, "width", s.width, s.base_width);
  if (e.axis == Axis::experts) {
    s.set.insert(s.set.begin(), "experts=experts");
    s.set = at_size(s.set, "experts", size, base);
  }
  if (e.head_dim > 0) s.heads = s.width / e.head_dim;
  if (e.head_dim == 0 && widens(e)) s.base_heads = s.heads;
  s.seed = static_cast<std::uint64_t>(e.before_seeds + seed);
  return s;
}

/// The options that all programs have; defaults are what `e` holds. Those of training are left out
/// for programs that look at untrained models.
inline void add_options(frame::Options& o, Experiment& e, bool training = true) {
  o.group("Rule");
  o.add("--rule", e.model.rule, "name of a rule, see plan --list-rules").names(policy::rule_id);
  if (training) {
    train::add_optimizer_option(o, e.model);
    o.add("--rate", e.model.rate, "learning rate (before the plan's factors)").above(0).below(1e30);
  }
  o.add("--set", e.model.set,
        "key=value: a field of the shape (base.key for the base) or a parameter of the rule")
      .repeated();

  o.group("Models");
  o.add("--axis", e.axis, axis_words, "what grows").words({"width", "depth"});
  o.add("--sizes", e.sizes, "sizes to compare (along --axis)").from(1).increasing();
  o.add("--base", e.base, "size that the rate was tuned at (0: the smallest)");
  o.add("--width", e.model.width, "features of a token, d_model (of models along another axis)")
      .from(1);
  o.add("--depth", e.model.depth, "layers (of models along another axis)").from(1);
  o.add("--head-dim", e.head_dim, "size of a head (0: keep --heads fixed, so that heads grow)");
  o.add("--heads", e.model.heads, "attention heads (where --head-dim is 0)").from(1);
  train::add_model_options(o, e.model);

  o.group("Runs");
  o.add("--text", e.model.text, "text to learn from, byte by byte").reads();
  o.add("--seq", e.model.seq, "tokens per sequence; of a text, bytes").from(1);
  o.add("--batch", e.model.batch, "sequences or images per batch").from(1);
  if (training) o.add("--steps", e.model.steps, "optimizer steps").from(1);
  o.add("--seeds", e.seeds, "runs of each model, with a seed each").from(1).to(1000);
}

/// The same for programs that do not make a Report.
inline void add_output_options(frame::Options& o, Experiment& e) {
  o.add("--threads", e.model.threads, "0: all cores; results do not depend on it")
      .to(1024)
      .not_an_input();
  o.group("Output");
  frame::add_format(o, e.format);
  o.add("--out", e.out, "folder for CSV, JSON and pictures (and a page in HTML)").writes_folder();
  o.add("--quiet", frame::quiet(), "no progress").not_an_input();
}

}  // namespace scalewise::experiment
