// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// component_errors: how far the formulas for the moments of a transformer's components are from
// simulations at random parameters, as Tables 21 and 22 of Kedia et al. 2024 (arXiv:2403.09635).
//
//   component_errors --points 100 --seed 1

#include <CLI/CLI.hpp>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "check/experiment.hpp"
#include "check/report.hpp"
#include "scalewise/nn/blas.hpp"
#include "scalewise/nn/parallel.hpp"
#include "scalewise/nn/random.hpp"
#include "scalewise/theory/activation.hpp"
#include "scalewise/theory/attention.hpp"
#include "scalewise/theory/dropout.hpp"
#include "scalewise/theory/layer_norm.hpp"
#include "scalewise/theory/linear.hpp"
#include "scalewise/theory/softmax.hpp"
#include "train/progress.hpp"
#include "train/threads.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;
using namespace scalewise::theory;
using nn::Stream;
using Matrix = Eigen::MatrixXf;  // tokens by features, or entries of a softmax by rows of scores

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr double features = 4000;  // that a point looks at, over all its draws

double uniform(Stream& stream, double low, double high) {
  return low + (high - low) * stream.uniform();
}

double log_uniform(Stream& stream, double low, double high) {
  return std::exp(uniform(stream, std::log(low), std::log(high)));
}

Eigen::Index whole(double x) { return static_cast<Eigen::Index>(std::lround(x)); }

/// Tokens by features with the given moments: a part that tokens share, and their own.
Matrix draw(Stream& stream, Eigen::Index tokens, Eigen::Index count, const Moments& m) {
  Matrix x(tokens, count);
  const double shared = std::sqrt(m.covariance);
  const auto own = static_cast<float>(std::sqrt(m.variance - m.covariance));
  for (Eigen::Index f = 0; f < count; ++f) {
    const auto center = static_cast<float>(m.mean + shared * stream.normal());
    for (Eigen::Index t = 0; t < tokens; ++t) {
      x(t, f) = center + own * static_cast<float>(stream.normal());
    }
  }
  return x;
}

/// Kept with the chance 1 - p, over it.
Matrix mask(Stream& stream, Eigen::Index rows, Eigen::Index columns, double p) {
  Matrix m(rows, columns);
  const auto kept = static_cast<float>(1 / (1 - p));
  for (Eigen::Index i = 0; i < m.size(); ++i) m.data()[i] = stream.uniform() < p ? 0 : kept;
  return m;
}

/// The moments of what was drawn, over all draws.
class Sample {
 public:
  void add(const Matrix& x) {
    const auto tokens = static_cast<double>(x.rows());
    for (Eigen::Index f = 0; f < x.cols(); ++f) {
      const auto column = x.col(f).cast<double>();
      const double sum = column.sum();
      const double squares = column.squaredNorm();
      mean_ += sum, squares_ += squares, products_ += sum * sum - squares;
    }
    entries_ += static_cast<double>(x.size());
    pairs_ += static_cast<double>(x.size()) * (tokens - 1);
  }

  Moments moments() const {
    const double mean = mean_ / entries_;
    return {mean, squares_ / entries_ - mean * mean, products_ / pairs_ - mean * mean};
  }

  /// Of what has the mean zero, as gradients do.
  Moments gradient() const {
    return {.variance = squares_ / entries_, .covariance = products_ / pairs_};
  }

 private:
  double mean_ = 0, squares_ = 0, products_ = 0, entries_ = 0, pairs_ = 0;
};

/// What goes through a component, both ways.
struct Passes {
  Sample x, y;     // in front of it and behind
  Sample g, back;  // the gradient behind it and in front
};

enum Quantity : std::size_t { mean, variance, gradient, covariance, gradient_covariance };
constexpr std::array<const char*, 5> quantity_names{"mean", "variance", "gradient", "covariance",
                                                    "gradient_covariance"};
using Errors = std::array<double, 5>;

double percent(double predicted, double simulated, double scale) {
  return 100 * std::abs(predicted - simulated) / std::abs(scale);
}

/// Relative errors; of means and covariances over the larger of value and variance.
Errors errors(const Passes& p, const Moments& y, const Moments& back) {
  const Moments seen = p.y.moments();
  const Moments seen_back = p.back.gradient();
  const auto larger = [](double value, double variance) {
    return std::max(std::abs(value), variance);
  };
  return {percent(y.mean, seen.mean, larger(seen.mean, seen.variance)),
          percent(y.variance, seen.variance, seen.variance),
          percent(back.variance, seen_back.variance, seen_back.variance),
          percent(y.covariance, seen.covariance, larger(seen.covariance, seen.variance)),
          percent(back.covariance, seen_back.covariance,
                  larger(seen_back.covariance, seen_back.variance))};
}

