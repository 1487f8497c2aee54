// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Gradients by central differences, element by element, and their comparison with analytic ones.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "instances/transformer.hpp"
#include "scalewise/nn/initialize.hpp"
#include "support/tolerances.hpp"

namespace scalewise::test {

using Eigen::Index;
using nn::ConstView;
using nn::Matrix;
using nn::View;

/// The largest relative error, and where it is.
struct GradientError {
  double relative = 0;
  std::string where = "nowhere";
  double analytic = 0;
  double numeric = 0;

  bool accepted() const { return relative <= gradient_relative; }

  /// Keeps the larger error; one that is no number is the largest.
  void offer(const std::string& at, double a, double n, double floor) {
    double error = std::abs(a - n) / std::max({std::abs(a), std::abs(n), floor});
    if (!std::isfinite(error)) error = std::numeric_limits<double>::infinity();
    if (a == n) error = 0;
    if (error < relative || (error == relative && where != "nowhere")) return;
    *this = {error, at, a, n};
  }
  void offer(const GradientError& other) {
    if (other.relative >= relative) *this = other;
  }

  friend std::ostream& operator<<(std::ostream& out, const GradientError& e) {
    return out << "relative error " << e.relative << " at " << e.where << ": analytic "
               << e.analytic << ", numeric " << e.numeric;
  }
};

/// Entries of an independent standard normal, times a deviation.
inline Matrix<double> normal_matrix(Index rows, Index columns, const std::string& name,
                                    double deviation = 1) {
  nn::Stream stream(2024, name);
  Matrix<double> m(rows, columns);
  for (Index i = 0; i < m.size(); ++i) m.data()[i] = deviation * stream.normal();
  return m;
}

/// The largest size of an entry.
inline double largest(const Matrix<double>& m) { return m.cwiseAbs().maxCoeff(); }

/// Derivative of f() with respect to x, which f reads times `multiplier`; x is left as it was.
template <class F>
double central_difference(double& x, const F& f, double multiplier = 1) {
  const double kept = x;
  const double step = step_at(kept * multiplier) / multiplier;
  const double above = kept + step;
  const double below = kept - step;
  x = above;
  const double f_above = f();
  x = below;
  const double f_below = f();
  x = kept;
  return (f_above - f_below) / (above - below);
}

/// Compares every entry of the gradient of f() with respect to x, which f reads.
/// `magnitude` is the size of what f adds up, `largest` the largest gradient of the model, and
/// `multiplier` what f multiplies x by before anything else.
template <class F>
GradientError gradient_error(const std::string& name, View<double> x,
                             const Matrix<double>& analytic, const F& f, double magnitude,
                             double largest = 0, double multiplier = 1) {
  GradientError worst;
  if (x.rows() != analytic.rows() || x.cols() != analytic.cols()) {
    worst.offer(name + " (shape)", 0, std::numeric_limits<double>::infinity(), 1);
    return worst;
  }
  const double floor = std::max({1e-3 * analytic.cwiseAbs().maxCoeff(), 1e-6 * largest,
                                 rounding_floor(magnitude) * multiplier});
  for (Index r = 0; r < x.rows(); ++r) {
    for (Index c = 0; c < x.cols(); ++c) {
      const std::string at = name + "(" + std::to_string(r) + ", " + std::to_string(c) + ")";
      worst.offer(at, analytic(r, c), central_difference(x(r, c), f, multiplier), floor);
    }
  }
  return worst;
}

/// The scalar that layers are tested through: the sum of y times fixed weights, its gradient with
/// respect to y the weights. Roundings of its terms are independent, so they add up as their norm.
struct Probe {
  Matrix<double> weights;

