// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/dense/buffer.hpp"
#include "scalewise/dense/product.hpp"
#include "scalewise/nn/batch.hpp"
#include "scalewise/nn/config.hpp"
#include "scalewise/nn/loss.hpp"
#include "scalewise/nn/stack.hpp"
#include "scalewise/plan/check_plan.hpp"

namespace scalewise::nn {

/// The reference transformer: a plan and a config made into a function with a gradient. An embedding goes through the
/// layers of a LayerStack (stack.hpp), each a ResidualBlock around attention and one around an MLP (blocks.hpp), which
/// applies the plan's skip and branch (residual.hpp), and is read out; each Weight (weight.hpp) acts with its multiplier;
/// the head, and a tied embedding, with the plan's logit_multiplier, which has the head's own in it.
/// Shapes:   Batch -> logits (B*T, V) or (B, classes)
/// The plan is needed during construction only. The matrices of a normalized transformer have to be
/// brought to unit length by normalize_matrices() before every step.
/// Throws:   InvalidInput for a config or batch that does not fit the plan's shape.
template <class Scalar>
class Transformer {
 public:
  Transformer(const Plan& plan, const Config& config, Gradients gradients = Gradients::all);

  // Layers refer to the parameters.
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  Parameters<Scalar>& parameters() { return parameters_; }
  const Parameters<Scalar>& parameters() const { return parameters_; }
  ConstView<Scalar> logits() const { return logits_.read(); }

  /// Shows every named intermediate, and its gradient, to an observer from now on; an empty one
  /// ends it. Nothing is copied, and without an observer it is free.
  /// Requires: not called from within an observer.
  void observe(Observer<Scalar> observer) { pass_.observer = std::move(observer); }

  /// Mean cross-entropy of a batch in nats, or half its mean squared error where it has values,
  /// without dropout.
  double loss(const Batch<Scalar>& batch) {
    pass_.dropout = 0;
    return forward_loss(batch);
  }

  /// The same with dropout; `draw`, for instance the number of the step, says which masks.
  double loss(const Batch<Scalar>& batch, std::uint64_t draw) {
    pass_.dropout = dropout_;
    pass_.draw = draw;
    return forward_loss(batch);
  }

  /// The loss with dropout, and its gradient in parameters().gradients(), which it overwrites,
  /// except for tensors that the config leaves unread (norms of Norm::none): theirs stays 0.
  /// Throws:   InvalidInput with Gradients::block_by_block.
  double loss_and_gradient(const Batch<Scalar>& batch, std::uint64_t draw = 0) {
    parameters_.require_all_gradients();
    const double value = loss(batch, draw);
    backward();
    return value;
  }

  /// The gradient of the last loss(), which overwrites what that one has left. `known`, where it is given, is called once the gradients of a
  /// block's matrices are known, and at the end with BlockId{} for the tensors in no block; it may change
  /// the values of these tensors.
  /// Throws:   InvalidInput unless a loss() comes before each call.
  void backward(const std::function<void(const BlockId&)>& known = {});

  /// Moves the biases that choose experts by `rate` towards equal loads of the last loss(). They are not parameters, and in
  /// no checkpoint.
  /// Units:    `rate` of scores between 0 and 1, such as 1e-3
  /// Returns:  the largest load of an expert over the mean of its layer.
  /// Throws:   InvalidInput for a model without experts.
  double balance_experts(double rate) {
    if (shape_.experts == 0) throw InvalidInput("experts", "0", "a model that has them");
    const double of_encoder = shape_.encoder_depth > 0 ? encoder_.balance(rate) : 0;
    return (std::max)(of_encoder, decoder_.balance(rate));
  }

 private:
  // ---- forward ----------------------------------------------------------------------------------

  static std::string size_text(Eigen::Index rows, Eigen::Index columns) {
    return std::to_string(rows) + " x " + std::to_string(columns);
  }

  double forward_loss(const Batch<Scalar>& batch);

  /// Keeps what backward() needs of a batch.
  void keep(const Batch<Scalar>& batch) {
    source_ = batch.source;
    tokens_ = batch.tokens;
    has_loss_ = true;
  }

