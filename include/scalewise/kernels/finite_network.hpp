// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scalewise/architecture/tensor_name.hpp"
#include "scalewise/kernels/finite_attention.hpp"
#include "scalewise/kernels/finite_layer.hpp"
#include "scalewise/kernels/gram.hpp"
#include "scalewise/kernels/network.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/random.hpp"

namespace scalewise::kernels {

namespace detail {

/// A layer of finite size; `tokens` and `features` are those that enter and, on return, those that leave.
inline std::unique_ptr<FiniteLayer> make_finite(const Layer& layer, const FiniteSizes& sizes,
                                                Index& tokens, Index& features, std::uint64_t seed,
                                                const std::string& name) {
  if (const auto* l = std::get_if<Dense>(&layer)) {
    const Index in = std::exchange(features, sizes.width);
    return std::make_unique<FiniteDense>(*l, in, sizes.width, seed, name);
  }
  if (const auto* l = std::get_if<Convolution>(&layer)) {
    const Index in = std::exchange(features, sizes.width);
    Windows seen = windows(l->sides, tokens, l->filter, l->padded);
    tokens = seen.rows();
    return std::make_unique<FiniteConvolution>(*l, std::move(seen), in, sizes.width, seed, name);
  }
  if (const auto* l = std::get_if<Nonlinearity>(&layer)) {
    return std::make_unique<FiniteActivation>(l->function);
  }
  if (const auto* l = std::get_if<LayerNorm>(&layer)) {
    return std::make_unique<FiniteNorm>(l->epsilon);
  }
  if (const auto* l = std::get_if<SelfAttention>(&layer)) {
    const Index in = std::exchange(features, sizes.width);
    return std::make_unique<FiniteAttention>(finite_form(*l), tokens, in, sizes, seed, name);
  }
  if (const auto* l = std::get_if<ResidualAttention>(&layer)) {
    FiniteSizes same = sizes;
    same.width = features;
    return std::make_unique<FiniteAttention>(finite_form(*l), tokens, features, same, seed, name);
  }
  if (const auto* l = std::get_if<LocalAveragePool>(&layer)) {
    return std::make_unique<FinitePool>(l->weights(tokens));
  }
  const Index all = std::exchange(tokens, 1);
  if (!std::holds_alternative<Flatten>(layer)) {
    return std::make_unique<FinitePool>(Matrix<>::Constant(1, all, 1 / static_cast<double>(all)));
  }
  features *= all;
  return std::make_unique<FiniteFlatten>();
}

inline void check_inputs(const std::vector<Matrix<>>& inputs) {
  if (inputs.empty()) throw InvalidInput("inputs", "(empty)", "at least one");
  for (const Matrix<>& x : inputs) {
    if (x.rows() != inputs[0].rows() || x.cols() != inputs[0].cols() || x.size() == 0) {
      throw InvalidInput("inputs", std::to_string(x.rows()) + " x " + std::to_string(x.cols()),
                         "the shape of the first, and not empty");
    }
    require_finite(x, "input");
  }
}

}  // namespace detail

/// Settings of Adam.
/// Source:   Kingma and Ba 2015 (arXiv:1412.6980), Algorithm 1.
struct AdamOptions {
  double rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;

