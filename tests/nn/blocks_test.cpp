// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Norm, attention and MLP with their weights, forward and backward, in double and float, against their
// equations.

#include "scalewise/nn/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/numeric_gradient.hpp"
#include "support/reference_attention.hpp"
#include "support/reference_layers.hpp"
#include "support/small_shapes.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

constexpr Index sequences = 3;
constexpr Index tokens = 5;
constexpr Index batch_rows = sequences * tokens;

/// The tensors of a model under a rule, filled, each with a multiplier of its own.
template <class Scalar>
class Tensors {
 public:
  Tensors(const std::string& rule, const Shape& shape) : plan_(scrambled(rule, shape)) {
    numeric::RandomStream stream(3, "tensors");
    for (Index i = 0; i < parameters_.values().size(); ++i) {
      parameters_.values()(0, i) = static_cast<Scalar>(0.5 * stream.normal());
    }
    parameters_.gradients().setConstant(99);  // to be overwritten
  }

  const Shape& shape() const { return plan_.shape; }
  Weight<Scalar> weight(const std::string& name) { return {parameters_, plan_, "layer.0." + name}; }
  /// Empty where the shape has no such tensor.
  Matrix<double> acting(const std::string& name) {
    const Weight<Scalar> w = weight(name);
    if (!w.present()) return {};
    return double(w.multiplier) * w.value().template cast<double>();
  }

 private:
  static Plan scrambled(const std::string& rule, const Shape& shape) {
    Plan plan = make_plan(rule, {.model = shape, .base = shape});
    numeric::RandomStream stream(11, "multipliers");
    for (Entry& entry : plan.entries) entry.multiplier.value = 0.6 + 0.8 * stream.uniform();
    return plan;
  }

  Plan plan_;
  Parameters<Scalar> parameters_{plan_};
};

/// A normal matrix for the fast layer, and the same numbers for the reference.
template <class Scalar>
struct Input {
  Matrix<Scalar> fast;
  Matrix<double> exact;

  Input(Index rows, Index columns, const std::string& name)
      : fast(normal_matrix(rows, columns, name).cast<Scalar>()),
        exact(fast.template cast<double>()) {}
};

template <class Scalar>
void check_near(const Matrix<Scalar>& fast, const Matrix<double>& expected, Index terms,
                double size) {
  REQUIRE(fast.rows() == expected.rows());
  REQUIRE(fast.cols() == expected.cols());
  const double error = largest(fast.template cast<double>() - expected);
  CHECK(error <= accumulated(terms, std::numeric_limits<Scalar>::epsilon()) * size);
}

/// Gradients with respect to the tensors of a layer and to its inputs. Where terms cancel, as in the
/// gradient of a key's bias, their roundings stay, so errors are relative to the largest gradient.
template <class Scalar>
class Gradients {
 public:
  void add(const std::string& name, const Matrix<Scalar>& fast, const Matrix<double>& expected) {
    all_.push_back({name, fast, expected});
    size_ = std::max(size_, largest(expected));
  }
  /// Of a tensor as it acts; its layer's gradient is that of the stored one.
  void add(const std::string& name, const Weight<Scalar>& w, const Matrix<double>& expected) {
    CHECK(w.present() == reference::present(expected));
    if (w.present()) add(name, w.gradient(), double(w.multiplier) * expected);
  }
  void check(Index terms) const {
    for (const Pair& pair : all_) {
      INFO(pair.name);
      check_near(pair.fast, pair.expected, terms, size_);
    }
  }

 private:
  struct Pair {
    std::string name;
    Matrix<Scalar> fast;
    Matrix<double> expected;
  };
  double size_ = 0;
  std::vector<Pair> all_;
};