  void forward(const Batch<Scalar>& batch) {
    if (shape_.encoder_depth > 0) {
      embed_tokens("batch.source", batch.source, batch.size, encoder_);
      encoder_.forward(pass_, batch.size, nullptr);
    }
    if (shape_.input == Input::token) {
      embed_tokens("batch.tokens", batch.tokens, batch.size, decoder_);
    } else {
      embed_patches(batch, decoder_);
    }
    decoder_.forward(pass_, batch.size, shape_.encoder_depth > 0 ? &encoder_ : nullptr);
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
    for (Eigen::Index i = 0; i < rows; ++i) {
      const int id = ids[static_cast<std::size_t>(i)];
      if (id < 0 || id >= shape_.vocab) {
        throw InvalidInput(field + "[" + std::to_string(i) + "]", std::to_string(id),
                           "an id in [0, " + std::to_string(shape_.vocab) + ")");
      }
    }
    stack.tokens = rows / batch;
    View<Scalar> embedded = stack.embedded.shape(rows, shape_.d_model);
    numeric::parallel_rows(rows, [&](Eigen::Index i) {
      embedded.row(i) =
          embedding_.multiplier * embedding_.value().row(ids[static_cast<std::size_t>(i)]);
      if (segments_.present()) {
        embedded.row(i) += segments_.multiplier * segments_.value().row(0);
      }
    });
    add_positions(stack);
  }

  /// Shapes: patches (B*T, patch_dim) -> embedded (B*T, C); after a class token (B*(T+1), C)
  void embed_patches(const Batch<Scalar>& batch, LayerStack<Scalar>& stack) {
    const Eigen::Index rows = batch.patches.rows();
    if (batch.size <= 0 || rows == 0 || rows % batch.size != 0 ||
        batch.patches.cols() != shape_.patch_dim) {
      throw InvalidInput("batch.patches", size_text(rows, batch.patches.cols()),
                         "a positive multiple of batch.size rows of " +
                             std::to_string(shape_.patch_dim) + " numbers");
    }
    if (!batch.patches.allFinite())
      throw InvalidInput("batch.patches", "not finite", "finite numbers");
    const Eigen::Index first = class_.present() ? 1 : 0, of_input = rows / batch.size;
    stack.tokens = first + of_input;
    View<Scalar> patches = patches_.shape(batch.size * stack.tokens, shape_.patch_dim);
    View<Scalar> embedded = stack.embedded.shape(patches.rows(), shape_.d_model);
    for (Eigen::Index b = 0; b < batch.size; ++b) {
      patches.middleRows(b * stack.tokens, first).setZero();
      patches.middleRows(b * stack.tokens + first, of_input) =
          batch.patches.middleRows(b * of_input, of_input);
    }
    linear_forward(embedding_, embedding_bias_, patches_.read(), embedded);
    for (Eigen::Index b = 0; b < first * batch.size; ++b) {
      embedded.row(b * stack.tokens) = class_.multiplier * class_.value().row(0);
    }
    add_positions(stack);
  }

  void add_positions(LayerStack<Scalar>& stack) {
    if (!stack.positions.present()) return;
    if (stack.tokens > stack.positions.value().rows()) {
      throw InvalidInput("sequence length", std::to_string(stack.tokens),
                         "at most context = " + std::to_string(stack.positions.value().rows()));
    }
    View<Scalar> embedded = stack.embedded.view();
    numeric::parallel_rows(embedded.rows(), [&](Eigen::Index i) {
      embedded.row(i) += stack.positions.multiplier * stack.positions.value().row(i % stack.tokens);
    });
  }

  /// The input of the head: the stream, its class token or the mean of its patches.
  ConstView<Scalar> features() const {
    return shape_.input == Input::patch ? pooled_.read() : decoder_.final_hidden();
  }

  /// How many tokens of each sequence the head reads the mean of.
  Eigen::Index read_tokens() const { return class_.present() ? 1 : decoder_.tokens; }

  /// Shapes: left (B*T, C) -> logits (B*T, V), or of features() (B, classes)
  void read_out(Eigen::Index batch) {
    View<Scalar> pooled = pooled_.shape(batch, shape_.d_model);
    for (Eigen::Index b = 0; shape_.input == Input::patch && b < batch; ++b) {
      const Eigen::Index first = b * decoder_.tokens;
      pooled.row(b) = decoder_.final_hidden().middleRows(first, read_tokens()).colwise().mean();
    }
    const ConstView<Scalar> h = features();
    View<Scalar> z =
        logits_.shape(h.rows(), shape_.input == Input::patch ? shape_.classes : shape_.vocab);
    if (head_.present()) {
      multiply(logit_multiplier_, h, head_.value(), z);
    } else {
      multiply(logit_multiplier_, h, dense::transposed(embedding_.value()), z);
    }
    if (logit_scale_.present()) {
      raw_logits_.shape(z.rows(), z.cols()) = z;
      scale_columns(logit_scale_.multiplier, raw_logits_.read(), logit_scale_.value(), z);
    }
    if (head_bias_.present()) {
      for (Eigen::Index i = 0; i < z.rows(); ++i) {
        z.row(i) += head_bias_.multiplier * head_bias_.value().row(0);
      }
    }
    if (logit_cap_ > 0) soft_cap(logit_cap_, z, cap_slope_.shape(z.rows(), z.cols()));
    pass_.show("", "logits", logits_.read());
  }

