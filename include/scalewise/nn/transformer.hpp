// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scalewise/nn/config.hpp"
#include "scalewise/nn/loss.hpp"
#include "scalewise/nn/residual.hpp"

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

/// One layer: self-attention, cross-attention in a decoder of two stacks, MLP.
template <class Scalar>
struct Layer {
  AttentionLayer<Scalar> self, cross;
  MlpLayer<Scalar> mlp;
  ResidualBlock<Scalar> around_self, around_cross, around_mlp;
  Matrix<Scalar> after_self, after_cross, after_mlp;  // (N, C)
};

/// A stack of layers with the norms around it.
template <class Scalar>
struct LayerStack {
  bool causal = false;
  bool cross = false;
  NormLayer<Scalar> embedding_norm, final_norm;
  bool has_embedding_norm = false;
  bool has_final_norm = false;
  Weight<Scalar> positions;
  std::vector<std::unique_ptr<Layer<Scalar>>> layers;
  Eigen::Index tokens = 0;                 // T
  Matrix<Scalar> embedded, entered, left;  // (N, C): sum of embeddings, input of layer 0, output
  Matrix<Scalar> dentered, dleft, scratch;
};

/// The reference transformer: a plan and a config made into a function with a gradient.
/// Shapes:   Batch -> logits (B*T, V) or (B, classes)
/// Requires: the plan outlives nothing: what is needed of it is copied.
/// Throws:   InvalidInput for a config or batch that does not fit the plan's shape.
template <class Scalar>
class Transformer {
 public:
  Transformer(const Plan& plan, const Config& config)
      : shape_(plan.shape), config_(config), parameters_(plan) {
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
    attention_scale_ = static_cast<Scalar>(plan.model.attention_scale.value);
    if (shape_.encoder_depth > 0) {
      build(plan, encoder_, Stack::encoder, "encoder.", shape_.encoder_depth);
      build(plan, decoder_, Stack::decoder, "decoder.", shape_.depth);
    } else {
      build(plan, decoder_, Stack::main, "", shape_.depth);
    }
  }

  // Layers refer to the parameters.
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  Parameters<Scalar>& parameters() { return parameters_; }
  const Matrix<Scalar>& logits() const { return logits_; }

