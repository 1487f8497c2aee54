// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "verdict_setups.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "check/coordinate_run.hpp"
#include "check/network_plan.hpp"
#include "scalewise/check/fault_scales.hpp"
#include "scalewise/numeric/random.hpp"

namespace scalewise::verdicts {

namespace {

using experiment::Experiment;

/// Choices, one after the other from one stream, each noted in the name.
class Draw {
 public:
  Draw(Mistake mistake, std::uint64_t number, int attempt)
      : stream_(number, std::to_string(static_cast<int>(mistake)), std::to_string(attempt)) {}

  bool happens(double probability) { return stream_.uniform() < probability; }
  double between(double low, double high) { return low + (high - low) * stream_.uniform(); }

  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(stream_.bits() % all.size())];
  }

 private:
  numeric::RandomStream stream_;
};

struct RuleChoice {
  std::string rule;
  std::vector<std::string> set;
  Optimizer optimizer = adamw;
};

std::vector<RuleChoice> width_rules() {
  return {{"maximal-update", {}},
          {"maximal-update", {"table=3"}},
          {"maximal-update", {"table=9"}},
          {"maximal-update", {}, sgd},
          {"maximal-update", {"table=3"}, sgd},
          {"maximal-update", {}, sign_sgd},
          {"maximal-update", {"zero_head=true"}},
          {"maximal-update", {"zero_query=true"}},
          {"complete-p", {}},
          {"depth-mup", {}},
          {"neural-tangent", {}},
          {"neural-tangent", {}, sgd},
          {"meta-principled", {}},
          {"meta-principled", {"s=0.75"}},
          {"meta-principled", {"s=1"}},
          {"nu-gpt", {}},
          {"nu-gpt-full-align", {}},
          {"ngpt-complete-p", {}}};
}

std::vector<RuleChoice> muon_rules() {
  std::vector<RuleChoice> rules;
  for (const Optimizer& optimizer : {muon, muon_fan_ratio, muon_original, muon_match_adamw}) {
    rules.push_back({"maximal-update", {}, optimizer});
  }
  return rules;
}

/// The tables for experts, the experts as many at all widths, more and wider, or more and no wider.
std::vector<RuleChoice> expert_rules() {
  std::vector<RuleChoice> rules;
  for (const char* table : {"mssp=true", "jiang=true"}) {
    for (const char* active : {"2", "4", "width/8"}) {
      const bool more = std::string(active).find("width") != std::string::npos;
      const std::string experts = more ? "experts=width/4" : "experts=4";
      for (const char* features : {"expert_ff=width*2", "expert_ff=24"}) {
        if (!more && std::string(features) == "expert_ff=24") continue;
        rules.push_back({"maximal-update",
                         {table, experts, "experts_per_token=" + std::string(active), features}});
      }
    }
  }
  return rules;
}

std::vector<RuleChoice> depth_rules() { return {{"complete-p", {}}, {"depth-mup", {}}}; }

bool normalized(const std::string& rule) { return rule.find("gpt") != std::string::npos; }

void choose(Setup& setup, const std::string& what, const std::string& value) {
  setup.name += " " + what + "=" + value;
}

void set(Setup& setup, const std::string& setting) {
  setup.experiment.model.set.push_back(setting);
  setup.name += " " + setting;
}

/// Sizes of the models, the base, and how they are trained.
void draw_sizes(Draw& draw, bool depth, Setup& setup) {
  Experiment& e = setup.experiment;
  train::Settings& s = e.model;
  e.axis = depth ? experiment::Axis::depth : experiment::Axis::width;
  e.head_dim = draw.one_of<long>({8, 16});
  if (depth) {
    e.sizes = {4, 8, 16, 32};
    s.width = 32;
    e.head_dim = 8;
  } else {
    e.sizes = draw.one_of<std::vector<long>>(
        {{16, 32, 64, 128}, {32, 64, 128, 256}, {32, 48, 96, 192, 256}});
    if (e.sizes.front() < 32) e.head_dim = 8;
    s.depth = draw.one_of<long>({1, 2, 2, 3, 4});
    choose(setup, "depth", std::to_string(s.depth));
    if (draw.happens(0.1)) {
      e.head_dim = 0;
      s.heads = 2;
      choose(setup, "heads", "2");
    }
  }
  choose(setup, "axis", experiment::axis_name(e));
  choose(setup, "from", std::to_string(e.sizes.front()));
  e.base = draw.happens(0.75) ? e.sizes.front() : draw.one_of(e.sizes);
  choose(setup, "base", std::to_string(e.base));
  s.seq = draw.one_of<long>({16, 32, 64});
  s.batch = draw.one_of<long>({4, 8});
  s.steps = draw.one_of<long>({3, 5, 8});
  choose(setup, "seq", std::to_string(s.seq));
  choose(setup, "batch", std::to_string(s.batch));
  choose(setup, "steps", std::to_string(s.steps));
  s.warmup = 0;
}

