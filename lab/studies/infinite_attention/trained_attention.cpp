// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// trained_attention: networks with softmax, ReLU and identity attention, trained on digits, next to
// regression with their kernels; lab/studies/infinite_attention/README.md has the table.
//
//   trained_attention --sizes 16,48 --attention relu,identity
//   trained_attention --optimizer adam --train 128 --steps 1000

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "attention_networks.hpp"
#include "check/report.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "scalewise/kernels/finite_network.hpp"
#include "scalewise/kernels/shallow_kernel.hpp"
#include "train/settings.hpp"

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
  std::string optimizer = "descent";
  double rate = 1;
  std::vector<double> rates{0.001, 0.01};
  long batch = 64;
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

/// The losses of the first and of the last step, means over samples.
struct Losses {
  double first = 0;
  double last = 0;

  void add(double loss, long step) {
    if (step == 0) first = loss;
    last = loss;
  }
};

class Training {
 public:
  Training(const Settings& s, const Samples& samples)
      : s_(s),
        classes_(samples.classes),
        parts_{part_of(samples, 0, samples.train),
               part_of(samples, samples.train, samples.train + samples.validation),
               part_of(samples, samples.train + samples.validation,
                       static_cast<Index>(samples.inputs.size()))},
        targets_(kernels::class_targets(parts_[0].labels, classes_)) {}

  /// Loss and accuracies at the end; a loss that is not finite, or above the initial one, is a diverged
  /// run.
  Cells run(const std::string& weights, const std::string& norm, long width, double rate,
            long seed) const {
    const kernels::FiniteSizes sizes{width, std::max(1L, width / 4), 8};
    const Matrix<>& input = parts_[0].inputs[0];
    kernels::FiniteNetwork network(layers_of(weights, norm), input.rows(), input.cols(), sizes,
                                   static_cast<std::uint64_t>(seed));
    std::array<Matrix<>, 3> origins;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      origins[p] = (s_.centred ? 1 : 0) * scores(network, parts_[p], classes_);
    }
    const Matrix<> targets = targets_ + origins[0];
    const Losses loss = s_.optimizer == "adam" ? adam(network, targets, rate, seed)
                                               : descent(network, targets, rate);
    const bool diverged = !(loss.last < loss.first);
    Cells cells{{"weights", weights},
                {"norm", norm},
                {"width", width},
                {"rate", rate},
                {"seed", seed},
                {"diverged", diverged ? 1L : 0L},
                {"loss", diverged ? loss.first : loss.last}};
    constexpr std::array names{"train_accuracy", "validation_accuracy", "test_accuracy"};
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      cells.emplace_back(names[p], diverged ? 0.0 : accuracy(network, parts_[p], origins[p]));
    }
    return cells;
  }

 private:
  /// On all samples; the rate in units of 1/λ_max.
  Losses descent(kernels::FiniteNetwork& network, const Matrix<>& targets, double rate) const {
    const std::vector<Matrix<>>& inputs = parts_[0].inputs;
    const double largest = -kernels::smallest_eigenvalue(-network.kernels(inputs).ntk);
    Losses losses;
    for (long step = 0; step < s_.steps && std::isfinite(losses.last); ++step) {
      if (frame::stop_requested() != 0) throw frame::Interrupted{};
      losses.add(network.step(inputs, targets, rate / largest) / static_cast<double>(inputs.size()),
                 step);
    }
    return losses;
  }

  /// On batches, in a new order in each epoch; what is left of an epoch when no batch is full is not used.
  Losses adam(kernels::FiniteNetwork& network, const Matrix<>& targets, double rate,
              long seed) const {
    numeric::RandomStream stream(static_cast<std::uint64_t>(seed), "batches");
    std::vector<std::size_t> order(parts_[0].inputs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto batch = static_cast<std::size_t>(s_.batch);
    std::vector<Matrix<>> inputs(batch);
    Matrix<> wanted(s_.batch, targets.cols());
    Losses losses;
    std::size_t at = order.size();
    for (long step = 0; step < s_.steps && std::isfinite(losses.last); ++step) {
      if (frame::stop_requested() != 0) throw frame::Interrupted{};
      if (at + batch > order.size()) {
        for (std::size_t i = order.size() - 1; i > 0; --i) {
          std::swap(order[i], order[stream.bits() % (i + 1)]);
        }
        at = 0;
      }
      for (std::size_t i = 0; i < batch; ++i, ++at) {
        inputs[i] = parts_[0].inputs[order[at]];
        wanted.row(static_cast<Index>(i)) = targets.row(static_cast<Index>(order[at]));
      }
      losses.add(network.adam_step(inputs, wanted, {.rate = rate}) / static_cast<double>(batch),
                 step);
    }
    return losses;
  }

  double accuracy(kernels::FiniteNetwork& network, const Part& part, const Matrix<>& origin) const {
    const Eigen::MatrixXd moved = scores(network, part, classes_) - origin;
    return kernels::accuracy(moved, part.labels);
  }

  const Settings& s_;
  int classes_;
  std::array<Part, 3> parts_;  // to train on, to choose by, to test on
  Matrix<> targets_;
};

