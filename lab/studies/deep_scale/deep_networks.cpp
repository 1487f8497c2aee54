// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// deep_networks: deep transformers, each at a learning rate that is tuned on seeds of its own, and the moments
// of their layers before and after training; lab/studies/deep_scale/README.md has the tables.
//
//   deep_networks --rule xavier --placement post --depth 48 --width 16 --heads 1
//   deep_networks --rule deep-scale-lm --beta2 0.1 --depth 48 --profile --tuning-seeds 0 --rate 0.01
//   deep_networks --rule xavier --query-key 4 --depth 192 --profile --steps 0

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "check/depth_probe.hpp"
#include "check/network_plan.hpp"
#include "check/report.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "instances/transformer.hpp"
#include "planning/rule_options.hpp"
#include "train/batches.hpp"
#include "train/divergence.hpp"
#include "train/model.hpp"
#include "train/options.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr long first_tuning_seed = 101;  // reported seeds are 1, 2, …

struct Settings {
  train::Settings model;
  double beta2 = -1;  // below 0: residual weights are the rule's
  bool learned = false;
  double query_key = 1;
  long seeds = 3;
  long tuning_seeds = 1;
  long validation = 256;  // sequences
  bool profile = false;
};

/// The rule's plan with the residual weights and queries and keys that the options ask for.
Plan plan_of(const Settings& s, const train::Data& data) {
  Shape shape = train::data_shape(s.model, data);
  if (s.learned) shape.residual_gain = ResidualGain::scalar;
  Plan plan = network_plan(s.model, data, shape);
  for (Residual& residual : plan.model.residuals) {
    if (s.beta2 < 0) break;
    residual.skip.value = s.beta2 > 0 ? std::sqrt(1 - s.beta2) : 1;
    residual.branch.value = s.beta2 > 0 ? std::sqrt(s.beta2) : 1;
  }
  for (Entry& entry : plan.entries) {
    if (entry.group == Group::query || entry.group == Group::key) {
      entry.init_variance.value *= s.query_key;
    }
    if (s.learned && entry.group == Group::residual_gain) entry.init_mean.value = 1;
  }
  return plan;
}

/// One model of a seed.
class Run {
 public:
  Run(const Settings& settings, double rate, long seed)
      : s_(with(settings.model, rate, seed)),
        settings_(settings),
        data_(train::read_data(s_)),
        plan_(plan_of(settings, data_)),
        model_(plan_, train::config_of(s_)),
        optimizer_(plan_, train::optimizer_of(s_)) {
    nn::initialize(model_.parameters(), plan_, s_.seed, train::base_deviation(s_, plan_));
  }

  /// Returns:  the loss on validation sequences; infinity for a diverged run.
  double train() {
    const nn::Schedule schedule = train::schedule_of(s_);
    train::DivergenceWatch watch(s_, data_.guess());
    try {
      for (long step = 0; step < s_.steps; ++step) {
        if (frame::stop_requested() != 0) throw frame::Interrupted{};
        const auto batch = train::training_batch<float>(s_, data_, step);
        const double loss = model_.loss_and_gradient(batch, static_cast<std::uint64_t>(step));
        watch.check(step + 1, loss, nn::gradient_norm(model_.parameters()), model_.parameters());
        optimizer_.step(model_.parameters(), schedule.factor(step));
      }
    } catch (const train::Diverged&) {
      return infinite;
    }
    const double loss = validation_loss();
    return watch.good(loss) ? loss : infinite;
  }

