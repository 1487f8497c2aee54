// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// shallow_separation: a shallow encoder learns whether a digit is even, with scores times
// width^-1/2 and width^-1; lab/studies/shallow_encoder/README.md has the table.
//
//   shallow_separation --sizes 16,64,256

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "check/report.hpp"
#include "frame/progress.hpp"
#include "lab/programs/check/for_each_run.hpp"
#include "lab/programs/kernel/samples.hpp"
#include "lab/programs/kernel/shallow.hpp"
#include "scalewise/kernels/shallow_encoder.hpp"
#include "train/settings.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Settings {
  std::string rule = "shallow-lecun";
  std::vector<long> sizes{16, 64, 256};
  long seeds = 3;
  long steps = 200;
  double rate = 1;
  SampleSettings samples{.train = 128, .validation = 1, .test = 500};
};

/// Images, and +1 for even digits, -1 for odd ones.
struct Images {
  std::vector<MatrixXd> inputs;
  VectorXd targets;
};

/// A token is a window of pixels next to its position, one of T, both of length √(features/2): the
/// squared length is the number of features, so that scores at the start are of order one.
MatrixXd tokens_of(const Matrix<>& windows) {
  const Index tokens = windows.rows();
  MatrixXd x(tokens, windows.cols() + tokens);
  x << windows.rowwise().normalized(), MatrixXd::Identity(tokens, tokens);
  return std::sqrt(static_cast<double>(x.cols()) / 2) * x;
}

Images images_of(const Samples& samples, std::size_t begin, std::size_t end) {
  Images images;
  images.targets.resize(static_cast<Index>(end - begin));
  for (std::size_t i = begin; i < end; ++i) {
    images.inputs.push_back(tokens_of(samples.inputs[i]));
    images.targets(static_cast<Index>(i - begin)) = samples.labels[i] % 2 == 0 ? 1 : -1;
  }
  return images;
}

double loss(const VectorXd& outputs, const VectorXd& targets) {
  return (outputs - targets).squaredNorm() / (2 * static_cast<double>(targets.size()));
}

double accuracy(const VectorXd& outputs, const VectorXd& targets) {
  return (outputs.array() * targets.array() > 0).cast<double>().mean();
}

MatrixXd attention(const MatrixXd& x, const MatrixXd& scores) {
  return kernels::detail::softmax_rows(x * scores * x.transpose());
}

/// The mean entropy of a token's attention over that of equal weights: 1 is the mean of all tokens.
double entropy(const Images& images, const MatrixXd& scores) {
  double sum = 0;
  for (const MatrixXd& x : images.inputs) {
    const MatrixXd s = attention(x, scores);
    const double each = -(s.array() * s.array().max(1e-300).log()).sum();
    sum += each / static_cast<double>(s.rows()) / std::log(static_cast<double>(s.rows()));
  }
  return sum / static_cast<double>(images.inputs.size());
}

/// Steps that are reported: powers of two and the last.
bool looked_at(long step, long steps) { return (step & (step - 1)) == 0 || step == steps; }

class Run {
 public:
  Run(const Settings& s, const Images& train, const Images& test, Section& steps, Section& maps)
      : s_(s), train_(train), test_(test), steps_(steps), maps_(maps) {}

  void operator()(double tau0, long width, long seed) {
    const auto features = static_cast<long>(train_.inputs[0].cols());
    const kernels::ShallowScales scales = shallow_scales_of(
        s_.rule, tau0, width, {.tokens = train_.inputs[0].rows(), .features = features});
    kernels::ShallowEncoder encoder(features, scales, static_cast<std::uint64_t>(seed));
    const auto gradients = encoder.gradients(train_.inputs);
    const MatrixXd kernel = gradients.transpose() * gradients;
    const double rate = s_.rate / -kernels::smallest_eigenvalue(-kernel);
    add_row(encoder, tau0, width, seed, 0);
    for (long step = 1; step <= s_.steps; ++step) {
      encoder.step(train_.inputs, train_.targets, rate);
      if (looked_at(step, s_.steps)) add_row(encoder, tau0, width, seed, step);
    }
    if (seed == 1 && width == s_.sizes.back()) add_map(encoder, tau0);
  }

 private:
  void add_row(const kernels::ShallowEncoder& encoder, double tau0, long width, long seed,
               long step) {
    const VectorXd outputs = encoder.outputs(train_.inputs);
    steps_.rows.push_back(
        {{"tau0", tau0},
         {"width", width},
         {"seed", seed},
         {"step", step},
         {"loss", loss(outputs, train_.targets)},
         {"train_accuracy", accuracy(outputs, train_.targets)},
         {"test_accuracy", accuracy(encoder.outputs(test_.inputs), test_.targets)},
         {"entropy", entropy(test_, encoder.scores())}});
  }

  /// The attention weights of one test image.
  void add_map(const kernels::ShallowEncoder& encoder, double tau0) {
    const MatrixXd map = attention(test_.inputs[0], encoder.scores());
    for (Index from = 0; from < map.rows(); ++from) {
      for (Index to = 0; to < map.cols(); ++to) {
        maps_.rows.push_back(
            {{"tau0", tau0}, {"from", from}, {"to", to}, {"weight", map(from, to)}});
      }
    }
  }

  const Settings& s_;
  const Images& train_;
  const Images& test_;
  Section& steps_;
  Section& maps_;
};

Report run(const Settings& s) {
  const Samples samples = read_samples(s.samples);
  const auto first_test = static_cast<std::size_t>(samples.train + samples.validation);
  const Images train = images_of(samples, 0, static_cast<std::size_t>(samples.train));
  const Images test = images_of(samples, first_test, samples.inputs.size());
  Section steps{"steps", "Even or odd: loss, accuracy and entropy of the attention"};
  Section maps{"maps", "Attention of one test image", {}, false};
  Run one(s, train, test, steps, maps);
  double cost = 0;
  for (const long width : s.sizes) cost += 2 * static_cast<double>(width * s.seeds);
  const long all = 2 * s.seeds * static_cast<long>(s.sizes.size());
  frame::Progress progress("runs", all, cost);
  const long finished = for_each_run(s.sizes, s.seeds, [&](long width, long seed) {
    for (const double tau0 : {0.5, 1.0}) {
      one(tau0, width, seed);
      progress.done(static_cast<double>(width));
    }
  });
  Report report{{steps, maps}, {}, check::Verdict::pass, samples.description};
  if (2 * finished < all) stopped_early(report, 2 * finished, all);
  return report;
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  s->samples.digits = train::data_file("digits.csv");
  Program program{"shallow_separation",
                  "A shallow encoder on digits, with scores times width^-1/2 and width^-1."};
  Options& o = *program.options;
  o.add("--rule", s->rule, "name of a rule, see plan --list-rules")
      .words({"shallow-lecun", "shallow-he", "shallow-ntk"});
  o.add("--sizes", s->sizes, "sizes to compare (widths)").from(1).to(1'000'000).increasing();
  o.add("--seeds", s->seeds, "runs of each model, with a seed each").from(1).to(1000);
  o.add("--train", s->samples.train, "training inputs").from(2);
  o.add("--test", s->samples.test, "test inputs").from(1);
  o.add("--steps", s->steps, "optimizer steps").from(1).to(1'000'000);
  o.add("--rate", s->rate,
        "learning rate (in units of 1/largest eigenvalue of the kernel at initialization)")
      .above(0)
      .below(2);
  make_report(program, [s] { return ::run(*s); });
  return program;
}
