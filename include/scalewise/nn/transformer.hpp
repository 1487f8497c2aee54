// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <vector>

#include "scalewise/nn/config.hpp"
#include "scalewise/nn/loss.hpp"
#include "scalewise/nn/stack.hpp"

namespace scalewise::nn {

/// What a model reads in one step. Tokens and targets are row by row, sequence after sequence.
template <class Scalar>
struct Batch {
  Eigen::Index size = 0;     // B sequences
  std::vector<int> tokens;   // (B*T) of the main stack, or of the decoder
  std::vector<int> source;   // (B*S) of the encoder of an encoder-decoder
  Matrix<Scalar> patches;    // (B*T, patch_dim), for patch input
  std::vector<int> targets;  // (B*T) next tokens, or (B) classes
};

/// The reference transformer: a plan and a config made into a function with a gradient.
/// Shapes:   Batch -> logits (B*T, V) or (B, classes)
/// The plan is needed during construction only. The matrices of a normalized transformer have to be
/// brought to unit length by normalize_matrices() before every step.
/// Throws:   InvalidInput for a config or batch that does not fit the plan's shape.
template <class Scalar>
class Transformer {
 public:
  Transformer(const Plan& plan, const Config& config) : shape_(plan.shape), parameters_(plan) {
    check(config, shape_);
    const auto weight = [&](const std::string& name) {
      return Weight<Scalar>(parameters_, plan, name);
    };
    embedding_ = weight(shape_.input == Input::token ? "token_embedding" : "patch_embedding");
    embedding_bias_ = weight("patch_bias");
    segments_ = weight("segment_embedding");
    head_ = weight("head");
    head_bias_ = weight("head_bias");
    logit_scale_ = weight("logit_scale");
    logit_multiplier_ = static_cast<Scalar>(plan.model.logit_multiplier.value);
    const bool two = shape_.encoder_depth > 0;
    if (two) encoder_ = LayerStack<Scalar>(parameters_, plan, config, Stack::encoder);
    decoder_ = LayerStack<Scalar>(parameters_, plan, config, two ? Stack::decoder : Stack::main);
  }

  // Layers refer to the parameters.
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  Parameters<Scalar>& parameters() { return parameters_; }
  const Matrix<Scalar>& logits() const { return logits_; }

  /// Mean cross-entropy of a batch, in nats.
  double loss(const Batch<Scalar>& batch) {
    forward(batch);
    if (static_cast<Eigen::Index>(batch.targets.size()) != logits_.rows()) {
      throw InvalidInput("batch.targets", std::to_string(batch.targets.size()) + " targets",
                         std::to_string(logits_.rows()) + ", one per row of the logits");
    }
    dlogits_.resize(logits_.rows(), logits_.cols());
    return cross_entropy(read(logits_), std::span<const int>(batch.targets), view(dlogits_));
  }

  /// The loss, and its gradient in parameters().gradients(), which it overwrites.
  double loss_and_gradient(const Batch<Scalar>& batch) {
    const double value = loss(batch);
    parameters_.zero_gradients();
    backward(batch);
    return value;
  }

 private:
  // ---- forward ----------------------------------------------------------------------------------

  void forward(const Batch<Scalar>& batch) {
    if (shape_.encoder_depth > 0) {
      embed_tokens("batch.source", batch.source, batch.size, encoder_);
      encoder_.forward(batch.size, nullptr);
    }
    if (shape_.input == Input::token) {
      embed_tokens("batch.tokens", batch.tokens, batch.size, decoder_);
    } else {
      embed_patches(batch, decoder_);
    }
    decoder_.forward(batch.size, shape_.encoder_depth > 0 ? &encoder_ : nullptr);
    read_out(batch.size);
  }

