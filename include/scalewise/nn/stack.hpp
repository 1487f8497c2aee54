// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/dense/buffer.hpp"
#include "scalewise/nn/experts.hpp"
#include "scalewise/nn/residual.hpp"

namespace scalewise::nn {

/// One layer: self-attention, cross-attention in a decoder of two stacks, MLP or experts.
template <class Scalar>
struct TransformerLayer {
  AttentionLayer<Scalar> self, cross;
  MlpLayer<Scalar> mlp;
  ExpertsLayer<Scalar> experts;
  ResidualBlock<Scalar> around_self, around_cross, around_mlp;
  dense::Buffer<Scalar> after_self, after_cross, after_mlp;  // (N, C), the stream
};

/// A stack of layers with the norms around it.
/// Shapes:   embedded (B*T, C) -> final_hidden() (B*T, C); a decoder also reads the encoder's final_hidden() (B*S, C)
/// Observers see `embedding`, the input of the first layer, and `final_hidden`.
template <class Scalar>
class LayerStack {
 public:
  LayerStack() = default;  // the encoder of a model without one
  LayerStack(Parameters<Scalar>& parameters, const Plan& plan, const Config& config, Stack which)
      : causal_(which == Stack::decoder || (which == Stack::main && config.causal)),
        cross_(which == Stack::decoder),
        parallel_(config.parallel),
        which_(which),
        shape_(plan.shape) {
    Origin from{parameters, plan, config};
    const std::string top = architecture::TensorName{which}.prefix();
    const bool norms = shape_.blocks == Blocks::residual && config.norm != Norm::none;
    name_ = top;
    positions = from.weight(top + "position_embedding");
    has_embedding_norm_ = norms && shape_.embedding_norm;
    has_final_norm_ = norms && shape_.final_norm;
    embedding_norm_ = norm(from, top + "embedding_norm");
    final_norm_ = norm(from, top + "final_norm");
    const long depth = which == Stack::encoder ? shape_.encoder_depth : shape_.depth;
    for (int l = 0; l < depth; ++l) {
      const std::string prefix = architecture::TensorName{which, l}.prefix();
      auto layer = std::make_unique<TransformerLayer<Scalar>>();
      layer->self = attention(from, prefix);
      layer->self.rotary = config.rotary;
      layer->around_self = residual(from, l, prefix + "attention");
      if (cross_) {
        layer->cross = attention(from, prefix + "cross_");
        layer->around_cross = residual(from, l, prefix + "cross_attention");
      }
      if (shape_.experts > 0) {
        layer->experts = experts(from, prefix);
      } else {
        layer->mlp = mlp(from, prefix);
      }
      layer->around_mlp = residual(from, l, prefix + "mlp");
      if (parallel_) layer->around_mlp.skip = 0;  // what it adds to the attention's stream
      layers_.push_back(std::move(layer));
    }
  }

  /// Shapes: embedded (N, C) -> final_hidden() (N, C)
  void forward(Pass<Scalar>& pass, Eigen::Index batch, const LayerStack* source) {
    const Eigen::Index rows = embedded.rows();
    const Eigen::Index width = embedded.cols();
    if (has_embedding_norm_) {
      embedding_norm_.forward(embedded.read(), normed_embedding_.shape(rows, width));
    }
    dense::Buffer<Scalar>& entered = has_embedding_norm_ ? normed_embedding_ : embedded;
    pass.dropout_of(name_, "embedding").apply(entered.view());
    pass.show(name_, "embedding", entered.read());
    for (std::size_t l = 0; l < layers_.size(); ++l) forward_layer(pass, batch, l, source);
    if (has_final_norm_) {
      final_norm_.forward(entering(layers_.size()), normed_left_.shape(rows, width));
    }
    pass.show(name_, "final_hidden", final_hidden());
  }

  /// The stream after the last layer and the final norm.
  ConstView<Scalar> final_hidden() const {
    return has_final_norm_ ? normed_left_.read() : entering(layers_.size());
  }

  /// Gradient of forward, from dfinal_hidden.
  /// Calls known(block), where it is given, once the gradients of a block's matrices are known.
  /// Writes: dembedded(), the gradient of embedded; adds to source->dfinal_hidden. Uses dfinal_hidden as scratch.
  void backward(Pass<Scalar>& pass, LayerStack* source,
                const std::function<void(const BlockId&)>& known) {
    pass.show_gradient(name_, "final_hidden", dfinal_hidden.read());
    dense::Buffer<Scalar>* d = &dfinal_hidden;
    dense::Buffer<Scalar>* next = &dstream_;
    next->shape(dfinal_hidden.rows(), dfinal_hidden.cols());
    if (has_final_norm_) {
      final_norm_.backward(d->read(), entering(layers_.size()), next->view());
      std::swap(d, next);
    }
    for (std::size_t l = layers_.size(); l-- > 0;) {
      backward_layer(pass, l, source, d, next, [&](BlockKind kind, bool down = false) {
        if (known) known({which_, static_cast<int>(l), kind, down});
      });
    }
    pass.show_gradient(name_, "embedding", d->read());
    pass.dropout_of(name_, "embedding").apply(d->view());
    if (has_embedding_norm_) {
      embedding_norm_.backward(d->read(), embedded.read(), next->view());
      std::swap(d, next);
    }
    dembedded_ = d;
  }

