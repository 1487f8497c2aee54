// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// sampled_kernels: accuracy on digits of the mean kernel of some random attention networks, over their
// width and number (Hron et al. 2020, arXiv:2006.10540, Figure 2 right); lab/studies/infinite_attention/README.md
// has the table.
//
//   sampled_kernels --attention softmax --sizes 4,16,36 --seeds 64

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attention_networks.hpp"
#include "check/report.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "scalewise/kernels/finite_network.hpp"
#include "train/settings.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;
using Eigen::MatrixXd;
using kernels::Index;

struct Settings {
  std::string weights = "softmax";
  std::vector<long> sizes{4, 16, 36};
  long seeds = 64;
  SampleSettings samples{.train = 100, .validation = 100, .test = 300, .stride = 4};
};

/// Dense and ReLU, twice attention and ReLU, flatten, dense; variances as in the paper.
std::vector<kernels::Layer> layers_of(const std::string& weights) {
  constexpr NetworkVariances v{1.7562, 0.1841};
  const kernels::Dense dense{std::sqrt(v.weight), std::sqrt(v.bias)};
  const kernels::Nonlinearity relu{kernels::Function::relu};
  const kernels::SelfAttention attention = attention_named(weights, v.weight);
  return {dense, relu, attention, relu, attention, relu, kernels::Flatten{}, dense};
}

/// The kernel of one network: a mean over the features of its output.
MatrixXd sampled_kernel(const Settings& s, const Samples& samples, long width, long seed) {
  const auto root = static_cast<Index>(std::sqrt(static_cast<double>(width)));
  kernels::FiniteNetwork network(layers_of(s.weights), samples.inputs[0].rows(),
                                 samples.inputs[0].cols(), {width, width, std::max<Index>(root, 1)},
                                 static_cast<std::uint64_t>(seed));
  const Matrix<> g = network.outputs(samples.inputs);
  return g * g.transpose() / static_cast<double>(g.cols());
}

Cells row_of(long width, long networks, long first, const MatrixXd& kernel, const MatrixXd& limit,
             const Samples& samples) {
  const Classified found = classify(kernel, samples);
  Cells row{{"width", width}, {"networks", networks}, {"first", first}, {"test", found.test}};
  if (limit.size() > 0) row.emplace_back("distance", (kernel - limit).norm() / limit.norm());
  return row;
}

Report run(const Settings& s) {
  const Samples samples = read_samples(s.samples);
  Section accuracies{"accuracies", "Test accuracy of the mean kernel of some networks"};
  Section limits{"limit", "Test accuracy of the limit"};
  MatrixXd limit;
  if (s.weights != "softmax") {  // which has no closed form
    limit = limit_of(layers_of(s.weights), samples).nngp;
    limits.rows.push_back({{"test", classify(limit, samples).test}});
  }
  const auto cost = [](long width) { return width * width; };
  long all = 0;
  for (const long width : s.sizes) all += s.seeds * cost(width);
  frame::Progress progress("networks, by their size", all);
  const auto size = static_cast<Index>(samples.inputs.size());
  for (const long width : s.sizes) {
    // Means of disjoint groups of 1, 4, 16, … networks.
    for (long group = 1; group <= s.seeds; group *= 4) {
      MatrixXd mean = MatrixXd::Zero(size, size);
      const long groups = std::min(s.seeds / group, 4L);
      for (long i = 0; i < groups * group; ++i) {
        if (frame::stop_requested() != 0) throw frame::Interrupted{};
        mean += sampled_kernel(s, samples, width, i + 1) / static_cast<double>(group);
        if ((i + 1) % group != 0) continue;
        accuracies.rows.push_back(row_of(width, group, i + 2 - group, mean, limit, samples));
        mean.setZero();
      }
    }
    progress.at(progress.count() + s.seeds * cost(width));
  }
  return {{accuracies, limits}, {}, check::Verdict::pass, samples.description};
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  s->samples.digits = train::data_file("digits.csv");
  Program program{"sampled_kernels", "Accuracy of kernels that are sampled from networks."};
  Options& o = *program.options;
  o.add("--attention", s->weights,
        "attention weights, of scores over the root of d except for the last two")
      .words({"softmax", "relu", "identity"});
  o.add("--sizes", s->sizes, "sizes to compare (widths: as many heads, of the root of the width)")
      .from(1)
      .to(100'000)
      .increasing();
  o.add("--seeds", s->seeds, "runs of each model, with a seed each").from(1).to(100'000);
  o.add("--train", s->samples.train, "training inputs").from(1);
  o.add("--validation", s->samples.validation, "inputs that the regularizer is chosen on").from(1);
  o.add("--test", s->samples.test, "test inputs").from(1);
  make_report(program, [s] { return ::run(*s); });
  return program;
}
