// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Shared by the programs that check a rule: a family of models along one axis, and its options.
#pragma once

#include <string>
#include <vector>

#include "frame/options.hpp"
#include "train/settings.hpp"

namespace scalewise::experiment {

/// The size that differs between the models of an experiment.
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

/// The number that is tuned at each size.
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
std::vector<std::string> same_models(const Experiment& e, const frame::Options& options);

/// Checks options against each other, and leaves nothing open.
/// Throws:   InvalidInput for what makes no experiment.
void check(Experiment& e);

/// The name of a size: those of shapes and of joint growth are widths.
std::string size_name(const Experiment& e);

/// The settings of one model: seeds are 1, 2, … after e.before_seeds.
/// Equation: shape: width = size, depth = --depth r, r = size/base; joint: also steps = --steps r³, so that
///           tokens grow as the parameters 12 d_model² depth of the layers.
train::Settings settings_at(const Experiment& e, long size, long seed);

/// The options that all programs have; defaults are what `e` holds. Those of training are left out
/// for programs that look at untrained models.
void add_options(frame::Options& o, Experiment& e, bool training = true);

/// The same for programs that do not make a Report.
void add_output_options(frame::Options& o, Experiment& e, const std::string& program);

}  // namespace scalewise::experiment
