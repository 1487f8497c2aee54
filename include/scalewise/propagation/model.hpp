// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <variant>

#include "scalewise/propagation/cross_entropy.hpp"
#include "scalewise/propagation/data.hpp"
#include "scalewise/propagation/plan_layers.hpp"
#include "scalewise/propagation/propagate.hpp"
#include "scalewise/propagation/token_propagate.hpp"

namespace scalewise::propagation {

namespace detail {

/// Variances that tables of embeddings add: of what tokens share as their data say, and of the rest.
struct EmbeddingPowers {
  double content = 0;  // of equal tokens, or per mean square of a patch's entries
  double segments = 0;
  double positions = 0;
};

inline EmbeddingPowers embedding_powers(const Plan& plan, Stack stack) {
  check_covered(plan);
  const std::string positions =
      to_string(architecture::TensorName{stack, -1, "position_embedding"});
  const double m = plan.model.embedding_multiplier.value;
  EmbeddingPowers powers;
  for (const Entry& e : plan.entries) {
    if (e.group == Group::token_embedding) powers.content = e.init_variance.value * m * m;
    if (e.group == Group::patch_embedding) {
      powers.content = static_cast<double>(plan.shape.patch_dim) * e.init_variance.value * m * m;
    }
    if (e.group == Group::segment_embedding) powers.segments = entry_power(e);
    if (e.name == positions) powers.positions = entry_power(e);
  }
  return powers;
}

/// The variance before the head of a gradient that has length one at the logits.
inline double head_power(const Plan& plan) {
  const char* head = plan.shape.tied_head.value_or(false) ? "token_embedding" : "head";
  const double m = plan.model.logit_multiplier.value;
  return m * m * plan.at(head).init_variance.value;
}

inline long output_count(const Plan& plan) {
  return plan.shape.input == Input::patch ? plan.shape.classes : plan.shape.vocab;
}

}  // namespace detail

/// The moments of the input of the first layer of a plan's model.
/// Equation: var = content + segments + positions, cov = content repeats + segments segment_repeats,
///           over (1-p) and not; content: m² sw of tokens, n_patch sw E x² of patches, whose
///           repeats are their correlation
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.1.
/// Accuracy: exact over weights. Pairs of tokens are averaged, while equal tokens have correlation
///           one: the first layers see a mixture, which the form token by token below follows. A
///           class token counts as one more patch.
/// Throws:   InvalidInput for conditions and data out of their ranges.
inline SignalMoments embedding(const Plan& plan, const Conditions& c, const Data& data,
                               Stack stack = Stack::main) {
  detail::check_conditions(c);
  detail::check_data(data);
  const detail::EmbeddingPowers p = detail::embedding_powers(plan, stack);
  const bool patches = plan.shape.input == Input::patch;
  SignalMoments x = correlated(p.content * (patches ? data.patch_power : 1),
                               patches ? data.patch_correlation : data.repeats);
  x = sum(x, correlated(p.segments, data.segment_repeats));
  x = sum(x, correlated(p.positions, 0));
  if (plan.shape.embedding_norm) x = scaled(1 / (x.variance + c.norm_epsilon), x);
  return dropout(x, c.dropout);
}

/// The same of one sequence, token by token.
/// Source:   as above.
/// Shapes:   content (L, L): whether two tokens are the same, 0 or 1, or the mean product of two
///           patches' entries; all tokens of one segment
/// Throws:   InvalidInput as above.
inline TokenCovariance embedding(const Plan& plan, const Conditions& c,
                                 const TokenCovariance& content) {
  detail::check_conditions(c);
  const detail::EmbeddingPowers p = detail::embedding_powers(plan, Stack::main);
  TokenCovariance x = detail::by_pairs(content.tokens(), [&](std::size_t t, std::size_t u) {
    return p.content * content.at(t, u) + p.segments + (t == u ? p.positions : 0);
  });
  if (plan.shape.embedding_norm) x = detail::over_norms(x, x, c.norm_epsilon);
  for (std::size_t t = 0; t < x.tokens(); ++t) x.at(t, t) /= 1 - c.dropout;
  return x;
}

/// The moments of the gradient with respect to what the last stack leaves, for an untrained head.
/// Equation: m² sw times cross_entropy_gradient of logits = m h x, entries of h of variance sw; of
///           the sum of all tokens' losses, or of one example's loss over L² where tokens are pooled
/// Source:   derived.
/// Shapes:   left: of what the last stack leaves
/// Throws:   InvalidInput for a class token, which would get all of the gradient, and for data out of their ranges.
inline SignalMoments loss_gradient(const Plan& plan, const Conditions& c, const Data& data,
                                   const SignalMoments& left) {
  if (plan.shape.class_token) detail::refuse("class_token", "true", "the mean over patches");
  detail::check_data(data);
  const double power = detail::head_power(plan);
  const long outputs = detail::output_count(plan);
  const SignalMoments logits = scaled(power * static_cast<double>(plan.shape.d_model), left);
  if (plan.shape.input != Input::patch) {
    return scaled(power, cross_entropy_gradient(outputs, logits, data.repeats));
  }
  const double pooled = (logits.variance + (c.length - 1) * logits.covariance) / c.length;
  const double own = cross_entropy_gradient(outputs, correlated(pooled, 1), 1).variance;
  return correlated(power * own / (c.length * c.length), 1);
}

/// The same of one sequence, token by token.
/// Source:   as above.
/// Shapes:   left (L, L); same_target (L, L): whether two tokens have the same target, 0 or 1
inline TokenCovariance loss_gradient(const Plan& plan, const Conditions& c,
                                     const TokenCovariance& same_target,
                                     const TokenCovariance& left) {
  const SignalMoments mean = left.mean();
  if (plan.shape.input == Input::patch) return {left.tokens(), loss_gradient(plan, c, {}, mean)};
  const SignalMoments same = loss_gradient(plan, c, {.repeats = 1}, mean);
  const SignalMoments other = loss_gradient(plan, c, {.repeats = 0}, mean);
  return detail::by_pairs(left.tokens(), [&](std::size_t t, std::size_t u) {
    if (t == u) return same.variance;
    return same_target.at(t, u) > 0 ? same.covariance : other.covariance;
  });
}

namespace detail {

/// The gradient that a final norm, where there is one, passes to the stream, given gradient(hidden) of
/// the final hidden state.
TokenCovariance through_final_norm(const Plan& plan, const TokenCovariance& stream, double epsilon,
                                   const auto& gradient) {
  if (!plan.shape.final_norm) return gradient(stream);
  return over_norms(gradient(over_norms(stream, stream, epsilon)), stream, epsilon);
}

/// A stack between its embedding and its final norm.
/// Shapes:   gradient(left): of what the stack leaves, given the moments of that
inline Profile stack_profile(const Plan& plan, const Layers& layers, const SignalMoments& input,
                             const auto& gradient) {
  for (const Block& block : layers.blocks) {
    const auto* a = std::get_if<Attention>(&block.inner);
    if (a == nullptr || !(a->causal || a->length == 1)) continue;  // averages are over pairs
    const auto tokens = static_cast<std::size_t>(a->length);
    return propagate_tokens(layers, {tokens, input}, [&](const TokenCovariance& stream) {
      return through_final_norm(plan, stream, layers.norm_epsilon,
                                [&](const TokenCovariance& left) {
                                  return TokenCovariance(tokens, gradient(left.mean()));
                                });
    });
  }
  Profile profile = propagate_forward(layers, input);
  const SignalMoments stream = profile.forward.back();
  const double power = plan.shape.final_norm ? 1 / norm_power(stream, layers) : 1;
  propagate_backward(layers, scaled(power, gradient(scaled(power, stream))), profile);
  return profile;
}

inline void require_one_stack(const Plan& plan) {
  if (plan.shape.encoder_depth == 0) return;
  throw InvalidInput("encoder_depth", std::to_string(plan.shape.encoder_depth), "0",
                     "predict_encoder_decoder() is for two stacks");
}

}  // namespace detail

/// The profile of a model of one stack between moments that were measured.
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), appendix E, corrected.
/// Shapes:   input: the input of the first layer, gradient: at the output of the final norm
/// Accuracy: as propagate(), with causal attention token by token.
/// Throws:   InvalidInput as plan_layers, and for a plan of two stacks.
inline Profile predict(const Plan& plan, const Conditions& c, const SignalMoments& input,
                       const SignalMoments& gradient) {
  detail::require_one_stack(plan);
  return detail::stack_profile(plan, plan_layers(plan, c), input,
                               [&](const SignalMoments&) { return gradient; });
}

