// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The constants that are tuned, and the runs that tune them.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/tasks.hpp"
#include "frame/progress.hpp"
#include "planning/arguments.hpp"
#include "planning/set_option.hpp"
#include "planning/writing.hpp"
#include "scalewise/check/judge_sweep.hpp"
#include "scalewise/check/sweep.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/numeric/exact_text.hpp"
#include "train/settings.hpp"
#include "tune/command.hpp"
#include "tune/search.hpp"
#include "tune/space.hpp"

namespace scalewise::tune {

/// The options, read.
struct Tuning {
  tools::PlanArguments plan;
  std::string names;
  train::Settings run;  // of the reference transformer
  std::vector<std::string> space{
      "rate=0.001:0.06,embedding.rate=0.125:64,logits=0.5:8,hidden.std=0.5:4,embedding.std=0.5:8"};
  std::string command;
  LossFrom loss_from = LossFrom::json;
  long trials = 84;
  std::uint64_t seed = 1;
  std::vector<std::string> carry_to, verify;
  frame::Format format = frame::Format::table;
  experiment::TaskOptions tasks;
};

/// The sizes of --carry-to width=2048,depth=8.
/// Throws:   InvalidInput.
inline Base size_of(const std::string& option, const std::vector<std::string>& words) {
  Base size;
  for (const std::string& word : words) {
    const bool width = word.starts_with("width=");
    long value = 0;
    const char* end = word.data() + word.size();
    if (width || word.starts_with("depth=")) {
      const auto [stop, error] = std::from_chars(word.data() + 6, end, value);
      if (stop != end || error != std::errc{}) value = 0;
    }
    if (value < 1) {
      throw InvalidInput(option, word.empty() ? "(empty)" : word, "width=N, depth=N or both",
                         "N is a whole number above 0");
    }
    long& sized = width ? size.width : size.depth;
    if (sized != 0) throw InvalidInput(option, word, "each size once");
    sized = value;
  }
  return size;
}

/// A run of the search, or one at a size, with a rate some octaves from that of a draw.
struct Job {
  Trial trial;
  long size = 0;  // along the axis of --verify; 0: a run of the search
  double octave = 0;

  /// Such as d17-s1-n50, d3a17-s1-n50 (3 around 17) and v64-d17-o-0.5-s8.
  std::string name() const {
    std::string draw = "d" + std::to_string(trial.draw.index);
    if (trial.draw.around >= 0) draw += "a" + std::to_string(trial.draw.around);
    const std::string seed = "-s" + std::to_string(trial.seed);
    if (size == 0) return draw + seed + "-n" + std::to_string(trial.steps);
    return "v" + std::to_string(size) + "-" + draw + "-o" + numeric::exact_text(octave) + seed;
  }

  /// The other way round; `steps` of a run at a size are all.
  /// Requires: a name that name() has made.
  static Job named(const std::string& name, long steps) {
    Job job{{{}, 1, steps}};
    Trial& t = job.trial;
    int read = 0;
    const char* text = name.c_str();
    const auto take = [&](const char* format, auto*... numbers) {
      read = 0;
      std::sscanf(text, format, numbers..., &read);
      text += read;
    };
    take("v%ld-%n", &job.size);
    take("d%ld%n", &t.draw.index);
    take("a%ld%n", &t.draw.around);
    take("-o%lf%n", &job.octave);
    take("-s%ld%n", &t.seed);
    take("-n%ld%n", &t.steps);
    return job;
  }
};

/// The results of runs by their names.
using Rows = std::map<std::string, nlohmann::ordered_json>;

/// The loss of a row; infinite: it failed.
inline double loss_of_row(const std::string& name, const nlohmann::ordered_json& row) {
  const io::JsonReader loss = io::JsonReader(row, name).at("loss");
  return loss.is_null() ? std::numeric_limits<double>::infinity() : loss.number();
}

/// The plans of a space, at the base and at other sizes.
class TunedModel {
 public:
  /// Throws:   InvalidInput for a model that there is no plan of, and a space that has axes too many.
  TunedModel(const Tuning& t, const dialect::Dialect* dialect) : t_(t), dialect_(dialect) {
    args_ = t.plan;
    if (!t.names.empty()) args_.names_code = tools::code_of_names(t.names);
    if (const auto given = given_model(args_)) given_ = *given;
    if (t.command.empty()) given_.shape = reference_shape(t.run);
    static_cast<void>(tools::set_target(args_.set, given_.shape));
    std::erase_if(args_.set, [&](const std::string& setting) {
      const std::size_t equals = setting.find('=');
      Shape scratch = given_.shape;
      return architecture::set_field(scratch, setting.substr(0, equals),
                                     setting.substr(equals + 1));
    });
    space_ = space_of(t.space);
    rate_ = t.command.find("{rate}") != std::string::npos;
    require_rate();
    tools::PlanArguments plain = args_;
    plain.fold = plain.single_rate = false;
    // The reference transformer is narrower than plans warn of.
    const bool warns = !t.command.empty() && !frame::quiet;
    base_ = make_plans(args_, given_, given_, [&](const std::string& line) {
              if (warns) frame::say_once("tune: " + line);
            }).front();
    Plan start = make_plans(plain, given_, given_, [](const std::string&) {}).front();
    // The reference transformer has no decay then, and its plan must say so.
    if (t.command.empty() && t.run.weight_decay == 0) {
      for (Entry& entry : start.entries) entry.weight_decay = {0};
    }
    require_independent(start, space_);
  }