  /// Mean cross-entropy of a batch, in nats.
  double loss(const Batch<Scalar>& batch) {
    forward(batch);
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
  // ---- construction -----------------------------------------------------------------------------

  void build(const Plan& plan, LayerStack<Scalar>& stack, Stack which, const std::string& top,
             long depth) {
    stack.causal = which == Stack::decoder || (which == Stack::main && config_.causal);
    stack.cross = which == Stack::decoder;
    stack.positions = Weight<Scalar>(parameters_, plan, top + "position_embedding");
    stack.has_embedding_norm = shape_.embedding_norm && shape_.blocks == Blocks::residual;
    stack.has_final_norm = shape_.final_norm && shape_.blocks == Blocks::residual;
    stack.embedding_norm = norm(plan, top + "embedding_norm");
    stack.final_norm = norm(plan, top + "final_norm");
    for (long l = 0; l < depth; ++l) {
      const std::string prefix = (top.empty() ? "layer." : top) + std::to_string(l) + ".";
      auto layer = std::make_unique<Layer<Scalar>>();
      layer->self = attention(plan, prefix);
      layer->self.rotary = config_.rotary;
      layer->around_self = residual(plan, which, l, prefix + "attention");
      if (stack.cross) {
        layer->cross = attention(plan, prefix + "cross_");
        layer->around_cross = residual(plan, which, l, prefix + "cross_attention");
      }
      layer->mlp = mlp(plan, prefix);
      layer->around_mlp = residual(plan, which, l, prefix + "mlp");
      stack.layers.push_back(std::move(layer));
    }
  }

  NormLayer<Scalar> norm(const Plan& plan, const std::string& name) {
    NormLayer<Scalar> layer;
    layer.kind = config_.norm;
    layer.epsilon = static_cast<Scalar>(config_.norm_epsilon);
    layer.gain = Weight<Scalar>(parameters_, plan, name + "_gain");
    layer.bias = Weight<Scalar>(parameters_, plan, name + "_bias");
    return layer;
  }

  ResidualBlock<Scalar> residual(const Plan& plan, Stack which, long l, const std::string& name) {
    ResidualBlock<Scalar> block;
    block.placement = config_.placement;
    for (const Residual& r : plan.model.residuals) {
      if (r.stack != which || r.layer != l) continue;
      block.skip = static_cast<Scalar>(r.skip.value);
      block.branch = static_cast<Scalar>(r.branch.value);
    }
    block.norm = norm(plan, name + "_norm");
    block.gain = Weight<Scalar>(parameters_, plan, name + "_gain");
    block.step = Weight<Scalar>(parameters_, plan, name + "_step");
    return block;
  }

  AttentionLayer<Scalar> attention(const Plan& plan, const std::string& prefix) {
    const auto weight = [&](const char* name) {
      return Weight<Scalar>(parameters_, plan, prefix + name);
    };
    AttentionLayer<Scalar> layer;
    layer.scale = attention_scale_;
    layer.query = weight("query");
    layer.key = weight("key");
    layer.value = weight("value");
    layer.output = weight("attention_output");
    layer.query_bias = weight("query_bias");
    layer.key_bias = weight("key_bias");
    layer.value_bias = weight("value_bias");
    layer.output_bias = weight("attention_output_bias");
    layer.qk_scale = weight("qk_scale");
    return layer;
  }

  MlpLayer<Scalar> mlp(const Plan& plan, const std::string& prefix) {
    const auto weight = [&](const char* name) {
      return Weight<Scalar>(parameters_, plan, prefix + name);
    };
    MlpLayer<Scalar> layer;
    layer.activation = config_.activation;
    layer.up = weight("mlp_up");
    layer.gate = weight("mlp_gate");
    layer.down = weight("mlp_down");
    layer.up_bias = weight("mlp_up_bias");
    layer.gate_bias = weight("mlp_gate_bias");
    layer.down_bias = weight("mlp_down_bias");
    layer.up_scale = weight("up_scale");
    layer.gate_scale = weight("gate_scale");
    return layer;
  }

  // ---- forward ----------------------------------------------------------------------------------

  void forward(const Batch<Scalar>& batch) {
    if (shape_.encoder_depth > 0) {
      embed_tokens(batch.source, batch.size, encoder_);
      run(encoder_, batch.size, nullptr);
    }
    if (shape_.input == Input::token) {
      embed_tokens(batch.tokens, batch.size, decoder_);
    } else {
      embed_patches(batch, decoder_);
    }
    run(decoder_, batch.size, shape_.encoder_depth > 0 ? &encoder_ : nullptr);
    read_out(batch.size);
  }

  /// Shapes: ids (B*T) -> embedded (B*T, C)
  void embed_tokens(const std::vector<int>& ids, Eigen::Index batch, LayerStack<Scalar>& stack) {
    const auto rows = static_cast<Eigen::Index>(ids.size());
    if (batch <= 0 || rows == 0 || rows % batch != 0) {
      throw InvalidInput("batch.tokens", std::to_string(rows) + " tokens",
                         "a positive multiple of batch.size = " + std::to_string(batch));
    }
    stack.tokens = rows / batch;
    stack.embedded.resize(rows, shape_.d_model);
    for (Eigen::Index i = 0; i < rows; ++i) {
      const int id = ids[static_cast<std::size_t>(i)];
      if (id < 0 || id >= shape_.vocab) {
        throw InvalidInput("token[" + std::to_string(i) + "]", std::to_string(id),
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

  AttentionSizes sizes(const LayerStack<Scalar>& stack, Eigen::Index batch,
                       const LayerStack<Scalar>* source) const {
    return {batch,
            stack.tokens,
            source == nullptr ? stack.tokens : source->tokens,
            shape_.heads,
            shape_.kv_heads,
            shape_.head_dim,
            source == nullptr && stack.causal};
  }

  /// Shapes: embedded (N, C) -> left (N, C)
  void run(LayerStack<Scalar>& stack, Eigen::Index batch, const LayerStack<Scalar>* source) {
    stack.entered.resize(stack.embedded.rows(), stack.embedded.cols());
    if (stack.has_embedding_norm) {
      stack.embedding_norm.forward(read(stack.embedded), view(stack.entered));
    } else {
      stack.entered = stack.embedded;
    }
    const Matrix<Scalar>* x = &stack.entered;
    for (const auto& owned : stack.layers) {
      Layer<Scalar>& layer = *owned;
      layer.after_self.resize(x->rows(), x->cols());
      layer.after_mlp.resize(x->rows(), x->cols());
      layer.self.sizes = sizes(stack, batch, nullptr);
      layer.around_self.forward(
          read(*x), [&](const auto& in, const auto& out) { layer.self.forward(in, in, out); },
          view(layer.after_self));
      x = &layer.after_self;
      if (stack.cross) {
        layer.after_cross.resize(x->rows(), x->cols());
        layer.cross.sizes = sizes(stack, batch, source);
        layer.around_cross.forward(
            read(*x),
            [&](const auto& in, const auto& out) {
              layer.cross.forward(in, read(source->left), out);
            },
            view(layer.after_cross));
        x = &layer.after_cross;
      }
      layer.around_mlp.forward(
          read(*x), [&](const auto& in, const auto& out) { layer.mlp.forward(in, out); },
          view(layer.after_mlp));
      x = &layer.after_mlp;
    }
    stack.left.resize(x->rows(), x->cols());
    if (stack.has_final_norm) {
      stack.final_norm.forward(read(*x), view(stack.left));
    } else {
      stack.left = *x;
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
    run_backward(decoder_, shape_.encoder_depth > 0 ? &encoder_ : nullptr);
    if (shape_.input == Input::token) {
      embed_tokens_backward(batch.tokens, decoder_);
    } else {
      embed_patches_backward(batch, decoder_);
    }
    if (shape_.encoder_depth > 0) {
      run_backward(encoder_, nullptr);
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

  /// Writes: stack.dentered as the gradient of embedded; adds to source->dleft.
  void run_backward(LayerStack<Scalar>& stack, LayerStack<Scalar>* source) {
    Matrix<Scalar>& d = stack.dentered;
    Matrix<Scalar>& next = stack.scratch;
    d.resize(stack.left.rows(), stack.left.cols());
    next.resize(d.rows(), d.cols());
    if (stack.has_final_norm) {
      stack.final_norm.backward(read(stack.dleft), view(d));
    } else {
      d = stack.dleft;
    }
    for (std::size_t l = stack.layers.size(); l-- > 0;) {
      Layer<Scalar>& layer = *stack.layers[l];
      layer.around_mlp.backward(
          read(d),
          [&](const auto& dout, const auto& in, const auto& din) {
            layer.mlp.backward(dout, in, din);
          },
          view(next));
      d.swap(next);
      if (stack.cross) {
        layer.around_cross.backward(
            read(d),
            [&](const auto& dout, const auto& in, const auto& din) {
              layer.cross.backward(dout, in, read(source->left), din, view(source->dleft));
            },
            view(next));
        d.swap(next);
      }
      layer.around_self.backward(
          read(d),
          [&](const auto& dout, const auto& in, const auto& din) {
            layer.self.backward(dout, in, in, din, din);
          },
          view(next));
      d.swap(next);
    }
    if (stack.has_embedding_norm) {
      stack.embedding_norm.backward(read(d), view(next));
      d.swap(next);
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
  Config config_;
  Parameters<Scalar> parameters_;
  Weight<Scalar> embedding_, embedding_bias_, segments_, head_, head_bias_, logit_scale_;
  Scalar logit_multiplier_ = 1;
  Scalar attention_scale_ = 1;
  LayerStack<Scalar> encoder_, decoder_;  // a model of one stack is in decoder_
  Matrix<Scalar> pooled_, raw_logits_, logits_, dlogits_, dh_;
};

}  // namespace scalewise::nn
