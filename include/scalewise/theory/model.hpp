// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <variant>

#include "scalewise/theory/data.hpp"
#include "scalewise/theory/plan_layers.hpp"
#include "scalewise/theory/propagate.hpp"
#include "scalewise/theory/token_propagate.hpp"

namespace scalewise::theory {

/// The moments of what enters the first layer of a plan's model.
/// Equation: token: var = m² sw + Σ others, cov = m² sw repeats + segments sw 2/3, patches:
///           var = n_patch sw E x², cov the same times the correlation of patches; over (1-p)
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.1.
/// Accuracy: exact over weights. Pairs of tokens are averaged, while those of equal tokens have
///           correlation one: the first layer sees a mixture.
inline Moments embedding(const Plan& plan, const Conditions& c, const Data& data,
                         Stack stack = Stack::main) {
  detail::check_covered(plan);
  check_dropout("dropout", c.dropout);
  const char* positions = stack == Stack::encoder   ? "encoder.position_embedding"
                          : stack == Stack::decoder ? "decoder.position_embedding"
                                                    : "position_embedding";
  Moments x{.variance = 0, .covariance = 0};
  for (const Entry& e : plan.entries) {
    const double m = plan.model.embedding_multiplier.value;
    const double power = detail::entry_power(e);
    if (e.group == Group::token_embedding) {
      x = sum(x, correlated(e.init_variance.value * m * m, data.repeats));
    } else if (e.group == Group::patch_embedding) {
      const auto patch = static_cast<double>(plan.shape.patch_dim);
      x = sum(x, correlated(patch * e.init_variance.value * m * m * data.patch_power,
                            data.patch_correlation));
    } else if (e.name == positions) {
      x = sum(x, correlated(power, 0));
    } else if (e.group == Group::segment_embedding) {
      x = sum(x, correlated(power, data.segment_repeats));
    }
  }
  if (plan.shape.embedding_norm) x = scaled(1 / (x.variance + c.norm_epsilon), x);
  return dropout(x, c.dropout);
}

/// The moments of the gradient with respect to what the last stack leaves.
/// Equation: logits = m h x, entries of h of variance sw: tokens, the sum of their losses:
///           var = m² sw (1 - 1/V), cov = m² sw (repeats - 1/V); pooled, one example's loss:
///           var = cov = m² sw (1 - 1/classes)/L²
/// Source:   derived from the softmax at zero, where the gradient of a loss is 1/V minus one-hot.
/// Accuracy: first order in the logits.
/// Throws:   InvalidInput for a class token, which would get all of the gradient.
inline Moments loss_gradient(const Plan& plan, const Conditions& c, const Data& data) {
  if (plan.shape.class_token) detail::refuse("class_token", "true", "the mean over patches");
  const bool pooled = plan.shape.input == Input::patch;
  const auto outputs = static_cast<double>(pooled ? plan.shape.classes : plan.shape.vocab);
  const char* head = plan.shape.tied_head.value_or(false) ? "token_embedding" : "head";
  const double m = plan.model.logit_multiplier.value;
  const double power = m * m * plan.at(head).init_variance.value;
  if (pooled) return correlated(power * (1 - 1 / outputs) / (c.length * c.length), 1);
  return {.variance = power * (1 - 1 / outputs),
          .covariance = power * (data.repeats - 1 / outputs)};
}

namespace detail {

/// A stack between its embedding and its final norm.
/// Shapes:   gradient: of what the stack leaves, as a function of the profile of the forward pass
inline Profile stack_profile(const Plan& plan, const Layers& layers, const Moments& input,
                             const Moments& gradient) {
  // The final norm hands its gradient on over the stream's variance, known after the forward pass.
  const auto top = [&](const Moments& stream) {
    return plan.shape.final_norm ? scaled(1 / norm_power(stream, layers), gradient) : gradient;
  };
  for (const Block& block : layers.blocks) {
    const auto* a = std::get_if<Attention>(&block.inner);
    if (a == nullptr || !(a->causal || a->length == 1)) continue;  // averages are over pairs
    const auto tokens = static_cast<std::size_t>(a->length);
    return propagate_tokens(layers, {tokens, input}, [&](const Moments& stream) {
      return TokenCovariance(tokens, top(stream));
    });
  }
  Profile profile = propagate_forward(layers, input);
  propagate_backward(layers, top(profile.forward.back()), profile);
  return profile;
}

}  // namespace detail

/// The profile of a model of one stack, from its plan.
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), appendix E, corrected.
/// Shapes:   input: what enters the first layer, gradient: of what leaves the final norm; both may
///           be predicted (embedding, loss_gradient) or measured
/// Accuracy: as propagate(), with causal attention token by token.
/// Throws:   InvalidInput as plan_layers, and for a plan of two stacks.
inline Profile predict(const Plan& plan, const Conditions& c, const Moments& input,
                       const Moments& gradient) {
  if (plan.shape.encoder_depth > 0) {
    throw InvalidInput("encoder_depth", std::to_string(plan.shape.encoder_depth), "0",
                       "predict_encoder_decoder() is for two stacks");
  }
  return detail::stack_profile(plan, plan_layers(plan, c), input, gradient);
}

/// The profiles of both stacks.
struct EncoderDecoderProfile {
  Profile encoder;
  Profile decoder;
};

/// The profiles of an encoder-decoder, whose decoder is causal and reads the encoder in every layer.
/// Source:   as predict.
/// Shapes:   inputs: what enters the first layers; gradient: of what leaves the decoder
/// Throws:   InvalidInput as plan_layers, and for a plan of one stack.
inline EncoderDecoderProfile predict_encoder_decoder(const Plan& plan, const Conditions& c,
                                                     const Moments& source, const Moments& input,
                                                     const Moments& gradient) {
  if (plan.shape.encoder_depth == 0) {
    throw InvalidInput("encoder_depth", "0", "a positive number", "predict() is for one stack");
  }
  const Layers encoder = plan_layers(plan, c, Stack::encoder);
  Layers decoder = plan_layers(plan, c, Stack::decoder);
  Moments memory = propagate_forward(encoder, source).forward.back();
  if (plan.shape.final_norm) memory = scaled(1 / detail::norm_power(memory, encoder), memory);
  for (Block& block : decoder.blocks) {
    if (auto* cross = std::get_if<CrossAttention>(&block.inner)) cross->memory = memory;
  }
  EncoderDecoderProfile both;
  both.decoder = detail::stack_profile(plan, decoder, input, gradient);
  both.encoder = detail::stack_profile(plan, encoder, source, both.decoder.memory_gradient);
  return both;
}

}  // namespace scalewise::theory