  // ---- backward ---------------------------------------------------------------------------------

  /// Writes: decoder_.dfinal_hidden; overwrites the gradients of head, bias, logit scale and, whether it is
  /// tied or not, of the token embedding.
  void read_out_backward() {
    pass_.show_gradient("", "logits", dlogits_.read());
    if (logit_cap_ > 0) dlogits_.entries() *= cap_slope_.entries();
    const ConstView<Scalar> d = dlogits_.read();
    const ConstView<Scalar> h = features();
    if (head_bias_.present()) sum_rows(head_bias_.multiplier, d, head_bias_.gradient());
    if (logit_scale_.present()) {
      logit_scale_.gradient().setZero();
      sum_products(logit_scale_.multiplier, d, raw_logits_.read(), logit_scale_.gradient());
      scale_columns(logit_scale_.multiplier, d, logit_scale_.value(), dlogits_.view());
    }
    const bool patches = shape_.input == Input::patch;
    View<Scalar> dfinal_hidden =
        decoder_.dfinal_hidden.shape(decoder_.final_hidden().rows(), h.cols());
    View<Scalar> dh = patches ? dpooled_.shape(h.rows(), h.cols()) : dfinal_hidden;
    if (head_.present()) {
      if (!patches) embedding_.gradient().setZero();
      multiply(logit_multiplier_, dense::transposed(h), d, head_.gradient());
      multiply(logit_multiplier_, d, dense::transposed(head_.value()), dh);
    } else {
      multiply(logit_multiplier_, dense::transposed(d), h, embedding_.gradient());
      multiply(logit_multiplier_, d, embedding_.value(), dh);
    }
    if (!patches) return;
    for (Eigen::Index i = 0; i < dfinal_hidden.rows(); ++i) {
      const bool read = i % decoder_.tokens < read_tokens();
      const Scalar over = read ? 1 / static_cast<Scalar>(read_tokens()) : 0;
      dfinal_hidden.row(i) = over * dh.row(i / decoder_.tokens);
    }
  }

  /// One task per block of columns, so that rows of the same token add up in one place.
  void embed_tokens_backward(const std::vector<int>& ids, LayerStack<Scalar>& stack) {
    const ConstView<Scalar> d = stack.dembedded();
    numeric::parallel_tiles(d.cols(), 64, [&](Eigen::Index column, Eigen::Index columns) {
      for (Eigen::Index i = 0; i < d.rows(); ++i) {
        embedding_.gradient().row(ids[static_cast<std::size_t>(i)]).segment(column, columns) +=
            embedding_.multiplier * d.row(i).segment(column, columns);
      }
    });
    if (segments_.present()) {
      View<Scalar> first = segments_.gradient();
      sum_rows(segments_.multiplier, d, dense::block(first, 0, 0, 1, first.cols()), true);
    }
    positions_backward(stack);
  }

  void embed_patches_backward() {
    const ConstView<Scalar> d = decoder_.dembedded();
    Weight<Scalar>& bias = embedding_bias_;
    multiply(embedding_.multiplier, dense::transposed(patches_.read()), d, embedding_.gradient());
    if (bias.present()) sum_rows(bias.multiplier, d, bias.gradient());
    for (Eigen::Index i = 0; class_.present() && i < d.rows(); i += decoder_.tokens) {
      class_.gradient().row(0) += class_.multiplier * d.row(i);
      if (bias.present()) bias.gradient().row(0) -= bias.multiplier * d.row(i);
    }
    positions_backward(decoder_);
  }

  void positions_backward(LayerStack<Scalar>& stack) {
    if (!stack.positions.present()) return;
    const ConstView<Scalar> d = stack.dembedded();
    numeric::parallel_tiles(d.cols(), 64, [&](Eigen::Index column, Eigen::Index columns) {
      for (Eigen::Index i = 0; i < d.rows(); ++i) {
        stack.positions.gradient().row(i % stack.tokens).segment(column, columns) +=
            stack.positions.multiplier * d.row(i).segment(column, columns);
      }
    });
  }