/// Norms, activation and other choices of a model that is not normalized.
void draw_blocks(Draw& draw, bool depth, Setup& setup) {
  train::Settings& s = setup.experiment.model;
  s.norm = draw.one_of<nn::Norm>({nn::Norm::layer, nn::Norm::layer, nn::Norm::layer, nn::Norm::rms,
                                  nn::Norm::rms, nn::Norm::none});
  // Without norms signals would multiply from layer to layer.
  if (depth && s.norm == nn::Norm::none) s.norm = nn::Norm::rms;
  const bool norms = s.norm != nn::Norm::none;
  s.placement = draw.happens(0.2) && norms ? NormPlacement::post : NormPlacement::pre;
  s.activation = draw.one_of<Activation>(
      {Activation::gelu, Activation::gelu, Activation::relu, Activation::silu});
  choose(setup, "norm", std::string(word(train::norm_words, s.norm)));
  choose(setup, "placement", std::string(word(train::placement_words, *s.placement)));
  choose(setup, "activation", std::string(word(architecture::activation_words, *s.activation)));
  if (draw.happens(0.25) && norms) set(setup, "gated_mlp=true");
  if (draw.happens(0.25)) set(setup, "biases=false");
  if (draw.happens(0.25)) s.rotary = true;
  if (s.rotary) choose(setup, "rotary", "true");
}

check::Fault draw_slip(Draw& draw, std::uint64_t number, const std::string& rule) {
  using enum check::Ingredient;
  check::Fault slip;
  // Matrices of the normalized transformer are normalized before they are used.
  const bool rate = normalized(rule) || draw.happens(0.5);
  slip.ingredient =
      rate ? draw.one_of<check::Ingredient>({hidden_rate, head_rate, input_rate})
           : draw.one_of<check::Ingredient>({hidden_variance, head_variance, input_variance});
  static constexpr std::array offs{0.05, -0.05, 0.1, -0.1, 0.2, -0.2};
  slip.off = offs[static_cast<std::size_t>(number) % offs.size()];
  return slip;
}

/// A mistake at any tensor that learns or does not begin as a constant, and that all sizes have. Biases of keys have no gradient, since a softmax
/// takes no notice of what all scores have in common; norms that the model has not have no tensors.
TensorMistake draw_tensor(Draw& draw, const std::vector<check::Member>& family,
                          const train::Settings& settings) {
  const std::string& rule = settings.rule;
  std::vector<TensorMistake> all;
  for (const Entry& entry : family.front().plan.entries) {
    const bool of_norm = entry.name.find("norm_") != std::string::npos;
    if (entry.name.ends_with(".key_bias") || (of_norm && settings.norm == nn::Norm::none)) continue;
    // Matrices of the normalized transformer are normalized before they are used.
    if (entry.init_variance.value > 0 && !normalized(rule)) all.push_back({entry.name, false});
    if (entry.learning_rate.value > 0) all.push_back({entry.name, true});
  }
  TensorMistake mistake = draw.one_of(all);
  mistake.power = draw.one_of<double>({-1, -0.5, 0.5, 1});
  return mistake;
}