  const Space& space() const { return space_; }
  const Plan& base() const { return base_; }
  const Shape& shape() const { return given_.shape; }
  std::vector<Parameter> constants(const Draw& draw) const {
    return constants_of_draw(space_, draw, t_.seed);
  }
  /// Of a draw, times 2 to the octave.
  double rate(const Draw& draw, double octave = 0) const {
    double rate = 1;
    for (const Parameter& c : constants(draw)) rate = c.name == "rate" ? c.value : rate;
    return rate * std::exp2(octave);
  }
  /// The constants that the plan contains: all but a rate that goes to the command by itself.
  std::vector<Parameter> planned(std::vector<Parameter> constants) const {
    if (rate_) std::erase_if(constants, [](const Parameter& c) { return c.name == "rate"; });
    return constants;
  }

  /// The plan of constants at a size, 0: the base's. Messages name the option that says it.
  Plan plan(const std::vector<Parameter>& constants, const Base& size = {},
            const char* option = "") const {
    tools::PlanArguments args = args_;
    if (const auto some = planned(constants); !some.empty())
      args.constants.push_back(constants_text(some));
    tools::GivenModel target = given_;
    target.shape = base_like(given_.shape, size, option);
    return make_plans(args, target, given_, [](const std::string&) {}).front();
  }

  /// A plan as training code reads it.
  std::string text(const Plan& plan) const {
    if (dialect_ == nullptr) return tools::write_plans({plan}, false, "json", false);
    return tools::write_named(name_plan(plan, *dialect_, cut_of(args_, plan)), "json", false, 0,
                              [](const std::string&) {});
  }

 private:
  static Shape reference_shape(const train::Settings& run) {
    Shape shape;
    shape.d_model = run.width, shape.depth = run.depth, shape.heads = run.heads;
    shape.vocab = 256, shape.context = run.seq;
    return shape;
  }

  void require_rate() const {
    bool found = !t_.command.empty() && !rate_;
    for (const Axis& axis : space_) found = found || axis.name == "rate";
    for (const Parameter& c : tools::constants_of(args_.constants))
      found = found || (c.name == "rate" && !rate_);
    if (!found)
      throw InvalidInput("--space", "(no rate)", "rate=LOW:HIGH in it",
                         "the learning rate of the base");
  }

  const Tuning& t_;
  const dialect::Dialect* dialect_;
  tools::PlanArguments args_;
  tools::GivenModel given_;
  Space space_;
  bool rate_ = false;
  Plan base_;
};

/// The axis of --verify: the base's size along it, and the other one.
struct Verified {
  bool width = true;
  std::vector<long> sizes = {};

  Base at(long size) const { return width ? Base{size, 0} : Base{0, size}; }
};

/// Throws:   InvalidInput for what is not one size other than the base's.
inline Verified verified(const Tuning& t, const Shape& base) {
  if (t.verify.empty()) return {};
  const Base size = size_of("--verify", t.verify);
  const bool width = size.width > 0;
  const long own = width ? base.d_model : base.depth, other = width ? size.width : size.depth;
  if ((width && size.depth > 0) || own == other) {
    throw InvalidInput("--verify", t.verify.front(), "one size, other than that of the base");
  }
  return {width, {own, other}};
}

/// Seeds of verification come after those of the search.
inline constexpr long verify_seeds = 2;
inline constexpr long before_verify = 1 + finalist_seeds + confirm_seeds;

/// The runs that exist, and those that are missing.
struct State {
  Search search;
  check::Sweep sweep;  // of --verify
  std::vector<Job> missing;
};

/// The state that rows say: the same whoever made them.
inline State state_of(const Tuning& t, const Verified& verify, const Rows& rows) {
  State state;
  Losses losses;
  std::vector<std::pair<Draw, check::RateRun>> runs;
  for (const auto& [name, row] : rows) {
    const Job job = Job::named(name, t.run.steps);
    const double loss = loss_of_row(name, row);
    if (job.size == 0) losses[job.trial] = loss;
    if (job.size > 0)
      runs.push_back(
          {job.trial.draw, {job.size, job.octave, job.trial.seed - before_verify, loss}});
  }
  state.search = searched(draws_of(t.trials), t.run.steps, losses);
  for (const Trial& trial : state.search.missing) state.missing.push_back({trial});
  const Draw best = state.search.best;
  if (best.index < 0 || verify.sizes.empty()) return state;
  std::vector<check::RateRun> own;
  for (const auto& [draw, run] : runs) {
    if (draw == best) own.push_back(run);
  }
  state.sweep = check::sweep(verify.sizes, verify_seeds, own);
  for (const check::SweepTask& task : state.sweep.missing) {
    state.missing.push_back(
        {{best, task.seed + before_verify, t.run.steps}, task.size, task.octave});
  }
  return state;
}

}  // namespace scalewise::tune
