// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/experiment.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

#include "check/report.hpp"
#include "frame/progress.hpp"
#include "planning/rule_options.hpp"
#include "train/model.hpp"
#include "train/number.hpp"
#include "train/options.hpp"

namespace scalewise::experiment {

namespace {

/// Gives a model its depth, and its plan the depth that rates were tuned at.
void set_depth(train::Settings& s, long depth, long base) {
  s.depth = depth;
  s.base_depth = base;
}

void set_horizon(train::Settings& s, long steps, long base) {
  s.steps = steps;
  s.iterations = steps;
  s.base_iterations = base;
}

/// Sizes that grow with another, such as the width in "experts=width/16" or "expert_ff=width*2", as numbers: of a model and
/// of its base.
/// Throws:   InvalidInput for a size that gives no whole number.
std::vector<std::string> at_size(const std::vector<std::string>& set, const std::string& name,
                                 long of_model, long of_base) {
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

}  // namespace

std::vector<std::string> same_models(const Experiment& e, const frame::Options& options) {
  const bool shared = widens(e) || e.axis == Axis::depth || e.axis == Axis::experts;
  std::vector<std::string> words{"--rule",      e.model.rule,
                                 "--optimizer", optimizer_name(e),
                                 "--axis",      shared && !widens(e) ? axis_name(e) : "width"};
  if (shared) {
    words.insert(words.end(), {"--sizes", fmt::format("{}", fmt::join(e.sizes, ",")), "--base",
                               std::to_string(e.base)});
  }
  for (std::string& word : options.given_words(
           false, {"--set", "--width", "--depth", "--head-dim", "--heads", "--placement", "--norm",
                   "--activation", "--rotary", "--parallel", "--gates", "--score-cap",
                   "--logit-cap", "--text", "--seq", "--batch"}))
    words.push_back(std::move(word));
  return words;
}

void check(Experiment& e) {
  train::check(e.model);
  train::settle(e.model);
  for (const std::string& setting : e.model.set) {
    if (e.axis == Axis::experts && setting.starts_with("experts="))
      throw InvalidInput("--set", setting, "a field that does not grow", "see --sizes");
  }
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

std::string size_name(const Experiment& e) { return grows_both(e) ? "width" : axis_name(e); }

train::Settings settings_at(const Experiment& e, long size, long seed) {
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

void add_options(frame::Options& o, Experiment& e, bool training) {
  o.group("Rule");
  tools::add_rule_option(o, e.model.rule);
  if (training) {
    train::add_optimizer_option(o, e.model);
    o.add("--rate", e.model.rate, "learning rate (before the plan's factors)").above(0).below(1e30);
  }
  tools::add_set_option(o, e.model.set);

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

void add_output_options(frame::Options& o, Experiment& e, const std::string& program) {
  o.add("--threads", e.model.threads, "0: all cores; results do not depend on it")
      .to(1024)
      .not_an_input();
  o.group("Output");
  frame::add_format(o, e.format);
  add_out_option(o, e.out, program).help("folder for CSV, JSON and pictures (and a page in HTML)");
  o.add("--quiet", frame::quiet, "no progress").not_an_input();
}

}  // namespace scalewise::experiment