/// One model, drawn; it may be none that a rule takes.
Setup try_draw(Mistake mistake, std::uint64_t number, int attempt, Space space) {
  Draw draw(mistake, number, attempt);
  Setup setup;
  train::Settings& s = setup.experiment.model;
  const bool depth = draw.happens(0.2) && space == Space::all;
  const RuleChoice rule = draw.one_of(space == Space::muon      ? muon_rules()
                                      : space == Space::experts ? expert_rules()
                                      : depth                   ? depth_rules()
                                                                : width_rules());
  s.rule = rule.rule;
  s.optimizer = rule.optimizer;
  setup.name = rule.rule + " " + std::string(rule.optimizer.name);
  for (const std::string& setting : rule.set) set(setup, setting);
  draw_sizes(draw, depth, setup);
  if (!normalized(s.rule)) draw_blocks(draw, depth, setup);
  if (draw.happens(0.15) && !normalized(s.rule) && s.norm != nn::Norm::none) {
    set(setup, "kv_heads=1");
    set(setup, "base.kv_heads=1");
  }
  set(setup, draw.happens(0.1) && !normalized(s.rule) ? "tied_head=true" : "tied_head=false");
  s.rate = std::exp(draw.between(-0.7, 0.7));  // times the usual
  choose(setup, "rate", std::to_string(s.rate).substr(0, 4));
  if (space == Space::experts) {
    s.gates =
        draw.one_of<nn::Gates>({nn::Gates::softmax, nn::Gates::renormalized, nn::Gates::sigmoid});
    choose(setup, "gates", std::string(word(nn::gates_words, s.gates)));
  }
  if (mistake == Mistake::slight) {
    setup.fault = draw_slip(draw, number, s.rule);
    setup.name += " OFF " + check::to_string(*setup.fault);
  }
  return setup;
}

/// Whether a fault moves an exponent by a quarter or more.
bool gross(const std::vector<check::Member>& family, const check::Fault& fault) {
  using check::Ingredient;
  if (fault.ingredient == Ingredient::epsilon || fault.ingredient == Ingredient::weight_decay)
    return false;  // the read-back of the optimizer sees them
  const Plan& first = family.front().plan;
  const Plan& right = family.back().plan;
  const double range =
      std::log(static_cast<double>(family.back().size) / static_cast<double>(family.front().size));
  double farthest = std::abs(std::log(check::scaled_gradient(right, first, fault)));
  const Plan wrong = check::with_fault(right, first, fault, check::ratio_of(family));
  const auto offer = [&](double a, double b) {
    if (a > 0 && b > 0) farthest = std::max(farthest, std::abs(std::log(a / b)));
  };
  offer(wrong.model.logit_multiplier.value, right.model.logit_multiplier.value);
  offer(wrong.model.attention_scale.value, right.model.attention_scale.value);
  for (std::size_t i = 0; i < right.model.residuals.size(); ++i)
    offer(wrong.model.residuals[i].branch.value, right.model.residuals[i].branch.value);
  for (std::size_t i = 0; i < right.entries.size(); ++i) {
    offer(wrong.entries[i].learning_rate.value, right.entries[i].learning_rate.value);
    offer(std::sqrt(wrong.entries[i].init_variance.value),
          std::sqrt(right.entries[i].init_variance.value));
  }
  return farthest >= 0.25 * range;
}

}  // namespace

bool is_multiplier(check::Ingredient ingredient) {
  using enum check::Ingredient;
  return ingredient == output_multiplier || ingredient == attention_scale ||
         ingredient == branch_multiplier || ingredient == embedding_multiplier;
}

std::vector<check::Member> planned(const Setup& setup, const train::Data& data) {
  std::vector<check::Member> family;
  for (const long size : setup.experiment.sizes) {
    const train::Settings s = settings_at(setup.experiment, size, 1);
    family.push_back({size, experiment::network_plan(s, data)});
  }
  return family;
}

std::vector<check::Member> trained(const Setup& setup, const train::Data& data) {
  Setup wrong = setup;
  if (!setup.trained_as.empty()) {
    wrong.experiment.model.rule = setup.trained_as;
    std::erase_if(wrong.experiment.model.set, [](const std::string& text) {
      return text.starts_with("table=") || text.starts_with("s=") || text.starts_with("zero_");
    });
  }
  std::vector<check::Member> family = planned(wrong, data);
  if (setup.one_tensor) {
    const auto& [tensor, of_rate, power] = *setup.one_tensor;
    for (check::Member& member : family) {
      const double factor = std::pow(
          static_cast<double>(member.size) / static_cast<double>(family.front().size), power);
      for (Entry& entry : member.plan.entries) {
        if (entry.name != tensor) continue;
        if (of_rate) entry.learning_rate.value *= factor;
        if (!of_rate) entry.init_variance.value *= factor * factor;
      }
    }
  }
  return setup.fault ? with_fault(std::move(family), *setup.fault) : family;
}

