// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/number_text.hpp"
#include "scalewise/propagation/layers.hpp"
#include "scalewise/propagation/profile.hpp"

namespace scalewise::propagation {

namespace detail {

/// f and its gradients, whichever block it is.
struct Inner {
  Reading reading;

  SignalMoments forward(const Block& block, const SignalMoments& x) const {
    if (const auto* a = std::get_if<Attention>(&block.inner))
      return attention_block(x, *a, reading);
    if (const auto* c = std::get_if<CrossAttention>(&block.inner)) {
      return cross_attention_block(x, *c, reading);
    }
    return mlp_block(x, std::get<Mlp>(block.inner), reading);
  }

  SignalMoments gradient(const Block& block, const SignalMoments& g, const SignalMoments& x) const {
    if (const auto* a = std::get_if<Attention>(&block.inner)) {
      return attention_block_gradient(g, x, *a, reading);
    }
    if (const auto* c = std::get_if<CrossAttention>(&block.inner)) {
      return cross_attention_gradient(g, x, *c, reading);
    }
    return mlp_block_gradient(g, x, std::get<Mlp>(block.inner));
  }
};

/// The variance that a norm divides by.
inline double norm_power(const SignalMoments& x, const Layers& layers) {
  return x.variance + layers.norm_epsilon;
}

/// The block's input, from the stream.
inline SignalMoments block_input(const SignalMoments& x, const Layers& layers) {
  return layers.placement == NormPlacement::pre ? scaled(1 / norm_power(x, layers), x) : x;
}

/// λ² x + β² f
inline SignalMoments residual_sum(const Block& block, const SignalMoments& x,
                                  const SignalMoments& f) {
  return sum(scaled(block.skip, x), scaled(block.branch, f));
}

/// Refuses what are no moments of so many tokens.
inline void require_moments_of(double tokens, const char* whose, const SignalMoments& x) {
  const std::string name(whose);
  if (!(x.variance >= 0) || !std::isfinite(x.variance)) {
    throw InvalidInput("variance of the " + name, numeric::number_text(x.variance),
                       "a number from 0");
  }
  const double least = -x.variance / (tokens - 1);  // of tokens whose sum is zero
  const double slack = 1e-6 * x.variance;
  if (!(x.covariance >= least - slack && x.covariance <= x.variance + slack)) {
    throw InvalidInput(
        "covariance of the " + name, numeric::number_text(x.covariance),
        "a number from " + numeric::number_text(least) + " to " + numeric::number_text(x.variance));
  }
}

/// Refuses an input that a norm cannot divide by.
inline void require_divisor(const Layers& layers, const SignalMoments& input) {
  if (layers.placement == NormPlacement::none || input.variance + layers.norm_epsilon > 0) return;
  throw InvalidInput("variance of the input", "0", "a positive number",
                     "norms divide by it, and have no epsilon");
}

/// Refuses what are no moments of tokens, and a single token, which attends to itself whatever its scores are.
inline void require_moments(const Layers& layers, const char* whose, const SignalMoments& x) {
  double tokens = 2;
  for (const Block& block : layers.blocks) {
    const auto* a = std::get_if<Attention>(&block.inner);
    if (a != nullptr && !(a->length >= 2)) {
      throw InvalidInput("length", numeric::number_text(a->length), "2 or more tokens",
                         "propagate_tokens() takes one");
    }
    if (a != nullptr) tokens = (std::max)(tokens, a->length);
  }
  require_moments_of(tokens, whose, x);
}

/// S of an attention block.
inline double score_variance(const Block& block, const SignalMoments& x) {
  if (const auto* a = std::get_if<Attention>(&block.inner)) return Scores(*a, x, x).S;
  if (const auto* c = std::get_if<CrossAttention>(&block.inner)) {
    return Scores(c->attention, x, c->memory).S;
  }
  return 0;
}

}  // namespace detail

/// The moments of the stream from block to block.
/// Equation: pre:  x <- λ² x + β² f(x/s);  post: t = λ² s + β² var f, x <- (λ² x + β² f(x))/t;
///           none: x <- λ² x + β² f(x)
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), appendix E.
/// Shapes:   input: the input of the first block
/// Accuracy: as the blocks'; skip and block are uncorrelated at initialization. Of many networks:
///           single ones scatter by 4 to 8 % after hundreds of layers of width 256.
/// Throws:   InvalidInput for layers without blocks, attention over a single token, and what are no moments.
inline Profile propagate_forward(const Layers& layers, const SignalMoments& input,
                                 Reading reading = Reading::corrected) {
  if (layers.blocks_per_layer < 1) {
    throw InvalidInput("blocks per layer", std::to_string(layers.blocks_per_layer), "at least 1");
  }
  detail::require_moments(layers, "input", input);
  detail::require_divisor(layers, input);
  const detail::Inner inner{reading};
  Profile profile;
  profile.blocks_per_layer = static_cast<std::size_t>(layers.blocks_per_layer);
  profile.forward.reserve(layers.blocks.size() + 1);
  profile.relative.reserve(layers.blocks.size());
  profile.scores.reserve(layers.blocks.size());
  SignalMoments x = input;
  profile.forward.push_back(x);
  for (const Block& block : layers.blocks) {
    const SignalMoments in = detail::block_input(x, layers);
    const SignalMoments f = inner.forward(block, in);
    profile.relative.push_back(block.branch * f.variance / (block.skip * x.variance));
    profile.scores.push_back(detail::score_variance(block, in));
    x = detail::residual_sum(block, x, f);
    if (layers.placement == NormPlacement::post) x = scaled(1 / detail::norm_power(x, layers), x);
    profile.forward.push_back(x);
  }
  return profile;
}