  Shape shape_;
  Parameters<Scalar> parameters_;
  Weight<Scalar> embedding_, embedding_bias_, class_, segments_, head_, head_bias_, logit_scale_;
  Scalar logit_multiplier_ = 1;
  Scalar logit_cap_ = 0;                  // 0: none
  LayerStack<Scalar> encoder_, decoder_;  // a model of one stack is in decoder_
  double dropout_ = 0;
  Pass<Scalar> pass_;
  dense::Buffer<Scalar> pooled_, dpooled_, raw_logits_, logits_, dlogits_, cap_slope_;
  dense::Buffer<double> row_losses_;
  std::vector<int> tokens_, source_;
  dense::Buffer<Scalar> patches_;
  bool has_loss_ = false;  // and backward() has not used it up
};

// All that takes long to compile is reached from here, outside the class, where `extern template`
// can leave it to one translation unit.

template <class Scalar>
Transformer<Scalar>::Transformer(const Plan& plan, const Config& config, Gradients gradients)
    : shape_(plan::checked(plan).shape), parameters_(plan, gradients), dropout_(config.dropout) {
  check(config, shape_);
  plan::require_no_extras(plan, "the reference transformer would not use it");
  dense::keep_to_one_thread();
  pass_.dropout_seed = config.dropout_seed;
  const auto weight = [&](const std::string& name) {
    return Weight<Scalar>(parameters_, plan, name);
  };
  embedding_ = weight(shape_.input == Input::token ? "token_embedding" : "patch_embedding");
  // Plans for a code base (plan --names) have `model.code`; embedding_multiplier then has the factor of that code, too.
  if (plan.model.code) {
    embedding_.multiplier = static_cast<Scalar>(plan.model.embedding_multiplier.value);
  }
  embedding_bias_ = weight("patch_bias");
  class_ = weight("class_token");
  segments_ = weight("segment_embedding");
  head_ = weight("head");
  head_bias_ = weight("head_bias");
  logit_scale_ = weight("logit_scale");
  logit_multiplier_ = static_cast<Scalar>(plan.model.logit_multiplier.value);
  logit_cap_ = static_cast<Scalar>(config.logit_cap);
  const bool two = shape_.encoder_depth > 0;
  if (two) encoder_ = LayerStack<Scalar>(parameters_, plan, config, Stack::encoder);
  decoder_ = LayerStack<Scalar>(parameters_, plan, config, two ? Stack::decoder : Stack::main);
}

template <class Scalar>
double Transformer<Scalar>::forward_loss(const Batch<Scalar>& batch) {
  has_loss_ = false;
  forward(batch);
  View<Scalar> dlogits = dlogits_.shape(logits_.rows(), logits_.cols());
  if (batch.values.size() > 0) {
    if (batch.values.rows() != logits_.rows() || batch.values.cols() != logits_.cols()) {
      throw InvalidInput("batch.values", size_text(batch.values.rows(), batch.values.cols()),
                         size_text(logits_.rows(), logits_.cols()) + " numbers, one per logit");
    }
    if (!batch.values.allFinite())
      throw InvalidInput("batch.values", "not finite", "finite numbers");
    const double value = mean_squared_error(logits_.read(), dense::read(batch.values), dlogits);
    keep(batch);
    return value;
  }
  if (static_cast<Eigen::Index>(batch.targets.size()) != logits_.rows()) {
    throw InvalidInput("batch.targets", std::to_string(batch.targets.size()) + " targets",
                       std::to_string(logits_.rows()) + ", one per row of the logits");
  }
  const double value =
      cross_entropy(logits_.read(), std::span<const int>(batch.targets), dlogits, row_losses_);
  keep(batch);
  return value;
}

template <class Scalar>
void Transformer<Scalar>::backward(const std::function<void(const BlockId&)>& known) {
  if (!std::exchange(has_loss_, false)) {
    throw InvalidInput("backward()", "without a loss", "loss() before each call");
  }
  const bool two = shape_.encoder_depth > 0;
  // Linear layers, norms and scales overwrite their gradients. What adds to them, the look-ups, starts from zero.
  for (const Weight<Scalar>* table :
       {&segments_, &class_, &encoder_.positions, &decoder_.positions}) {
    if (table->present()) table->gradient().setZero();
  }
  read_out_backward();
  if (two)
    encoder_.dfinal_hidden.shape(encoder_.embedded.rows(), encoder_.embedded.cols()).setZero();
  decoder_.backward(pass_, two ? &encoder_ : nullptr, known);
  if (shape_.input == Input::token) {
    embed_tokens_backward(tokens_, decoder_);
  } else {
    embed_patches_backward();
  }
  if (two) {
    encoder_.backward(pass_, nullptr, known);
    embed_tokens_backward(source_, encoder_);
  }
  if (known) known(BlockId{});
}

}  // namespace scalewise::nn