  Probe(Index rows, Index columns) : weights(normal_matrix(rows, columns, "probe")) {}
  double operator()(const Matrix<double>& y) const { return weights.cwiseProduct(y).sum(); }
  double magnitude(const Matrix<double>& y) const {
    return std::max({1.0, std::abs((*this)(y)), weights.cwiseProduct(y).norm()});
  }
};

// ---- whole models -------------------------------------------------------------------------------

/// Moves every parameter away from its start, where gains are 1, biases 0 and some tensors zero, by
/// a normal of the given deviation as it acts, which is after the multiplier.
inline void shake(nn::Parameters<double>& parameters, const Plan& plan, double deviation = 0.3) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    nn::Stream stream(3, parameters.name(i));
    View<double> value = parameters.value(i);
    const double by = deviation / plan.entries[i].multiplier.value;
    for (Index r = 0; r < value.rows(); ++r) {
      for (Index c = 0; c < value.cols(); ++c) value(r, c) += by * stream.normal();
    }
  }
}

/// A model that is ready for its gradient to be tested.
inline void prepare(nn::Transformer<double>& model, const Plan& plan) {
  initialize(model.parameters(), plan, 7, nn::BaseDeviation::uniform(0.1));
  shake(model.parameters(), plan);
}

/// Compares one tensor's gradient with that in `gradients`, laid out as parameters().gradients();
/// with the dropout of a draw where one is given.
inline GradientError tensor_error(nn::Transformer<double>& model, const Plan& plan,
                                  const nn::Batch<double>& batch, std::size_t tensor,
                                  const Matrix<double>& gradients,
                                  std::optional<std::uint64_t> draw = {}) {
  const auto loss = [&] { return draw ? model.loss(batch, *draw) : model.loss(batch); };
  View<double> value = model.parameters().value(tensor);
  const Index offset = value.data() - model.parameters().values().data();
  const Matrix<double> analytic = ConstView<double>(
      gradients.data() + offset, value.rows(), value.cols(), Eigen::OuterStride<>(value.cols()));
  return gradient_error(model.parameters().name(tensor), value, analytic, loss,
                        std::max(1.0, loss()), gradients.cwiseAbs().maxCoeff(),
                        plan.entries[tensor].multiplier.value);
}

/// Compares the gradient of every tensor.
inline GradientError model_error(nn::Transformer<double>& model, const Plan& plan,
                                 const nn::Batch<double>& batch, const Matrix<double>& gradients,
                                 std::optional<std::uint64_t> draw = {}) {
  GradientError worst;
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    worst.offer(tensor_error(model, plan, batch, i, gradients, draw));
  }
  return worst;
}

/// Tensors whose gradient is nowhere above rounding: the model does not read them.
inline std::vector<std::string> idle_tensors(nn::Transformer<double>& model) {
  std::vector<std::string> idle;
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    if (model.parameters().gradient(i).cwiseAbs().maxCoeff() > 1e-6) continue;
    idle.push_back(model.parameters().name(i));
  }
  return idle;
}

/// Ids drawn from [0, count).
inline std::vector<int> random_ids(Index size, int count, const std::string& name) {
  nn::Stream stream(5, name);
  std::vector<int> ids;
  for (Index i = 0; i < size; ++i) {
    ids.push_back(static_cast<int>(stream.bits() % static_cast<std::uint64_t>(count)));
  }
  return ids;
}

/// A batch that fits a shape: `tokens` per sequence, and `source_tokens` of the encoder.
inline nn::Batch<double> random_batch(const Shape& shape, Index size, Index tokens,
                                      Index source_tokens) {
  nn::Batch<double> batch;
  batch.size = size;
  if (shape.input == Input::patch) {
    batch.patches = normal_matrix(size * tokens, shape.patch_dim, "patches");
    batch.targets = random_ids(size, static_cast<int>(shape.classes), "classes");
    return batch;
  }
  const int vocab = static_cast<int>(shape.vocab);
  batch.tokens = random_ids(size * tokens, vocab, "tokens");
  batch.targets = random_ids(size * tokens, vocab, "targets");
  if (shape.encoder_depth > 0) batch.source = random_ids(size * source_tokens, vocab, "source");
  return batch;
}

}  // namespace scalewise::test
