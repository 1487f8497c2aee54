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
#include <string>
#include <vector>

#include "check/network.hpp"
#include "check/program.hpp"
#include "scalewise/check/tangent_kernel.hpp"

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

check::TangentKernel kernel_of(Network& network, const Outputs& outputs) {
  const auto sequences = std::min(network.sequences(), static_cast<std::size_t>(outputs.sequences));
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
/// training is no gradient flow.
std::vector<double> weights_of(const Plan& plan) {
  const bool descent = plan.optimizer.normalization == Normalization::none;
  std::vector<double> weights;
  for (const Entry& entry : plan.entries) {
    weights.push_back(descent ? entry.learning_rate.value : 1);
  }
  return weights;
}

/// One size, over seeds.
struct Measured {
  std::map<std::string, std::vector<double>> shares, movements;         // by group
  std::map<long, std::vector<double>> drift, distance, movement, loss;  // by step
};

void measure_shares(const Network& network, const check::TangentKernel& kernel,
                    const std::vector<double>& weights, Measured& m) {
  const double total = check::trace(kernel.total(weights), kernel.outputs);
  std::map<std::string, double> shares;
  for (std::size_t g = 0; g < kernel.parts.size(); ++g) {
    shares[std::string(to_string(network.plan().entries[g].group))] +=
        weights[g] * check::trace(kernel.parts[g], kernel.outputs) / total;
  }
  for (const auto& [group, share] : shares) m.shares[group].push_back(share);
}

/// ‖W - W0‖/‖W0‖ of all tensors of a group together, where they do not begin at zero.
void measure_movements(const Network& network, const std::vector<float>& initial, Measured& m) {
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
    m.movements[group].push_back(check::relative_change<float>(values, after[group]));
  }
}

/// Steps at which the kernel is looked at: powers of two and the last.
bool looked_at(long step, long steps) { return (step & (step - 1)) == 0 || step == steps; }

void measure(const Experiment& e, const Outputs& outputs, const train::Settings& settings,
             Measured& m, frame::Progress& progress) {
  Network network(settings);
  const std::vector<float> initial(network.values().begin(), network.values().end());
  const std::vector<double> weights = weights_of(network.plan());
  const check::TangentKernel first = kernel_of(network, outputs);
  const std::vector<double> first_total = first.total(weights);
  measure_shares(network, first, weights, m);
  m.loss[0].push_back(network.loss());
  for (long t = 1; t <= e.model.steps; ++t) {
    network.step();
    if (looked_at(t, e.model.steps)) {
      m.loss[t].push_back(network.loss());
      // Logits that are not finite have no gradient.
      std::vector<double> total(first_total.size(), std::numeric_limits<double>::quiet_NaN());
      if (std::isfinite(m.loss[t].back())) total = kernel_of(network, outputs).total(weights);
      m.drift[t].push_back(check::relative_change<double>(first_total, total));
      m.distance[t].push_back(check::kernel_distance(first_total, total));
      m.movement[t].push_back(check::relative_change<float>(initial, network.values()));
    }
    progress.done(1, fmt::format("loss {:.4g}", m.loss.rbegin()->second.back()));
  }
  measure_movements(network, initial, m);
}

void add_groups(const Cells& size, const Measured& m, Section& groups) {
  for (const auto& [group, shares] : m.shares) {
    Cells row = size;
    row.emplace_back("group", group);
    put(row, "share", check::estimate(shares));
    put(row, "movement", check::estimate(m.movements.at(group)));
    groups.rows.push_back(row);
  }
}

void add_steps(const Cells& size, const Measured& m, Section& steps) {
  for (const auto& [step, drifts] : m.drift) {
    Cells row = size;
    row.emplace_back("step", step);
    put(row, "loss", check::estimate(m.loss.at(step)));
    put(row, "drift", check::estimate(drifts));
    put(row, "distance", check::estimate(m.distance.at(step)));
    put(row, "movement", check::estimate(m.movement.at(step)));
    steps.rows.push_back(row);
  }
}

plot::Curve drift_curve(const std::string& label, const Measured& m) {
  plot::Curve curve{label};
  for (const auto& [step, drifts] : m.drift) {
    add_point(curve, static_cast<double>(step), check::estimate(drifts), true);
  }
  return curve;
}

bool finite(const Measured& m) {
  return std::all_of(m.drift.begin(), m.drift.end(), [](const auto& at_step) {
    return std::all_of(at_step.second.begin(), at_step.second.end(),
                       [](double x) { return std::isfinite(x); });
  });
}

Report report_of(const Experiment& e, const std::map<long, Measured>& measured) {
  Section groups{"groups", "Share of the kernel's trace at the start, and movement of weights"};
  Section steps{"steps", "Change of the kernel and of all weights since the start"};
  plot::Panel training{"in training", "step", "drift of the kernel", true, true};
  plot::Panel end{"after the last step", e.axis, "relative change", true, true};
  plot::Curve drift{"kernel"};
  plot::Curve movement{"weights"};
  bool all_finite = true;
  for (const auto& [size, m] : measured) {
    add_groups({{e.axis, size}}, m, groups);
    add_steps({{e.axis, size}}, m, steps);
    training.curves.push_back(drift_curve(e.axis + " " + std::to_string(size), m));
    const auto at = static_cast<double>(size);
    add_point(drift, at, check::estimate(m.drift.rbegin()->second), true);
    add_point(movement, at, check::estimate(m.movement.rbegin()->second), true);
    all_finite = all_finite && finite(m);
  }
  end.curves = {drift, movement};
  return {{groups, steps},
          {"Tangent kernel, " + e.model.rule, {training, end}},
          all_finite ? check::Verdict::pass : check::Verdict::fail,
          all_finite ? "all kernels are finite; how far they should drift is not judged"
                     : "a kernel is not finite"};
}

Report run(const Experiment& e, const Outputs& outputs) {
  const long all = e.seeds * static_cast<long>(e.sizes.size());
  std::map<long, Measured> measured;
  long finished = 0;
  {
    frame::Progress progress("steps", all * e.model.steps);
    finished = for_each_run(e.sizes, e.seeds, [&](long size, long seed) {
      measure(e, outputs, settings_at(e, size, seed), measured[size], progress);
    });
  }
  Report report = report_of(e, measured);
  if (finished < all) stopped_early(report, finished, all);
  return report;
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto e = std::make_shared<Experiment>();
  e->model.rule = "neural-tangent";
  e->model.optimizer = "sgd";
  e->model.rate = 0.1;
  e->sizes = {32, 64, 128, 256};
  e->seeds = 3;
  e->model.steps = 32;
  const auto outputs = std::make_shared<Outputs>();
  Program program{"empirical_ntk",
                  "The exact tangent kernel of some logits, its drift and the weights' movement."};
  Options& o = *program.options;
  add_options(o, *e);
  o.add("--inputs", outputs->sequences, "sequences whose last logits are looked at").from(1);
  o.add("--outputs", outputs->tokens).from(1).to(256);
  program.check = [e, outputs] {
    if (outputs->sequences <= e->model.batch) return;
    throw InvalidInput("--inputs", std::to_string(outputs->sequences),
                       "at most --batch = " + std::to_string(e->model.batch));
  };
  experiment_program(program, e, [e, outputs] { return ::run(*e, *outputs); });
  return program;
}
