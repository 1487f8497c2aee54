// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// single_head: the distribution of an output of an attention layer with one head and with many, all
// of large dimension (Hron et al. 2020, arXiv:2006.10540, Figure 1): one head stays far from normal.
//
//   single_head --sizes 1,100 --out results

#include <fmt/core.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "check/report.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "scalewise/kernels/network.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;
using kernels::Index;

struct Settings {
  std::vector<long> heads{1, 4, 100};
  long dim = 1000;
  long samples = 20000;
  long tokens = 3;
  long features = 8;
  double sigma_qk = 2;
};

/// A sum of n squares of standard normals.
/// Source:   Marsaglia and Tsang 2000, twice a Gamma variable of shape n/2.
double chi_square(numeric::RandomStream& stream, double n) {
  if (n == 1) {
    const double z = stream.normal();
    return z * z;
  }
  const double d = n / 2 - 1.0 / 3;
  for (;;) {
    const double z = stream.normal();
    const double v = std::pow(1 + z / std::sqrt(9 * d), 3);
    if (v > 0 && std::log(stream.uniform()) < z * z / 2 + d * (1 - v + std::log(v)))
      return 2 * d * v;
  }
}

/// Draws the first channel of the first token's output, softmax over scores over √d, exactly and
/// without the d features of queries, keys and values: with c the first token, queries of length
/// |q|² = K_cc χ²_d give scores |q|/√d times N(0, K), and a head's share of the output is normal with
/// variance ζ K ζᵀ χ²_d/d, over all heads.
class Layer {
 public:
  Layer(const Settings& s, const Matrix<>& kernel)
      : kernel_(kernel),
        root_(Eigen::MatrixXd(kernel).llt().matrixL()),
        dim_(static_cast<double>(s.dim)),
        sigma_qk_(s.sigma_qk) {}

  double draw(numeric::RandomStream& stream, long heads) const {
    double variance = 0;
    Eigen::VectorXd z(root_.rows());
    for (long h = 0; h < heads; ++h) {
      for (double& x : z) x = stream.normal();
      const double length = std::sqrt(kernel_(0, 0) * chi_square(stream, dim_) / dim_);
      Eigen::VectorXd weights = sigma_qk_ * length * (root_ * z);
      weights = (weights.array() - weights.maxCoeff()).exp();
      weights /= weights.sum();
      variance += weights.dot(kernel_ * weights) * chi_square(stream, dim_) / dim_;
    }
    return std::sqrt(variance / static_cast<double>(heads)) * stream.normal();
  }

 private:
  Eigen::MatrixXd kernel_;
  Eigen::MatrixXd root_;
  double dim_;
  double sigma_qk_;
};

struct Moments {
  double variance = 0;
  double variance_se = 0;
  double skewness = 0;
  double kurtosis = 0;  // excess
  double jarque_bera = 0;
  double p = 0;  // of a normal sample to have as large a statistic: χ² with two degrees
};

/// Source:   Jarque and Bera 1980: N/6 (skewness² + kurtosis²/4).
Moments moments(const std::vector<double>& sample) {
  const auto n = static_cast<double>(sample.size());
  double mean = 0;
  for (const double x : sample) mean += x / n;
  double m2 = 0;
  double m3 = 0;
  double m4 = 0;
  for (const double x : sample) {
    const double d = x - mean;
    m2 += d * d / n;
    m3 += d * d * d / n;
    m4 += d * d * d * d / n;
  }
  Moments m;
  m.variance = m2;
  m.variance_se = std::sqrt((m4 - m2 * m2) / n);
  m.skewness = m3 / std::pow(m2, 1.5);
  m.kurtosis = m4 / (m2 * m2) - 3;
  m.jarque_bera = n / 6 * (m.skewness * m.skewness + m.kurtosis * m.kurtosis / 4);
  m.p = std::exp(-m.jarque_bera / 2);
  return m;
}

/// The density of a sample in bins of a fifth of a deviation, and the normal one of its variance.
plot::Panel histogram(const std::vector<double>& sample, const Moments& m, long heads) {
  constexpr int half = 25;
  const double deviation = std::sqrt(m.variance);
  std::vector<double> counts(2 * half);
  for (const double x : sample) {
    const double at = std::floor(x / deviation * 5) + half;
    if (at >= 0 && at < 2 * half) counts[static_cast<std::size_t>(at)] += 1;
  }
  plot::Curve measured{.label = "attention", .line = false};
  plot::Curve normal{.label = "normal", .points = false, .dashed = true};
  for (int bin = 0; bin < 2 * half; ++bin) {
    const double x = (bin - half + 0.5) / 5;
    const double density =
        counts[static_cast<std::size_t>(bin)] * 5 / static_cast<double>(sample.size());
    normal.x.push_back(x);
    normal.y.push_back(std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi));
    if (density == 0) continue;
    measured.x.push_back(x);
    measured.y.push_back(density);
  }
  return {.title = heads == 1 ? "1 head" : std::to_string(heads) + " heads",
          .x_label = "output in standard deviations",
          .y_label = "density",
          .log_y = true,
          .curves = {measured, normal}};
}

