// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// empirical_ntk: the exact tangent kernel of some logits, tensor by tensor, how it drifts in
// training, and how far the weights move.
//
//   empirical_ntk --rule neural-tangent --optimizer sgd --rate 0.1 --sizes 64,128,256 --out results

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/network.hpp"
#include "lab/programs/check/experiment_report.hpp"
#include "scalewise/check/tangent_kernel.hpp"
#include "scalewise/io/json_reader.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;

/// Which logits: those of the `tokens` most frequent bytes, after each of `sequences` sequences.
struct Outputs {
  long sequences = 8;
  long tokens = 4;
};

/// The tensors of a network as ranges of its parameters.
std::vector<check::ParameterRange> tensors(const Network& network) {
  std::vector<check::ParameterRange> ranges;
  std::size_t begin = 0;
  for (const Entry& entry : network.plan().entries) {
    const auto size = static_cast<std::size_t>(entry.rows * entry.columns);
    ranges.push_back({std::string(to_string(entry.group)), begin, size});
    begin += size;
  }
  return ranges;
}

std::size_t sequences_of(const Network& network, const Outputs& outputs) {
  return std::min(network.sequences(), static_cast<std::size_t>(outputs.sequences));
}

check::TangentKernel kernel_of(Network& network, const Outputs& outputs) {
  const std::size_t sequences = sequences_of(network, outputs);
  const std::vector<int> tokens = network.frequent_tokens(static_cast<std::size_t>(outputs.tokens));
  const std::size_t parameters = network.values().size();
  constexpr std::size_t memory = std::size_t{1} << 29U;  // of a block of gradients, in bytes
  return check::tangent_kernel<float>(
      sequences * tokens.size(), parameters, tensors(network),
      [&](std::size_t i, std::span<float> row) {
        network.logit_gradient(i / tokens.size(), tokens[i % tokens.size()], row);
      },
      std::max<std::size_t>(1, memory / (parameters * sizeof(float))));
}

/// The factor of gradient descent on each tensor's gradient; 1 where gradients are normalized: such
/// training is not a gradient flow.
std::vector<double> weights_of(const Plan& plan) {
  const bool descent = plan.optimizer.normalization == policy::Normalization::none;
  std::vector<double> weights;
  for (const Entry& entry : plan.entries) {
    weights.push_back(descent ? entry.learning_rate.value : 1);
  }
  return weights;
}

/// The kernel's share of a group of tensors, and how far the group moved.
struct OfGroup {
  double share = 0;
  double movement = 0;
};

/// The kernel and the weights after a step.
struct AtStep {
  double loss = 0;
  double drift = 0;
  double distance = 0;
  double movement = 0;
};

struct Run {
  std::map<std::string, OfGroup> groups;
  std::map<long, AtStep> steps;
};

void measure_shares(const Network& network, const check::TangentKernel& kernel,
                    const std::vector<double>& weights, Run& run) {
  const double total = check::trace(kernel.total(weights), kernel.outputs);
  for (std::size_t g = 0; g < kernel.parts.size(); ++g) {
    run.groups[std::string(to_string(network.plan().entries[g].group))].share +=
        weights[g] * check::trace(kernel.parts[g], kernel.outputs) / total;
  }
}

/// ‖W - W0‖/‖W0‖ of all tensors of a group together, where they do not begin at zero.
void measure_movements(const Network& network, const std::vector<float>& initial, Run& run) {
  std::map<std::string, std::vector<float>> before, after;
  const std::vector<check::ParameterRange> ranges = tensors(network);
  for (const check::ParameterRange& range : ranges) {
    const auto append = [&](std::vector<float>& to, const float* from) {
      to.insert(to.end(), from + range.begin, from + range.begin + range.size);
    };
    append(before[range.name], initial.data());
    append(after[range.name], network.values().data());
  }
  for (const auto& [group, values] : before) {
    run.groups[group].movement = check::relative_change<float>(values, after[group]);
  }
}

/// Steps at which the kernel is looked at: powers of two and the last.
bool looked_at(long step, long steps) { return (step & (step - 1)) == 0 || step == steps; }

