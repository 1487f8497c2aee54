// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include "scalewise/kernels/attention.hpp"
#include "scalewise/kernels/readouts.hpp"
#include "scalewise/kernels/token_layers.hpp"

namespace scalewise::kernels {

/// Any layer. Each has a type Own of what it needs to know of an input by itself, a function
/// prepare(own kernel) that computes it, once per input, and a function map(pair, Own of x, Own of
/// x') that turns the kernels of a pair that enter the layer into those that leave it.
using Layer = std::variant<Dense, Convolution, Nonlinearity, DenseRelu, LayerNorm, SelfAttention,
                           ResidualAttention, LocalAveragePool, Flatten, GlobalAveragePool>;

namespace detail {

template <class>
struct OwnOf;
template <class... Layers>
struct OwnOf<std::variant<Layers...>> {
  using Type = std::variant<typename Layers::Own...>;
};
/// The Own of any layer, at the layer's index: several layers may have the same.
using AnyOwn = OwnOf<Layer>::Type;

template <std::size_t i = 0>
AnyOwn prepare(const Layer& layer, const PairKernel& own) {
  if constexpr (i < std::variant_size_v<Layer>) {
    if (layer.index() != i) return prepare<i + 1>(layer, own);
    return AnyOwn(std::in_place_index<i>, std::get_if<i>(&layer)->prepare(own));
  } else {
    return {};
  }
}

template <std::size_t i = 0>
void map(const Layer& layer, PairKernel& pair, const AnyOwn& left, const AnyOwn& right) {
  if constexpr (i < std::variant_size_v<Layer>) {
    if (layer.index() != i) return map<i + 1>(layer, pair, left, right);
    std::get_if<i>(&layer)->map(pair, *std::get_if<i>(&left), *std::get_if<i>(&right));
  }
}

/// The layers, with each dense layer before a ReLU made one layer with it.
inline std::vector<Layer> fused(const std::vector<Layer>& layers) {
  std::vector<Layer> result;
  for (const Layer& layer : layers) {
    const auto* activation = std::get_if<Nonlinearity>(&layer);
    const auto* dense = result.empty() ? nullptr : std::get_if<Dense>(&result.back());
    if (activation != nullptr && activation->function == Function::relu && dense != nullptr) {
      result.back() = DenseRelu{*dense};
    } else {
      result.push_back(layer);
    }
  }
  return result;
}

/// Refuses a LayerNorm of channels whose mean is not zero: relu, abs and gelu make such ones, and layers of weights,
/// which add them up with signs, end them.
inline void require_centred(const std::vector<Layer>& layers) {
  bool centred = true;
  for (const Layer& layer : layers) {
    if (const auto* activation = std::get_if<Nonlinearity>(&layer)) {
      const Function f = activation->function;
      centred = f == Function::erf || (f == Function::identity && centred);
    } else if (std::holds_alternative<DenseRelu>(layer)) {
      centred = false;
    } else if (std::holds_alternative<Dense>(layer) || std::holds_alternative<Convolution>(layer) ||
               std::holds_alternative<SelfAttention>(layer)) {
      centred = true;
    } else if (std::holds_alternative<LayerNorm>(layer) && !centred) {
      throw InvalidInput("LayerNorm", "after relu, abs or gelu",
                         "a dense or attention layer before it, whose channels have mean zero");
    }
  }
}

/// The last layer that mixes tokens before a flatten layer, which reads the diagonal only: no layer
/// from here on has to return more. A convolution's diagonal is that of what enters it. The number of layers if there
/// is none, or if a pool over all tokens, which reads everything, comes first.
inline std::size_t last_mixing_layer(const std::vector<Layer>& layers) {
  std::size_t mixing = layers.size();
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (std::holds_alternative<Flatten>(layers[l])) return mixing;
    if (std::holds_alternative<GlobalAveragePool>(layers[l])) return layers.size();
    if (std::holds_alternative<SelfAttention>(layers[l]) ||
        std::holds_alternative<ResidualAttention>(layers[l]) ||
        std::holds_alternative<LocalAveragePool>(layers[l])) {
      mixing = l;
    }
  }
  return layers.size();
}

}  // namespace detail

/// One input on its way through a network: its features and what every layer needs of it.
struct PreparedInput {
  Matrix<> features;  // (T, n₀)
  std::vector<detail::AnyOwn> own;
  PairKernel last;  // the input's kernel with itself after the last layer
};

/// The kernels of a stack of layers, input by input and pair by pair.
/// Source:   Hron et al. 2020 (arXiv:2006.10540), Section 2: layers compose.
class Network {
 public:
  /// Throws:   InvalidInput for a LayerNorm straight after relu, abs or gelu.
  explicit Network(const std::vector<Layer>& layers)
      : layers_(detail::fused(layers)), last_mixing_(detail::last_mixing_layer(layers_)) {
    detail::require_centred(layers);
  }

  /// Shapes:   features (T, n₀)
  /// Throws:   InvalidInput for an empty input, one that is not finite, or settings of a layer that
  ///           do not hold for it.
  PreparedInput prepare(Matrix<> features) const {
    PreparedInput input{std::move(features), {}, {}};
    input_kernel(input.features, input.features, input.last);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      input.own.push_back(detail::prepare(layers_[l], input.last));
      map(l, input.last, input.own.back(), input.own.back());
    }
    return input;
  }

  /// The kernels between two inputs after the last layer.
  /// Shapes:   pair (T, T'), or (1, 1) after a readout
  /// Requires: both inputs were prepared by this network.
  /// Throws:   InvalidInput for inputs of different features, or that a layer cannot compare.
  void pair(const PreparedInput& left, const PreparedInput& right, PairKernel& pair) const {
    detail::input_product(left.features, right.features, pair);  // prepare() has checked them
    for (std::size_t l = 0; l < layers_.size(); ++l) map(l, pair, left.own[l], right.own[l]);
  }

 private:
  void map(std::size_t l, PairKernel& pair, const detail::AnyOwn& left,
           const detail::AnyOwn& right) const {
    pair.diagonal_only = l >= last_mixing_;
    detail::map(layers_[l], pair, left, right);
  }

  std::vector<Layer> layers_;
  std::size_t last_mixing_;
};

}  // namespace scalewise::kernels
