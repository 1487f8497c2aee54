// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// trained_attention: networks with softmax, ReLU and identity attention, trained on digits, next to
// regression with their kernels; lab/studies/infinite_attention/README.md has the table.
//
//   trained_attention --sizes 16,48 --attention relu,identity

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attention_networks.hpp"
#include "check/report.hpp"
#include "frame/files.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "scalewise/kernels/finite_network.hpp"
#include "scalewise/kernels/shallow_kernel.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;
using kernels::Index;

struct Settings {
  std::vector<std::string> weights{"softmax", "relu", "identity"};
  std::vector<std::string> norms{"none", "output"};
  std::vector<long> sizes{16, 48};
  long seeds = 3;
  long steps = 200;
  double rate = 1;
  bool centred = false;  // outputs count from their initial values
  SampleSettings samples{.train = 64, .validation = 100, .test = 500, .stride = 4};
};

/// Dense and ReLU, attention, normalized or not, flatten, dense.
std::vector<kernels::Layer> layers_of(const std::string& weights, const std::string& norm) {
  constexpr NetworkVariances v;
  const kernels::Dense dense{std::sqrt(v.weight), std::sqrt(v.bias)};
  kernels::SelfAttention attention = attention_named(weights, v.weight);
  attention.norm_heads = norm == "head";
  std::vector<kernels::Layer> layers{dense, kernels::Nonlinearity{kernels::Function::relu},
                                     attention};
  if (norm == "output") layers.emplace_back(kernels::LayerNorm{});
  layers.emplace_back(kernels::Flatten{});
  layers.emplace_back(dense);
  return layers;
}

/// The samples of a split on their own.
struct Part {
  std::vector<Matrix<>> inputs;
  std::vector<int> labels;
};

Part part_of(const Samples& samples, Index begin, Index end) {
  return {{samples.inputs.begin() + begin, samples.inputs.begin() + end},
          {samples.labels.begin() + begin, samples.labels.begin() + end}};
}

/// Outputs of the classes.
Matrix<> scores(kernels::FiniteNetwork& network, const Part& part, int classes) {
  return network.outputs(part.inputs).leftCols(classes);
}

class Training {
 public:
  Training(const Settings& s, const Samples& samples)
      : s_(s),
        classes_(samples.classes),
        train_(part_of(samples, 0, samples.train)),
        test_(part_of(samples, samples.train + samples.validation,
                      static_cast<Index>(samples.inputs.size()))),
        targets_(kernels::class_targets(train_.labels, classes_)) {}

  /// Loss and accuracy at the end; a loss that is not finite, or above the initial one, is a diverged
  /// run.
  Cells run(const std::string& weights, const std::string& norm, long width, long seed) const {
    const kernels::FiniteSizes sizes{width, std::max(1L, width / 4), 8};
    kernels::FiniteNetwork network(layers_of(weights, norm), train_.inputs[0].rows(),
                                   train_.inputs[0].cols(), sizes,
                                   static_cast<std::uint64_t>(seed));
    const Eigen::MatrixXd kernel = network.kernels(train_.inputs).ntk;
    const double rate = s_.rate / -kernels::smallest_eigenvalue(-kernel);
    Matrix<> train_origin = scores(network, train_, classes_);
    Matrix<> test_origin = scores(network, test_, classes_);
    if (!s_.centred) {
      train_origin.setZero();
      test_origin.setZero();
    }
    double first = 0;
    double last = 0;
    for (long step = 0; step < s_.steps && std::isfinite(last); ++step) {
      if (frame::stop_requested() != 0) throw frame::Interrupted{};
      last = network.step(train_.inputs, targets_ + train_origin, rate);
      if (step == 0) first = last;
    }
    const bool diverged = !(last < first);
    return {{"weights", weights},
            {"norm", norm},
            {"width", width},
            {"seed", seed},
            {"diverged", diverged ? 1L : 0L},
            {"loss", diverged ? first : last / static_cast<double>(train_.labels.size())},
            {"train_accuracy", diverged ? 0.0 : accuracy(network, train_, train_origin)},
            {"test_accuracy", diverged ? 0.0 : accuracy(network, test_, test_origin)}};
  }

 private:
  double accuracy(kernels::FiniteNetwork& network, const Part& part, const Matrix<>& origin) const {
    const Eigen::MatrixXd moved = scores(network, part, classes_) - origin;
    return kernels::accuracy(moved, part.labels);
  }

  const Settings& s_;
  int classes_;
  Part train_;
  Part test_;
  Matrix<> targets_;
};

Report run(const Settings& s) {
  const Samples samples = read_samples(s.samples);
  const Training training(s, samples);
  Section networks{"networks", "Trained networks"};
  Section kernel_rows{"kernels", "Regression with the kernels of infinite width"};
  const auto cost = [](long width) { return width * width; };
  long all = 0;
  for (const long width : s.sizes) all += cost(width) * s.seeds;
  frame::Progress progress("networks, by their size",
                           all * static_cast<long>(s.weights.size() * s.norms.size()));
  for (const std::string& weights : s.weights) {
    for (const std::string& norm : s.norms) {
      if (weights != "softmax" && norm != "head") {  // which have no closed form
        const kernels::GramMatrices gram = limit_of(layers_of(weights, norm), samples);
        kernel_rows.rows.push_back({{"weights", weights},
                                    {"norm", norm},
                                    {"nngp", classify(gram.nngp, samples).test},
                                    {"ntk", classify(gram.ntk, samples).test}});
      }
      for (const long width : s.sizes) {
        for (long seed = 1; seed <= s.seeds; ++seed) {
          networks.rows.push_back(training.run(weights, norm, width, seed));
          progress.at(progress.count() + cost(width));
        }
      }
    }
  }
  return {{networks, kernel_rows}, {}, check::Verdict::pass, samples.description};
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  s->samples.digits = frame::data_file("digits.csv");
  Program program{"trained_attention",
                  "Trained attention networks next to regression with their kernels."};
  Options& o = *program.options;
  o.add("--attention", s->weights,
        "attention weights, of scores over the root of d except for the last two")
      .words({"softmax", "relu", "identity"});
  o.add("--norm", s->norms, "normalization (after attention, or of each head)")
      .words({"none", "head", "output"});
  o.add("--sizes", s->sizes, "sizes to compare (widths)").from(1).to(100'000).increasing();
  o.add("--seeds", s->seeds, "runs of each model, with a seed each").from(1).to(1000);
  o.add("--steps", s->steps, "optimizer steps").from(1).to(1'000'000);
  o.add("--rate", s->rate,
        "learning rate (in units of 1/largest eigenvalue of the kernel at initialization)")
      .above(0)
      .below(2);
  o.add("--centred", s->centred, "count outputs from their initial values");
  o.add("--train", s->samples.train, "training inputs").from(1);
  o.add("--validation", s->samples.validation, "inputs that the regularizer is chosen on").from(1);
  o.add("--test", s->samples.test, "test inputs").from(1);
  make_report(program, [s] { return ::run(*s); });
  return program;
}
