// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/propagation/layers.hpp"
#include "scalewise/propagation/profile.hpp"
#include "scalewise/propagation/propagate.hpp"
#include "scalewise/propagation/token_attention.hpp"

namespace scalewise::propagation {

namespace detail {

/// The hidden features of all tokens.
inline std::vector<policy::Preactivation> hidden(const Mlp& m, const TokenCovariance& x) {
  std::vector<policy::Preactivation> all;
  for (std::size_t t = 0; t < x.tokens(); ++t) all.push_back(hidden(m, x.at(t, t)));
  return all;
}

/// mlp_block for tokens of different variances.
inline TokenCovariance mlp_block(const TokenCovariance& x, const Mlp& m) {
  const auto h = hidden(m, x);
  const double out = m.hidden * m.down;
  return by_pairs(x.tokens(), [&](std::size_t t, std::size_t u) {
    const double product = hidden_product(m, h[t], h[u], x.at(t, u), Reading::corrected);
    return out * product / (t == u ? 1 - m.dropout : 1);
  });
}

inline TokenCovariance mlp_block_gradient(const TokenCovariance& g, const TokenCovariance& x,
                                          const Mlp& m) {
  const auto h = hidden(m, x);
  const double power = m.width * m.down * m.hidden;
  return by_pairs(x.tokens(), [&](std::size_t t, std::size_t u) {
    const double slopes = hidden_slope_product(m, h[t], h[u], x.at(t, u));
    return power * slopes * g.at(t, u) / (t == u ? 1 - m.dropout : 1);
  });
}

/// y over the deviations that a norm of x divides by.
inline TokenCovariance over_norms(const TokenCovariance& y, const TokenCovariance& x,
                                  double epsilon) {
  std::vector<double> inverse;
  for (std::size_t t = 0; t < x.tokens(); ++t) {
    inverse.push_back(1 / std::sqrt(x.at(t, t) + epsilon));
  }
  return by_pairs(x.tokens(), [&](std::size_t t, std::size_t u) {
    return y.at(t, u) * inverse[t] * inverse[u];
  });
}

/// One block of a stack, token by token.
class TokenBlock {
 public:
  TokenBlock(const Layers& layers, const Block& block) : layers_(layers), block_(block) {}

  TokenCovariance forward(const TokenCovariance& x) const {
    const TokenCovariance added = sum(x, inner(in(x)));
    return layers_.placement == NormPlacement::post ? normalized(added, added) : added;
  }

  /// Adds to `memory` what cross-attention hands to the encoder.
  TokenCovariance gradient(TokenCovariance g, const TokenCovariance& x,
                           SignalMoments& memory) const {
    const TokenCovariance read = in(x);
    if (layers_.placement == NormPlacement::post) g = normalized(g, sum(x, inner(read)));
    if (const auto* c = std::get_if<CrossAttention>(&block_.inner)) {
      memory = propagation::sum(memory, scaled(block_.branch, memory_gradient(g, read, *c)));
    }
    TokenCovariance through = inner_gradient(g, read);
    if (layers_.placement == NormPlacement::pre) through = normalized(through, x);
    return sum(g, through);
  }

  double relative(const TokenCovariance& x) const {
    const double f = inner(in(x)).mean().variance;
    return block_.branch * f / (block_.skip * x.mean().variance);
  }

 private:
  TokenCovariance inner(const TokenCovariance& x) const {
    if (const auto* a = std::get_if<Attention>(&block_.inner)) return attention_block(x, *a);
    if (const auto* c = std::get_if<CrossAttention>(&block_.inner)) {
      return cross_attention_block(x, *c);
    }
    return mlp_block(x, std::get<Mlp>(block_.inner));
  }
  TokenCovariance inner_gradient(const TokenCovariance& g, const TokenCovariance& x) const {
    if (const auto* a = std::get_if<Attention>(&block_.inner)) {
      return attention_block_gradient(g, x, *a);
    }
    if (const auto* c = std::get_if<CrossAttention>(&block_.inner)) {
      return cross_attention_gradient(g, x, *c);
    }
    return mlp_block_gradient(g, x, std::get<Mlp>(block_.inner));
  }
  TokenCovariance in(const TokenCovariance& x) const {
    return layers_.placement == NormPlacement::pre ? normalized(x, x) : x;
  }

  /// λ² x + β² f
  TokenCovariance sum(const TokenCovariance& x, const TokenCovariance& f) const {
    return by_pairs(x.tokens(), [&](std::size_t t, std::size_t u) {
      return block_.skip * x.at(t, u) + block_.branch * f.at(t, u);
    });
  }

