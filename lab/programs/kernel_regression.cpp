// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// kernel_regression: classes of images or of passages of a text by regression with the kernels of
// networks of infinite width: FLATTEN, GAP, LAP, STRUCT and RESIDUAL side by side.
//
//   kernel_regression --data digits --out results
//   kernel_regression --data chapters --kernels gap,struct

#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "check/report.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "lab/programs/kernel/classify.hpp"
#include "lab/programs/kernel/samples.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/kernels/network_gram.hpp"
#include "scalewise/kernels/stored_gram.hpp"
#include "scalewise/scaling/formula.hpp"
#include "train/settings.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;
using kernels::Index;

struct Settings {
  SampleSettings samples;
  std::vector<std::string> kernels{"flatten", "gap", "struct", "residual"};
  long depth = 2;
  long filter = 1;
  long pool = 3;
  double weight_variance = 1.7562;
  double bias_variance = 0.1841;
  double alpha = 0.5;
  double phi = 20;
  double rho = 1;
  double sigma_qk = 2;
  std::string encodings = "structured";
  std::string encoded = "auto";
  std::string weights = "softmax-over-d";
  std::string store;
};

kernels::Encodings encodings_of(const Settings& s, const Samples& samples) {
  using enum kernels::Encodings::Geometry;
  kernels::Encodings encodings;
  if (s.encodings == "random") encodings.geometry = random;
  if (s.encodings == "structured") encodings.geometry = samples.sides.empty() ? string : grid;
  encodings.sides = samples.sides;
  encodings.alpha = s.alpha;
  encodings.rho = s.rho;
  encodings.phi = s.phi;
  return encodings;
}

/// The attention of `struct`.
kernels::SelfAttention attention_of(const Settings& s, const Samples& samples) {
  kernels::SelfAttention attention;
  attention.sigma_q = s.sigma_qk;
  attention.encodings = encodings_of(s, samples);
  attention.encodings.in_values =
      s.encoded == "all" || (s.encoded == "auto" && !samples.sides.empty());
  if (s.weights != "softmax-over-d")
    attention.weights = kernels::SelfAttention::WeightFunction::identity;
  if (s.weights == "identity") attention.scores = kernels::SelfAttention::ScoreScale::over_root_d;
  return attention;
}

/// `depth` dense layers or convolutions with ReLU, then what the kernel is named after, then a dense layer.
kernels::Network network_of(const Settings& s, const std::string& kernel, const Samples& samples) {
  const double sigma_w = std::sqrt(s.weight_variance);
  const double sigma_b = std::sqrt(s.bias_variance);
  std::vector<kernels::Layer> layers;
  for (long i = 0; i < s.depth; ++i) {
    if (s.filter > 1) {
      layers.emplace_back(kernels::Convolution{sigma_w, sigma_b, s.filter, samples.sides});
    } else {
      layers.emplace_back(kernels::Dense{sigma_w, sigma_b});
    }
    layers.emplace_back(kernels::Nonlinearity{kernels::Function::relu});
  }
  if (kernel == "struct") layers.emplace_back(attention_of(s, samples));
  if (kernel == "residual")
    layers.emplace_back(kernels::ResidualAttention{encodings_of(s, samples)});
  if (kernel == "lap") layers.emplace_back(kernels::LocalAveragePool{s.pool, samples.sides});
  // The attention kernels normalize and, between tokens mixed by position, read every position.
  const bool attends = kernel == "struct" || kernel == "residual";
  if (attends) layers.emplace_back(kernels::LayerNorm{});
  const bool image = !samples.sides.empty();
  if (kernel == "flatten" || kernel == "lap" || (attends && image)) {
    layers.emplace_back(kernels::Flatten{image ? 0 : samples.longest});
  } else {
    layers.emplace_back(kernels::GlobalAveragePool{});
  }
  layers.emplace_back(kernels::Dense{sigma_w, sigma_b});
  return kernels::Network(std::move(layers));
}

/// Kernels among all inputs: training, validation and test, in this order.
kernels::GramMatrices gram_of(const Settings& s, const std::string& name, const Samples& samples,
                              const files::Inputs& inputs) {
  const kernels::Network network = network_of(s, name, samples);
  const std::vector<kernels::PreparedInput> prepared = kernels::prepare(network, samples.inputs);
  const auto n = static_cast<Index>(prepared.size());
  const kernels::NetworkPairs pairs(network, prepared);
  frame::Progress progress("pairs of " + name, static_cast<long>(n * (n + 1) / 2));
  const auto report = [&](long done, long) { return progress.at(done); };
  if (s.store.empty()) {
    kernels::GramMatrices gram = kernels::gram(n, pairs, report);
    if (gram.nngp.size() == 0) throw frame::Interrupted{};
    return gram;
  }
  files::Inputs of_kernel{{"kernel", name}};
  of_kernel.insert(of_kernel.end(), inputs.begin(), inputs.end());
  kernels::StoredGram stored(s.store + "/" + name, n, of_kernel);
  if (!stored.compute(pairs, report)) {
    std::cerr << "kernel_regression: the same command resumes from the blocks in " << s.store
              << '\n';
    throw frame::Interrupted{};
  }
  return stored.load();
}