Matrix<> random_input(const Settings& s) {
  Matrix<> x(s.tokens, s.features);
  numeric::RandomStream stream(1, "single_head inputs");
  for (double& entry : x.reshaped()) entry = stream.normal();
  return x;
}

/// The variance of the first token's output with infinitely many heads.
double limit_of(const Settings& s, const Matrix<>& x) {
  kernels::SelfAttention attention;
  attention.scores = kernels::SelfAttention::ScoreScale::over_root_d;
  attention.sigma_q = s.sigma_qk;
  return kernels::Network({attention}).prepare(x).last.nngp.read()(0, 0);
}

/// Progress counts each hundredth of a sample as its heads and one.
std::vector<double> sample_of(const Layer& layer, long heads, long samples,
                              frame::Progress& progress) {
  numeric::RandomStream stream(1, "single_head, heads ", std::to_string(heads));
  std::vector<double> sample;
  for (long i = 0; i < samples; ++i) {
    sample.push_back(layer.draw(stream, heads));
    if (i % (samples / 100) != 0 || i >= samples / 100 * 100) continue;
    if (!progress.at(progress.count() + heads + 1)) throw frame::Interrupted{};
  }
  return sample;
}

Cells row_of(long heads, const Moments& m, double limit) {
  return {{"heads", heads},
          {"variance", m.variance},
          {"variance_se", m.variance_se},
          {"limit", limit},
          {"excess_kurtosis", m.kurtosis},
          {"skewness", m.skewness},
          {"jarque_bera", m.jarque_bera},
          {"p", m.p}};
}

/// Judges what the theory says of: one head, which is not normal, and a hundred or more, which look normal.
class Judgement {
 public:
  void add(long heads, const Moments& m, long samples) {
    if (heads > 1 && heads < 100) return;
    const bool normal = m.p > 1e-3;
    verdict_ =
        check::worse(verdict_, normal == (heads > 1) ? check::Verdict::pass : check::Verdict::fail);
    text_ += fmt::format("{}{} {} (p = {:.2g}, {} layers)", text_.empty() ? "" : "; ",
                         heads == 1 ? "one head is" : std::to_string(heads) + " heads are",
                         normal ? "not told from normal" : "not normal", m.p, samples);
  }

  void report(Report& to) const {
    to.verdict = text_.empty() ? check::Verdict::inconclusive : verdict_;
    to.reason = text_.empty()
                    ? "--sizes has neither 1 head nor 100 or more, and others are not judged"
                    : text_;
  }

 private:
  check::Verdict verdict_ = check::Verdict::pass;
  std::string text_;
};

Report run(const Settings& s) {
  const Matrix<> x = random_input(s);
  const double limit = limit_of(s, x);
  const Layer layer(s, x * x.transpose() / static_cast<double>(s.features));
  double all = 0;
  for (const long heads : s.heads) all += static_cast<double>(heads) + 1;
  frame::Progress progress("draws, by heads", static_cast<long>(all) * 100);
  Report report;
  Section section{"heads", "Output of attention: is it normal?"};
  Judgement judgement;
  for (const long heads : s.heads) {
    const std::vector<double> sample = sample_of(layer, heads, s.samples, progress);
    const Moments m = moments(sample);
    section.rows.push_back(row_of(heads, m, limit));
    report.figure.panels.push_back(histogram(sample, m, heads));
    judgement.add(heads, m, s.samples);
  }
  report.sections = {section};
  report.figure.title = "Output of an attention layer, heads of dimension " + std::to_string(s.dim);
  judgement.report(report);
  return report;
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  Program program{"single_head",
                  "Whether outputs of attention with one and with many heads are normal."};
  Options& o = *program.options;
  o.add("--sizes", s->heads, "sizes to compare (numbers of heads)").from(1).to(1'000'000);
  o.add("--head-dim", s->dim, "size of a head (of its queries, keys and values)").from(1);
  o.add("--samples", s->samples, "random layers").from(100).to(100'000'000);
  o.add("--seq", s->tokens, "tokens per sequence; of a text, bytes").from(1).to(64);
  o.add("--features", s->features, "features of an input token").from(1).to(10'000);
  o.add("--sigma-qk", s->sigma_qk, "deviation of queries times that of keys").from(0).to(1e6);
  make_report(program, [s] { return ::run(*s); });
  return program;
}
