// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "train/model.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "frame/progress.hpp"
#include "planning/set_option.hpp"
#include "scalewise/architecture/shape_fields.hpp"
#include "scalewise/plan/make_plan.hpp"

namespace scalewise::train {

namespace {

/// Refuses --set for sizes that the data decide, or options of their own: --sizes would be without effect.
void refuse_decided_fields(const std::vector<std::string>& set) {
  constexpr std::pair<std::string_view, std::string_view> decided[] = {
      {"input", ""},
      {"vocab", ""},
      {"patch_dim", ""},
      {"classes", ""},
      {"context", "see --seq"},
      {"encoder_depth", "--task denoising has as many layers as --depth in either stack"}};
  constexpr std::pair<std::string_view, std::string_view> options[] = {
      {"d_model", "see --width and --sizes"},
      {"depth", "see --depth and --sizes"},
      {"heads", "see --heads and --head-dim"}};
  for (const std::string& setting : set) {
    std::string key = setting.substr(0, setting.find('='));
    for (const auto& [field, hint] : options) {
      if (key != field) continue;
      throw InvalidInput("--set", setting, "a field without an option", std::string(hint));
    }
    if (key.starts_with("base.")) key = key.substr(5);
    for (const auto& [field, hint] : decided) {
      if (key != field) continue;
      throw InvalidInput("--set", setting, "a field that the data leave open", std::string(hint));
    }
  }
}

/// Gives the shape of the model at the base width: heads, their groups and d_ff in proportion where they divide.
/// Throws:   InvalidInput for a target that is not a shape; products of sizes that are fit into a long.
Shape base_shape(const Settings& s, const Shape& target) {
  Shape base = target;
  if (s.base_width == 0) return base;
  static_cast<void>(resolved(target));
  const auto scaled = [&](long size) {
    const long product = size * s.base_width;
    return product % target.d_model == 0 ? product / target.d_model : size;
  };
  base.d_model = s.base_width;
  base.heads = scaled(target.heads);
  base.kv_heads = scaled(target.kv_heads);
  base.d_ff = scaled(target.d_ff);
  return base;
}

/// The settings with nothing left open.
Settings settled(Settings s) {
  const nn::Config config = config_of(s);
  s.placement = config.placement;
  s.activation = config.activation;
  s.rotary = config.rotary;
  return s;
}

/// Whether --set gives steps to a rule none of whose numbers depends on them.
bool ignores_steps(const Settings& s) {
  const auto steps = [](const std::string& setting) {
    return setting.starts_with("iterations=") || setting.starts_with("base.iterations=");
  };
  if (std::none_of(s.set.begin(), s.set.end(), steps)) return false;
  Shape any;
  return !policy::scales_with_horizon(Rule(s.rule).with(tools::set_target(s.set, any)));
}

}  // namespace

nn::Config config_of(const Settings& s) {
  nn::Config config = nn::config_of(Rule(s.rule).text);
  config.placement = s.placement.value_or(config.placement);
  config.norm = s.norm;
  config.activation = s.activation.value_or(config.activation);
  config.causal = s.causal && s.digits.empty() && !unmasks(s);
  config.rotary = s.rotary || config.rotary;
  config.parallel = s.parallel;
  config.gates = s.gates;
  config.score_cap = s.score_cap;
  config.logit_cap = s.logit_cap;
  config.dropout = s.dropout;
  config.dropout_seed = s.seed;
  return config;
}

void settle(Settings& s) {
  s = settled(std::move(s));
  const std::string other = nn::differences(config_of(s), Rule(s.rule).text);
  if (!other.empty()) {
    frame::say_once("warning: not as in the text of " + s.rule + ": " + other);
  }
  if (ignores_steps(s)) {
    frame::say_once("warning: " + s.rule + " does not scale with the number of steps");
  }
}

Plan plan_of(const Settings& open, Shape target) {
  const Settings s = settled(open);
  refuse_decided_fields(s.set);
  target.d_model = s.width;
  target.depth = s.depth;
  target.heads = s.heads;
  target.learned_positions = !s.rotary;
  target.activation = s.activation;
  target.tied_head = s.tied_head;
  std::vector<Parameter> parameters = s.parameters;
  for (Parameter& p : tools::set_target(s.set, target)) parameters.push_back(std::move(p));
  std::vector<std::string> known = policy::parameter_names(s.rule);
  const std::vector<std::string> own_names = known;
  for (const std::string& field : architecture::shape_fields()) known.push_back(field);
  for (const Parameter& p : parameters) {
    if (std::find(own_names.begin(), own_names.end(), p.name) != own_names.end()) continue;
    throw InvalidInput("--set", p.name, "a field of the shape or a parameter of the rule",
                       messages::did_you_mean(p.name, known));
  }
  if (s.iterations > 0) target.iterations = s.iterations;
  std::optional<Shape> base;
  if (s.base_width > 0 || std::any_of(s.set.begin(), s.set.end(), tools::is_of_base)) {
    base = base_shape(s, target);
  }
  tools::set_base(s.set, base, "");
  if (base && s.base_depth > 0) base->depth = s.base_depth;
  if (base && s.base_heads > 0) base->heads = s.base_heads;
  if (base && s.base_iterations > 0) base->iterations = s.base_iterations;
  Plan plan =
      make_plan(s.rule, {.model = target,
                         .base = base,
                         .optimizer = s.optimizer,
                         .decay = s.decay,
                         .parameters = parameters,
                         .constants = tools::constants_of(s.constants),
                         .start = s.start.empty() ? std::nullopt : std::optional<Rule>(s.start)});
  for (const std::string& line : tools::without_effect(s.set, plan))
    frame::say_once("warning: " + line);
  if (plan.shape.blocks == Blocks::normalized &&
      (s.placement != NormPlacement::pre || s.norm != nn::Norm::layer)) {
    frame::say_once("warning: " + plan.rule +
                    " has no norms: --placement and --norm change nothing");
  }
  return plan;
}

nn::OptimizerConfig optimizer_of(const Settings& s) {
  return {
      .rate = s.rate, .weight_decay = s.weight_decay, .epsilon = s.epsilon, .clip_norm = s.clip};
}

nn::Schedule schedule_of(const Settings& s) {
  return {.steps = s.steps, .warmup = s.warmup, .decline = s.schedule, .floor = s.min_rate};
}

std::optional<nn::BaseDeviation> base_deviation(const Settings& s, const Plan& plan) {
  if (plan.reference != Reference::base) return {};
  const double width = static_cast<double>(plan.base.value_or(plan.shape).d_model);
  return nn::BaseDeviation::uniform(s.base_std > 0 ? s.base_std : 1 / std::sqrt(width));
}

}  // namespace scalewise::train
