// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// shallow_encoder: how wide a shallow encoder has to be before it trains as its limiting kernel
// says: distance of the kernel to its limit, smallest eigenvalues, training, drift of the kernel
// and movement of the weights, over widths.
//
//   shallow_encoder --rule shallow-ntk --tau0 0.5 --sizes 64,256,1024 --out results

#include "scalewise/kernels/shallow_encoder.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "check/for_each_run.hpp"
#include "check/report.hpp"
#include "frame/progress.hpp"
#include "kernel/shallow.hpp"
#include "scalewise/check/tangent_kernel.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/numeric/line.hpp"
#include "scalewise/policy/rule_id.hpp"
#include "scalewise/scaling/formula.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Settings {
  std::string rule = "shallow-lecun";
  double tau0 = 0.5;
  std::vector<long> sizes{64, 256, 1024, 4096};
  long seeds = 5;
  ShallowDataSettings data;
  long steps = 100;
  double rate = 1;
};

double relative(const MatrixXd& from, const MatrixXd& to) {
  return (to - from).norm() / from.norm();
}

/// One width, over seeds.
struct Measured {
  std::map<std::string, std::vector<double>> at_start, at_end;
  std::map<long, std::map<std::string, std::vector<double>>> in_training;  // by step
};

/// Steps at which the kernel is looked at: powers of two and the last.
bool looked_at(long step, long steps) { return (step & (step - 1)) == 0 || step == steps; }

void measure(const Settings& s, const ShallowData& data, long width, long seed, Measured& m) {
  const kernels::ShallowScales scales = shallow_scales_of(s.rule, s.tau0, width, s.data);
  kernels::ShallowEncoder encoder(s.data.features, scales, static_cast<std::uint64_t>(seed));
  const auto kernel = [&] { return encoder.tangent_kernel(encoder.gradients(data.inputs)); };

  const kernels::ShallowKernel first = kernel();
  // With τ₀ = d_m^-1/2 the limit depends on the scores that the network has drawn.
  const MatrixXd scores =
      s.tau0 == 1 ? MatrixXd::Zero(s.data.features, s.data.features) : encoder.scores();
  const kernels::ShallowKernel limit = kernels::shallow_kernel(data.inputs, scales, scores);
  const double size = scales.tau_1 * scales.tau_1 * static_cast<double>(width);
  const MatrixXd total = first.total();
  m.at_start["distance"].push_back(
      relative(limit.output + limit.value, first.output + first.value));
  m.at_start["distance_scores"].push_back(
      relative(limit.query + limit.key, first.query + first.key));
  m.at_start["eigenvalue_output"].push_back(kernels::smallest_eigenvalue(first.output) / size);
  m.at_start["limit_output"].push_back(kernels::smallest_eigenvalue(limit.output) / size);
  m.at_start["eigenvalue"].push_back(kernels::smallest_eigenvalue(total) / size);
  m.at_start["limit"].push_back(kernels::smallest_eigenvalue(limit.total()) / size);

  const double largest = -kernels::smallest_eigenvalue(-total);
  const VectorXd initial = encoder.parameters();
  for (long step = 1; step <= s.steps; ++step) {
    encoder.step(data.inputs, data.targets, s.rate / largest);
    if (!looked_at(step, s.steps)) continue;
    auto& now = m.in_training[step];
    const double loss = (encoder.outputs(data.inputs) - data.targets).squaredNorm() / 2;
    now["loss"].push_back(loss);
    now["drift"].push_back(relative(total, kernel().total()));
    now["movement"].push_back((encoder.parameters() - initial).norm() / initial.norm());
  }
  for (const auto& [name, values] : m.in_training.rbegin()->second) {
    m.at_end[name].push_back(values.back());
  }
}

/// The slope of log values against log width, every network a point.
Line slope(const std::map<long, Measured>& measured, const std::string& name, bool end) {
  std::vector<double> x, y;
  for (const auto& [width, m] : measured) {
    for (const double value : (end ? m.at_end : m.at_start).at(name)) {
      if (!(value > 0) || !std::isfinite(value)) continue;
      x.push_back(std::log(static_cast<double>(width)));
      y.push_back(std::log(value));
    }
  }
  return measured.size() < 2 ? Line{NAN, NAN, NAN} : fit_line(x, y);
}

Cells start_row(long width, const Measured& m) {
  Cells row{{"width", width}};
  for (const auto& [name, values] : m.at_start) put(row, name, check::estimate(values));
  return row;
}

void add_training(long width, const Measured& m, Section& training) {
  for (const auto& [step, quantities] : m.in_training) {
    Cells row{{"width", width}, {"step", step}};
    for (const auto& [name, values] : quantities) put(row, name, check::estimate(values));
    training.rows.push_back(row);
  }
}

/// A quantity in training, one curve for each width.
plot::Panel over_steps(const std::map<long, Measured>& measured, const std::string& title,
                       const std::string& name) {
  plot::Panel panel{title, "step", "", true, true};
  for (const auto& [width, m] : measured) {
    plot::Curve curve{"width " + std::to_string(width)};
    for (const auto& [step, quantities] : m.in_training) {
      add_point(curve, static_cast<double>(step), check::estimate(quantities.at(name)), true);
    }
    panel.curves.push_back(curve);
  }
  return panel;
}