  /// Shapes: ids (B*T) -> embedded (B*T, C)
  void embed_tokens(const std::string& field, const std::vector<int>& ids, Eigen::Index batch,
                    LayerStack<Scalar>& stack) {
    const auto rows = static_cast<Eigen::Index>(ids.size());
    if (batch <= 0 || rows == 0 || rows % batch != 0) {
      throw InvalidInput(field, std::to_string(rows) + " tokens",
                         "a positive multiple of batch.size = " + std::to_string(batch));
    }
    stack.tokens = rows / batch;
    stack.embedded.resize(rows, shape_.d_model);
    for (Eigen::Index i = 0; i < rows; ++i) {
      const int id = ids[static_cast<std::size_t>(i)];
      if (id < 0 || id >= shape_.vocab) {
        throw InvalidInput(field + "[" + std::to_string(i) + "]", std::to_string(id),
                           "an id in [0, " + std::to_string(shape_.vocab) + ")");
      }
      stack.embedded.row(i) = embedding_.multiplier * embedding_.value().row(id);
      if (segments_.present()) {
        stack.embedded.row(i) += segments_.multiplier * segments_.value().row(0);
      }
    }
    add_positions(stack);
  }

  /// Shapes: patches (B*T, patch_dim) -> embedded (B*T, C)
  void embed_patches(const Batch<Scalar>& batch, LayerStack<Scalar>& stack) {
    const Eigen::Index rows = batch.patches.rows();
    if (batch.size <= 0 || rows == 0 || rows % batch.size != 0 ||
        batch.patches.cols() != shape_.patch_dim) {
      throw InvalidInput("batch.patches",
                         std::to_string(rows) + " x " + std::to_string(batch.patches.cols()),
                         "a positive multiple of batch.size rows of " +
                             std::to_string(shape_.patch_dim) + " numbers");
    }
    if (!batch.patches.allFinite()) {
      throw InvalidInput("batch.patches", "not finite", "finite numbers");
    }
    stack.tokens = rows / batch.size;
    stack.embedded.resize(rows, shape_.d_model);
    linear_forward(embedding_, embedding_bias_, read(batch.patches), view(stack.embedded));
    add_positions(stack);
  }

  void add_positions(LayerStack<Scalar>& stack) {
    if (!stack.positions.present()) return;
    if (stack.tokens > stack.positions.value().rows()) {
      throw InvalidInput("sequence length", std::to_string(stack.tokens),
                         "at most context = " + std::to_string(stack.positions.value().rows()));
    }
    for (Eigen::Index i = 0; i < stack.embedded.rows(); ++i) {
      stack.embedded.row(i) +=
          stack.positions.multiplier * stack.positions.value().row(i % stack.tokens);
    }
  }

  /// Shapes: left (B*T, C) -> logits (B*T, V), or of the mean over tokens (B, classes)
  void read_out(Eigen::Index batch) {
    if (shape_.input == Input::patch) {
      pooled_.setZero(batch, shape_.d_model);
      for (Eigen::Index i = 0; i < decoder_.left.rows(); ++i) {
        pooled_.row(i / decoder_.tokens) +=
            decoder_.left.row(i) / static_cast<Scalar>(decoder_.tokens);
      }
    }
    const Matrix<Scalar>& h = shape_.input == Input::patch ? pooled_ : decoder_.left;
    logits_.resize(h.rows(), shape_.input == Input::patch ? shape_.classes : shape_.vocab);
    if (head_.present()) {
      multiply(logit_multiplier_, read(h), head_.value(), view(logits_));
    } else {
      multiply_transposed_b(logit_multiplier_, read(h), embedding_.value(), view(logits_));
    }
    if (logit_scale_.present()) {
      raw_logits_ = logits_;
      logits_ = (logits_.array().rowwise() *
                 (logit_scale_.multiplier * logit_scale_.value().row(0)).array())
                    .matrix();
    }
    if (head_bias_.present()) {
      logits_.rowwise() += head_bias_.multiplier * head_bias_.value().row(0);
    }
  }

  // ---- backward ---------------------------------------------------------------------------------