// ---- components, at one random point of Table 22 ---------------------------------------------------

Moments input(Stream& stream, double largest_mean) {
  const double m = largest_mean > 0 ? uniform(stream, -largest_mean, largest_mean) : 0;
  const double s = log_uniform(stream, 0.1, 10);
  return {m, s, s * stream.uniform()};
}

std::vector<Errors> linear_point(Stream& stream) {
  const Moments in = input(stream, 10);
  const Moments out = input(stream, 0);
  const Eigen::Index fan_in = whole(log_uniform(stream, 10, 1000));
  const Eigen::Index fan_out = whole(log_uniform(stream, 10, 1000));
  const Eigen::Index tokens = whole(log_uniform(stream, 100, 1000));
  const double weight = log_uniform(stream, 0.01, 100) / static_cast<double>(fan_in);
  const Matrix x = draw(stream, tokens, fan_in, in);
  const Matrix g = draw(stream, tokens, fan_out, out);
  Passes p;
  p.x.add(x);
  p.g.add(g);
  const auto draws = whole(std::ceil(features / static_cast<double>(std::min(fan_in, fan_out))));
  for (Eigen::Index i = 0; i < draws; ++i) {
    const Matrix w = draw(stream, fan_in, fan_out, correlated(weight, 0));
    p.y.add(x * w);
    p.back.add(g * w.transpose());
  }
  return {errors(p, linear(p.x.moments(), static_cast<double>(fan_in), weight),
                 linear_gradient(p.g.gradient(), static_cast<double>(fan_out), weight))};
}

/// An activation f with slope df, entry by entry. Half of the features are the other half's
/// negatives, so that the mean of x is zero.
std::vector<Errors> activation_point(Stream& stream, const auto& f, const auto& df,
                                     const auto& moments, const auto& gradient_moments) {
  const Moments in = input(stream, 0);
  const Moments out = input(stream, 0);
  const Eigen::Index tokens = whole(log_uniform(stream, 100, 1000));
  Matrix x(tokens, whole(2 * features));
  x.leftCols(whole(features)) = draw(stream, tokens, whole(features), in);
  x.rightCols(whole(features)) = -x.leftCols(whole(features));
  const Matrix g = draw(stream, tokens, x.cols(), out);
  Passes p;
  p.x.add(x);
  p.g.add(g);
  p.y.add(x.unaryExpr(f));
  p.back.add(g.cwiseProduct(x.unaryExpr(df)));
  const Moments seen = p.x.moments();
  return {errors(p, moments(seen), gradient_moments(p.g.gradient(), seen))};
}

std::vector<Errors> relu_point(Stream& stream) {
  return activation_point(
      stream, [](float x) { return std::max(x, 0.0F); },
      [](float x) { return x > 0 ? 1.0F : 0.0F; }, [](const Moments& x) { return relu(x); },
      [](const Moments& g, const Moments& x) { return relu_gradient(g, x); });
}

std::vector<Errors> gelu_point(Stream& stream) {
  const auto cdf = [](float x) { return std::erfc(-x * std::numbers::sqrt2_v<float> / 2) / 2; };
  return activation_point(
      stream, [=](float x) { return x * cdf(x); },
      [=](float x) {
        constexpr float peak = std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
        return cdf(x) + x * peak * std::exp(-x * x / 2);
      },
      [](const Moments& x) { return gelu(x); },
      [](const Moments& g, const Moments& x) { return gelu_gradient(g, x); });
}