  /// Moments of the stream and of its gradient, with dropout, on a batch of validation data. Gradients are of the
  /// sum of losses.
  void add_profile(const char* when, Section& section) {
    std::map<std::string, check::TokenMoments> forward;
    std::map<std::string, check::TokenMoments> backward;
    train::Settings of_batch = s_;
    of_batch.batch = 16;
    const auto batch = train::first_validation_batch<float>(of_batch, data_);
    model_.observe([&](std::string_view name, nn::Observed quantity,
                       const ConstView<float>& values) {
      if (name != "embedding" && !name.ends_with("mlp.stream")) return;
      const check::MatrixView<float> view{values.data(), static_cast<std::size_t>(values.rows()),
                                          static_cast<std::size_t>(values.cols())};
      auto& of = quantity == nn::Observed::gradient ? backward : forward;
      of[std::string(name)] = check::token_moments(view, static_cast<std::size_t>(batch.size));
    });
    model_.loss_and_gradient(batch, 0);
    model_.observe({});
    const double losses = std::pow(train::predictions(batch), 2);
    for (long layer = 0; layer <= s_.depth; ++layer) {
      const check::TokenMoments& x = forward[stream_place(layer)];
      const check::TokenMoments& g = backward[stream_place(layer)];
      section.rows.push_back({{"when", when},
                              {"seed", static_cast<long>(s_.seed)},
                              {"layer", layer},
                              {"variance", x.variance},
                              {"correlation", x.correlation},
                              {"gradient", losses * g.variance},
                              {"gradient_correlation", g.correlation}});
    }
  }

 private:
  static train::Settings with(train::Settings s, double rate, long seed) {
    s.rate = rate;
    s.seed = static_cast<std::uint64_t>(seed);
    return s;
  }

  double validation_loss() {
    if (!data_.text) return train::validate(s_, data_, model_).nats;
    const Eigen::Index all = data::window_count(data_.tokens.validation, s_.seq);
    const auto wanted = std::min<Eigen::Index>(settings_.validation, all);
    train::Settings of_batch = s_;
    double sum = 0;
    double predictions = 0;
    for (Eigen::Index first = 0; first < wanted; first += of_batch.batch) {
      of_batch.batch = std::min<Eigen::Index>(16, wanted - first);
      const auto batch = train::validation_batch<float>(of_batch, data_, first);
      sum += model_.loss(batch) * train::predictions(batch);
      predictions += train::predictions(batch);
    }
    return sum / predictions;
  }

  train::Settings s_;
  const Settings& settings_;
  train::Data data_;
  Plan plan_;
  nn::Transformer<float> model_;
  nn::PlannedOptimizer<float> optimizer_;
};

class Tuning {
 public:
  Tuning(const Settings& s, frame::Progress& progress) : s_(s), progress_(progress) {}

  /// The rate with the lowest mean loss among --rate times powers of two: from the better of 1 and 1/4 times --rate
  /// downhill until both neighbours are worse, at most ten octaves.
  double best_rate() {
    long best = 0;
    if (!(loss(best) <= loss(-2)))
      best = -2;  // losses may have a plateau where models learn nothing
    while (std::abs(best) < limit) {
      const double here = loss(best);
      if (!(loss(best - 1) > here) || !std::isfinite(here)) {
        --best;
      } else if (loss(best + 1) < here) {
        ++best;
      } else {
        break;
      }
    }
    return rate(best);
  }

  Section runs{"tuning", "Runs of tuning"};

 private:
  static constexpr long limit = 10;

  double rate(long octave) const { return s_.model.rate * std::exp2(static_cast<double>(octave)); }

  double loss(long octave) {
    const auto found = losses_.find(octave);
    if (found != losses_.end()) return found->second;
    double sum = 0;
    for (long i = 0; i < s_.tuning_seeds && std::isfinite(sum); ++i) {
      const double one = Run(s_, rate(octave), first_tuning_seed + i).train();
      runs.rows.push_back({{"rate", rate(octave)}, {"seed", first_tuning_seed + i}, {"loss", one}});
      progress_.done(0, fmt::format("rate {:.4g}: loss {:.4f}", rate(octave), one));
      sum += one;
    }
    return losses_[octave] = sum / static_cast<double>(s_.tuning_seeds);
  }

  const Settings& s_;
  frame::Progress& progress_;
  std::map<long, double> losses_;
};

