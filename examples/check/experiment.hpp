// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// What the programs that check a rule share: a family of models along one axis, and its options.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "train/data.hpp"
#include "train/model.hpp"
#include "train/settings.hpp"

namespace scalewise::experiment {

/// Models that differ in width, in depth or in how long they train, each from several seeds.
struct Experiment {
  train::Settings model;  // what all have in common
  std::string axis = "width";
  bool has_horizon = false;  // whether the program has the axis "horizon", the number of steps
  std::vector<long> sizes{64, 128, 256, 512, 1024};
  long base = 0;       // the size that rates were tuned at; 0: the smallest
  long head_dim = 16;  // fixed while the width grows; 0: --heads is fixed and the heads grow
  long seeds = 5;
  std::string format = "table";
  std::string out;
};

/// Throws:   InvalidInput for what makes no experiment.
inline void check(const Experiment& e) {
  train::check(e.model);
  if (e.axis != "width" && e.axis != "depth" && !(e.has_horizon && e.axis == "horizon")) {
    throw InvalidInput("--axis", printable(e.axis),
                       e.has_horizon ? "width, depth or horizon" : "width or depth");
  }
  if (e.format != "table" && e.format != "json") {
    throw InvalidInput("--format", printable(e.format), "table or json");
  }
  if (e.sizes.empty()) throw InvalidInput("--sizes", "none", "at least one size");
  for (std::size_t i = 0; i < e.sizes.size(); ++i) {
    if (e.sizes[i] < 1 || (i > 0 && e.sizes[i] <= e.sizes[i - 1])) {
      throw InvalidInput("--sizes", std::to_string(e.sizes[i]), "positive sizes, each one larger");
    }
    if (e.axis == "width" && e.head_dim > 0 && e.sizes[i] % e.head_dim != 0) {
      throw InvalidInput("--sizes", std::to_string(e.sizes[i]),
                         "a multiple of --head-dim = " + std::to_string(e.head_dim));
    }
  }
  if (e.base < 0) throw InvalidInput("--base", std::to_string(e.base), "0 or a size");
  if (e.head_dim < 0) throw InvalidInput("--head-dim", std::to_string(e.head_dim), "0 or a size");
  if (e.seeds < 1 || e.seeds > 1000) {
    throw InvalidInput("--seeds", std::to_string(e.seeds), "a whole number from 1 to 1000");
  }
}

/// The settings of one model: seeds are 1, 2, …
inline train::Settings settings_at(const Experiment& e, long size, long seed) {
  train::Settings s = e.model;
  const long base = e.base > 0 ? e.base : e.sizes.front();
  if (e.axis == "width") {
    s.width = size;
    s.base_width = base;
    if (e.head_dim > 0) s.heads = size / e.head_dim;
  } else {
    s.base_width = s.width;
    if (e.axis == "depth") {
      s.depth = size;
      s.set.push_back("base.depth=" + std::to_string(base));
    } else {
      s.steps = size;
      s.set.push_back("iterations=" + std::to_string(size));
      s.set.push_back("base.iterations=" + std::to_string(base));
    }
    if (e.head_dim > 0) s.heads = s.width / e.head_dim;
  }
  if (e.head_dim == 0 && e.axis == "width")
    s.set.push_back("base.heads=" + std::to_string(s.heads));
  s.seed = static_cast<std::uint64_t>(seed);
  return s;
}

/// The options that all programs have; defaults are what `e` holds.
inline void add_options(CLI::App& app, Experiment& e) {
  const auto option = [&](const char* name, auto& value, const char* help, const char* group) {
    return app.add_option(name, value, help)->capture_default_str()->take_last()->group(group);
  };
  const char* rule = "Rule";
  option("--rule", e.model.rule, "rule id, see plan --list-rules", rule);
  option("--optimizer", e.model.optimizer, "adamw, sgd or sign-sgd", rule);
  option("--rate", e.model.rate, "global learning rate, before the plan's factors", rule);
  app.add_option(
         "--set", e.model.set,
         "key=value: a field of the shape (base.key for the base) or a parameter of the rule")
      ->group(rule);

  const char* model = "Models";
  option("--axis", e.axis,
         e.has_horizon ? "what grows: width, depth or horizon" : "what grows: width or depth",
         model);
  app.add_option("--sizes", e.sizes, "the sizes along the axis")
      ->delimiter(',')
      ->capture_default_str()
      ->group(model);
  option("--base", e.base, "size that the rate was tuned at (0: the smallest)", model);
  option("--width", e.model.width, "of models along the depth", model);
  option("--depth", e.model.depth, "of models along the width", model);
  option("--head-dim", e.head_dim, "size of a head (0: --heads stay and heads grow)", model);
  option("--heads", e.model.heads, "where --head-dim is 0", model);
  option("--placement", e.model.placement, "of the norms: pre or post", model);
  option("--norm", e.model.norm, "layer, rms or none", model);
  option("--activation", e.model.activation, "relu, gelu or silu", model);
  app.add_flag("--rotary", e.model.rotary, "rotary instead of learned positions")->group(model);

  const char* runs = "Runs";
  option("--text", e.model.text, "file whose next byte is learned", runs);
  option("--seq", e.model.seq, "bytes per sequence", runs);
  option("--batch", e.model.batch, "sequences per step", runs);
  option("--steps", e.model.steps, "optimizer steps", runs);
  option("--seeds", e.seeds, "runs per model", runs);
  option("--threads", e.model.threads, "0: all cores; results do not depend on it", runs);

  const char* output = "Output";
  option("--format", e.format, "table or json", output);
  option("--out", e.out, "folder for CSV, JSON and pictures", output);
  app.add_flag("--quiet", e.model.quiet, "no progress")->group(output);
}

}  // namespace scalewise::experiment
