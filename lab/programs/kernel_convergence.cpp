// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// kernel_convergence: how kernels of finite attention networks converge as networks grow
// wider and more of them are averaged (Hron et al. 2020, arXiv:2006.10540, Figure 2).
//
//   kernel_convergence --attention softmax --sizes 16,32,64,128 --seeds 32 --out results

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frame/progress.hpp"
#include "lab/programs/check/run_report.hpp"
#include "scalewise/io/json_reader.hpp"
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
  long seeds = 32;
  long inputs = 4;
  long tokens = 3;
  long features = 8;
  long filter = 1;
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

/// Convolution and ReLU, `depth` times attention and ReLU, flatten, dense; variances as in the paper. What
/// enters residual attention leaves it too and has to be normal for the next ReLU: a dense layer first.
std::vector<kernels::Layer> layers_of(const Settings& s) {
  const kernels::Dense dense{std::sqrt(1.7562), std::sqrt(0.1841)};
  const kernels::Nonlinearity relu{kernels::Function::relu};
  std::vector<kernels::Layer> layers{
      kernels::Convolution{dense.sigma_w, dense.sigma_b, s.filter, {}, /*padded=*/false}, relu};
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

using DistancesByWidth = std::map<long, Distances>;

void add_distances(const std::string& kernel, const DistancesByWidth& all, Section& section) {
  for (const auto& [width, of_width] : all) {
    for (const auto& [group, values] : of_width) {
      Cells row{{"kernel", kernel}, {"width", width}, {"networks", group}};
      put(row, "distance", check::estimate(values));
      section.rows.push_back(row);
    }
  }
}

plot::Panel panel(const std::string& title, const std::string& x_label) {
  return {title, x_label, "relative distance", true, true};
}

/// A curve for means of 1, 4 and 16 networks.
plot::Panel over_widths(const std::string& kernel, const DistancesByWidth& all) {
  plot::Panel result = panel(kernel + " over widths", "width");
  for (const long group : {1, 4, 16}) {
    plot::Curve curve{group == 1 ? "1 network" : std::to_string(group) + " networks"};
    for (const auto& [width, of_width] : all) {
      if (!of_width.contains(group)) continue;
      add_point(curve, static_cast<double>(width), check::estimate(of_width.at(group)), true);
    }
    if (!curve.x.empty()) result.curves.push_back(curve);
  }
  return result;
}

/// A curve for each width.
plot::Panel over_networks(const std::string& kernel, const DistancesByWidth& all) {
  plot::Panel result = panel(kernel + " over networks", "networks averaged");
  for (const auto& [width, of_width] : all) {
    plot::Curve curve{"width " + std::to_string(width)};
    for (const auto& [group, values] : of_width) {
      add_point(curve, static_cast<double>(group), check::estimate(values), true);
    }
    result.curves.push_back(curve);
  }
  return result;
}

/// A line through logarithms.
class LogLine {
 public:
  void add(long at, const std::vector<double>& values) {
    for (const double value : values) {
      x_.push_back(std::log(static_cast<double>(at)));
      y_.push_back(std::log(value));
    }
  }
  numeric::Line fit() const { return numeric::fit_line(x_, y_); }

 private:
  std::vector<double> x_, y_;
};

/// Of single networks against the width.
numeric::Line slope_over_widths(const DistancesByWidth& all) {
  LogLine line;
  for (const auto& [width, of_width] : all) line.add(width, of_width.at(1));
  return line.fit();
}

/// Of means of networks against their number, at the largest width, where there are two or more.
numeric::Line slope_over_networks(const DistancesByWidth& all) {
  LogLine line;
  for (const auto& [group, values] : all.rbegin()->second) {
    if (values.size() > 1) line.add(group, values);
  }
  return line.fit();
}

Cells slope_row(const std::string& kernel, const std::string& against, const numeric::Line& line) {
  return {{"kernel", kernel},
          {"against", against},
          {"slope", line.slope},
          {"interval", line.error},
          {"expected", -0.5}};
}

/// Whether distances fall with the width: half as fast as expected is enough.
check::Verdict judge(const numeric::Line& line) {
  if (line.slope - line.error > -0.25) return check::Verdict::fail;
  if (line.slope + line.error >= -0.25) return check::Verdict::inconclusive;
  return check::Verdict::pass;
}

/// The entries of the widest networks' kernels next to the limit's.
void add_entries(const Kernel& kernel, Section& section) {
  for (Index i = 0; i < kernel.limit.rows(); ++i) {
    for (Index j = 0; j <= i; ++j) {
      std::vector<double> values;
      for (const MatrixXd& k : kernel.networks.rbegin()->second) values.push_back(k(i, j));
      Cells row{{"kernel", kernel.name}, {"i", i}, {"j", j}, {"limit", kernel.limit(i, j)}};
      put(row, "mean", check::estimate(values));
      section.rows.push_back(row);
    }
  }
}

void add_kernel(const Kernel& kernel, Report& report) {
  DistancesByWidth all;
  for (const auto& [width, networks] : kernel.networks) {
    all[width] = distances(kernel.limit, networks);
  }
  const numeric::Line line = slope_over_widths(all);
  report.verdict = check::worse(report.verdict, judge(line));
  add_distances(kernel.name, all, report.sections[0]);
  Section& slopes = report.sections[1];
  slopes.rows.push_back(slope_row(kernel.name, "width, single networks", line));
  slopes.rows.push_back(
      slope_row(kernel.name, "networks, at the largest width", slope_over_networks(all)));
  add_entries(kernel, report.sections[2]);
  report.figure.panels.push_back(over_widths(kernel.name, all));
  report.figure.panels.push_back(over_networks(kernel.name, all));
}

std::vector<Matrix<>> random_inputs(const Settings& s) {
  std::vector<Matrix<>> inputs;
  numeric::RandomStream stream(1, "kernel_convergence inputs");
  for (long i = 0; i < s.inputs; ++i) {
    Matrix<> x(s.tokens, s.features);
    for (double& entry : x.reshaped()) entry = stream.normal();
    inputs.push_back(x);
  }
  return inputs;
}

double cost(long width) { return static_cast<double>(width * width); }

/// Kernels of a network. It has a seed, whatever the width and the thread.
GramMatrices draw_kernels(const Settings& s, long width, long seed, frame::Progress& progress) {
  GramMatrices found = kernels::finite_kernels(layers_of(s), random_inputs(s), sizes_at(width),
                                               static_cast<std::uint64_t>(seed));
  progress.done(cost(width));
  return found;
}

/// The contents of a network's file: its kernels row by row.
nlohmann::ordered_json result_json(const GramMatrices& k) {
  const auto rows = [](const MatrixXd& matrix) {
    auto all = nlohmann::ordered_json::array();
    for (const auto& row : matrix.rowwise()) {
      all.push_back(std::vector<double>(row.begin(), row.end()));
    }
    return all;
  };
  return {{"nngp", rows(k.nngp)}, {"ntk", rows(k.ntk)}};
}

/// The other way round.
GramMatrices kernels_of_result(const Settings& s, const io::JsonReader& result) {
  const auto matrix = [&](const char* name) {
    const std::vector<io::JsonReader> rows = result.at(name).items();
    MatrixXd all(s.inputs, s.inputs);
    for (Index i = 0; i < s.inputs; ++i) {
      const std::vector<double> row = numbers_or_nan(rows.at(static_cast<std::size_t>(i)));
      for (Index j = 0; j < s.inputs; ++j) all(i, j) = row.at(static_cast<std::size_t>(j));
    }
    return all;
  };
  return {matrix("nngp"), matrix("ntk")};
}

Report report_of(const Settings& s, const std::map<long, std::vector<GramMatrices>>& found) {
  const std::vector<Matrix<>> inputs = random_inputs(s);
  const kernels::Network network(layers_of(s));
  const auto prepared = kernels::prepare(network, inputs);
  const GramMatrices limit = kernels::gram(s.inputs, kernels::NetworkPairs(network, prepared));
  Kernel nngp{"NNGP", limit.nngp, {}};
  Kernel ntk{"NTK", limit.ntk, {}};
  for (const auto& [width, networks] : found) {
    for (const GramMatrices& k : networks) {
      nngp.networks[width].push_back(k.nngp);
      ntk.networks[width].push_back(k.ntk);
    }
  }

  Report report;
  report.sections = {
      {"distances", "Distance of the mean of some networks to the limit, relative Frobenius norm"},
      {"slopes", "Slope of log distance, with its 95 % interval"},
      {"entries", "Kernels of the widest networks", {}, false}};
  report.figure.title = "Kernels of finite networks, " + s.attention;
  add_kernel(nngp, report);
  add_kernel(ntk, report);
  report.reason = report.verdict == check::Verdict::pass
                      ? "kernels converge as width and number of networks grow"
                  : report.verdict == check::Verdict::fail
                      ? "kernels do not converge"
                      : "a slope is too uncertain: more --seeds or --sizes";
  return report;
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  Program program{
      "kernel_convergence",
      "Kernels of finite attention networks against their limit, over widths and networks."};
  Options& o = *program.options;
  o.add("--attention", s->attention,
        "attention weights, of scores over the root of d except for the last two")
      .words({"softmax", "identity", "relu", "abs", "softmax-over-d", "residual"});
  o.add("--sizes", s->sizes, "sizes to compare (widths: as many heads, of the root of the width)")
      .from(1)
      .to(100'000)
      .increasing(2);
  o.add("--seeds", s->seeds, "runs of each model, with a seed each").from(2).to(1'000'000);
  o.add("--inputs", s->inputs, "inputs of the kernel (random)").from(1).to(1000);
  o.add("--seq", s->tokens, "tokens per sequence; of a text, bytes").from(1).to(64);
  o.add("--features", s->features, "features of an input token").from(1).to(10'000);
  o.add("--filter", s->filter,
        "tokens a side that a layer sees (1: dense; else odd, a convolution)")
      .from(1)
      .to(63);
  o.add("--depth", s->depth, "layers (of attention)").from(1).to(100);
  const RunsOf networks{{s, &s->sizes}, {s, &s->seeds}, [] { return "width"; }};
  make_report<GramMatrices>(
      program, networks,
      {.make = [s](long width, long seed,
                   frame::Progress& progress) { return draw_kernels(*s, width, seed, progress); },
       .write = result_json,
       .read = [s](const io::JsonReader& result) { return kernels_of_result(*s, result); },
       .report = [s](const auto& found) { return report_of(*s, found); },
       .work =
           [](long width) {
             return Work{1, cost(width)};
           },
       .at_once = 8});
  return program;
}