/// The moments of the gradient, from after the last block to before the first, into a profile.
/// Equation: pre:  g <- λ² g + β² f'(g)/s;  post: g <- g/t, then λ² g + β² f'(g);
///           none: g <- λ² g + β² f'(g)
/// Source:   as propagate_forward.
/// Shapes:   gradient: at the output of the last block
/// Accuracy: as the blocks'. Single networks scatter much more than in the forward pass.
/// Requires: a profile of propagate_forward with the same layers and reading.
/// Throws:   InvalidInput as propagate_forward.
inline void propagate_backward(const Layers& layers, const SignalMoments& gradient,
                               Profile& profile, Reading reading = Reading::corrected) {
  detail::require_moments(layers, "gradient", gradient);
  const detail::Inner inner{reading};
  const std::size_t n = layers.blocks.size();
  profile.gradient.assign(n + 1, gradient);
  profile.memory_gradient = {0, 0, 0};
  SignalMoments g = gradient;
  for (std::size_t i = n; i-- > 0;) {
    const Block& block = layers.blocks[i];
    const SignalMoments& x = profile.forward[i];
    const SignalMoments in = detail::block_input(x, layers);
    if (layers.placement == NormPlacement::post) {
      const SignalMoments added = detail::residual_sum(block, x, inner.forward(block, in));
      g = scaled(1 / detail::norm_power(added, layers), g);
    }
    if (const auto* c = std::get_if<CrossAttention>(&block.inner)) {
      const SignalMoments memory = memory_gradient(g, in, *c, reading);
      profile.memory_gradient = sum(profile.memory_gradient, scaled(block.branch, memory));
    }
    SignalMoments through = inner.gradient(block, g, in);
    if (layers.placement == NormPlacement::pre) {
      through = scaled(1 / detail::norm_power(x, layers), through);
    }
    g = detail::residual_sum(block, g, through);
    profile.gradient[i] = g;
  }
}

/// Both passes.
/// Source:   as propagate_forward.
/// Shapes:   input: the input of the first block, gradient: at the output of the last
/// Throws:   InvalidInput as propagate_forward.
inline Profile propagate(const Layers& layers, const SignalMoments& input,
                         const SignalMoments& gradient, Reading reading = Reading::corrected) {
  Profile profile = propagate_forward(layers, input, reading);
  propagate_backward(layers, gradient, profile, reading);
  return profile;
}

}  // namespace scalewise::propagation
