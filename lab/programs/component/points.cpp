// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "lab/programs/component/points.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include "scalewise/propagation/activation.hpp"
#include "scalewise/propagation/attention.hpp"
#include "scalewise/propagation/dropout.hpp"
#include "scalewise/propagation/layer_norm.hpp"
#include "scalewise/propagation/linear.hpp"
#include "scalewise/propagation/softmax.hpp"

namespace scalewise::component {

using namespace propagation;

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr double features = 4000;        // that a point looks at, over all its draws
constexpr double largest_dropout = 0.9;  // closer to 1 so few entries are left that all is noise

Eigen::Index whole(double x) { return static_cast<Eigen::Index>(std::lround(x)); }

SignalMoments input(numeric::RandomStream& stream, double largest_mean) {
  const double m = largest_mean > 0 ? uniform(stream, -largest_mean, largest_mean) : 0;
  const double s = log_uniform(stream, 0.1, 10);
  return {m, s, s * stream.uniform()};
}

/// An activation f with slope df, entry by entry. Half of the features are the other half's
/// negatives, so that the mean of x is zero.
std::vector<Errors> activation_point(numeric::RandomStream& stream, const auto& f, const auto& df,
                                     const auto& moments, const auto& gradient_moments) {
  const SignalMoments in = input(stream, 0);
  const SignalMoments out = input(stream, 0);
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
  const SignalMoments seen = p.x.moments();
  return {errors(p, moments(seen), gradient_moments(p.g.gradient(), seen))};
}

/// Draws one head, what it reads (x) and the gradient of what it returns (g), and adds both passes.
void add_head(numeric::RandomStream& stream, const Attention& a, Eigen::Index head_dim,
              const SignalMoments& in, const SignalMoments& out, Passes& p) {
  const Eigen::Index tokens = whole(a.length);
  const Eigen::Index width = whole(a.width);
  const Matrix x = draw(stream, tokens, width, in);
  const Matrix g = draw(stream, tokens, width, out);
  const Matrix wq = draw(stream, width, head_dim, correlated(a.query, 0));
  const Matrix wk = draw(stream, width, head_dim, correlated(a.key, 0));
  const Matrix kept = mask(stream, tokens, tokens, a.probability_dropout);
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

}  // namespace

std::vector<Errors> linear_point(numeric::RandomStream& stream) {
  const SignalMoments in = input(stream, 10);
  const SignalMoments out = input(stream, 0);
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

std::vector<Errors> relu_point(numeric::RandomStream& stream) {
  return activation_point(
      stream, [](float x) { return std::max(x, 0.0F); },
      [](float x) { return x > 0 ? 1.0F : 0.0F; }, [](const SignalMoments& x) { return relu(x); },
      [](const SignalMoments& g, const SignalMoments& x) { return relu_gradient(g, x); });
}

std::vector<Errors> gelu_point(numeric::RandomStream& stream) {
  const auto cdf = [](float x) { return std::erfc(-x * std::numbers::sqrt2_v<float> / 2) / 2; };
  return activation_point(
      stream, [=](float x) { return x * cdf(x); },
      [=](float x) {
        constexpr float peak = std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
        return cdf(x) + x * peak * std::exp(-x * x / 2);
      },
      [](const SignalMoments& x) { return gelu(x); },
      [](const SignalMoments& g, const SignalMoments& x) { return gelu_gradient(g, x); });
}

std::vector<Errors> norm_point(numeric::RandomStream& stream) {
  const SignalMoments in = input(stream, 10);
  const SignalMoments out = input(stream, 0);
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
  // The terms beyond the paper's formula are as small as the difference between the draws' variance and
  // the nominal one, and tokens share it: the gradient is compared at the nominal one.
  for (const Reading reading : {Reading::paper_full, Reading::corrected}) {
    all.push_back(errors(p, layer_norm(p.x.moments(), d, reading),
                         layer_norm_gradient(p.g.gradient(), in, d, reading)));
  }
  return all;
}

std::vector<Errors> dropout_point(numeric::RandomStream& stream) {
  const SignalMoments in = input(stream, 10);
  const SignalMoments out = input(stream, 0);
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

std::vector<Errors> softmax_point(numeric::RandomStream& stream, double largest,
                                  const std::vector<Reading>& readings) {
  const SignalMoments in = correlated(log_uniform(stream, 1e-4, 1), stream.uniform());
  const SignalMoments out = correlated(log_uniform(stream, 0.1, 10), uniform(stream, 0, largest));
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
    const SignalMoments seen = p.x.gradient();
    const SignalMoments back{.variance =
                                 softmax_gradient_variance(p.g.gradient(), seen, n, reading)};
    Errors e = errors(p, softmax(seen, n, reading), back);
    e[covariance] = e[gradient_covariance] = unknown;
    all.push_back(e);
  }
  return all;
}

std::vector<Errors> attention_point(numeric::RandomStream& stream, double scores,
                                    double correlation) {
  const SignalMoments in = correlated(1, stream.uniform());
  const SignalMoments out = correlated(log_uniform(stream, 0.1, 10), correlation);
  const auto width = static_cast<double>(whole(log_uniform(stream, 100, 1000)));
  const Eigen::Index head_dim = Eigen::Index{32} << (stream.bits() % 4);
  const auto tokens = static_cast<double>(whole(log_uniform(stream, 300, 1000)));
  const double weight = std::sqrt(scores) / width;
  const Attention a{.width = width,
                    .heads = width,  // values of power one, of all features
                    .length = tokens,
                    .query = weight,
                    .key = weight,
                    .value = 1 / width,
                    .probability_dropout = uniform(stream, 0, largest_dropout)};
  Passes p;
  for (double done = 0; done < features; done += width) {
    add_head(stream, a, head_dim, in, out, p);
  }
  std::vector<Errors> all;
  for (const Reading reading : {Reading::paper_full, Reading::corrected}) {
    const SignalMoments x = p.x.gradient();
    all.push_back(errors(p, attention_heads(x, a, reading),
                         attention_heads_gradient(p.g.gradient(), x, a, reading)));
  }
  return all;
}

}  // namespace scalewise::component