std::vector<Errors> norm_point(Stream& stream) {
  const Moments in = input(stream, 10);
  const Moments out = input(stream, 0);
  const Eigen::Index width = whole(log_uniform(stream, 100, 1000));
  const Eigen::Index tokens = whole(log_uniform(stream, 100, 1000));
  const auto d = static_cast<double>(width);
  Passes p;
  for (double done = 0; done < 4 * features; done += d) {
    Matrix x = draw(stream, tokens, width, in);
    Matrix g = draw(stream, tokens, width, out);
    p.x.add(x);
    p.g.add(g);
    for (Eigen::Index t = 0; t < tokens; ++t) {
      x.row(t).array() -= x.row(t).mean();
      const float deviation = x.row(t).norm() / std::sqrt(static_cast<float>(width));
      x.row(t) /= deviation;
      const float along = g.row(t).dot(x.row(t)) / static_cast<float>(width);
      const float center = g.row(t).mean();
      g.row(t) = ((g.row(t).array() - center) - along * x.row(t).array()) / deviation;
    }
    p.y.add(x);
    p.back.add(g);
  }
  std::vector<Errors> all;
  // What is beyond the paper's formula is of the order of what draws differ in from their nominal
  // variance, and tokens share it: the gradient is compared at the nominal one.
  for (const Reading reading : {Reading::paper_full, Reading::corrected}) {
    all.push_back(errors(p, layer_norm(p.x.moments(), d, reading),
                         layer_norm_gradient(p.g.gradient(), in, d, reading)));
  }
  return all;
}

constexpr double largest_dropout = 0.9;  // closer to 1 so few entries are left that all is noise

std::vector<Errors> dropout_point(Stream& stream) {
  const Moments in = input(stream, 10);
  const Moments out = input(stream, 0);
  const double drop = uniform(stream, 0, largest_dropout);
  const Eigen::Index tokens = whole(log_uniform(stream, 100, 1000));
  const Matrix x = draw(stream, tokens, whole(features), in);
  const Matrix g = draw(stream, tokens, whole(features), out);
  const Matrix kept = mask(stream, tokens, whole(features), drop);
  Passes p;
  p.x.add(x);
  p.g.add(g);
  p.y.add(x.cwiseProduct(kept));
  p.back.add(g.cwiseProduct(kept));
  return {errors(p, dropout(p.x.moments(), drop), dropout_gradient(p.g.gradient(), drop))};
}

