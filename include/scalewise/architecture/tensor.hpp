// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/group.hpp"
#include "scalewise/architecture/shape.hpp"
#include "scalewise/architecture/tensor_name.hpp"
#include "scalewise/scaling/scaling.hpp"

namespace scalewise {

/// The block of a layer.
enum class BlockKind { none, attention, cross_attention, mlp };

/// One tensor of a model: what it is, where it sits, and what it maps from and to.
/// Shapes:   rows x columns, whatever order the training code stores them in.
/// The fans are scalings, so that a rule's "1/fi" can be printed as "1/F" for this matrix. The
/// fan-in of a one-hot input and of a gain is 1: it does not grow. A bias has its matrix's.
struct Tensor {
  std::string name;
  Group group = Group::query;
  Stack stack = Stack::none;
  int layer = -1;                     // from 0; -1 outside the blocks
  BlockKind block = BlockKind::none;  // with its norm and its gain on the branch
  Scaling fan_in;
  Scaling fan_out;
  long rows = 1;
  long columns = 1;
  bool own_values = false;  // no rule draws them
  bool in_layers = false;   // also where its name does not say which
};

namespace detail {

/// Visits the tensors of a shape.
class TensorWalk {
 public:
  using Visitor = std::function<void(Tensor&&)>;

  /// H*C is written n, and K*C as H*C, where that holds in both shapes.
  TensorWalk(const Shape& shape, const Shape& other, const Visitor& visit)
      : visit_(visit),
        shape_(shape),
        q_width_(shape.heads * shape.head_dim),
        kv_width_(shape.kv_heads * shape.head_dim) {
    using namespace symbols;
    const auto fills = [](const Shape& s) { return s.heads * s.head_dim == s.d_model; };
    const auto all = [](const Shape& s) { return s.kv_heads == s.heads; };
    q_ = fills(shape) && fills(other) ? n : Scaling(symbols::heads) * C;
    kv_ = all(shape) && all(other) ? q_ : Scaling(symbols::kv_heads) * C;
  }

  void stem() {
    using namespace symbols;
    const Shape& s = shape_;
    if (s.input == Input::token) {
      add("token_embedding", Group::token_embedding, 1, n, s.vocab, s.d_model);
    } else {
      add("patch_embedding", Group::patch_embedding, n_patch, n, s.patch_dim, s.d_model);
      if (s.biases) add("patch_bias", Group::patch_bias, n_patch, n, s.d_model);
      if (s.class_token) add("class_token", Group::class_token, 1, n, s.d_model);
    }
    if (s.learned_positions) {
      if (s.encoder_depth > 0) positions(Stack::encoder);
      positions(s.encoder_depth > 0 ? Stack::decoder : Stack::main);
    }
    if (s.segments > 0) {
      add("segment_embedding", Group::segment_embedding, 1, n, s.segments, s.d_model);
    }
  }

  void stack(Stack which, int layers) {
    stack_ = which;
    if (shape_.embedding_norm)
      norm("embedding_norm", Group::embedding_norm_gain, Group::embedding_norm_bias);
    for (layer_ = 0; layer_ < layers; ++layer_) layer();
    layer_ = -1;
    if (shape_.final_norm && shape_.blocks == Blocks::residual) {
      norm("final_norm", Group::final_norm_gain, Group::final_norm_bias);
    }
    stack_ = Stack::none;
  }

  void head() {
    using namespace symbols;
    const bool shallow = shape_.blocks == Blocks::shallow_encoder;
    const long width = shallow ? 1 : outputs(shape_);
    if (!shape_.tied_head.value_or(false)) {
      add("head", Group::head, n, shallow ? Scaling(1) : n_out, shape_.d_model, width);
    }
    if (*shape_.head_bias && !shallow) add("head_bias", Group::head_bias, n, n_out, width);
    if (shape_.blocks == Blocks::normalized) {
      add("logit_scale", Group::logit_scale, 1, n_out, width);
    }
  }

