// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Effective theory of pre-LN transformers: the covariance G of the output of every block and its
// neural tangent kernel Θ, at initialization and infinite width.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/kernels/softmax_moments.hpp"
#include "scalewise/kernels/stacked_kernel.hpp"

namespace scalewise::kernels {

/// The order-one constants of a group of weights: C of its initial variance, Λ of its rate.
struct GroupScale {
  double variance = 1;
  double rate = 1;
};

/// All constants of a transformer. A plan's are effective_scales().
/// Source:   Dinan, Yaida, Zhang 2023 (arXiv:2304.02034v1), (1.25)-(1.33), (1.99)-(1.116).
struct EffectiveScales {
  GroupScale patch_embedding, token_embedding, position_embedding;
  GroupScale query, key, value, attention_output;
  GroupScale mlp_up, mlp_down;
  GroupScale head;
  double head_bias_rate = 1;
  double epsilon = 0;  // of LayerNorm, under the root
  GroupScale class_token = {};
};

/// The terms that a block adds, and the kernel after it.
/// Equation: G' = G + C · moment; Θ' = Θ + additive + cumulative
/// Shapes:   all (S, S)
struct EffectiveBlock {
  Matrix<> normalized;    // F, of the block's input after its LayerNorm
  Matrix<> moment;        // of the weighted values, or of activations
  Matrix<> slope_moment;  // of the derivatives
  Matrix<> additive;      // from the block's own weights
  Matrix<> cumulative;    // from all weights before it
  Kernel kernel;          // G and Θ after the block; Θ over n^s
};

namespace detail {

/// Throws:   InvalidInput for constants that are negative or not finite.
inline void require_scales(const EffectiveScales& s) {
  const auto require = [](const GroupScale& scale, const std::string& group) {
    require_nonnegative(scale.variance, "C of " + group);
    require_nonnegative(scale.rate, "Λ of " + group);
  };
  require(s.patch_embedding, "patch_embedding");
  require(s.token_embedding, "token_embedding");
  require(s.position_embedding, "position_embedding");
  require(s.class_token, "class_token");
  require(s.query, "query");
  require(s.key, "key");
  require(s.value, "value");
  require(s.attention_output, "attention_output");
  require(s.mlp_up, "mlp_up");
  require(s.mlp_down, "mlp_down");
  require(s.head, "head");
  require_nonnegative(s.head_bias_rate, "Λ of head_bias");
}

/// C G⁰ and Λ G⁰ of the inputs alone.
inline Kernel embedded(Kernel raw, const GroupScale& input) {
  raw.ntk = input.rate * raw.nngp;
  raw.nngp *= input.variance;
  return raw;
}

/// Before the tokens of each input a class token, which all inputs share.
inline Kernel with_class_token(const Kernel& plain, const GroupScale& token) {
  std::vector<Index> lengths;
  for (Index i = 0; i < plain.tokens.inputs(); ++i) lengths.push_back(plain.tokens.length(i) + 1);
  Tokens tokens(std::move(lengths));
  const Index size = tokens.total();
  Kernel all{tokens, Matrix<>::Zero(size, size), Matrix<>::Zero(size, size)};
  for (Index i = 0; i < tokens.inputs(); ++i) {
    for (Index j = 0; j < tokens.inputs(); ++j) {
      const auto put = [&](Matrix<>& m, const Matrix<>& of, double shared) {
        auto block = tokens.block(m, i, j);
        block(0, 0) = shared;
        block.bottomRightCorner(block.rows() - 1, block.cols() - 1) = plain.tokens.block(of, i, j);
      };
      put(all.nngp, plain.nngp, token.variance);
      put(all.ntk, plain.ntk, token.rate);
    }
  }
  return all;
}

/// Adds C_PE [t1 = t2] to G and Λ_PE [t1 = t2] to Θ, also across inputs.
inline Kernel with_positions(Kernel kernel, const GroupScale& position) {
  for (Index i = 0; i < kernel.tokens.inputs(); ++i) {
    for (Index j = 0; j < kernel.tokens.inputs(); ++j) {
      kernel.tokens.block(kernel.nngp, i, j).diagonal().array() += position.variance;
      kernel.tokens.block(kernel.ntk, i, j).diagonal().array() += position.rate;
    }
  }
  return kernel;
}

}  // namespace detail

/// Patches times their embedding, plus the position's; before them a class token, if the model has one.
/// Equation: G = C_patch x xᵀ/n_patch + C_PE [t1 = t2], for two class tokens C_class + C_PE; Θ alike with Λ
/// Source:   Dinan, Yaida, Zhang 2023, (1.8), (1.40), (1.41), (1.122)-(1.124).
/// Shapes:   images (T_i, n_patch) each; tokens are T_i, or T_i + 1 with the class token first
/// Throws:   InvalidInput as stacked_input_kernel() does.
/// Differs:  (1.8) gives no variance of a class token; its C_class and Λ_class are those of a position.
inline Kernel vision_stem(const std::vector<Matrix<>>& images, const EffectiveScales& scales,
                          bool class_token = false) {
  detail::require_scales(scales);
  const Kernel patches = detail::embedded(stacked_input_kernel(images), scales.patch_embedding);
  return detail::with_positions(
      class_token ? detail::with_class_token(patches, scales.class_token) : patches,
      scales.position_embedding);
}

/// The kernel of a model that reads its class token.
/// Equation: G and Θ of the first token of each input
/// Source:   Dinan, Yaida, Zhang 2023, footnotes 7 and 17.
/// Shapes:   one token for each input
inline Kernel class_token_readout(const Kernel& kernel) {
  const Index inputs = kernel.tokens.inputs();
  Kernel first{Tokens(std::vector<Index>(static_cast<std::size_t>(inputs), 1)),
               Matrix<>(inputs, inputs), Matrix<>(inputs, inputs)};
  for (Index i = 0; i < inputs; ++i) {
    for (Index j = 0; j < inputs; ++j) {
      first.nngp(i, j) = kernel.nngp(kernel.tokens.offset(i), kernel.tokens.offset(j));
      first.ntk(i, j) = kernel.ntk(kernel.tokens.offset(i), kernel.tokens.offset(j));
    }
  }
  return first;
}

/// The token's embedding plus the position's.
/// Equation: G = C_WE [same token] + C_PE [t1 = t2]; Θ alike with Λ
/// Source:   Dinan, Yaida, Zhang 2023, (1.44), (1.45), (1.129)-(1.131).
/// Throws:   InvalidInput for no text or one without tokens.
inline Kernel language_stem(const std::vector<std::vector<long>>& texts,
                            const EffectiveScales& scales) {
  detail::require_scales(scales);
  std::vector<Index> lengths;
  std::vector<long> all;
  for (const std::vector<long>& text : texts) {
    lengths.push_back(static_cast<Index>(text.size()));
    all.insert(all.end(), text.begin(), text.end());
  }
  Tokens tokens(std::move(lengths));
  const Index size = tokens.total();
  Kernel raw{std::move(tokens), Matrix<>(size, size), Matrix<>(size, size)};
  for (Index a = 0; a < size; ++a) {
    for (Index b = 0; b < size; ++b) {
      raw.nngp(a, b) = all[static_cast<std::size_t>(a)] == all[static_cast<std::size_t>(b)] ? 1 : 0;
    }
  }
  return detail::with_positions(detail::embedded(std::move(raw), scales.token_embedding),
                                scales.position_embedding);
}

namespace detail {

/// The moments of softmax over scores of covariance variance F_12 F_1'2', for every pair of inputs; F of two queries
/// is that of `norm`, of keys that of `memory`, which may be the same.
/// Shapes:   (S, S), as of `norm`
inline ScoreMoments stacked_moments(const Kernel& norm, const Kernel& memory, double variance,
                                    bool causal, const QuasiMonteCarlo& sample) {
  const Tokens& tokens = norm.tokens;
  const Tokens& keys = memory.tokens;
  ScoreMoments all(tokens.total(), tokens.total());
  for (Index i = 0; i < tokens.inputs(); ++i) {
    for (Index j = i; j < tokens.inputs(); ++j) {
      const Matrix<> left = keys.block(memory.nngp, i, i);
      const Matrix<> other = keys.block(memory.nngp, j, j);
      const Matrix<>& right = i == j ? left : other;
      const Matrix<> f = keys.block(memory.nngp, i, j);
      const Matrix<> theta = keys.block(memory.ntk, i, j);
      const Queries queries{tokens.block(norm.nngp, i, i).diagonal(),
                            tokens.block(norm.nngp, j, j).diagonal(),
                            tokens.block(norm.nngp, i, j)};
      const Queries* cross = &norm == &memory ? nullptr : &queries;
      const ScoreMoments m =
          mean(softmax_moments({left, right, f, theta, f, theta, variance, causal, cross}, sample));
      for (const auto member : {&ScoreMoments::value, &ScoreMoments::value_ntk,
                                &ScoreMoments::slope, &ScoreMoments::slope_ntk}) {
        tokens.block(all.*member, i, j) = m.*member;
        tokens.block(all.*member, j, i) = (m.*member).transpose();
      }
    }
  }
  return all;
}

/// The input plus attention's output, given the kernels of the inputs of queries and of keys and values.
inline EffectiveBlock attended(const Kernel& input, const Kernel& norm, const Kernel& memory,
                               const EffectiveScales& scales, bool causal,
                               const QuasiMonteCarlo& sample) {
  const double c_q = scales.query.variance;
  const double c_k = scales.key.variance;
  const double c_v = scales.value.variance;
  const double c_u = scales.attention_output.variance;
  const ScoreMoments m = stacked_moments(norm, memory, c_q * c_k, causal, sample);
  const Matrix<>& f = norm.nngp;
  const Matrix<>& theta = norm.ntk;
  const Matrix<> additive =
      (scales.attention_output.rate * c_v + scales.value.rate * c_u) * m.value +
      c_u * c_v * (scales.key.rate * c_q + scales.query.rate * c_k) * f.cwiseProduct(m.slope);
  const Matrix<> cumulative =
      c_u * c_v *
      (m.value_ntk + c_q * c_k * (theta.cwiseProduct(m.slope) + f.cwiseProduct(m.slope_ntk)));
  const Kernel after{input.tokens, input.nngp + c_u * c_v * m.value,
                     input.ntk + additive + cumulative};
  return {f, m.value, m.slope, additive, cumulative, after};
}

}  // namespace detail

/// A block of LayerNorm and multi-head self-attention with a skip connection.
/// Equation: F = G/√((G_11+ε)(G_22+ε)), Θˢ likewise; scores with covariance C_Q C_K F_12 F_1'2';
///           with the ScoreMoments S (value), P (slope) of A = B = F, and S[Θˢ], P[Θˢ]:
///           G' = G + C_U C_V S; additive = (Λ_U C_V + Λ_V C_U) S + C_U C_V (Λ_K C_Q + Λ_Q C_K) F P;
///           cumulative = C_U C_V S[Θˢ] + C_U C_V C_Q C_K (Θˢ P + F P[Θˢ])
/// Source:   Dinan, Yaida, Zhang 2023, (1.53), (1.61)-(1.65), (1.139), (1.151)-(1.163).
/// Accuracy: that of softmax_moments(), the mean over shifts where it samples.
/// Throws:   InvalidInput as check() does.
/// Differs:  (1.65) prints sample α1 at the second signal, which is that of α2.
inline EffectiveBlock attention_block(const Kernel& input, const EffectiveScales& scales,
                                      bool causal, const QuasiMonteCarlo& sample = {}) {
  detail::require_scales(scales);
  const Kernel norm = propagate(LayerNorm{scales.epsilon}, input);
  return detail::attended(input, norm, norm, scales, causal, sample);
}

/// A block of a decoder: LayerNorm and attention to what its encoder ends with, with a skip connection.
/// Equation: as attention_block(); S, P, S[Θˢ] and P[Θˢ] are those of the memory's F̃ and Θ̃ˢ, the factors F and Θˢ
///           before P those of the decoder
/// Source:   Dinan, Yaida, Zhang 2023, (2.2)-(2.4), footnote 47: the covariances there, with (1.61)-(1.65) and
///           (1.151)-(1.163).
/// Shapes:   input: the decoder's tokens; memory: the encoder's, before its last LayerNorm, as many inputs
/// Accuracy: as attention_block().
/// Throws:   InvalidInput as check() does, and for a memory of another number of inputs.
inline EffectiveBlock cross_attention_block(const Kernel& input, const Kernel& memory,
                                            const EffectiveScales& scales,
                                            const QuasiMonteCarlo& sample = {}) {
  detail::require_scales(scales);
  if (memory.tokens.inputs() != input.tokens.inputs()) {
    throw InvalidInput("inputs of the memory", std::to_string(memory.tokens.inputs()),
                       std::to_string(input.tokens.inputs()), "one for each of the decoder");
  }
  const LayerNorm norm{scales.epsilon};
  return detail::attended(input, propagate(norm, input), propagate(norm, memory), scales,
                          /*causal=*/false, sample);
}

/// A block of LayerNorm and an MLP with a skip connection.
/// Equation: with u of covariance C_W F: G' = G + C_X E f(u1)f(u2);
///           additive = Λ_X E f f + Λ_W C_X (E f'f') F; cumulative = C_X C_W (E f'f') Θˢ
/// Source:   Dinan, Yaida, Zhang 2023, (1.77), (1.168)-(1.173).
/// Throws:   InvalidInput as check() does.
inline EffectiveBlock mlp_block(const Kernel& input, const EffectiveScales& scales,
                                Function activation) {
  detail::require_scales(scales);
  const Kernel norm = propagate(LayerNorm{scales.epsilon}, input);
  const double c_w = scales.mlp_up.variance;
  const double c_x = scales.mlp_down.variance;
  const Index size = input.tokens.total();
  const Kernel moments = propagate(Nonlinearity{activation},
                                   {input.tokens, c_w * norm.nngp, Matrix<>::Ones(size, size)});
  const Matrix<>& slope = moments.ntk;
  const Matrix<> additive = scales.mlp_down.rate * moments.nngp +
                            scales.mlp_up.rate * c_x * slope.cwiseProduct(norm.nngp);
  const Matrix<> cumulative = c_x * c_w * slope.cwiseProduct(norm.ntk);
  return {norm.nngp,
          moments.nngp,
          slope,
          additive,
          cumulative,
          {input.tokens, input.nngp + c_x * moments.nngp, input.ntk + additive + cumulative}};
}

/// LayerNorm and the head, of one output; a bias where its rate is positive.
/// Equation: G = C_head F n^-s; Θ = Λ_bias + Λ_head F + C_head Θˢ, whatever s. Tied to the token
///           embedding: C_WE and Λ_WE for C_head and Λ_head, and no bias
/// Source:   Dinan, Yaida, Zhang 2023, (1.80), (1.178)-(1.182); tied (1.84), (1.186)-(1.190). For
///           their mean over tokens, (1.81), propagate through GlobalAveragePool.
/// Requires: of a tied head, an output that is not a token of the inputs: others have the further terms of
///           tied_contact().
/// Throws:   InvalidInput as check() does.
struct EffectiveHead {
  bool tied = false;
  double shrinkage = 1;  // n^-s; 1 for neural-tangent scaling