plot::Panel over_widths(const std::map<long, Measured>& measured) {
  plot::Curve distance{"distance to the limit"};
  plot::Curve drift{"drift after training"};
  plot::Curve movement{"movement after training"};
  for (const auto& [width, m] : measured) {
    const auto at = static_cast<double>(width);
    add_point(distance, at, check::estimate(m.at_start.at("distance")), true);
    add_point(drift, at, check::estimate(m.at_end.at("drift")), true);
    add_point(movement, at, check::estimate(m.at_end.at("movement")), true);
  }
  return {"over widths", "width", "", true, true, {distance, drift, movement}};
}

bool finite(const Measured& m) {
  for (const auto& [step, quantities] : m.in_training) {
    for (const auto& [name, values] : quantities) {
      for (const double x : values) {
        if (!std::isfinite(x)) return false;
      }
    }
  }
  return true;
}

struct Judged {
  check::Verdict verdict;
  std::string reason;
};

/// Whether kernels converge, by the slope of the distance: half as fast as
/// expected is enough.
Judged judge(const Line& distance) {
  if (!std::isfinite(distance.error)) {
    return {check::Verdict::inconclusive, "too few networks for a slope"};
  }
  if (distance.slope + distance.error < -0.25) {
    return {check::Verdict::pass,
            "kernels of head and values converge to their limit as the width grows"};
  }
  if (distance.slope - distance.error > -0.25) {
    return {check::Verdict::fail, "kernels of head and values do not converge"};
  }
  return {check::Verdict::inconclusive,
          "the slope of the distance is too uncertain: more --seeds or --sizes"};
}

Report report_of(const Settings& s, const std::map<long, Measured>& measured) {
  Section start{"start",
                "At the start: distances to the limit, smallest eigenvalues/(tau_1^2 d_m)"};
  Section training{"training", "In training: loss, drift of the kernel, movement of the weights"};
  Section slopes{"slopes", "Slope of log quantity against log width, with its 95 % interval"};
  bool all_finite = true;
  for (const auto& [width, m] : measured) {
    start.rows.push_back(start_row(width, m));
    add_training(width, m, training);
    all_finite = all_finite && finite(m);
  }
  const auto add_slope = [&](const char* name, bool end) {
    const Line line = slope(measured, name, end);
    slopes.rows.push_back({{"quantity", name}, {"slope", line.slope}, {"interval", line.error}});
    return line;
  };
  const Line distance = add_slope("distance", false);
  add_slope("distance_scores", false);
  add_slope("drift", true);
  add_slope("movement", true);
  const auto [verdict, reason] =
      all_finite ? judge(distance) : Judged{check::Verdict::fail, "training diverges"};
  const std::vector<plot::Panel> panels{
      over_steps(measured, "loss", "loss"), over_steps(measured, "weight movement", "movement"),
      over_steps(measured, "drift of the kernel", "drift"), over_widths(measured)};
  return {{start, training, slopes},
          {s.rule + ", tau_0 = d_m^-" + number_text(s.tau0), panels},
          verdict,
          reason};
}

Report run(const Settings& s) {
  shallow_scales_of(s.rule, s.tau0, s.sizes[0], s.data);
  const ShallowData data = draw_shallow_data(s.data);
  const long all = s.seeds * static_cast<long>(s.sizes.size());
  double cost = 0;
  for (const long width : s.sizes) cost += static_cast<double>(width * s.seeds);
  std::map<long, Measured> measured;
  long finished = 0;
  {
    frame::Progress progress("networks", all, cost);
    finished = for_each_run(s.sizes, s.seeds, [&](long width, long seed) {
      measure(s, data, width, seed, measured[width]);
      progress.done(static_cast<double>(width));
    });
  }
  Report report = report_of(s, measured);
  if (finished < all) stopped_early(report, finished, all);
  return report;
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  Program program{"shallow_encoder",
                  "How wide a shallow encoder has to be to train as its limiting kernel says."};
  const std::vector<std::string> rules{"shallow-lecun", "shallow-he", "shallow-ntk"};
  const auto rule_of = [rules](const std::string& name, const std::string& option) {
    std::string id = rule_id(name, option);
    if (std::find(rules.begin(), rules.end(), id) != rules.end()) return id;
    throw InvalidInput(option, printable(name), listed(rules));
  };
  Options& o = *program.options;
  o.add("--rule", s->rule, listed(rules)).names(rules, rule_of);
  o.add("--tau0", s->tau0).from(0.5).to(1);
  o.add("--sizes", s->sizes, "widths").from(1).to(1'000'000).increasing();
  o.add("--seeds", s->seeds).from(1).to(1000);
  o.add("--inputs", s->data.inputs, "of training").from(2).to(1000);
  o.add("--seq", s->data.tokens).was("--tokens").from(1).to(1000);
  o.add("--features", s->data.features).from(1).to(1000);
  o.add("--steps", s->steps, "of gradient descent").from(1).to(1'000'000);
  o.add("--rate", s->rate,
        "in units of 1/largest eigenvalue of the kernel at the start; from 2 on it diverges")
      .above(0)
      .below(2);
  make_report(program, [s] { return ::run(*s); });
  return program;
}