/// The mean over rows of a number.
double mean_of(const std::vector<Cells>& rows, const std::string& name) {
  double sum = 0;
  for (const Cells& row : rows) {
    const auto is_it = [&](const auto& cell) { return cell.first == name; };
    sum += std::get<double>(std::find_if(row.begin(), row.end(), is_it)->second);
  }
  return sum / static_cast<double>(rows.size());
}

Report run(const Settings& s) {
  const Samples samples = read_samples(s.samples);
  const bool adam = s.optimizer == "adam";
  if (adam) require_between("--batch", s.batch, 1, s.samples.train);
  const std::vector<double> rates = adam ? s.rates : std::vector{s.rate};
  const Training training(s, samples);
  Section networks{"networks", "Trained networks"};
  Section best{"best", "Width and rate that are best on the validation inputs, means over seeds"};
  Section kernel_rows{"kernels", "Regression with the kernels of infinite width"};
  const auto cost = [](long width) { return width * width; };
  long all = 0;
  for (const long width : s.sizes) all += cost(width) * s.seeds;
  frame::Progress progress(
      "networks, by their size",
      all * static_cast<long>(rates.size() * s.weights.size() * s.norms.size()));
  for (const std::string& weights : s.weights) {
    for (const std::string& norm : s.norms) {
      if (weights != "softmax" && norm != "head") {  // which have no closed form
        const kernels::GramMatrices gram = limit_of(layers_of(weights, norm), samples);
        kernel_rows.rows.push_back({{"weights", weights},
                                    {"norm", norm},
                                    {"nngp", classify(gram.nngp, samples).test},
                                    {"ntk", classify(gram.ntk, samples).test}});
      }
      double most = 0;
      Cells chosen;
      for (const long width : s.sizes) {
        for (const double rate : rates) {
          std::vector<Cells> runs;
          for (long seed = 1; seed <= s.seeds; ++seed) {
            runs.push_back(training.run(weights, norm, width, rate, seed));
            progress.at(progress.count() + cost(width));
          }
          networks.rows.insert(networks.rows.end(), runs.begin(), runs.end());
          const double validation = mean_of(runs, "validation_accuracy");
          if (!chosen.empty() && validation <= most) continue;
          most = validation;
          chosen = {{"weights", weights},
                    {"norm", norm},
                    {"width", width},
                    {"rate", rate},
                    {"validation_accuracy", validation},
                    {"test_accuracy", mean_of(runs, "test_accuracy")}};
        }
      }
      best.rows.push_back(chosen);
    }
  }
  return {{networks, best, kernel_rows}, {}, check::Verdict::pass, samples.description};
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  s->samples.digits = train::data_file("digits.csv");
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
  o.add("--optimizer", s->optimizer, "optimizer").words({"descent", "adam"});
  o.add("--rate", s->rate,
        "learning rate (of descent, in units of 1/largest eigenvalue of the kernel at "
        "initialization)")
      .above(0)
      .below(2);
  o.add("--rates", s->rates, "learning rates to choose from (of Adam)").above(0);
  o.add("--batch", s->batch, "samples per batch (of Adam; descent takes all)").from(1);
  o.add("--centred", s->centred, "count outputs from their initial values");
  o.add("--train", s->samples.train, "training inputs").from(1);
  o.add("--validation", s->samples.validation, "inputs that the regularizer is chosen on").from(1);
  o.add("--test", s->samples.test, "test inputs").from(1);
  make_report(program, [s] { return ::run(*s); });
  return program;
}