  ConstView<Scalar> dembedded() const { return dembedded_->read(); }

  /// Moves the biases of all layers' experts: see ExpertsLayer::balance().
  double balance(double rate) {
    double largest = 0;
    for (auto& layer : layers_) largest = (std::max)(largest, layer->experts.balance(rate));
    return largest;
  }

  Weight<Scalar> positions;
  Eigen::Index tokens = 0;              // T of the batch
  dense::Buffer<Scalar> embedded;       // (N, C), sum of embeddings
  dense::Buffer<Scalar> dfinal_hidden;  // (N, C), the gradient of final_hidden()

 private:
  /// Shapes: entering(l) (N, C) -> after_mlp of layer l (N, C)
  void forward_layer(Pass<Scalar>& pass, Eigen::Index batch, std::size_t l,
                     const LayerStack* source) {
    TransformerLayer<Scalar>& layer = *layers_[l];
    const Eigen::Index rows = embedded.rows();
    const Eigen::Index width = embedded.cols();
    layer.self.sizes = sizes(batch, nullptr);
    layer.around_self.forward(
        pass, entering(l),
        [&](const auto& in, const auto& out) { layer.self.forward(pass, in, in, out); },
        layer.after_self.shape(rows, width));
    pass.show(layer.around_self.name, "stream", layer.after_self.read());
    if (cross_) {
      layer.cross.sizes = sizes(batch, source);
      layer.around_cross.forward(
          pass, layer.after_self.read(),
          [&](const auto& in, const auto& out) {
            layer.cross.forward(pass, in, source->final_hidden(), out);
          },
          layer.after_cross.shape(rows, width));
      pass.show(layer.around_cross.name, "stream", layer.after_cross.read());
    }
    layer.around_mlp.forward(
        pass, entering_mlp(l),
        [&](const auto& in, const auto& out) {
          if (shape_.experts > 0) return layer.experts.forward(pass, in, out);
          layer.mlp.forward(pass, in, out);
        },
        layer.after_mlp.shape(rows, width));
    if (parallel_) add(layer.after_self, layer.after_mlp.view());
    pass.show(layer.around_mlp.name, "stream", layer.after_mlp.read());
  }

  /// The backward pass of forward_layer. Turns d from the gradient of the layer's output into that of
  /// its input; next is scratch. Calls known(kind) after each block, and known(kind, true) after an MLP's matrix down.
  template <class Known>
  void backward_layer(Pass<Scalar>& pass, std::size_t l, LayerStack* source,
                      dense::Buffer<Scalar>*& d, dense::Buffer<Scalar>*& next, const Known& known) {
    TransformerLayer<Scalar>& layer = *layers_[l];
    layer.around_mlp.backward(
        pass, d->read(), entering_mlp(l),
        [&](const auto& dout, const auto& in, const auto& din) {
          if (shape_.experts > 0) return layer.experts.backward(pass, dout, in, din);
          layer.mlp.backward(pass, dout, in, din, [&] { known(BlockKind::mlp, true); });
        },
        parallel_ ? dparallel_.shape(d->rows(), d->cols()) : next->view());
    if (!parallel_) std::swap(d, next);
    known(BlockKind::mlp);
    if (cross_) {
      layer.around_cross.backward(
          pass, d->read(), layer.after_self.read(),
          [&](const auto& dout, const auto& in, const auto& din) {
            layer.cross.backward(pass, dout, in, source->final_hidden(), din,
                                 source->dfinal_hidden.view());
          },
          next->view());
      std::swap(d, next);
      known(BlockKind::cross_attention);
    }
    layer.around_self.backward(
        pass, d->read(), entering(l),
        [&](const auto& dout, const auto& in, const auto& din) {
          layer.self.backward(pass, dout, in, in, din, din);
        },
        next->view());
    std::swap(d, next);
    if (parallel_) add(dparallel_, d->view());
    known(BlockKind::attention);
  }