  /// Throws:   InvalidInput for a negative rate, a β outside [0, 1) and an ε that is not positive.
  void check() const {
    detail::require_nonnegative(rate, "rate");
    for (const auto& [name, beta] : {std::pair{"beta1", beta1}, std::pair{"beta2", beta2}}) {
      if (!(beta >= 0 && beta < 1)) {
        throw InvalidInput(name, numeric::number_text(beta), "a number in [0, 1)");
      }
    }
    if (!(epsilon > 0)) {
      throw InvalidInput("epsilon", numeric::number_text(epsilon), "a positive number");
    }
  }
};

/// A random network of finite size with the layers of a kernel, and its training.
/// Equation: θ standard normal; every weight acts times σ/√fan_in
/// Source:   Hron et al. 2020 (arXiv:2006.10540), Section 2, the parametrization of NTK.
/// Shapes:   every input (T, n₀), T the same for all
/// Accuracy: exact gradients; results do not depend on threads.
/// Throws:   InvalidInput for no input, inputs of different shapes, layers that do not end in one
///           vector per input, sizes below 1, and targets that are not one row per input.
class FiniteNetwork {
 public:
  FiniteNetwork(const std::vector<Layer>& layers, Index tokens, Index features,
                const FiniteSizes& sizes, std::uint64_t seed) {
    if (sizes.width < 1 || sizes.heads < 1 || sizes.head_dim < 1 || sizes.value_dim < 0) {
      throw InvalidInput("sizes", "below 1", "a positive width, heads and head_dim");
    }
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const std::string name = scalewise::detail::layer_name(Stack::main, std::to_string(l));
      stack_.push_back(detail::make_finite(layers[l], sizes, tokens, features, seed, name));
    }
  }

