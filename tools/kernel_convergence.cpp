// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// kernel_convergence: how kernels of finite attention networks come to their limit as networks grow
// wider and more of them are averaged (Hron et al. 2020, arXiv:2006.10540, Figure 2).
//
//   kernel_convergence --attention softmax --sizes 16,32,64,128 --samples 32 --out results

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "check/report.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "scalewise/kernels/finite_network.hpp"
#include "scalewise/kernels/network_gram.hpp"
#include "scalewise/numeric/line.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;
using Eigen::MatrixXd;
using kernels::GramMatrices;
using kernels::Index;

struct Settings {
  std::string attention = "softmax";
  std::vector<long> sizes{16, 32, 64, 128, 256};
  long samples = 32;
  long inputs = 4;
  long tokens = 3;
  long features = 8;
  long depth = 1;
};

kernels::Layer attention_of(const std::string& name) {
  kernels::SelfAttention attention;
  attention.sigma_q = attention.sigma_k = attention.sigma_v = std::sqrt(1.7562);
  if (name == "residual") {
    kernels::ResidualAttention residual;
    residual.encodings.alpha = 0.75;
    residual.encodings.phi = 2.5;
    return residual;
  }
  if (name == "softmax-over-d") return attention;  // queries that are keys: bounded weights, one σ
  attention.scores = kernels::SelfAttention::ScoreScale::over_root_d;
  using WeightFunction = kernels::SelfAttention::WeightFunction;
  if (name == "identity")
    attention.weights = WeightFunction::identity;
  else if (name == "relu")
    attention.weights = WeightFunction::relu;
  else if (name == "abs")
    attention.weights = WeightFunction::abs;
  return attention;
}

/// Dense and ReLU, `depth` times attention and ReLU, flatten, dense; variances as in the paper. What
/// enters residual attention leaves it too and has to be normal for the next ReLU: a dense layer first.
std::vector<kernels::Layer> layers_of(const Settings& s) {
  const kernels::Dense dense{std::sqrt(1.7562), std::sqrt(0.1841)};
  const kernels::Nonlinearity relu{kernels::Function::relu};
  std::vector<kernels::Layer> layers{dense, relu};
  for (long i = 0; i < s.depth; ++i) {
    if (s.attention == "residual") layers.emplace_back(dense);
    layers.push_back(attention_of(s.attention));
    layers.emplace_back(relu);
  }
  layers.emplace_back(kernels::Flatten{});
  layers.emplace_back(dense);
  return layers;
}

/// As many heads as features, of the root of their size.
kernels::FiniteSizes sizes_at(long width) {
  const auto root = static_cast<Index>(std::sqrt(static_cast<double>(width)));
  return {width, width, std::max<Index>(root, 1)};
}

double distance(const MatrixXd& limit, const MatrixXd& k) {
  return (k - limit).norm() / limit.norm();
}

/// Distances of means of disjoint groups of networks, by the size of the group: 1, 2, 4, …
using Distances = std::map<long, std::vector<double>>;

Distances distances(const MatrixXd& limit, const std::vector<MatrixXd>& networks) {
  Distances result;
  const auto all = static_cast<long>(networks.size());
  for (long group = 1; group <= all; group *= 2) {
    for (long begin = 0; begin + group <= all; begin += group) {
      MatrixXd mean = MatrixXd::Zero(limit.rows(), limit.cols());
      for (long i = 0; i < group; ++i) {
        mean += networks[static_cast<std::size_t>(begin + i)] / static_cast<double>(group);
      }
      result[group].push_back(distance(limit, mean));
    }
  }
  return result;
}

struct Kernel {
  std::string name;
  MatrixXd limit;
  std::map<long, std::vector<MatrixXd>> networks;  // by width
};

plot::Curve curve(const std::string& label) {
  plot::Curve c;
  c.label = label;
  return c;
}

struct Slope {
  std::vector<double> x, y;
  void add(long at, double value) {
    x.push_back(std::log(static_cast<double>(at)));
    y.push_back(std::log(value));
  }
};