Run measure(const Outputs& outputs, const train::Settings& settings, frame::Progress& progress) {
  Run run;
  Network network(settings);
  const std::vector<float> initial(network.values().begin(), network.values().end());
  const std::vector<double> weights = weights_of(network.plan());
  const check::TangentKernel first = kernel_of(network, outputs);
  const std::vector<double> first_total = first.total(weights);
  measure_shares(network, first, weights, run);
  for (long t = 1; t <= settings.steps; ++t) {
    network.step();
    if (looked_at(t, settings.steps)) {
      AtStep& at = run.steps[t];
      at.loss = network.loss();
      // Logits that are not finite have no gradient.
      std::vector<double> total(first_total.size(), std::numeric_limits<double>::quiet_NaN());
      if (std::isfinite(at.loss)) total = kernel_of(network, outputs).total(weights);
      at.drift = check::relative_change<double>(first_total, total);
      at.distance = check::kernel_distance(first_total, total);
      at.movement = check::relative_change<float>(initial, network.values());
    }
    progress.done(1, fmt::format("loss {:.4g}", run.steps.rbegin()->second.loss));
  }
  measure_movements(network, initial, run);
  return run;
}

/// Kernels of a run: that of the start, and those of the steps that are looked at.
long kernels_of_run(long steps) {
  long count = 1;
  for (long t = 1; t <= steps; t *= 2) ++count;
  return count + ((steps & (steps - 1)) == 0 ? 0 : 1);
}

/// Of the products of a kernel, as long as its gradients fit into memory at once, and of the loss before it.
/// A gradient takes two forward passes and a backward pass of one sequence.
double operations_of_kernel(const train::Settings& s, const Network& network,
                            const Outputs& outputs) {
  const double gradients =
      static_cast<double>(sequences_of(network, outputs)) * static_cast<double>(outputs.tokens);
  const double of_step = operations_of_step(s, network.plan());
  return of_step / 3 + gradients * 4 / 3 * of_step / static_cast<double>(s.batch) +
         gradients * (gradients + 1) * static_cast<double>(network.values().size());
}

std::vector<Repeated> begin_run(const Outputs& outputs, const train::Settings& s) {
  const auto network = std::make_shared<Network>(s);
  return {{s.steps, operations_of_step(s, network->plan()), [network] { network->step(); }},
          {kernels_of_run(s.steps), operations_of_kernel(s, *network, outputs), [network, outputs] {
             network->loss();
             static_cast<void>(kernel_of(*network, outputs));
           }}};
}

/// The contents of a run's file.
nlohmann::ordered_json result_json(const Run& run) {
  auto groups = nlohmann::ordered_json::array();
  for (const auto& [group, of] : run.groups) {
    groups.push_back({{"group", group}, {"share", of.share}, {"movement", of.movement}});
  }
  auto steps = nlohmann::ordered_json::array();
  for (const auto& [step, at] : run.steps) {
    steps.push_back({{"step", step},
                     {"loss", at.loss},
                     {"drift", at.drift},
                     {"distance", at.distance},
                     {"movement", at.movement}});
  }
  return {{"groups", groups}, {"steps", steps}};
}

/// The other way round.
Run run_of_result(const io::JsonReader& result) {
  Run run;
  for (const io::JsonReader& group : result.at("groups").items()) {
    run.groups[group.at("group").string()] = {number_or_nan(group.at("share")),
                                              number_or_nan(group.at("movement"))};
  }
  for (const io::JsonReader& step : result.at("steps").items()) {
    run.steps[step.at("step").integer()] = {
        number_or_nan(step.at("loss")), number_or_nan(step.at("drift")),
        number_or_nan(step.at("distance")), number_or_nan(step.at("movement"))};
  }
  return run;
}

using Runs = std::vector<Run>;  // one per seed

/// Over seeds, of one number of a group or step.
template <class Key, class Measured>
check::Estimate over_seeds(const Runs& runs, std::map<Key, Measured> Run::*list, const Key& key,
                           double Measured::*number) {
  std::vector<double> numbers;
  for (const Run& run : runs) numbers.push_back((run.*list).at(key).*number);
  return check::estimate(numbers);
}

void add_groups(const Cells& size, const Runs& runs, Section& groups) {
  for (const auto& [group, ignored] : runs[0].groups) {
    Cells row = size;
    row.emplace_back("group", group);
    put(row, "share", over_seeds(runs, &Run::groups, group, &OfGroup::share));
    put(row, "movement", over_seeds(runs, &Run::groups, group, &OfGroup::movement));
    groups.rows.push_back(row);
  }
}