/// Both kernels of one name, NNGP and NTK.
struct Results {
  std::string kernel;
  Classified nngp, ntk;
};

Cells row_of(const std::string& kernel, const std::string& by, const Classified& r) {
  return {{"kernel", kernel},
          {"by", by},
          {"regularizer", r.chosen.regularizer.value},
          {"validation", r.chosen.accuracy},
          {"test", r.test},
          {"test_se", r.test_se}};
}

/// The accuracies side by side, NNGP a little to the left and NTK to the right of a kernel's number.
plot::Panel accuracy_panel(const std::vector<Results>& all) {
  plot::Panel panel{"test accuracy"};
  plot::Curve nngp{.label = "NNGP", .line = false};
  plot::Curve ntk{.label = "NTK", .line = false};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto at = static_cast<double>(i + 1);
    add_point(nngp, at - 0.1, {all[i].nngp.test, all[i].nngp.test_se});
    add_point(ntk, at + 0.1, {all[i].ntk.test, all[i].ntk.test_se});
    panel.x_label += (i > 0 ? ", " : "") + std::to_string(i + 1) + " " + all[i].kernel;
  }
  panel.curves = {nngp, ntk};
  return panel;
}

Report run(const Settings& s, const files::Inputs& inputs) {
  const Samples samples = read_samples(s.samples);
  std::vector<Results> all;
  for (const std::string& name : s.kernels) {
    const kernels::GramMatrices gram = gram_of(s, name, samples, inputs);
    all.push_back({name, classify(gram.nngp, samples), classify(gram.ntk, samples)});
  }
  Report report;
  Section accuracies{"accuracies", samples.description};
  for (const Results& r : all) {
    accuracies.rows.push_back(row_of(r.kernel, "nngp", r.nngp));
    accuracies.rows.push_back(row_of(r.kernel, "ntk", r.ntk));
    if (r.nngp.test <= samples.chance || r.ntk.test <= samples.chance) {
      report.verdict = check::Verdict::fail;
    }
  }
  report.sections = {accuracies};
  report.figure = {"Regression with kernels, " + s.samples.data, {accuracy_panel(all)}};
  report.reason =
      "guessing is right for " + numeric::number_text(samples.chance) + " of the test inputs";
  return report;
}

void add_options(frame::Options& o, Settings& s) {
  SampleSettings& samples = s.samples;
  o.group("Data");
  o.add("--data", samples.data, "images, or passages of a novel").words({"digits", "chapters"});
  o.add("--digits", samples.digits, "images to learn from, a CSV file").reads();
  o.add("--text", samples.novel, "text to learn from, byte by byte (with chapters)").reads();
  o.add("--train", samples.train, "training inputs").from(1);
  o.add("--validation", samples.validation, "inputs that the regularizer is chosen on").from(1);
  o.add("--test", samples.test, "test inputs (0: all others)");
  o.add("--stride", samples.stride, "between windows of an image, of stride + 2 pixels a side")
      .from(1)
      .to(1000);
  o.add("--seed", samples.seed, "random seed (the split)");

  o.group("Kernels");
  o.add("--kernels", s.kernels, "kernels to compare")
      .words({"flatten", "gap", "lap", "struct", "residual"})
      .of_runs();
  o.add("--depth", s.depth, "layers (with ReLU, before the kernel's own)").to(1000);
  o.add("--filter", s.filter, "tokens a side that a layer sees (1: dense; else odd, a convolution)")
      .from(1)
      .to(1001);
  o.add("--pool", s.pool, "tokens a side that lap averages, odd").from(1).to(1001);
  o.add("--weight-variance", s.weight_variance, "variance of the weights of dense layers")
      .from(0)
      .to(1e6);
  o.add("--bias-variance", s.bias_variance, "variance of the biases of dense layers")
      .from(0)
      .to(1e6);
  o.add("--weights", s.weights, "attention weights of struct, of scores over d or over its root")
      .words({"softmax-over-d", "identity-over-d", "identity"});
  o.add("--encodings", s.encodings, "positional encodings of struct and residual")
      .words({"none", "random", "structured"});
  o.add("--encoded", s.encoded,
        "what sees the encodings of struct (auto: of images all, of text scores)")
      .words({"auto", "all", "scores"});
  o.add("--alpha", s.alpha, "share of the tokens next to encodings, or of the skip connection")
      .from(0)
      .to(1);
  o.add("--phi", s.phi, "decay of the encodings' covariance with the distance").from(0).to(1e6);
  o.add("--rho", s.rho, "variance of the encodings").from(0).to(1e6);
  o.add("--sigma-qk", s.sigma_qk, "deviation of queries times that of keys").from(0).to(1e6);

  o.group("Run");
  o.add("--store", s.store, "folder for Gram matrices; the same command resumes from them")
      .writes(files::try_folder);
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  s->samples.digits = train::data_file("digits.csv");
  s->samples.novel = train::data_file("austen_persuasion.txt");
  Program program{"kernel_regression",
                  "Classes by regression with kernels of infinitely wide networks."};
  add_options(*program.options, *s);
  program.check = [s] {
    SampleSettings& d = s->samples;
    (d.data == "digits" ? d.novel : d.digits).clear();
  };
  make_report(program, [s, options = program.options] { return ::run(*s, options->inputs()); });
  return program;
}