/// The profile of an untrained model of one stack, gradients those of its own loss.
/// Source:   as above, with loss_gradient.
/// Shapes:   input: the input of the first layer, from embedding() or measured
/// Throws:   InvalidInput as plan_layers, and for a plan of two stacks.
inline Profile predict(const Plan& plan, const Conditions& c, const Data& data,
                       const SignalMoments& input) {
  detail::require_one_stack(plan);
  return detail::stack_profile(plan, plan_layers(plan, c), input, [&](const SignalMoments& left) {
    return loss_gradient(plan, c, data, left);
  });
}
inline Profile predict(const Plan& plan, const Conditions& c, const Data& data) {
  return predict(plan, c, data, embedding(plan, c, data));
}

/// The same on one sequence, token by token.
/// Source:   as above.
/// Shapes:   content and same_target (L, L), as embedding() and loss_gradient() take them
/// Accuracy: as propagate_tokens().
/// Throws:   InvalidInput as above, and for another length than the conditions'.
inline Profile predict(const Plan& plan, const Conditions& c, const TokenCovariance& content,
                       const TokenCovariance& same_target) {
  detail::require_one_stack(plan);
  if (static_cast<double>(content.tokens()) != c.length) {
    throw InvalidInput("content", std::to_string(content.tokens()) + " tokens",
                       numeric::number_text(c.length) + ", the length of the conditions");
  }
  const TokenCovariance input = embedding(plan, c, content);
  return propagate_tokens(plan_layers(plan, c), input, [&](const TokenCovariance& stream) {
    return detail::through_final_norm(
        plan, stream, c.norm_epsilon,
        [&](const TokenCovariance& left) { return loss_gradient(plan, c, same_target, left); });
  });
}

