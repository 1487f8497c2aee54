// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "scalewise/kernels/shallow_kernel.hpp"
#include "scalewise/kernels/shallow_scales.hpp"
#include "scalewise/numeric/parallel.hpp"
#include "scalewise/numeric/random.hpp"

namespace scalewise::kernels {

/// A shallow encoder of finite width, trained by gradient descent on all its data.
/// Source:   Wu, Liu, Chrysos, Cevher 2023 (arXiv:2311.01575), problem setting and algorithm 2.
/// Shapes:   an input is (T, features), T its own; parameters are W_Q, W_K, W_V (width, features),
///           column after column, w_O (width) and, where it is not the identity, W_H (width, width)
/// Throws:   InvalidInput for scales that are not positive and finite, no features, no inputs,
///           inputs that are empty, not finite or of other features, and targets that are not one
///           per input.
/// Differs:  the source has softmax and W_H = 1; ReLU for softmax and W_H are what it leaves to others.
class ShallowEncoder {
 public:
  /// Normal weights of the variances that `s` states, from streams of the seed.
  ShallowEncoder(Eigen::Index features, const ShallowScales& s, std::uint64_t seed)
      : scales_(s), features_(features), width_(s.width) {
    detail::require_shallow(s);
    if (features < 1) throw InvalidInput("features", std::to_string(features), "at least 1");
    parameters_.resize(begin(Part::hidden) + size(Part::hidden));
    const auto draw = [&](Part part, const char* name, double variance) {
      numeric::RandomStream stream(seed, name);
      const double std_dev = std::sqrt(variance);
      for (double& w : parameters_.segment(begin(part), size(part))) w = std_dev * stream.normal();
    };
    draw(Part::query, "query", s.eta_Q);
    draw(Part::key, "key", s.eta_K);
    draw(Part::value, "value", s.eta_V);
    draw(Part::output, "output", s.eta_O);
    draw(Part::hidden, "hidden", s.eta_H);
  }

  const Eigen::VectorXd& parameters() const { return parameters_; }
  Eigen::VectorXd& parameters() { return parameters_; }

  /// τ₀ W_Qᵀ W_K.
  Eigen::MatrixXd scores() const {
    return scales_.tau_0 * weight(Part::query).transpose() * weight(Part::key);
  }

  Eigen::VectorXd outputs(std::span<const Eigen::MatrixXd> inputs) const {
    require(inputs);
    const Eigen::MatrixXd scores = this->scores();
    Eigen::VectorXd f(static_cast<Eigen::Index>(inputs.size()));
    numeric::parallel_for(f.size(), [&](Eigen::Index i) {
      const Eigen::MatrixXd& x = inputs[static_cast<std::size_t>(i)];
      const Eigen::MatrixXd z = detail::weights_of(x * scores * x.transpose(), scales_) * x;
      const Eigen::MatrixXd a = mixed(z * weight(Part::value).transpose());
      f(i) = scales_.tau_1 / static_cast<double>(x.rows()) *
             (a.cwiseMax(0.0) * weight(Part::output)).sum();
    });
    return f;
  }

  /// The gradient of every output.
  /// Shapes:   (parameters, inputs)
  Eigen::MatrixXd gradients(std::span<const Eigen::MatrixXd> inputs) const {
    require(inputs);
    const Eigen::MatrixXd scores = this->scores();
    Eigen::MatrixXd result(parameters_.size(), static_cast<Eigen::Index>(inputs.size()));
    numeric::parallel_for(result.cols(), [&](Eigen::Index i) {
      write_gradient(inputs[static_cast<std::size_t>(i)], scores, result.col(i).data());
    });
    return result;
  }

  /// The empirical tangent kernel, from gradients().
  ShallowKernel tangent_kernel(const Eigen::MatrixXd& gradients) const {
    const auto gram = [&](Part part) -> Eigen::MatrixXd {
      const auto rows = gradients.middleRows(begin(part), size(part));
      return rows.transpose() * rows;
    };
    return {gram(Part::output), gram(Part::value), gram(Part::query), gram(Part::key),
            gram(Part::hidden)};
  }