Report run(const Settings& s) {
  Section runs{"runs", "Runs at the tuned rate"};
  Section layers{"layers", "Moments before each layer, and after the last"};
  frame::Progress progress("models", s.seeds);
  Tuning tuning(s, progress);
  const bool tuned = s.tuning_seeds > 0 && s.model.steps > 0;
  const double rate = tuned ? tuning.best_rate() : s.model.rate;
  for (long seed = 1; seed <= s.seeds; ++seed) {
    Run one(s, rate, seed);
    if (s.profile) one.add_profile("before", layers);
    if (s.model.steps > 0) {
      const double loss = one.train();
      runs.rows.push_back({{"rate", rate}, {"seed", seed}, {"loss", loss}});
      if (s.profile) one.add_profile("after", layers);
    }
    if (!progress.done()) throw frame::Interrupted{};
  }
  return {{tuning.runs, runs, layers}, {}, check::Verdict::pass, "nothing is judged"};
}

void add_options(frame::Options& o, Settings& s) {
  train::Settings& m = s.model;
  o.group("Data");
  o.add("--text", m.text, "text to learn from, byte by byte").reads();
  o.add("--digits", m.digits, "images to learn from, a CSV file").reads().excludes("--text");
  o.add("--task", m.task, train::task_words, "what to learn from a text").excludes("--digits");
  o.group("Model");
  tools::add_rule_option(o, m.rule);
  o.add("--base", m.base_width, "size that the rate was tuned at (a width; 0: none)");
  tools::add_start_option(o, m.start);
  tools::add_set_option(o, m.set);
  o.add("--beta2", s.beta2,
        "square of the residual branch's weight; that of the skip is 1 - beta2 (-1: the rule's; 0: "
        "neither skip nor branch has one)")
      .from(-1)
      .below(1);
  o.add("--learned", s.learned, "a learned factor on every residual branch, 1 at first");
  o.add("--query-key", s.query_key, "factor on the initial variance of queries and keys").above(0);
  o.add("--width", m.width, "features of a token, d_model").from(1);
  o.add("--depth", m.depth, "layers").from(1);
  o.add("--heads", m.heads, "attention heads").from(1);
  o.add("--seq", m.seq, "tokens per sequence; of a text, bytes").from(1);
  o.add("--patch", m.patch, "side of an image's patches").from(1);
  o.add("--placement", m.placement, train::placement_words,
        "place of the norms (not given: as in the rule's text, or pre)");
  o.add("--norm", m.norm, train::norm_words, "normalization");
  o.add("--activation", m.activation, architecture::activation_words, "activation of the MLP");
  o.add("--dropout", m.dropout, "dropout probability").from(0).below(1);
  o.group("Training");
  o.add("--steps", m.steps, "optimizer steps").from(0);
  o.add("--batch", m.batch, "sequences or images per batch").from(1);
  o.add("--rate", m.rate, "learning rate (where tuning begins)").above(0).below(1e30);
  o.add("--clip", m.clip, "largest norm of the gradient (0: off)").from(0).below(1e30);
  o.add("--seeds", s.seeds, "runs of each model, with a seed each").from(1).to(100);
  o.add("--tuning-seeds", s.tuning_seeds,
        "runs at each rate that is tried, with seeds of their own (0: train at --rate)")
      .from(0)
      .to(100);
  o.group("Measure");
  o.add("--validation", s.validation, "inputs that the regularizer is chosen on (text only)")
      .from(1);
  o.add("--profile", s.profile, "moments of every layer, before and after training");
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  train::Settings& m = s->model;
  m.width = 16;
  m.depth = 48;
  m.heads = 1;
  m.seq = 16;
  m.batch = 4;
  m.steps = 400;
  m.rate = 0.005;
  m.clip = 1;
  m.dropout = 0.1;
  m.activation = Activation::relu;
  Program program{"deep_networks",
                  "Deep transformers at tuned rates, and moments of their layers."};
  add_options(*program.options, *s);
  program.check = [s] {
    train::Settings& model = s->model;
    if (!model.digits.empty()) model.text.clear();
    train::settle(model);
    model.warmup = model.warmup < 0 ? model.steps / 20 : model.warmup;
  };
  make_report(program, [s] { return ::run(*s); });
  return program;
}
