// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Shared by the programs that check a rule: a family of models along one axis, and its options.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "frame/options.hpp"
#include "frame/progress.hpp"
#include "scalewise/policy/muon_names.hpp"
#include "scalewise/policy/rule_id.hpp"
#include "train/data.hpp"
#include "train/model.hpp"
#include "train/settings.hpp"

namespace scalewise::experiment {

/// Models that differ in width, in depth, in how they train (steps, batch, length of a sequence), or in
/// width and depth together, with or without the steps, each from several seeds.
struct Experiment {
  train::Settings model;  // what all have in common
  std::string axis = "width";
  std::vector<std::string> axes{"width", "depth"};  // that the program has
  std::vector<long> sizes{64, 128, 256, 512, 1024};
  long base = 0;       // the size that rates were tuned at; 0: the smallest
  long head_dim = 16;  // fixed while the width grows; 0: --heads is fixed and the heads grow
  long seeds = 5;
  std::string tuned = "rate";  // or "weight-decay"
  long before_seeds = 0;       // seeds begin after this one
  std::string format = "table";
  std::string out;
};

/// Whether the depth grows as the width.
inline bool grows_both(const Experiment& e) { return e.axis == "shape" || e.axis == "joint"; }

inline bool widens(const Experiment& e) { return e.axis == "width" || grows_both(e); }

/// Checks options against each other.
/// Throws:   InvalidInput for what makes no experiment.
inline void check(const Experiment& e) {
  train::check(e.model);
  if (e.axis == "length" && !e.model.digits.empty()) {
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
    if (e.axis == "joint" && static_cast<double>(e.model.steps) * r * r * r > 1e9) {
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
inline std::string size_name(const Experiment& e) { return grows_both(e) ? "width" : e.axis; }

/// Gives a model its depth, and its plan the depth that rates were tuned at.
inline void set_depth(train::Settings& s, long depth, long base) {
  s.depth = depth;
  s.set.push_back("base.depth=" + std::to_string(base));
}

inline void set_horizon(train::Settings& s, long steps, long base) {
  s.steps = steps;
  s.set.push_back("iterations=" + std::to_string(steps));
  s.set.push_back("base.iterations=" + std::to_string(base));
}

/// The settings of one model: seeds are 1, 2, … after e.before_seeds.
/// Equation: shape: width = size, depth = --depth r, r = size/base; joint: also steps = --steps r³, so that
///           tokens grow as the parameters 12 d_model² depth of the layers.
inline train::Settings settings_at(const Experiment& e, long size, long seed) {
  train::Settings s = e.model;
  const long base = e.base > 0 ? e.base : e.sizes.front();
  s.base_width = widens(e) ? base : s.width;
  if (widens(e)) s.width = size;
  if (e.axis == "depth") set_depth(s, size, base);
  if (e.axis == "horizon") set_horizon(s, size, base);
  if (e.axis == "batch") s.batch = size;
  if (e.axis == "length") s.seq = size;
  const double r = static_cast<double>(size) / static_cast<double>(base);
  if (grows_both(e)) set_depth(s, std::lround(static_cast<double>(s.depth) * r), s.depth);
  if (e.axis == "joint") {
    set_horizon(s, std::lround(static_cast<double>(s.steps) * r * r * r), s.steps);
  }
  if (e.head_dim > 0) s.heads = s.width / e.head_dim;
  if (e.head_dim == 0 && widens(e)) s.set.push_back("base.heads=" + std::to_string(s.heads));
  s.seed = static_cast<std::uint64_t>(e.before_seeds + seed);
  return s;
}

/// The options that all programs have; defaults are what `e` holds. Those of training are left out
/// for programs that look at untrained models.
inline void add_options(frame::Options& o, Experiment& e, bool training = true) {
  o.group("Rule");
  o.add("--rule", e.model.rule).names(rule_id);
  if (training) {
    o.add("--optimizer", e.model.optimizer).words(names_of(known_optimizers)).names(optimizer_id);
    o.add("--rate", e.model.rate, "before the plan's factors").above(0).below(1e30);
  }
  o.add("--set", e.model.set).repeated();

  o.group("Models");
  o.add("--axis", e.axis).words(e.axes);
  o.add("--sizes", e.sizes, "along --axis").from(1).increasing();
  o.add("--base", e.base, "0: the smallest");
  o.add("--width", e.model.width, "of models along another axis").from(1);
  o.add("--depth", e.model.depth, "of models along another axis").from(1);
  o.add("--head-dim", e.head_dim, "0: keep --heads fixed, so that heads grow");
  o.add("--heads", e.model.heads, "where --head-dim is 0").from(1);
  o.add("--placement", e.model.placement).words(train::placement_words);
  o.add("--norm", e.model.norm).words(train::norm_words);
  o.add("--activation", e.model.activation).words(activation_words);
  o.add("--rotary", e.model.rotary);

  o.group("Runs");
  o.add("--text", e.model.text).reads();
  o.add("--seq", e.model.seq).from(1);
  o.add("--batch", e.model.batch).from(1);
  if (training) o.add("--steps", e.model.steps).from(1);
  o.add("--seeds", e.seeds).from(1).to(1000);
}

/// The same for programs that do not make a Report.
inline void add_output_options(frame::Options& o, Experiment& e) {
  o.add("--threads", e.model.threads).to(1024).not_an_input();
  o.group("Output");
  o.add("--format", e.format).words({"table", "json", "csv"}).not_an_input();
  o.add("--out", e.out, "and a page in HTML").writes_folder();
  o.add("--quiet", frame::quiet()).not_an_input();
}

}  // namespace scalewise::experiment