  /// One step of gradient descent.
  /// Equation: θ -= γ ∇ ½‖f - y‖²
  /// Returns:  the loss before the step
  double step(std::span<const Eigen::MatrixXd> inputs, const Eigen::VectorXd& targets,
              double rate) {
    if (targets.size() != static_cast<Eigen::Index>(inputs.size())) {
      throw InvalidInput("targets", std::to_string(targets.size()),
                         std::to_string(inputs.size()) + ", one per input");
    }
    const Eigen::VectorXd residual = outputs(inputs) - targets;
    parameters_ -= rate * (gradients(inputs) * residual);
    return residual.squaredNorm() / 2;
  }

 private:
  enum class Part { query, key, value, output, hidden };

  Eigen::Index begin(Part part) const {
    const Eigen::Index matrices = (std::min)(static_cast<Eigen::Index>(part), Eigen::Index{3});
    return matrices * width_ * features_ + (part == Part::hidden ? width_ : 0);
  }
  Eigen::Index size(Part part) const {
    if (part == Part::hidden) return has_hidden() ? width_ * width_ : 0;
    return part == Part::output ? width_ : width_ * features_;
  }
  bool has_hidden() const { return scales_.eta_H > 0; }

  /// A W_H
  Eigen::MatrixXd mixed(Eigen::MatrixXd a) const {
    if (has_hidden()) a *= weight(Part::hidden);
    return a;
  }

  Eigen::Map<const Eigen::MatrixXd> weight(Part part) const {
    return {parameters_.data() + begin(part), width_, size(part) / width_};
  }

  void require(std::span<const Eigen::MatrixXd> inputs) const {
    const Eigen::Index features = detail::require_inputs(inputs);
    if (features == features_) return;
    throw InvalidInput("inputs", std::to_string(features) + " features",
                       std::to_string(features_) + ", as the encoder has");
  }

  void write_gradient(const Eigen::MatrixXd& x, const Eigen::MatrixXd& scores, double* to) const {
    const auto part = [&](Part p) {
      return Eigen::Map<Eigen::MatrixXd>(to + begin(p), width_, size(p) / width_);
    };
    const Eigen::MatrixXd s = detail::weights_of(x * scores * x.transpose(), scales_);
    const Eigen::MatrixXd z = s * x;
    const Eigen::MatrixXd read = z * weight(Part::value).transpose();  // (T, width)
    const Eigen::MatrixXd a = mixed(read);
    const double each = scales_.tau_1 / static_cast<double>(x.rows());
    part(Part::output) = each * a.cwiseMax(0.0).colwise().sum().transpose();
    Eigen::MatrixXd da =
        each * (a.array() > 0).cast<double>().matrix() * weight(Part::output).col(0).asDiagonal();
    if (has_hidden()) {
      part(Part::hidden) = read.transpose() * da;
      da *= weight(Part::hidden).transpose();
    }
    part(Part::value) = da.transpose() * z;
    const Eigen::MatrixXd ds = da * weight(Part::value) * x.transpose();
    const Eigen::VectorXd mean = s.cwiseProduct(ds).rowwise().sum();
    const Eigen::MatrixXd dg = scales_.relu_scores
                                   ? ds.cwiseProduct((s.array() > 0).cast<double>().matrix()).eval()
                                   : s.cwiseProduct(ds.colwise() - mean).eval();
    const Eigen::MatrixXd p = scales_.tau_0 * x.transpose() * dg * x;
    part(Part::query) = weight(Part::key) * p.transpose();
    part(Part::key) = weight(Part::query) * p;
  }

  ShallowScales scales_;
  Eigen::Index features_;
  Eigen::Index width_;
  Eigen::VectorXd parameters_;
};

}  // namespace scalewise::kernels
