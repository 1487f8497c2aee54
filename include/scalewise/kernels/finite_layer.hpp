// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Layers of finite size to compare kernels with: forward, backward, their own part of the tangent
// kernel, and their parameters with gradients.
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/kernels/dual.hpp"
#include "scalewise/kernels/pair_kernel.hpp"
#include "scalewise/kernels/token_layers.hpp"
#include "scalewise/numeric/random.hpp"

namespace scalewise::kernels {

/// Sizes of a network that a kernel is the limit of.
/// Source:   Hron et al. 2020 (arXiv:2006.10540), Section 2: widths, heads and head sizes go to infinity.
struct FiniteSizes {
  Index width = 64;     // features that leave a dense or attention layer
  Index heads = 64;     // of an attention layer
  Index head_dim = 8;   // d, of queries and keys of a head
  Index value_dim = 0;  // of its values; 0: head_dim
};

namespace detail {

inline Matrix<> normal_matrix(Index rows, Index columns, std::uint64_t seed, std::string_view name,
                              std::string_view end) {
  numeric::RandomStream stream(seed, name, end);
  Matrix<> m(rows, columns);
  for (Index i = 0; i < m.size(); ++i) m.data()[i] = stream.normal();
  return m;
}

/// Σ_ab (x_a·y_b)(u_a·v_b): the tangent kernel of weights that x and y enter, with gradients u and v.
inline double product(const Matrix<>& x, const Matrix<>& y, const Matrix<>& u, const Matrix<>& v) {
  return (x * y.transpose()).cwiseProduct(u * v.transpose()).sum();
}

class FiniteLayer {
 public:
  using Visit = std::function<void(Matrix<>& value, const Matrix<>& gradient)>;

  FiniteLayer() = default;
  FiniteLayer(const FiniteLayer&) = delete;
  FiniteLayer& operator=(const FiniteLayer&) = delete;
  virtual ~FiniteLayer() = default;

  /// The output of the layer; called once per input.
  virtual Matrix<> forward(Matrix<> x) = 0;
  /// The gradient of the layer's input, from that of its output; once per input.
  virtual Matrix<> backward(std::size_t input, const Matrix<>& delta) = 0;
  /// Σ over the layer's parameters of products of gradients, for two inputs.
  virtual double tangent(std::size_t, std::size_t) const { return 0; }
  /// Visits the trained parameters, always in the same order, with gradients summed over the inputs since clear();
  /// `visit` may change them.
  virtual void for_each_parameter(const Visit&) {}
  /// Drops what is kept of the inputs so far.
  virtual void clear() {}
};

/// y = σ_w/√n x W + σ_b b.
class FiniteDense : public FiniteLayer {
 public:
  FiniteDense(const Dense& layer, Index in, Index out, std::uint64_t seed, const std::string& name)
      : scale_(layer.sigma_w / std::sqrt(static_cast<double>(in))),
        sigma_b_(layer.sigma_b),
        weight_(normal_matrix(in, out, seed, name, ".weight")),
        bias_(normal_matrix(1, out, seed, name, ".bias")) {}

  Matrix<> forward(Matrix<> x) override {
    Matrix<> y = scale_ * (x * weight_);
    y.rowwise() += sigma_b_ * bias_.row(0);
    x_.push_back(std::move(x));
    return y;
  }
  Matrix<> backward(std::size_t input, const Matrix<>& delta) override {
    delta_.resize(x_.size());
    delta_[input] = delta;
    return scale_ * (delta * weight_.transpose());
  }
  double tangent(std::size_t i, std::size_t j) const override {
    return scale_ * scale_ * product(x_[i], x_[j], delta_[i], delta_[j]) +
           sigma_b_ * sigma_b_ * (delta_[i] * delta_[j].transpose()).sum();
  }
  void for_each_parameter(const Visit& visit) override {
    Matrix<> d_weight = Matrix<>::Zero(weight_.rows(), weight_.cols());
    Matrix<> d_bias = Matrix<>::Zero(1, bias_.cols());
    for (std::size_t i = 0; i < delta_.size(); ++i) {
      d_weight.noalias() += x_[i].transpose() * delta_[i];
      d_bias += delta_[i].colwise().sum();
    }
    visit(weight_, scale_ * d_weight);
    visit(bias_, sigma_b_ * d_bias);
  }
  void clear() override {
    x_.clear();
    delta_.clear();
  }

 private:
  double scale_;
  double sigma_b_;
  Matrix<> weight_;
  Matrix<> bias_;
  std::vector<Matrix<>> x_, delta_;
};

/// A dense layer on the tokens of windows, side by side.
class FiniteConvolution : public FiniteLayer {
 public:
  FiniteConvolution(const Convolution& layer, Windows windows, Index in, Index out,
                    std::uint64_t seed, const std::string& name)
      : windows_(std::move(windows)),
        dense_({layer.sigma_w, layer.sigma_b}, windows_.cols() * in, out, seed, name) {}

