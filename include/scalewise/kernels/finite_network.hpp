// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scalewise/kernels/finite_attention.hpp"
#include "scalewise/kernels/finite_layer.hpp"
#include "scalewise/kernels/gram.hpp"
#include "scalewise/kernels/network.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/random.hpp"

namespace scalewise::kernels {

namespace detail {

/// A layer of finite size; `features` is the number of inputs and, on return, of outputs.
inline std::unique_ptr<FiniteLayer> make_finite(const Layer& layer, const FiniteSizes& sizes,
                                                Index tokens, Index& features, std::uint64_t seed,
                                                const std::string& name) {
  if (const auto* l = std::get_if<Dense>(&layer)) {
    const Index in = std::exchange(features, sizes.width);
    return std::make_unique<FiniteDense>(*l, in, sizes.width, seed, name);
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
  const bool flatten = std::holds_alternative<Flatten>(layer);
  if (flatten) features *= tokens;
  return std::make_unique<FiniteReadout>(flatten);
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

using FiniteStack = std::vector<std::unique_ptr<FiniteLayer>>;

/// The output of the last layer, a row for each input.
inline std::vector<Matrix<>> run_forward(const FiniteStack& stack,
                                         const std::vector<Matrix<>>& inputs) {
  std::vector<Matrix<>> outputs;
  for (const Matrix<>& x : inputs) {
    Matrix<> g = x;
    for (const auto& layer : stack) g = layer->forward(std::move(g));
    if (g.rows() != 1) throw InvalidInput("layers", "(no readout)", "one vector per input");
    outputs.push_back(std::move(g));
  }
  return outputs;
}

/// Leaves in the layers the gradients of the first feature of each output.
inline void run_backward(const FiniteStack& stack, const std::vector<Matrix<>>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Matrix<> delta = Matrix<>::Zero(1, outputs[i].cols());
    delta(0, 0) = 1;
    for (std::size_t l = stack.size(); l-- > 0;) delta = stack[l]->backward(i, delta);
  }
}

}  // namespace detail

/// The empirical kernels of one random network of finite size: what gram() of the same layers is
/// the limit of.
/// Equation: nngp = (1/n) Σ_i g_i(x) g_i(x'), ntk = Σ_θ ∂g_0(x)/∂θ ∂g_0(x')/∂θ, g what leaves the
///           last layer, n its features
/// Source:   Hron et al. 2020 (arXiv:2006.10540), Section 2, the parameterization of NTK.
/// Shapes:   every input (T, n₀), T the same for all; result (inputs, inputs)
/// Accuracy: exact gradients; results do not depend on threads.
/// Throws:   InvalidInput for no input, inputs of different shapes, layers that do not end in one
///           vector per input, and sizes below 1.
inline GramMatrices finite_kernels(const std::vector<Layer>& layers,
                                   const std::vector<Matrix<>>& inputs, const FiniteSizes& sizes,
                                   std::uint64_t seed) {
  detail::check_inputs(inputs);
  if (sizes.width < 1 || sizes.heads < 1 || sizes.head_dim < 1) {
    throw InvalidInput("sizes", "below 1", "a positive width, heads and head_dim");
  }
  Index features = inputs[0].cols();
  detail::FiniteStack stack;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    stack.push_back(detail::make_finite(layers[l], sizes, inputs[0].rows(), features, seed,
                                        "layer." + std::to_string(l)));
  }
  const std::vector<Matrix<>> outputs = detail::run_forward(stack, inputs);
  detail::run_backward(stack, outputs);
  const auto n = static_cast<Index>(inputs.size());
  GramMatrices gram{Eigen::MatrixXd(n, n), Eigen::MatrixXd(n, n)};
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j <= i; ++j) {
      const auto a = static_cast<std::size_t>(i);
      const auto b = static_cast<std::size_t>(j);
      double theta = 0;
      for (const auto& layer : stack) theta += layer->tangent(a, b);
      gram.ntk(i, j) = gram.ntk(j, i) = theta;
      gram.nngp(i, j) = gram.nngp(j, i) =
          outputs[a].row(0).dot(outputs[b].row(0)) / static_cast<double>(outputs[a].cols());
    }
  }
  return gram;
}

}  // namespace scalewise::kernels