  /// The encoder-only model of one attention layer: its matrices read the input itself.
  void shallow() {
    using namespace symbols;
    stack_ = Stack::main;
    layer_ = 0;
    block_ = BlockKind::attention;
    add("query", Group::query, n_patch, n, shape_.patch_dim, shape_.d_model);
    add("key", Group::key, n_patch, n, shape_.patch_dim, shape_.d_model);
    add("value", Group::value, n_patch, n, shape_.patch_dim, shape_.d_model);
    stack_ = Stack::none;
    layer_ = -1;
    block_ = BlockKind::none;
    head();
  }

 private:
  /// Positions are in no stack, though the name says which one adds them.
  void positions(Stack of) {
    add(to_string(architecture::TensorName{of, -1, "position_embedding"}),
        Group::position_embedding, 1, symbols::n, shape_.context, shape_.d_model);
  }

  void layer() {
    block_ = BlockKind::attention;
    attention("");
    if (stack_ == Stack::decoder) {
      block_ = BlockKind::cross_attention;
      attention("cross_");
    }
    block_ = BlockKind::mlp;
    mlp();
    block_ = BlockKind::none;
  }

  void attention(const std::string& kind) {
    using namespace symbols;
    const Shape& s = shape_;
    const long d = s.d_model;
    norm(kind + "attention_norm", Group::norm_gain, Group::norm_bias);
    add(kind + "query", Group::query, n, q_, d, q_width_);
    add(kind + "key", Group::key, n, kv_, d, kv_width_);
    add(kind + "value", Group::value, n, kv_, d, kv_width_);
    add(kind + "attention_output", Group::attention_output, q_, n, q_width_, d);
    if (s.biases || s.attention_biases != AttentionBiases::none) {
      add(kind + "query_bias", Group::hidden_bias, n, q_, q_width_);
      add(kind + "key_bias", Group::hidden_bias, n, kv_, kv_width_);
      add(kind + "value_bias", Group::hidden_bias, n, kv_, kv_width_);
    }
    if (architecture::has_attention_output_bias(s)) {
      add(kind + "attention_output_bias", Group::hidden_bias, q_, n, d);
    }
    if (s.qk_norm != QkNorm::none && s.blocks == Blocks::residual) {
      const bool head = s.qk_norm == QkNorm::head;
      vectors(kind + "query_norm", head ? C : q_, head ? s.head_dim : q_width_);
      vectors(kind + "key_norm", head ? C : kv_, head ? s.head_dim : kv_width_);
    }
    if (kind.empty() && s.relative_buckets > 0 && layer_ == 0) {
      add("relative_position", Group::relative_position, 1, symbols::heads, s.relative_buckets,
          s.heads);
    }
    end_branch(kind + "attention");
    if (s.blocks == Blocks::normalized) {
      add(kind + "attention_step", Group::attention_step, 1, n, d);
      add(kind + "qk_scale", Group::qk_scale, 1, q_, q_width_);
    }
  }

  void mlp() {
    using namespace symbols;
    const Shape& s = shape_;
    norm("mlp_norm", Group::norm_gain, Group::norm_bias);
    if (s.experts > 0) return experts();
    add("mlp_up", Group::mlp_up, n, F, s.d_model, s.d_ff);
    if (s.gated_mlp) add("mlp_gate", Group::mlp_gate, n, F, s.d_model, s.d_ff);
    add("mlp_down", Group::mlp_down, F, n, s.d_ff, s.d_model);
    bias("mlp_up_bias", n, F, s.d_ff);
    if (s.gated_mlp) bias("mlp_gate_bias", n, F, s.d_ff);
    bias("mlp_down_bias", F, n, s.d_model);
    end_branch("mlp");
    if (s.blocks == Blocks::normalized) {
      add("mlp_step", Group::mlp_step, 1, n, s.d_model);
      add("up_scale", Group::up_scale, 1, F, s.d_ff);
      add("gate_scale", Group::gate_scale, 1, F, s.d_ff);
    }
  }