  TokenCovariance normalized(const TokenCovariance& y, const TokenCovariance& x) const {
    return over_norms(y, x, layers_.norm_epsilon);
  }

  const Layers& layers_;
  const Block& block_;
};

/// Refuses what are no moments of tokens: a variance below 0, two tokens that are more than alike, and a sum of all tokens
/// whose variance is negative.
inline void require_moments_of_tokens(const char* whose, const TokenCovariance& x) {
  for (std::size_t t = 0; t < x.tokens(); ++t) {
    require_moments_of(2, whose, {0, x.at(t, t), 0});
    for (std::size_t u = 0; u < t; ++u) {
      const double most = std::sqrt(x.at(t, t) * x.at(u, u));
      require_moments_of(2, whose, {0, most, x.at(t, u)});
    }
  }
  if (x.tokens() > 1) require_moments_of(static_cast<double>(x.tokens()), whose, x.mean());
}

/// The stream before each of the blocks from `first` to before `end`; x is the first of them.
inline std::vector<TokenCovariance> streams(const std::vector<TokenBlock>& blocks,
                                            std::size_t first, std::size_t end,
                                            const TokenCovariance& x) {
  std::vector<TokenCovariance> all{x};
  for (std::size_t i = first; i + 1 < end; ++i) all.push_back(blocks[i].forward(all.back()));
  return all;
}

}  // namespace detail

/// The moments of a stack token by token: what propagate() gives for tokens that are all alike, and
/// what a decoder needs, whose first tokens are read by many queries and read few keys.
/// Equation: as propagate(), with (L, L) second moments
/// Source:   derived, as attention_block.
/// Shapes:   input (L, L); gradient(x) (L, L), given the stream x (L, L) after the last block, or gradient(x, profile),
///           given the forward pass too; the profile has averages over tokens and pairs
/// Accuracy: as the blocks'.
/// Time and memory: O(L²) per block, twice forward; O(L² √blocks) numbers are kept.
/// Throws:   InvalidInput for moments of different lengths, and what are no moments.
Profile propagate_tokens(const Layers& layers, const TokenCovariance& input, const auto& gradient) {
  if (input.tokens() == 0) throw InvalidInput("input", "no tokens", "one token or more");
  detail::require_moments_of_tokens("input", input);
  for (std::size_t t = 0; t < input.tokens(); ++t)
    detail::require_divisor(layers, correlated(input.at(t, t), 0));
  const std::size_t n = layers.blocks.size();
  std::vector<detail::TokenBlock> blocks;
  for (const Block& block : layers.blocks) blocks.emplace_back(layers, block);

  Profile profile;
  profile.blocks_per_layer = static_cast<std::size_t>(layers.blocks_per_layer);
  profile.gradient.resize(n + 1);
  const auto stride = static_cast<std::size_t>(std::sqrt(static_cast<double>(n))) + 1;
  std::vector<TokenCovariance> kept;  // the stream before blocks 0, stride, 2 stride, …
  TokenCovariance x = input;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % stride == 0) kept.push_back(x);
    profile.forward.push_back(x.mean());
    const SignalMoments read = detail::block_input(x.mean(), layers);
    profile.relative.push_back(blocks[i].relative(x));
    profile.scores.push_back(detail::score_variance(layers.blocks[i], read));
    x = blocks[i].forward(x);
  }
  profile.forward.push_back(x.mean());

  TokenCovariance g = [&] {
    if constexpr (std::invocable<decltype(gradient), const TokenCovariance&, const Profile&>)
      return gradient(x, profile);
    else
      return gradient(x);
  }();
  if (g.tokens() != input.tokens()) {
    throw InvalidInput("gradient", std::to_string(g.tokens()) + " tokens",
                       "as many as the input has: " + std::to_string(input.tokens()));
  }
  detail::require_moments_of_tokens("gradient", g);
  profile.gradient[n] = g.mean();
  for (std::size_t segment = kept.size(); segment-- > 0;) {
    const std::size_t first = segment * stride;
    const std::size_t end = (std::min)(first + stride, n);
    const auto streams = detail::streams(blocks, first, end, kept[segment]);
    for (std::size_t i = end; i-- > first;) {
      g = blocks[i].gradient(std::move(g), streams[i - first], profile.memory_gradient);
      profile.gradient[i] = g.mean();
    }
  }
  return profile;
}

}  // namespace scalewise::propagation