template <class Scalar>
void check_norm(const Shape& shape, Norm kind) {
  Tensors<Scalar> tensors("standard", shape);
  NormLayer<Scalar> layer;
  layer.kind = kind;
  layer.epsilon = Scalar(0.25);
  layer.gain = tensors.weight("mlp_norm_gain");
  layer.bias = tensors.weight("mlp_norm_bias");
  const Matrix<double> gain = tensors.acting("mlp_norm_gain");
  const Matrix<double> bias = tensors.acting("mlp_norm_bias");
  const Index width = shape.d_model;
  const Input<Scalar> x(batch_rows, width, "x");
  const Input<Scalar> dy(batch_rows, width, "dy");

  const Matrix<double> expected = reference::norm(kind, 0.25, x.exact, gain, bias);
  const Index forward = 2 * width;  // mean, deviation
  Matrix<Scalar> y(batch_rows, width);
  layer.forward(dense::read(x.fast), dense::view(y));
  check_near(y, expected, forward, largest(expected));
  y.setConstant(99);
  layer.again(dense::read(x.fast), dense::view(y));
  check_near(y, expected, forward, largest(expected));

  Matrix<Scalar> dx(batch_rows, width);
  layer.backward(dense::read(dy.fast), dense::read(x.fast), dense::view(dx));
  const auto d = reference::norm_backward(kind, 0.25, dy.exact, x.exact, gain, bias);
  Gradients<Scalar> gradients;
  gradients.add("x", dx, d.x);
  gradients.add("gain", layer.gain, d.gain);
  gradients.add("bias", layer.bias, d.bias);
  gradients.check(forward + 2 * width + batch_rows);  // two sums along a row, one over the rows
}

/// Attention of a model with `keys` tokens to read; over its own tokens where there are as many.
template <class Scalar>
void check_attention(const std::string& rule, const Shape& shape, bool causal, bool rotary,
                     Index keys) {
  const bool own = keys == tokens;
  Tensors<Scalar> tensors(rule, shape);
  AttentionLayer<Scalar> layer;
  reference::Attention exact;
  layer.sizes = {sequences, tokens, keys, shape.heads, shape.kv_heads, shape.head_dim, causal};
  layer.rotary = rotary;
  layer.scale = Scalar(0.375);
  exact.sizes = layer.sizes;
  exact.rotary = rotary;
  exact.scale = 0.375;
  const auto weigh = [&](const char* name, Weight<Scalar>& w) { w = tensors.weight(name); };
  const auto act = [&](const char* name, Matrix<double>& w) { w = tensors.acting(name); };
  reference::for_each_attention_tensor(layer, weigh);
  reference::for_each_attention_tensor(exact.w, act);
  const Index width = shape.d_model;
  const Input<Scalar> x(batch_rows, width, "x");
  const Input<Scalar> source(sequences * keys, width, own ? "x" : "source");
  const Input<Scalar> dy(batch_rows, width, "dy");

  Pass<Scalar> pass;
  Matrix<Scalar> y(batch_rows, width);
  layer.forward(pass, dense::read(x.fast), dense::read(source.fast), dense::view(y));
  const Matrix<double> expected = exact.forward(x.exact, source.exact);
  // Queries, their length, and scores, an error in which acts on a probability times the score's size;
  // softmax and mean; the output.
  const auto score = static_cast<Index>(std::ceil(largest(exact.core.scores)));
  const Index inner = shape.heads * shape.head_dim;
  const Index forward = score * (width + 2 * shape.head_dim) + 2 * keys + inner;
  check_near(y, expected, forward, largest(expected));

  Matrix<Scalar> dx = Matrix<Scalar>::Constant(batch_rows, width, 99);
  Matrix<Scalar> dsource = Matrix<Scalar>::Ones(sequences * keys, width);
  layer.backward(pass, dense::read(dy.fast), dense::read(x.fast), dense::read(source.fast),
                 dense::view(dx), own ? dense::view(dx) : dense::view(dsource));
  Matrix<double> exact_dx = Matrix<double>::Zero(batch_rows, width);
  Matrix<double> exact_dsource = Matrix<double>::Ones(sequences * keys, width);
  const reference::AttentionTensors dw =
      exact.backward(dy.exact, x.exact, source.exact, exact_dx, own ? exact_dx : exact_dsource);
  Gradients<Scalar> gradients;
  gradients.add("x", dx, exact_dx);
  gradients.add("source", dsource, exact_dsource);
  reference::for_each_attention_tensor(dw,
                                       [&](const char* name, const Matrix<double>& expected_dw) {
                                         gradients.add(name, tensors.weight(name), expected_dw);
                                       });
  // Through the output, the mean, softmax, scores and length; then a sum over inner or over rows.
  const Index rows = std::max(sequences * tokens, sequences * keys);
  gradients.check(forward + width + 3 * shape.head_dim + 2 * keys + std::max(rows, 3 * inner));
}