void add_kernel(const Kernel& kernel, Report& report) {
  Section& all = report.sections[0];
  Section& slopes = report.sections[1];
  Section& entries = report.sections[2];
  plot::Panel widths, samples;
  widths.title = kernel.name + " over widths";
  widths.x_label = "width";
  samples.title = kernel.name + " over networks";
  samples.x_label = "networks averaged";
  widths.y_label = samples.y_label = "relative distance";
  for (plot::Panel* p : {&widths, &samples}) p->log_x = p->log_y = true;
  Slope by_width, by_samples;
  std::map<long, plot::Curve> of_group;
  const long widest = kernel.networks.rbegin()->first;
  for (const auto& [width, networks] : kernel.networks) {
    plot::Curve along = curve("width " + std::to_string(width));
    for (const auto& [group, values] : distances(kernel.limit, networks)) {
      const check::Estimate e = check::estimate(values);
      Cells row{{"kernel", kernel.name}, {"width", width}, {"networks", group}};
      put(row, "distance", e);
      all.rows.push_back(row);
      add_point(along, static_cast<double>(group), e, true);
      if (group == 1 || group == 4 || group == 16) {
        plot::Curve& c = of_group[group];
        c.label = group == 1 ? "1 network" : std::to_string(group) + " networks";
        add_point(c, static_cast<double>(width), e, true);
      }
      for (const double d : values) {
        if (group == 1) by_width.add(width, d);
        if (width == widest && values.size() > 1) by_samples.add(group, d);
      }
    }
    samples.curves.push_back(along);
  }
  for (const auto& [group, c] : of_group) widths.curves.push_back(c);
  const auto add = [&](const char* against, const Slope& s) {
    const Line line = fit_line(s.x, s.y);
    slopes.rows.push_back({{"kernel", kernel.name},
                           {"against", against},
                           {"slope", line.slope},
                           {"interval", line.error},
                           {"expected", -0.5}});
    return line;
  };
  const Line line = add("width, single networks", by_width);
  if (line.slope + line.error >= -0.25) {
    report.verdict = check::worse(report.verdict, line.slope - line.error > -0.25
                                                      ? check::Verdict::fail
                                                      : check::Verdict::inconclusive);
  }
  add("networks, at the largest width", by_samples);
  const std::vector<MatrixXd>& last = kernel.networks.rbegin()->second;
  for (Index i = 0; i < kernel.limit.rows(); ++i) {
    for (Index j = 0; j <= i; ++j) {
      std::vector<double> values;
      for (const MatrixXd& k : last) values.push_back(k(i, j));
      Cells row{{"kernel", kernel.name}, {"i", i}, {"j", j}, {"limit", kernel.limit(i, j)}};
      put(row, "mean", check::estimate(values));
      entries.rows.push_back(row);
    }
  }
  report.figure.panels.push_back(widths);
  report.figure.panels.push_back(samples);
}

Report run(const Settings& s) {
  const std::vector<kernels::Layer> layers = layers_of(s);
  std::vector<Matrix<>> inputs;
  RandomStream stream(1, "kernel_convergence inputs");
  for (long i = 0; i < s.inputs; ++i) {
    Matrix<> x(s.tokens, s.features);
    for (double& entry : x.reshaped()) entry = stream.normal();
    inputs.push_back(x);
  }
  const kernels::Network network(layers);
  const auto prepared = kernels::prepare(network, inputs);
  const GramMatrices limit = kernels::gram(s.inputs, kernels::NetworkPairs(network, prepared));

  Kernel nngp{"NNGP", limit.nngp, {}};
  Kernel ntk{"NTK", limit.ntk, {}};
  const auto cost = [](long width) { return width * width; };
  long all = 0;
  for (const long width : s.sizes) all += s.samples * cost(width);
  frame::Progress progress("networks, by their size", all);
  long done = 0;
  for (const long width : s.sizes) {
    // One seed per network, whatever the width and the thread.
    constexpr long at_once = 8;
    std::vector<GramMatrices> found(static_cast<std::size_t>(s.samples));
    for (long begin = 0; begin < s.samples; begin += at_once) {
      const long count = std::min(at_once, s.samples - begin);
      parallel_for(count, [&](Index i) {
        const auto at = static_cast<std::size_t>(begin + i);
        found[at] = kernels::finite_kernels(layers, inputs, sizes_at(width), at + 1);
      });
      if (!progress.at(done += count * cost(width))) throw frame::Interrupted{};
    }
    for (const GramMatrices& k : found) {
      nngp.networks[width].push_back(k.nngp);
      ntk.networks[width].push_back(k.ntk);
    }
  }
  Report report;
  report.sections = {{"distances",
                      "Distance of the mean of some networks to the limit, relative Frobenius norm",
                      {}},
                     {"slopes", "Slope of log distance, with its 95 % interval", {}},
                     {"entries", "Kernels of the widest networks", {}, false}};
  report.figure.title = "Kernels of finite networks, " + s.attention;
  add_kernel(nngp, report);
  add_kernel(ntk, report);
  report.reason = report.verdict == check::Verdict::pass
                      ? "kernels come to their limit as networks grow and more are averaged"
                  : report.verdict == check::Verdict::fail
                      ? "kernels do not come to their limit"
                      : "a slope is too uncertain: more --samples or --sizes";
  return report;
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  Program program{
      "kernel_convergence",
      "Kernels of finite attention networks against their limit, over widths and networks."};
  Options& o = *program.options;
  o.add("--attention", s->attention, "weights, of scores over the root of d but for the last two")
      .words({"softmax", "identity", "relu", "abs", "softmax-over-d", "residual"});
  o.add("--sizes", s->sizes, "widths: as many heads, of the root of the width")
      .from(1)
      .to(100'000)
      .increasing()
      .at_least(2);
  o.add("--samples", s->samples, "networks per width").from(2).to(1'000'000);
  o.add("--inputs", s->inputs, "random inputs").from(1).to(1000);
  o.add("--tokens", s->tokens, "of an input").from(1).to(64);
  o.add("--features", s->features, "of a token").from(1).to(10'000);
  o.add("--depth", s->depth, "attention layers").from(1).to(100);
  make_report(program, [s] { return ::run(*s); });
  return program;
}