/// Softmax of columns, whose gradients have correlations up to `largest`.
std::vector<Errors> softmax_point(Stream& stream, double largest,
                                  const std::vector<Reading>& readings) {
  const Moments in = correlated(log_uniform(stream, 1e-4, 1), stream.uniform());
  const Moments out = correlated(log_uniform(stream, 0.1, 10), uniform(stream, 0, largest));
  const Eigen::Index entries = whole(log_uniform(stream, 300, 10'000));
  const auto n = static_cast<double>(entries);
  Matrix x = draw(stream, entries, whole(std::ceil(1e6 / n)), in);
  Matrix g = draw(stream, entries, x.cols(), out);
  Passes p;
  p.x.add(x);
  p.g.add(g);
  for (Eigen::Index row = 0; row < x.cols(); ++row) {
    x.col(row) = (x.col(row).array() - x.col(row).maxCoeff()).exp();
    x.col(row) /= x.col(row).sum();
    const float along = x.col(row).dot(g.col(row));
    g.col(row) = x.col(row).array() * (g.col(row).array() - along);
  }
  p.y.add(x);
  p.back.add(g);
  std::vector<Errors> all;
  for (const Reading reading : readings) {
    const Moments seen = p.x.gradient();
    const Moments back{.variance = softmax_gradient_variance(p.g.gradient(), seen, n, reading)};
    Errors e = errors(p, softmax(seen, n, reading), back);
    e[covariance] = e[gradient_covariance] = unknown;
    all.push_back(e);
  }
  return all;
}

/// One head, without values, of given d² sq sk and gradient correlation.
std::vector<Errors> attention_point(Stream& stream, double scores, double correlation) {
  const Moments in = correlated(1, stream.uniform());
  const Moments out = correlated(log_uniform(stream, 0.1, 10), correlation);
  const Eigen::Index width = whole(log_uniform(stream, 100, 1000));
  const Eigen::Index head_dim = Eigen::Index{32} << (stream.bits() % 4);
  const Eigen::Index tokens = whole(log_uniform(stream, 300, 1000));
  const double drop = uniform(stream, 0, largest_dropout);
  const auto d = static_cast<double>(width);
  const double weight = std::sqrt(scores) / d;
  Passes p;
  for (double done = 0; done < features; done += d) {
    const Matrix x = draw(stream, tokens, width, in);
    const Matrix g = draw(stream, tokens, width, out);
    const Matrix wq = draw(stream, width, head_dim, correlated(weight, 0));
    const Matrix wk = draw(stream, width, head_dim, correlated(weight, 0));
    const Matrix kept = mask(stream, tokens, tokens, drop);
    const float scale = 1 / std::sqrt(static_cast<float>(head_dim));
    const Matrix q = scale * (x * wq);
    const Matrix k = x * wk;
    Matrix probability = q * k.transpose();
    probability.colwise() -= probability.rowwise().maxCoeff().eval();
    probability = probability.array().exp();
    probability.array().colwise() /= probability.rowwise().sum().array().eval();
    const Matrix used = probability.cwiseProduct(kept);
    Matrix back = used.transpose() * g;
    Matrix score = (g * x.transpose()).cwiseProduct(kept);
    score.colwise() -= score.cwiseProduct(probability).rowwise().sum().eval();
    score = score.cwiseProduct(probability);
    back += scale * (score * k) * wq.transpose() + score.transpose() * q * wk.transpose();
    p.x.add(x);
    p.g.add(g);
    p.y.add(used * x);
    p.back.add(back);
  }
  const Attention a{.width = d,
                    .heads = d,  // values of power one, of all features
                    .length = static_cast<double>(tokens),
                    .query = weight,
                    .key = weight,
                    .value = 1 / d,
                    .probability_dropout = drop};
  std::vector<Errors> all;
  for (const Reading reading : {Reading::paper_full, Reading::corrected}) {
    const Moments x = p.x.gradient();
    all.push_back(errors(p, attention_heads(x, a, reading),
                         attention_heads_gradient(p.g.gradient(), x, a, reading)));
  }
  return all;
}

// ---- the table -----------------------------------------------------------------------------------

using Percentiles = std::array<std::array<double, 3>, 5>;  // 50, 90, 99 % by quantity

/// Points of one component, whose results are lines of the table.
struct Component {
  const char* name;
  std::vector<const char*> readings;
  std::function<std::vector<Errors>(Stream&)> point;
  const Percentiles* published = nullptr;  // Table 21
  bool costly = false;                     // a third of the points
};

constexpr std::array<double, 3> none{unknown, unknown, unknown};
constexpr Percentiles published_linear{
    {{0, 0.4, 1.3}, {0.4, 1.4, 2.8}, {0.2, 1, 2.2}, {0.4, 1.4, 2.8}, {0.2, 1, 2.2}}};
constexpr Percentiles published_relu{
    {{0.3, 1.3, 2.3}, {0.5, 1.9, 3.4}, {0.6, 1.5, 2.6}, {0.3, 1.6, 3.1}, {0.2, 1.1, 2.3}}};
constexpr Percentiles published_gelu{
    {{0.1, 1, 2.4}, {0.2, 0.6, 1.3}, {0.2, 0.6, 1.1}, {0.1, 0.5, 1.2}, {0.1, 0.4, 0.9}}};
constexpr Percentiles published_norm{
    {{0, 0, 0}, {0, 0, 0}, {0.4, 1.5, 3.2}, {0.1, 0.5, 1}, {0.2, 0.9, 2.2}}};
constexpr Percentiles published_dropout{
    {{0, 0.1, 0.5}, {0.1, 0.5, 1.5}, {0.1, 0.7, 1.5}, {0, 0.4, 1.3}, {0.1, 0.5, 1.2}}};
constexpr Percentiles published_softmax{{{0, 0, 0}, {0.2, 0.9, 4}, {0.1, 0.6, 4.5}, none, none}};
constexpr Percentiles published_attention{
    {{0.2, 1, 2.5}, {1.4, 4.1, 7.8}, {2.2, 13.3, 44.5}, {1.3, 3.9, 7.4}, {1.6, 4.5, 8.2}}};

std::vector<Component> components() {
  return {{"linear", {"exact"}, linear_point, &published_linear},
          {"ReLU", {"exact"}, relu_point, &published_relu},
          {"GELU", {"exact"}, gelu_point, &published_gelu},
          {"LayerNorm", {"paper-full", "corrected"}, norm_point, &published_norm},
          {"dropout", {"exact"}, dropout_point, &published_dropout},
          {"softmax",
           {"paper-full", "paper-simple", "corrected"},
           [](Stream& stream) {
             return softmax_point(stream, 0,
                                  {Reading::paper_full, Reading::paper_simple, Reading::corrected});
           },
           &published_softmax},
          {"softmax, correlated gradient",
           {"paper-full", "corrected"},
           [](Stream& stream) {
             return softmax_point(stream, 0.95, {Reading::paper_full, Reading::corrected});
           }},
          {"attention, published scores",
           {"paper-full", "corrected"},
           [](Stream& stream) {
             // The paper's code draws √(d sq) and √(d sk) from 0.1 to 0.6.
             const double q = uniform(stream, 0.1, 0.6);
             const double k = uniform(stream, 0.1, 0.6);
             const auto third = static_cast<double>(stream.bits() % 3);
             return attention_point(stream, q * q * k * k, third / 3);
           },
           &published_attention,
           true},
          {"attention, scores of DeepScaleLM",
           {"paper-full", "corrected"},
           [](Stream& stream) { return attention_point(stream, 1, stream.uniform()); },
           nullptr,
           true}};
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Percentiles percentiles(const std::vector<Errors>& list) {
  Percentiles p;
  for (std::size_t quantity = 0; quantity < p.size(); ++quantity) {
    std::vector<double> values;
    for (const Errors& e : list) values.push_back(e[quantity]);
    p[quantity] = none;
    if (std::isnan(values[0])) continue;
    std::sort(values.begin(), values.end());
    p[quantity] = {quantile(values, 0.5), quantile(values, 0.9), quantile(values, 0.99)};
  }
  return p;
}

std::string three(const std::array<double, 3>& p) {
  if (std::isnan(p[0])) return "-";
  char text[64];
  std::snprintf(text, sizeof(text), "%.2f %.2f %.2f", p[0], p[1], p[2]);
  return text;
}

struct Options {
  long points = 100;
  std::uint64_t seed = 1;
  int threads = 0;
  std::string format = "table";
  bool quiet = false;
};

Report run(const Options& o) {
  if (o.points < 1) throw InvalidInput("--points", std::to_string(o.points), "a positive number");
  if (o.format != "table" && o.format != "json") {
    throw InvalidInput("--format", printable(o.format), "table or json");
  }
  train::use_threads(o.threads);
  nn::keep_to_one_thread();
  Section text{"text", "Errors in percent, of 50, 90 and 99 % of the points", {}};
  text.in_file = false;
  Section numbers{"errors", "", {}};
  numbers.in_text = false;
  const auto add = [&](const char* component, const char* reading, const Percentiles& p) {
    Row row{{"component", component}, {"reading", reading}};
    for (std::size_t i = 0; i < p.size(); ++i) {
      row.emplace_back(quantity_names[i], three(p[i]));
      if (std::isnan(p[i][0])) continue;
      numbers.rows.push_back({{"component", component},
                              {"reading", reading},
                              {"quantity", quantity_names[i]},
                              {"p50", p[i][0]},
                              {"p90", p[i][1]},
                              {"p99", p[i][2]}});
    }
    text.rows.push_back(row);
  };
  train::Progress progress(0, 1, o.quiet);
  for (const Component& c : components()) {
    progress.say(c.name);
    const long points = c.costly ? (o.points + 2) / 3 : o.points;
    std::vector<std::vector<Errors>> found(static_cast<std::size_t>(points));
    nn::parallel_for(points, [&](Eigen::Index i) {
      Stream stream(o.seed, c.name, std::to_string(i));
      found[static_cast<std::size_t>(i)] = c.point(stream);
    });
    for (std::size_t reading = 0; reading < c.readings.size(); ++reading) {
      std::vector<Errors> list;
      for (const std::vector<Errors>& point : found) list.push_back(point[reading]);
      add(c.name, c.readings[reading], percentiles(list));
    }
    if (c.published != nullptr) add(c.name, "Table 21", *c.published);
  }
  Report report;
  report.program = "component_errors";
  report.settings = {{"points", o.points}, {"seed", static_cast<long>(o.seed)}};
  report.sections = {text, numbers};
  report.reason = "errors are listed, not judged";
  return report;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Errors of the moments of components against simulation.", "component_errors"};
  const auto option = [&](const char* name, auto& value, const char* help) {
    app.add_option(name, value, help)->capture_default_str()->take_last();
  };
  option("--points", o.points, "random parameters per component; a third of them for attention");
  option("--seed", o.seed, "of parameters and draws");
  option("--threads", o.threads, "0: all cores; results do not depend on it");
  option("--format", o.format, "table or json");
  app.add_flag("--quiet", o.quiet, "no progress");
  try {
    app.parse(argc, argv);
    return publish(run(o), o.format, "");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << "component_errors: " << error.what() << '\n';
    return 2;
  }
}