void add_steps(const Cells& size, const Runs& runs, Section& steps) {
  for (const auto& [step, ignored] : runs[0].steps) {
    Cells row = size;
    row.emplace_back("step", step);
    put(row, "loss", over_seeds(runs, &Run::steps, step, &AtStep::loss));
    put(row, "drift", over_seeds(runs, &Run::steps, step, &AtStep::drift));
    put(row, "distance", over_seeds(runs, &Run::steps, step, &AtStep::distance));
    put(row, "movement", over_seeds(runs, &Run::steps, step, &AtStep::movement));
    steps.rows.push_back(row);
  }
}

plot::Curve drift_curve(const std::string& label, const Runs& runs) {
  plot::Curve curve{label};
  for (const auto& [step, ignored] : runs[0].steps) {
    add_point(curve, static_cast<double>(step), over_seeds(runs, &Run::steps, step, &AtStep::drift),
              true);
  }
  return curve;
}

bool finite(const Runs& runs) {
  return std::all_of(runs.begin(), runs.end(), [](const Run& run) {
    return std::all_of(run.steps.begin(), run.steps.end(),
                       [](const auto& step) { return std::isfinite(step.second.drift); });
  });
}

Report report_of(const Experiment& e, const std::map<long, Runs>& all) {
  Section groups{"groups",
                 "Share of the kernel's trace at initialization, and movement of weights"};
  Section steps{"steps", "Change of the kernel and of all weights since the start"};
  plot::Panel training{"in training", "step", "drift of the kernel", true, true};
  plot::Panel end{"after the last step", axis_name(e), "relative change", true, true};
  plot::Curve drift{"kernel"};
  plot::Curve movement{"weights"};
  bool all_finite = true;
  for (const auto& [size, runs] : all) {
    add_groups({{axis_name(e), size}}, runs, groups);
    add_steps({{axis_name(e), size}}, runs, steps);
    training.curves.push_back(drift_curve(axis_name(e) + " " + std::to_string(size), runs));
    const auto at = static_cast<double>(size);
    const long last = e.model.steps;
    add_point(drift, at, over_seeds(runs, &Run::steps, last, &AtStep::drift), true);
    add_point(movement, at, over_seeds(runs, &Run::steps, last, &AtStep::movement), true);
    all_finite = all_finite && finite(runs);
  }
  end.curves = {drift, movement};
  return {{groups, steps},
          {"Tangent kernel, " + e.model.rule, {training, end}},
          all_finite ? check::Verdict::pass : check::Verdict::fail,
          all_finite ? "all kernels are finite; how far they should drift is not judged"
                     : "a kernel is not finite"};
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto e = std::make_shared<Experiment>();
  e->model.rule = "neural-tangent";
  e->model.optimizer = sgd;
  e->model.rate = 0.1;
  e->sizes = {32, 64, 128, 256};
  e->seeds = 3;
  e->model.steps = 32;
  const auto outputs = std::make_shared<Outputs>();
  Program program{"empirical_ntk",
                  "The exact tangent kernel of some logits, its drift and the weights' movement."};
  Options& o = *program.options;
  add_options(o, *e);
  o.add("--inputs", outputs->sequences,
        "inputs of the kernel (sequences whose last logits are looked at)")
      .from(1);
  o.add("--outputs", outputs->tokens, "logits of each input, of the most frequent bytes")
      .from(1)
      .to(256);
  program.check = [e, outputs] {
    if (outputs->sequences <= e->model.batch) return;
    throw InvalidInput("--inputs", std::to_string(outputs->sequences),
                       "at most --batch = " + std::to_string(e->model.batch));
  };
  const auto make = [e, outputs](long size, long seed, frame::Progress& progress) {
    return measure(*outputs, settings_at(*e, size, seed), progress);
  };
  experiment_program<Run>(
      program, e,
      {.make = make,
       .write = result_json,
       .read = run_of_result,
       .report = [e](const std::map<long, Runs>& runs) { return report_of(*e, runs); }},
      [outputs](const train::Settings& settings) { return begin_run(*outputs, settings); });
  return program;
}