template <class Scalar>
void check_mlp(const std::string& rule, const Shape& shape, Activation activation) {
  Tensors<Scalar> tensors(rule, shape);
  MlpLayer<Scalar> layer;
  reference::Mlp exact;
  layer.activation = activation;
  exact.kind = activation;
  const auto weigh = [&](const char* name, Weight<Scalar>& w) { w = tensors.weight(name); };
  const auto act = [&](const char* name, Matrix<double>& w) { w = tensors.acting(name); };
  reference::for_each_mlp_tensor(layer, weigh);
  reference::for_each_mlp_tensor(exact.w, act);
  const Index width = shape.d_model;
  const Input<Scalar> x(batch_rows, width, "x");
  const Input<Scalar> dy(batch_rows, width, "dy");

  Pass<Scalar> pass;
  Matrix<Scalar> y(batch_rows, width);
  layer.forward(pass, dense::read(x.fast), dense::view(y));
  const Matrix<double> expected = exact.forward(x.exact);
  // up and gate, the activation (in float right to 5 epsilon), down
  const Index forward = 2 * width + 5 + shape.d_ff;
  check_near(y, expected, forward, largest(expected));

  Matrix<Scalar> dx = Matrix<Scalar>::Constant(batch_rows, width, 99);
  layer.backward(pass, dense::read(dy.fast), dense::read(x.fast), dense::view(dx), [] {});
  Matrix<double> exact_dx = Matrix<double>::Zero(batch_rows, width);
  const reference::MlpTensors dw = exact.backward(dy.exact, x.exact, exact_dx);
  Gradients<Scalar> gradients;
  gradients.add("x", dx, exact_dx);
  reference::for_each_mlp_tensor(dw, [&](const char* name, const Matrix<double>& expected_dw) {
    gradients.add(name, tensors.weight(name), expected_dw);
  });
  // Through down and the activation; then a sum over up and gate, or over rows.
  gradients.check(forward + width + 5 + std::max(2 * shape.d_ff, batch_rows));
}

/// A shape with as many key heads as heads, which the normalized transformer asks for.
Shape normalized_shape() {
  Shape s = token_shape();
  s.kv_heads = s.heads;
  return s;
}

}  // namespace

TEST_CASE("A norm layer agrees with its equations, forward and backward") {
  for (const Norm kind : {Norm::layer, Norm::rms}) {
    for (const bool gain : {true, false}) {
      for (const bool bias : {true, false}) {
        INFO((kind == Norm::layer ? "layer" : "rms") << ", gain " << gain << ", bias " << bias);
        Shape s = token_shape();
        s.norm_gain = gain;
        s.norm_bias = bias;
        check_norm<double>(s, kind);
        check_norm<float>(s, kind);
      }
    }
  }
}

TEST_CASE("Attention with its matrices agrees with its equations, forward and backward") {
  const auto check = [](const std::string& rule, const Shape& s, bool causal, bool rotary,
                        Index keys) {
    INFO(rule << ", K " << s.kv_heads << ", causal " << causal << ", rotary " << rotary << ", S "
              << keys);
    check_attention<double>(rule, s, causal, rotary, keys);
    check_attention<float>(rule, s, causal, rotary, keys);
  };
  for (const bool rotary : {true, false}) {
    for (const long kv_heads : {1, 2, 4}) {
      Shape s = token_shape();
      s.kv_heads = kv_heads;
      check("standard", s, true, rotary, tokens);
      check("standard", s, false, rotary, tokens);
      check("standard", s, false, rotary, 7);
      s.biases = false;
      check("standard", s, true, rotary, tokens);
    }
    check("ngpt", normalized_shape(), true, rotary, tokens);
    check("ngpt", normalized_shape(), false, rotary, 7);
  }
}

TEST_CASE("An MLP agrees with its equations, forward and backward") {
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::silu}) {
    const auto check = [&](const std::string& rule, const Shape& s) {
      INFO(rule << ", " << word(architecture::activation_words, activation) << ", gated "
                << s.gated_mlp << ", biases " << s.biases);
      check_mlp<double>(rule, s, activation);
      check_mlp<float>(rule, s, activation);
    };
    for (const bool gated : {true, false}) {
      for (const bool biases : {true, false}) {
        Shape s = token_shape();
        s.gated_mlp = gated;
        s.biases = biases;
        check("standard", s);
      }
    }
    check("ngpt", normalized_shape());
  }
}