  Matrix<> forward(Matrix<> x) override {
    tokens_ = x.rows();
    Matrix<> seen = Matrix<>::Zero(windows_.rows(), windows_.cols() * x.cols());
    for_each_place([&](Index a, Index i, Index from) {
      seen.row(a).segment(i * x.cols(), x.cols()) = x.row(from);
    });
    return dense_.forward(std::move(seen));
  }
  Matrix<> backward(std::size_t input, const Matrix<>& delta) override {
    const Matrix<> of_seen = dense_.backward(input, delta);
    const Index in = of_seen.cols() / windows_.cols();
    Matrix<> dx = Matrix<>::Zero(tokens_, in);
    for_each_place(
        [&](Index a, Index i, Index from) { dx.row(from) += of_seen.row(a).segment(i * in, in); });
    return dx;
  }
  double tangent(std::size_t i, std::size_t j) const override { return dense_.tangent(i, j); }
  void for_each_parameter(const Visit& visit) override { dense_.for_each_parameter(visit); }
  void clear() override { dense_.clear(); }

 private:
  template <class Visit>
  void for_each_place(const Visit& visit) const {
    for (Index a = 0; a < windows_.rows(); ++a) {
      for (Index i = 0; i < windows_.cols(); ++i) {
        if (windows_(a, i) >= 0) visit(a, i, windows_(a, i));
      }
    }
  }

  Windows windows_;
  FiniteDense dense_;
  Index tokens_ = 0;
};

class FiniteActivation : public FiniteLayer {
 public:
  explicit FiniteActivation(Function function) : function_(function) {}

  Matrix<> forward(Matrix<> x) override {
    x_.push_back(x);
    return x.unaryExpr([f = function_](double u) { return value(f, u); });
  }
  Matrix<> backward(std::size_t input, const Matrix<>& delta) override {
    return delta.cwiseProduct(
        x_[input].unaryExpr([f = function_](double u) { return derivative(f, u); }));
  }
  void clear() override { x_.clear(); }

  static double value(Function f, double u) {
    switch (f) {
      case Function::identity:
        return u;
      case Function::relu:
        return u > 0 ? u : 0;
      case Function::abs:
        return std::abs(u);
      case Function::erf:
        return std::erf(u);
      case Function::gelu:
        return u * cumulative(u);
    }
    return 0;
  }
  static double derivative(Function f, double u) {
    switch (f) {
      case Function::identity:
        return 1;
      case Function::relu:
        return u > 0 ? 1 : 0;
      case Function::abs:
        return u > 0 ? 1 : -1;
      case Function::erf:
        return 2 * std::numbers::inv_sqrtpi * std::exp(-u * u);
      case Function::gelu:
        return cumulative(u) +
               u * std::exp(-u * u / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    }
    return 0;
  }

 private:
  static double cumulative(double u) { return 0.5 * std::erfc(-u / std::numbers::sqrt2); }

  Function function_;
  std::vector<Matrix<>> x_;
};

/// LayerNorm over the features of a token, without gain and bias.
class FiniteNorm : public FiniteLayer {
 public:
  explicit FiniteNorm(double epsilon) : epsilon_(epsilon) {}

  Matrix<> forward(Matrix<> x) override {
    const auto n = static_cast<double>(x.cols());
    x.colwise() -= x.rowwise().mean().eval();
    const Eigen::VectorXd inverse = (x.rowwise().squaredNorm().array() / n + epsilon_).rsqrt();
    x = inverse.asDiagonal() * x;
    y_.push_back(x);
    inverse_.push_back(inverse);
    return x;
  }
  Matrix<> backward(std::size_t input, const Matrix<>& delta) override {
    const Matrix<>& y = y_[input];
    const Eigen::VectorXd along = delta.cwiseProduct(y).rowwise().mean();
    Matrix<> dx = delta - along.asDiagonal() * y;
    dx.colwise() -= delta.rowwise().mean().eval();
    return inverse_[input].asDiagonal() * dx;
  }
  void clear() override {
    y_.clear();
    inverse_.clear();
  }

 private:
  double epsilon_;
  std::vector<Matrix<>> y_;
  std::vector<Eigen::VectorXd> inverse_;
};

/// All tokens in one row.
class FiniteFlatten : public FiniteLayer {
 public:
  Matrix<> forward(Matrix<> x) override {
    tokens_ = x.rows();
    return x.reshaped<Eigen::RowMajor>().transpose();
  }
  Matrix<> backward(std::size_t, const Matrix<>& delta) override {
    return delta.reshaped<Eigen::RowMajor>(tokens_, delta.cols() / tokens_);
  }

 private:
  Index tokens_ = 0;
};

/// Averages over tokens, of given weights.
class FinitePool : public FiniteLayer {
 public:
  explicit FinitePool(Matrix<> weights) : weights_(std::move(weights)) {}

  Matrix<> forward(Matrix<> x) override { return weights_ * x; }
  Matrix<> backward(std::size_t, const Matrix<>& delta) override {
    return weights_.transpose() * delta;
  }

 private:
  Matrix<> weights_;
};

}  // namespace detail

}  // namespace scalewise::kernels
