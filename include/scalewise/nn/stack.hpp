// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/nn/residual.hpp"

namespace scalewise::nn {

/// One layer: self-attention, cross-attention in a decoder of two stacks, MLP.
template <class Scalar>
struct Layer {
  AttentionLayer<Scalar> self, cross;
  MlpLayer<Scalar> mlp;
  ResidualBlock<Scalar> around_self, around_cross, around_mlp;
  Matrix<Scalar> after_self, after_cross, after_mlp;  // (N, C)
};

/// A stack of layers with the norms around it.
/// Shapes:   embedded (B*T, C) -> left (B*T, C); a decoder also reads the encoder's left (B*S, C)
template <class Scalar>
class LayerStack {
 public:
  LayerStack() = default;  // the encoder of a model without one
  LayerStack(Parameters<Scalar>& parameters, const Plan& plan, const Config& config, Stack which)
      : causal_(which == Stack::decoder || (which == Stack::main && config.causal)),
        cross_(which == Stack::decoder),
        which_(which),
        shape_(plan.shape) {
    Source from{parameters, plan, config};
    const std::string top = which == Stack::main      ? ""
                            : which == Stack::encoder ? "encoder."
                                                      : "decoder.";
    const bool norms = shape_.blocks == Blocks::residual && config.norm != Norm::none;
    positions = from.weight(top + "position_embedding");
    has_embedding_norm_ = norms && shape_.embedding_norm;
    has_final_norm_ = norms && shape_.final_norm;
    embedding_norm_ = norm(from, top + "embedding_norm");
    final_norm_ = norm(from, top + "final_norm");
    const long depth = which == Stack::encoder ? shape_.encoder_depth : shape_.depth;
    for (long l = 0; l < depth; ++l) {
      const std::string prefix = (top.empty() ? "layer." : top) + std::to_string(l) + ".";
      auto layer = std::make_unique<Layer<Scalar>>();
      layer->self = attention(from, prefix);
      layer->self.rotary = config.rotary;
      layer->around_self = residual(from, l, prefix + "attention");
      if (cross_) {
        layer->cross = attention(from, prefix + "cross_");
        layer->around_cross = residual(from, l, prefix + "cross_attention");
      }
      layer->mlp = mlp(from, prefix);
      layer->around_mlp = residual(from, l, prefix + "mlp");
      layers_.push_back(std::move(layer));
    }
  }

  /// Shapes: embedded (N, C) -> left (N, C)
  void forward(Eigen::Index batch, const LayerStack* source) {
    entered_.resize(embedded.rows(), embedded.cols());
    if (has_embedding_norm_) {
      embedding_norm_.forward(read(embedded), view(entered_));
    } else {
      entered_ = embedded;
    }
    const Matrix<Scalar>* x = &entered_;
    for (const auto& owned : layers_) {
      Layer<Scalar>& layer = *owned;
      layer.after_self.resize(x->rows(), x->cols());
      layer.after_mlp.resize(x->rows(), x->cols());
      layer.self.sizes = sizes(batch, nullptr);
      layer.around_self.forward(
          read(*x), [&](const auto& in, const auto& out) { layer.self.forward(in, in, out); },
          view(layer.after_self));
      x = &layer.after_self;
      if (cross_) {
        layer.after_cross.resize(x->rows(), x->cols());
        layer.cross.sizes = sizes(batch, source);
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
    left.resize(x->rows(), x->cols());
    if (has_final_norm_) {
      final_norm_.forward(read(*x), view(left));
    } else {
      left = *x;
    }
  }

  /// Gradient of forward, from dleft.
  /// Writes: dentered, the gradient of embedded; adds to source->dleft.
  void backward(LayerStack* source) {
    Matrix<Scalar>& d = dentered;
    Matrix<Scalar>& next = scratch_;
    d.resize(left.rows(), left.cols());
    next.resize(d.rows(), d.cols());
    if (has_final_norm_) {
      final_norm_.backward(read(dleft), view(d));
    } else {
      d = dleft;
    }
    for (std::size_t l = layers_.size(); l-- > 0;) {
      Layer<Scalar>& layer = *layers_[l];
      layer.around_mlp.backward(
          read(d),
          [&](const auto& dout, const auto& in, const auto& din) {
            layer.mlp.backward(dout, in, din);
          },
          view(next));
      d.swap(next);
      if (cross_) {
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
    if (has_embedding_norm_) {
      embedding_norm_.backward(read(d), view(next));
      d.swap(next);
    }
  }

  Weight<Scalar> positions;
  Eigen::Index tokens = 0;         // T of the batch
  Matrix<Scalar> embedded, left;   // sum of embeddings, output
  Matrix<Scalar> dentered, dleft;  // their gradients

 private:
  /// Where a layer finds its weights and numbers.
  struct Source {
    Parameters<Scalar>& parameters;
    const Plan& plan;
    const Config& config;

    Weight<Scalar> weight(const std::string& name) const { return {parameters, plan, name}; }
  };

  NormLayer<Scalar> norm(Source& from, const std::string& name) {
    NormLayer<Scalar> layer;
    layer.kind = from.config.norm;
    layer.epsilon = static_cast<Scalar>(from.config.norm_epsilon);
    layer.gain = from.weight(name + "_gain");
    layer.bias = from.weight(name + "_bias");
    return layer;
  }

  ResidualBlock<Scalar> residual(Source& from, long l, const std::string& name) {
    ResidualBlock<Scalar> block;
    block.placement = from.config.placement;
    for (const Residual& r : from.plan.model.residuals) {
      if (r.stack != which_ || r.layer != l) continue;
      block.skip = static_cast<Scalar>(r.skip.value);
      block.branch = static_cast<Scalar>(r.branch.value);
    }
    block.has_norm = from.config.norm != Norm::none;
    block.norm = norm(from, name + "_norm");
    block.gain = from.weight(name + "_gain");
    block.step = from.weight(name + "_step");
    return block;
  }

  AttentionLayer<Scalar> attention(Source& from, const std::string& prefix) {
    const auto weight = [&](const char* name) { return from.weight(prefix + name); };
    AttentionLayer<Scalar> layer;
    layer.scale = static_cast<Scalar>(from.plan.model.attention_scale.value);
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

  MlpLayer<Scalar> mlp(Source& from, const std::string& prefix) {
    const auto weight = [&](const char* name) { return from.weight(prefix + name); };
    MlpLayer<Scalar> layer;
    layer.activation = from.config.activation;
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

  AttentionSizes sizes(Eigen::Index batch, const LayerStack* source) const {
    return {batch,
            tokens,
            source == nullptr ? tokens : source->tokens,
            shape_.heads,
            shape_.kv_heads,
            shape_.head_dim,
            source == nullptr && causal_};
  }

  bool causal_ = false;
  bool cross_ = false;
  Stack which_ = Stack::main;
  Shape shape_;
  NormLayer<Scalar> embedding_norm_, final_norm_;
  bool has_embedding_norm_ = false;
  bool has_final_norm_ = false;
  std::vector<std::unique_ptr<Layer<Scalar>>> layers_;
  Matrix<Scalar> entered_, scratch_;
};

}  // namespace scalewise::nn