  void backward(const Batch<Scalar>& batch) {
    read_out_backward();
    if (shape_.encoder_depth > 0) {
      encoder_.dleft.setZero(encoder_.left.rows(), encoder_.left.cols());
    }
    decoder_.backward(shape_.encoder_depth > 0 ? &encoder_ : nullptr);
    if (shape_.input == Input::token) {
      embed_tokens_backward(batch.tokens, decoder_);
    } else {
      embed_patches_backward(batch, decoder_);
    }
    if (shape_.encoder_depth > 0) {
      encoder_.backward(nullptr);
      embed_tokens_backward(batch.source, encoder_);
    }
  }

  /// Writes: decoder_.dleft; accumulates into head, bias, logit scale, or the tied embedding.
  void read_out_backward() {
    const Matrix<Scalar>& h = shape_.input == Input::patch ? pooled_ : decoder_.left;
    if (head_bias_.present()) {
      head_bias_.gradient() += head_bias_.multiplier * dlogits_.colwise().sum();
    }
    if (logit_scale_.present()) {
      logit_scale_.gradient() +=
          logit_scale_.multiplier * dlogits_.cwiseProduct(raw_logits_).colwise().sum();
      dlogits_ = (dlogits_.array().rowwise() *
                  (logit_scale_.multiplier * logit_scale_.value().row(0)).array())
                     .matrix();
    }
    dh_.resize(h.rows(), h.cols());
    const ConstView<Scalar> d = read(dlogits_);
    if (head_.present()) {
      multiply_transposed_a(logit_multiplier_, read(h), d, head_.gradient(), true);
      multiply_transposed_b(logit_multiplier_, d, head_.value(), view(dh_));
    } else {
      multiply_transposed_a(logit_multiplier_, d, read(h), embedding_.gradient(), true);
      multiply(logit_multiplier_, d, embedding_.value(), view(dh_));
    }
    decoder_.dleft.resize(decoder_.left.rows(), decoder_.left.cols());
    if (shape_.input == Input::patch) {
      for (Eigen::Index i = 0; i < decoder_.left.rows(); ++i) {
        decoder_.dleft.row(i) = dh_.row(i / decoder_.tokens) / static_cast<Scalar>(decoder_.tokens);
      }
    } else {
      decoder_.dleft = dh_;
    }
  }

  void embed_tokens_backward(const std::vector<int>& ids, LayerStack<Scalar>& stack) {
    for (Eigen::Index i = 0; i < stack.dentered.rows(); ++i) {
      const int id = ids[static_cast<std::size_t>(i)];
      embedding_.gradient().row(id) += embedding_.multiplier * stack.dentered.row(i);
      if (segments_.present()) {
        segments_.gradient().row(0) += segments_.multiplier * stack.dentered.row(i);
      }
    }
    positions_backward(stack);
  }

  void embed_patches_backward(const Batch<Scalar>& batch, LayerStack<Scalar>& stack) {
    const ConstView<Scalar> d = read(stack.dentered);
    multiply_transposed_a(embedding_.multiplier, read(batch.patches), d, embedding_.gradient(),
                          true);
    if (embedding_bias_.present()) {
      embedding_bias_.gradient() += embedding_bias_.multiplier * d.colwise().sum();
    }
    positions_backward(stack);
  }

  void positions_backward(LayerStack<Scalar>& stack) {
    if (!stack.positions.present()) return;
    for (Eigen::Index i = 0; i < stack.dentered.rows(); ++i) {
      stack.positions.gradient().row(i % stack.tokens) +=
          stack.positions.multiplier * stack.dentered.row(i);
    }
  }

  Shape shape_;
  Parameters<Scalar> parameters_;
  Weight<Scalar> embedding_, embedding_bias_, segments_, head_, head_bias_, logit_scale_;
  Scalar logit_multiplier_ = 1;
  LayerStack<Scalar> encoder_, decoder_;  // a model of one stack is in decoder_
  Matrix<Scalar> pooled_, raw_logits_, logits_, dlogits_, dh_;
};

}  // namespace scalewise::nn