  /// The output of the last layer.
  /// Shapes:   (inputs, features)
  Matrix<> outputs(const std::vector<Matrix<>>& inputs) {
    detail::check_inputs(inputs);
    Matrix<> all;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      clear();
      const Matrix<> g = forward(inputs[i]);
      if (i == 0) all.resize(static_cast<Index>(inputs.size()), g.cols());
      all.row(static_cast<Index>(i)) = g;
    }
    return all;
  }

  /// The kernels that gram() of the same layers is the limit of.
  /// Equation: nngp = (1/n) Σ_i g_i(x) g_i(x'), ntk = Σ_θ ∂g_0(x)/∂θ ∂g_0(x')/∂θ, g what leaves the
  ///           last layer, n its features
  /// Shapes:   (inputs, inputs)
  GramMatrices kernels(const std::vector<Matrix<>>& inputs) {
    detail::check_inputs(inputs);
    clear();
    std::vector<Matrix<>> g;
    g.reserve(inputs.size());
    for (const Matrix<>& x : inputs) g.push_back(forward(x));
    for (std::size_t i = 0; i < g.size(); ++i) backward(i, Matrix<>::Identity(1, g[i].cols()));
    const auto n = static_cast<Index>(inputs.size());
    GramMatrices gram{Eigen::MatrixXd(n, n), Eigen::MatrixXd(n, n)};
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j <= i; ++j) {
        const auto a = static_cast<std::size_t>(i);
        const auto b = static_cast<std::size_t>(j);
        double theta = 0;
        for (const auto& layer : stack_) theta += layer->tangent(a, b);
        gram.ntk(i, j) = gram.ntk(j, i) = theta;
        gram.nngp(i, j) = gram.nngp(j, i) =
            g[a].row(0).dot(g[b].row(0)) / static_cast<double>(g[a].cols());
      }
    }
    return gram;
  }

  /// One step of gradient descent of the first features of the output towards the targets.
  /// Equation: θ -= rate ∇ ½ Σ ‖g - targets‖²
  /// Shapes:   targets (inputs, features or fewer)
  /// Returns:  the loss before the step
  double step(const std::vector<Matrix<>>& inputs, const Matrix<>& targets, double rate) {
    const double loss = differentiate(inputs, targets);
    for (const auto& layer : stack_) {
      layer->for_each_parameter(
          [&](Matrix<>& value, const Matrix<>& gradient) { value -= rate * gradient; });
    }
    return loss;
  }

  /// One step of Adam on the same loss; its moments, and the number t of its steps, stay with the network.
  /// Equation: m = β1 m + (1-β1) ∇, v = β2 v + (1-β2) ∇²,
  ///           θ -= rate m/(1-β1^t) / (√(v/(1-β2^t)) + ε), ∇ of ½ Σ ‖g - targets‖², θ standard normal at first
  /// Source:   Kingma and Ba 2015 (arXiv:1412.6980), Algorithm 1.
  /// Shapes:   targets (inputs, features or fewer)
  /// Returns:  the loss before the step
  /// Throws:   InvalidInput as AdamOptions::check(), and as step().
  double adam_step(const std::vector<Matrix<>>& inputs, const Matrix<>& targets,
                   const AdamOptions& o) {
    o.check();
    const double loss = differentiate(inputs, targets);
    const auto t = static_cast<double>(++adam_steps_);
    const double rate = o.rate / (1 - std::pow(o.beta1, t));
    const double correction = 1 / (1 - std::pow(o.beta2, t));
    std::size_t at = 0;
    for (const auto& layer : stack_) {
      layer->for_each_parameter([&](Matrix<>& value, const Matrix<>& gradient) {
        if (at == moments_.size()) {
          const Matrix<> zero = Matrix<>::Zero(value.rows(), value.cols());
          moments_.emplace_back(zero, zero);
        }
        auto& [m, v] = moments_[at++];
        m = o.beta1 * m + (1 - o.beta1) * gradient;
        v = o.beta2 * v + (1 - o.beta2) * gradient.cwiseAbs2();
        value.array() -= rate * m.array() / ((correction * v.array()).sqrt() + o.epsilon);
      });
    }
    return loss;
  }

 private:
  /// Leaves the gradients of the loss in the layers.
  double differentiate(const std::vector<Matrix<>>& inputs, const Matrix<>& targets) {
    detail::check_inputs(inputs);
    if (targets.rows() != static_cast<Index>(inputs.size())) {
      throw InvalidInput("targets", std::to_string(targets.rows()) + " rows",
                         std::to_string(inputs.size()) + ", one per input");
    }
    clear();
    double loss = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Matrix<> g = forward(inputs[i]);
      if (targets.cols() > g.cols()) {
        throw InvalidInput("targets", std::to_string(targets.cols()) + " columns",
                           "at most " + std::to_string(g.cols()) + ", the features of the output");
      }
      Matrix<> delta = Matrix<>::Zero(1, g.cols());
      delta.leftCols(targets.cols()) =
          g.leftCols(targets.cols()) - targets.row(static_cast<Index>(i));
      loss += delta.squaredNorm() / 2;
      backward(i, delta);
    }
    return loss;
  }

  void clear() {
    for (const auto& layer : stack_) layer->clear();
  }

  Matrix<> forward(Matrix<> g) {
    for (const auto& layer : stack_) g = layer->forward(std::move(g));
    if (g.rows() != 1) throw InvalidInput("layers", "(no readout)", "one vector per input");
    return g;
  }

  void backward(std::size_t input, Matrix<> delta) {
    for (std::size_t l = stack_.size(); l-- > 0;) delta = stack_[l]->backward(input, delta);
  }

  std::vector<std::unique_ptr<detail::FiniteLayer>> stack_;
  std::vector<std::pair<Matrix<>, Matrix<>>> moments_;  // of Adam: m and v of every parameter
  long adam_steps_ = 0;
};

/// The empirical kernels of one random network of finite size.
/// Equation: FiniteNetwork::kernels()
/// Source:   Hron et al. 2020 (arXiv:2006.10540), Section 2, the parametrization of NTK.
/// Shapes:   every input (T, n₀), T the same for all; result (inputs, inputs)
/// Accuracy: exact gradients; results do not depend on threads.
/// Throws:   InvalidInput as FiniteNetwork.
inline GramMatrices finite_kernels(const std::vector<Layer>& layers,
                                   const std::vector<Matrix<>>& inputs, const FiniteSizes& sizes,
                                   std::uint64_t seed) {
  detail::check_inputs(inputs);
  return FiniteNetwork(layers, inputs[0].rows(), inputs[0].cols(), sizes, seed).kernels(inputs);
}

}  // namespace scalewise::kernels