  Kernel operator()(const Kernel& input, const EffectiveScales& scales) const {
    detail::require_scales(scales);
    detail::require_nonnegative(shrinkage, "shrinkage");
    const Kernel norm = propagate(LayerNorm{scales.epsilon}, input);
    const GroupScale& head = tied ? scales.token_embedding : scales.head;
    const double bias = tied ? 0 : scales.head_bias_rate;
    const Matrix<> theta = head.rate * norm.nngp + head.variance * norm.ntk;
    return {input.tokens, shrinkage * head.variance * norm.nngp, theta.array() + bias};
  }
};

/// The terms of a tied head where an output is a word of the input, since its weights are in the stream. Matrices are of
/// the logit of b's word after a and that of a's word after b.
struct TiedContact {
  std::vector<double> own_logit;     // mean of the logit of each token's own word
  std::vector<double> own_variance;  // of that logit, in place of EffectiveHead's
  std::vector<double> own_ntk;       // its Θ with itself, in place of EffectiveHead's
  Matrix<> exchanged;                // added to Θ
  Matrix<> exchanged_nngp;           // mean of the product of the two logits
};

/// The terms of TiedContact, given the kernel before the head's LayerNorm.
/// Equation: own_logit = √(n n^-s) C_WE/√(G_aa+ε), which adds its products to G; with g = C_WE/(G_aa+ε),
///           own_variance = n^-s C_WE F_aa (1 - g/2) and own_ntk = Λ_WE F_aa + C_WE (1 - g) Θˢ_aa;
///           exchanged = 2 Λ_WE C_WE/√((G_aa+ε)(G_bb+ε)), whatever s, and exchanged_nngp = n^-s C_WE²/√(…)
/// Source:   Dinan, Yaida, Zhang 2023, (1.85)-(1.86) and (1.187): n C_WE² of (1.85) is a product of two means, and
///           the term of (1.187) occurs twice, with head and stem exchanged. own_variance and own_ntk are derived.
/// Shapes:   own (S), exchanged (S, S); diagonals are 0
/// Accuracy: the leading order in the width, relative errors are of order 1/n.
/// Requires: tokens a and b of different words; shrinkage is n^-s, as of EffectiveHead.
/// Throws:   InvalidInput as check() does.
/// Differs:  of a token's own word the derivative of LayerNorm that (1.140) leaves out is of the same order as the
///           term of (1.187), and cancels it.
inline TiedContact tied_contact(const Kernel& input, const EffectiveScales& scales, double width,
                                double shrinkage = 1) {
  check(input);
  detail::require_nonnegative(width, "width");
  detail::require_nonnegative(shrinkage, "shrinkage");
  const Eigen::VectorXd root = (input.nngp.diagonal().array() + scales.epsilon).rsqrt();
  const GroupScale& word = scales.token_embedding;
  const Kernel plain = EffectiveHead{.tied = true, .shrinkage = shrinkage}(input, scales);
  TiedContact contact;
  for (Index a = 0; a < root.size(); ++a) {
    const double own = word.variance * root[a] * root[a];  // the word's part of the stream
    const double below = plain.ntk(a, a) - word.rate * input.nngp(a, a) * root[a] * root[a];
    contact.own_logit.push_back(std::sqrt(width * shrinkage) * word.variance * root[a]);
    contact.own_variance.push_back(plain.nngp(a, a) * (1 - own / 2));
    contact.own_ntk.push_back(plain.ntk(a, a) - own * below);
  }
  contact.exchanged = 2 * word.rate * word.variance * root * root.transpose();
  contact.exchanged_nngp = shrinkage * word.variance * word.variance * root * root.transpose();
  contact.exchanged.diagonal().setZero();
  contact.exchanged_nngp.diagonal().setZero();
  return contact;
}

}  // namespace scalewise::kernels