  /// A router, and the matrices of all experts side by side along the rows.
  void experts() {
    using symbols::n;
    const Shape& s = shape_;
    const Scaling E = symbols::experts, features = symbols::expert_ff;
    add("router", Group::router, n, E, s.d_model, s.experts);
    add("expert_up", Group::expert_up, n, features, s.experts * s.d_model, s.expert_ff);
    if (s.gated_mlp) {
      add("expert_gate", Group::expert_up, n, features, s.experts * s.d_model, s.expert_ff);
    }
    add("expert_down", Group::expert_down, features, n, s.experts * s.expert_ff, s.d_model);
    end_branch("mlp");
  }

  /// Adds the tensors that act on the output of a branch.
  void end_branch(const std::string& branch) {
    if (shape_.branch_norm) norm(branch + "_branch_norm", Group::norm_gain, Group::norm_bias);
    residual_gain(branch + "_gain");
  }

  void norm(const std::string& name, Group gain, Group bias) {
    using namespace symbols;
    if (shape_.blocks != Blocks::residual) return;
    if (shape_.norm_gain) add(name + "_gain", gain, 1, n, shape_.d_model);
    if (shape_.norm_bias) add(name + "_bias", bias, 1, n, shape_.d_model);
  }

  /// The gain and the bias of a norm within the attention.
  void vectors(const std::string& name, const Scaling& fan_out, long size) {
    if (shape_.norm_gain) add(name + "_gain", Group::norm_gain, 1, fan_out, size);
    if (shape_.norm_bias) add(name + "_bias", Group::norm_bias, 1, fan_out, size);
  }

  void bias(const std::string& name, const Scaling& fan_in, const Scaling& fan_out, long size) {
    if (shape_.biases) add(name, Group::hidden_bias, fan_in, fan_out, size);
  }

  void residual_gain(const std::string& name) {
    using namespace symbols;
    if (shape_.residual_gain == ResidualGain::channel) {
      add(name, Group::residual_gain, 1, n, shape_.d_model);
    } else if (shape_.residual_gain == ResidualGain::scalar) {
      add(name, Group::residual_gain, 1, 1, 1);
    }
  }

  void add(const std::string& name, Group group, const Scaling& fan_in, const Scaling& fan_out,
           long rows, long columns = 1) {
    visit_(Tensor{to_string(architecture::TensorName{stack_, layer_, name}), group, stack_, layer_,
                  block_, fan_in, fan_out, rows, columns, false, layer_ >= 0});
  }

  const Visitor& visit_;
  const Shape& shape_;
  long q_width_;
  long kv_width_;
  Scaling q_;
  Scaling kv_;
  Stack stack_ = Stack::none;
  int layer_ = -1;
  BlockKind block_ = BlockKind::none;
};

}  // namespace detail

namespace architecture {

/// Calls visit(Tensor) for every tensor of a model, stem first, head last, with fans that are written
/// so that they hold in `base` too.
/// Requires: resolved shapes.
inline void for_each_tensor(const Shape& shape, const Shape& base,
                            const std::function<void(Tensor&&)>& visit) {
  if (shape.blocks == Blocks::listed) return;  // all of them are extras
  detail::TensorWalk walk(shape, base, visit);
  if (shape.blocks == Blocks::shallow_encoder) return walk.shallow();
  walk.stem();
  if (shape.encoder_depth > 0) {
    walk.stack(Stack::encoder, static_cast<int>(shape.encoder_depth));
    walk.stack(Stack::decoder, static_cast<int>(shape.depth));
  } else {
    walk.stack(Stack::main, static_cast<int>(shape.depth));
  }
  walk.head();
}

}  // namespace architecture

/// The tensors of a model, as a list.
inline std::vector<Tensor> tensors(const Shape& shape, const Shape& base) {
  std::vector<Tensor> list;
  architecture::for_each_tensor(shape, base,
                                [&](Tensor&& tensor) { list.push_back(std::move(tensor)); });
  return list;
}

/// The tensors of a model that is its own base.
inline std::vector<Tensor> tensors(const Shape& shape) { return tensors(shape, shape); }

}  // namespace scalewise
