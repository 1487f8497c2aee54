// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/architecture/tensor.hpp"

namespace scalewise::architecture {

/// Operations of a forward pass for each token, a product and a sum counting as two.
struct Operations {
  double matrices = 0;   // of the layers, and of the embedding of patches
  double attention = 0;  // products of queries and keys, and of probabilities and values
  double elements = 0;   // biases, norms, activations, softmax, dropout, residual sums
  double lookups = 0;    // of tables, as products with one-hot rows
  double head = 0;       // of a token that is predicted

  /// With tables looked up, `predicted` the share of tokens that the head sees.
  double total(double predicted = 1) const {
    return matrices + attention + elements + predicted * head;
  }
};

/// Counts the operations of a model for sequences of a length; training takes three times as many, as each product
/// has two in the backward pass.
/// Equation: matrices 2 Σ rows columns; attention 4 L H C for each attention; head 2 n n_out + 7 n_out;
///           elements: a bias 1, a norm 5, an activation 8, softmax 5 and its scale 1, dropout 4, a residual sum 1
/// Source:   the counts of Clark et al. 2020 (arXiv:2003.10555), which Kedia et al. 2024 (arXiv:2403.09635), Table 23,
///           follows; see docs/texts.md.
/// Units:    operations for each token
/// Accuracy: that of a convention; without a causal mask, which halves attention where it is used.
/// Throws:   InvalidInput as resolved().
/// Differs:  the source counts the backward pass once, as the forward pass, and tables as products.
inline Operations operations(const Shape& given, double length) {
  const Shape s = resolved(given);
  Operations count;
  for_each_tensor(s, s, [&](const Tensor& t) {
    const double size = static_cast<double>(t.rows) * static_cast<double>(t.columns);
    const bool table = role_of(t.group) == Role::input && t.group != Group::patch_embedding;
    if (table && t.group != Group::class_token) {
      count.lookups += 2 * size;
    } else if (t.group != Group::head && is_matrix(t.group)) {
      count.matrices += 2 * size;
    } else if (t.group != Group::head) {
      count.elements += is_norm_gain(t.group) ? 4 * size : size;
    }
  });
  const auto width = static_cast<double>(s.d_model);
  const auto hidden = static_cast<double>(s.d_ff);
  const auto layers = static_cast<double>(s.depth + s.encoder_depth);
  const double attentions = layers + (s.encoder_depth > 0 ? static_cast<double>(s.depth) : 0);
  count.attention = attentions * 4 * length * static_cast<double>(s.heads * s.head_dim);
  count.elements += attentions * (10 * length * static_cast<double>(s.heads) + 5 * width) +
                    layers * ((s.gated_mlp ? 9 : 8) * hidden + 5 * width) + 4 * width;
  count.head = static_cast<double>(outputs(s)) * (2 * width + 7);
  return count;
}

}  // namespace scalewise::architecture