/// The profiles of both stacks.
struct EncoderDecoderProfile {
  Profile encoder;
  Profile decoder;
};

/// The profiles of an encoder-decoder, whose decoder is causal and reads the encoder in every layer.
/// Source:   as predict.
/// Shapes:   inputs: the inputs of the first layers; gradient: at the output of the decoder
/// Accuracy: as predict. Of the reference transformer (means over networks, d = 128, 6 + 6 layers,
///           96 and 48 tokens) variances are 1.5 % away on average over blocks, those of gradients
///           4 %; around the decoder's first block, whose tokens read few keys, 10 and 18 %.
/// Throws:   InvalidInput as plan_layers, and for a plan of one stack.
inline EncoderDecoderProfile predict_encoder_decoder(const Plan& plan, const Conditions& c,
                                                     const SignalMoments& source,
                                                     const SignalMoments& input,
                                                     const SignalMoments& gradient) {
  if (plan.shape.encoder_depth == 0) {
    throw InvalidInput("encoder_depth", "0", "a positive number", "predict() is for one stack");
  }
  const Layers encoder = plan_layers(plan, c, Stack::encoder);
  Layers decoder = plan_layers(plan, c, Stack::decoder);
  SignalMoments memory = propagate_forward(encoder, source).forward.back();
  if (plan.shape.final_norm) memory = scaled(1 / detail::norm_power(memory, encoder), memory);
  for (Block& block : decoder.blocks) {
    if (auto* cross = std::get_if<CrossAttention>(&block.inner)) cross->memory = memory;
  }
  EncoderDecoderProfile both;
  both.decoder =
      detail::stack_profile(plan, decoder, input, [&](const SignalMoments&) { return gradient; });
  both.encoder = detail::stack_profile(
      plan, encoder, source, [&](const SignalMoments&) { return both.decoder.memory_gradient; });
  return both;
}

}  // namespace scalewise::propagation