  /// to += what
  static void add(const dense::Buffer<Scalar>& what, View<Scalar> to) {
    const ConstView<Scalar> from = what.read();
    numeric::parallel_tiles(to.rows(), 64, [&](Eigen::Index begin, Eigen::Index rows) {
      to.middleRows(begin, rows) += from.middleRows(begin, rows);
    });
  }

  /// Where a layer finds its weights and numbers.
  struct Origin {
    Parameters<Scalar>& parameters;
    const Plan& plan;
    const Config& config;

    Weight<Scalar> weight(const std::string& name) const { return {parameters, plan, name}; }
  };

  NormLayer<Scalar> norm(Origin& from, const std::string& name) {
    NormLayer<Scalar> layer;
    layer.kind = from.config.norm;
    layer.epsilon = static_cast<Scalar>(from.config.norm_epsilon);
    layer.gain = from.weight(name + "_gain");
    layer.bias = from.weight(name + "_bias");
    return layer;
  }

  ResidualBlock<Scalar> residual(Origin& from, int l, const std::string& name) {
    ResidualBlock<Scalar> block;
    block.name = name + ".";
    block.placement = from.config.placement;
    for (const Residual& r : from.plan.model.residuals) {
      if (r.stack != which_ || r.layer != l) continue;
      block.skip = static_cast<Scalar>(r.skip.value);
      block.branch = static_cast<Scalar>(r.branch.value);
    }
    block.has_norm = from.config.norm != Norm::none;
    block.norm = norm(from, name + "_norm");
    block.has_branch_norm = block.has_norm && shape_.branch_norm;
    block.branch_norm = norm(from, name + "_branch_norm");
    block.gain = from.weight(name + "_gain");
    block.step = from.weight(name + "_step");
    return block;
  }

  AttentionLayer<Scalar> attention(Origin& from, const std::string& prefix) {
    const auto weight = [&](const char* name) { return from.weight(prefix + name); };
    AttentionLayer<Scalar> layer;
    layer.name = prefix + "attention.";
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
    layer.score_cap = static_cast<Scalar>(from.config.score_cap);
    if (from.config.norm != Norm::none) layer.qk_norm = shape_.qk_norm;
    layer.query_norm = norm(from, prefix + "query_norm");
    layer.key_norm = norm(from, prefix + "key_norm");
    return layer;
  }

  MlpLayer<Scalar> mlp(Origin& from, const std::string& prefix) {
    const auto weight = [&](const char* name) { return from.weight(prefix + name); };
    MlpLayer<Scalar> layer;
    layer.name = prefix + "mlp.";
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

  /// Experts have no biases, and observers do not see inside of them: other tokens come to an expert in each step.
  ExpertsLayer<Scalar> experts(Origin& from, const std::string& prefix) {
    ExpertsLayer<Scalar> layer;
    layer.name = prefix + "mlp.";
    layer.gates = from.config.gates;
    layer.active = shape_.experts_per_token;
    layer.router = from.weight(prefix + "router");
    layer.bias.assign(static_cast<std::size_t>(shape_.experts), 0);
    for (Eigen::Index e = 0; e < shape_.experts; ++e) {
      MlpLayer<Scalar> expert;
      expert.activation = from.config.activation;
      expert.up = from.weight(prefix + "expert_up").part(e, shape_.experts);
      expert.gate = from.weight(prefix + "expert_gate").part(e, shape_.experts);
      expert.down = from.weight(prefix + "expert_down").part(e, shape_.experts);
      layer.experts.push_back(std::move(expert));
    }
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

  /// The stream that enters layer l, or leaves the last.
  ConstView<Scalar> entering(std::size_t l) const {
    if (l > 0) return layers_[l - 1]->after_mlp.read();
    return has_embedding_norm_ ? normed_embedding_.read() : embedded.read();
  }
  ConstView<Scalar> entering_mlp(std::size_t l) const {
    if (parallel_) return entering(l);
    return cross_ ? layers_[l]->after_cross.read() : layers_[l]->after_self.read();
  }

  std::string name_;  // "", "encoder." or "decoder."
  bool causal_ = false;
  bool cross_ = false;
  bool parallel_ = false;
  Stack which_ = Stack::main;
  Shape shape_;
  NormLayer<Scalar> embedding_norm_, final_norm_;
  bool has_embedding_norm_ = false;
  bool has_final_norm_ = false;
  std::vector<std::unique_ptr<TransformerLayer<Scalar>>> layers_;
  dense::Buffer<Scalar> normed_embedding_, normed_left_, dstream_;
  dense::Buffer<Scalar> dparallel_;  // of the MLP's part, where branches are parallel
  dense::Buffer<Scalar>* dembedded_ = nullptr;
};

}  // namespace scalewise::nn