Setup draw(Mistake mistake, std::uint64_t number, Space space) {
  for (int attempt = 0;; ++attempt) {
    Setup setup = try_draw(mistake, number, attempt, space);
    setup.name = std::to_string(number) + " " + setup.name;
    try {
      const train::Data data;  // its kind is all that shapes need
      const std::vector<check::Member> family = planned(setup, data);
      if (mistake == Mistake::gross) {
        Draw pick(mistake, number, 1000 + attempt);
        // standard does not state Muon, and has no table for experts.
        if (pick.happens(0.15) && space == Space::all &&
            setup.experiment.axis == experiment::Axis::width &&
            !normalized(setup.experiment.model.rule)) {
          setup.trained_as = "standard";
          setup.name += " TRAINED AS standard";
        } else {
          std::vector<check::Fault> faults;
          for (const check::Fault& fault :
               check::possible_faults(check::scales_of(family), family.front().plan.shape.blocks)) {
            if (gross(family, fault)) faults.push_back(fault);
          }
          if (faults.empty()) continue;
          setup.fault = pick.one_of(faults);
          setup.name += " FAULT " + check::to_string(*setup.fault);
        }
      }
      if (mistake == Mistake::slight) {
        // Apart from the draw above, whose set-ups stay as they are.
        Draw pick(mistake, number, 2000 + attempt);
        const std::vector<check::Ingredient> multipliers =
            check::multipliers(check::scales_of(family), family.front().plan.shape.blocks);
        if (pick.happens(0.5) && !multipliers.empty()) {
          setup.name.resize(setup.name.find(" OFF "));
          setup.fault->ingredient = pick.one_of(multipliers);
          setup.name += " OFF " + check::to_string(*setup.fault);
        }
      }
      if (mistake == Mistake::one_tensor) {
        Draw pick(mistake, number, 3000 + attempt);
        setup.one_tensor = draw_tensor(pick, family, setup.experiment.model);
        setup.name += fmt::format(" {} OF {} OFF BY {}", setup.one_tensor->of_rate ? "RATE" : "STD",
                                  setup.one_tensor->tensor, setup.one_tensor->power);
      }
      if (setup.fault && !check::changes(family, *setup.fault)) continue;
      return setup;
    } catch (const InvalidInput&) {
      continue;  // a combination that the rule or the shape refuses
    }
  }
}

std::vector<Setup> tested() {
  Experiment widths;
  widths.sizes = {16, 32, 64, 128};
  widths.base = 16;
  widths.head_dim = 8;
  widths.model.seq = 16;
  widths.model.batch = 4;
  widths.model.steps = 3;
  widths.model.warmup = 0;
  widths.model.rate = 1;  // times the usual
  widths.model.tied_head = false;
  Experiment heads = widths;
  heads.head_dim = 0;
  heads.model.heads = 2;
  Experiment depths = widths;
  depths.axis = experiment::Axis::depth;
  depths.sizes = {4, 8, 16, 32};
  depths.base = 4;
  depths.model.width = 32;

  std::vector<Setup> all;
  const auto add = [&](const Experiment& e, const RuleChoice& rule, const std::string& name) {
    Setup setup{name.empty() ? rule.rule : rule.rule + ", " + name, e, {}, ""};
    setup.experiment.model.rule = rule.rule;
    setup.experiment.model.optimizer = rule.optimizer;
    auto& set = setup.experiment.model.set;
    set.insert(set.end(), rule.set.begin(), rule.set.end());
    all.push_back(std::move(setup));
  };
  add(widths, {"maximal-update", {}}, "");
  for (const char* set : {"table=3", "table=9", "zero_head=true"})
    add(widths, {"maximal-update", {set}}, set);
  add(widths, {"maximal-update", {}, sgd}, "sgd");
  for (const char* rule : {"complete-p", "depth-mup", "neural-tangent", "meta-principled", "nu-gpt",
                           "nu-gpt-full-align"}) {
    add(widths, {rule, {}}, "");
  }
  Experiment post = widths;
  post.model.placement = NormPlacement::post;
  add(post, {"complete-p", {}}, "post-norm");
  add(heads, {"maximal-update", {}}, "larger heads");
  add(depths, {"complete-p", {}}, "depth");
  return all;
}

}  // namespace scalewise::verdicts
