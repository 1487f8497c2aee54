// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The calls of observers: which names in which order and shape, and the gradient of every intermediate
// against central differences. Their values are compared in transformer_forward_test.cpp.
// Sizes are pairwise distinct: B = 2, T = 3, S = 5, H = 4, K = 2, D = 6, C = 8, F = 10, V = 7.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/observables.hpp"
#include "scalewise/check/quantity.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/model_gradient.hpp"
#include "support/small_shapes.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

Shape grouped_patch_shape() {
  Shape s = grouped_shape();
  s.depth = 1;
  s.input = Input::patch;
  s.patch_dim = 11;
  s.classes = 9;
  return s;
}

Batch<double> observed_batch(const Plan& plan) { return random_batch(plan.shape, 2, 3, 5); }

/// One call of an observer.
struct Sight {
  std::string name;
  Observed quantity;
  Matrix<double> values;
};

std::vector<Sight> sights(Transformer<double>& model, const Batch<double>& batch,
                          std::uint64_t draw = 0) {
  std::vector<Sight> all;
  model.observe([&](std::string_view name, Observed quantity, const ConstView<double>& values) {
    all.push_back({std::string(name), quantity, values});
  });
  model.loss_and_gradient(batch, draw);
  model.observe({});
  return all;
}

/// Every name of one quantity with its shape, in the order of the calls.
std::vector<std::string> names(const std::vector<Sight>& all, Observed quantity) {
  std::vector<std::string> names;
  for (const Sight& s : all) {
    if (s.quantity != quantity) continue;
    names.push_back(s.name + " " + std::to_string(s.values.rows()) + " x " +
                    std::to_string(s.values.cols()));
  }
  return names;
}

/// The expected names: those of values, and of gradients the same from last to first without the
/// probabilities.
void check_names(const Plan& plan, const Config& config, const std::vector<std::string>& expected) {
  Transformer<double> model(plan, config);
  prepare(model, plan);
  const std::vector<Sight> all = sights(model, observed_batch(plan));
  CHECK(names(all, Observed::value) == expected);
  for (const Sight& sight : all)
    CHECK(architecture::is_observable(check::place_of(plan.shape, sight.name)));
  std::vector<std::string> backward;
  for (std::size_t i = expected.size(); i-- > 0;) {
    if (expected[i].find("probabilities") == std::string::npos) backward.push_back(expected[i]);
  }
  CHECK(names(all, Observed::gradient) == backward);
  for (std::size_t i = 0; i < all.size(); ++i) {  // all values, then all gradients
    CHECK((all[i].quantity == Observed::value) == (i < expected.size()));
  }
}

/// Moves one entry of one intermediate by `by` where the model keeps it, once it is computed.
class Nudge {
 public:
  Nudge(std::string name, Index entry, double by)
      : name_(std::move(name)), entry_(entry), by_(by) {}

  void operator()(std::string_view name, Observed /*quantity*/, const ConstView<double>& values) {
    // The input of a block may be the stream, which is also added to its output: what comes next
    // has read it, so only the block sees the change.
    if (moved_ != nullptr) *moved_ = kept_;
    moved_ = nullptr;
    if (name != name_) return;
    auto* entry = const_cast<double*>(values.data()) + entry_;
    kept_ = *entry;
    *entry += by_;
    if (name.ends_with(".input")) moved_ = entry;
  }

 private:
  std::string name_;
  Index entry_;
  double by_;
  double* moved_ = nullptr;
  double kept_ = 0;
};

/// Compares every entry of every observed gradient.
void check_gradients(const Plan& plan, Config config) {
  constexpr std::uint64_t draw = 12;
  const Batch<double> batch = observed_batch(plan);
  for (const double dropout : {0.0, 0.3}) {
    config.dropout = dropout;
    Transformer<double> model(plan, config);
    prepare(model, plan);
    GradientError worst;
    for (const Sight& sight : sights(model, batch, draw)) {
      if (sight.quantity == Observed::value) continue;
      CHECK(largest(sight.values) > 1e-6);
      Matrix<double> offset = Matrix<double>::Zero(sight.values.rows(), sight.values.cols());
      for (Index i = 0; i < offset.size(); ++i) {
        const auto loss = [&] {
          model.observe(Nudge(sight.name, i, offset.data()[i]));
          return model.loss(batch, draw);
        };
        const double numeric = central_difference(offset.data()[i], loss);
        const double floor = std::max(1e-3 * largest(sight.values), rounding_floor(3));
        worst.offer(sight.name + "[" + std::to_string(i) + "]", sight.values.data()[i], numeric,
                    floor);
      }
    }
    INFO(plan.rule << ", dropout " << dropout << ": " << worst);
    CHECK(worst.accepted());
  }
}

}  // namespace

TEST_CASE("An observer of a decoder sees every intermediate in order") {
  check_names(make_plan("standard", {.model = grouped_shape()}), {},
              {"embedding 6 x 8",
               "layer.0.attention.input 6 x 8",
               "layer.0.attention.scores 24 x 3",
               "layer.0.attention.probabilities 24 x 3",
               "layer.0.attention.heads 6 x 24",
               "layer.0.attention.output 6 x 8",
               "layer.0.attention.stream 6 x 8",
               "layer.0.mlp.input 6 x 8",
               "layer.0.mlp.hidden 6 x 10",
               "layer.0.mlp.output 6 x 8",
               "layer.0.mlp.stream 6 x 8",
               "layer.1.attention.input 6 x 8",
               "layer.1.attention.scores 24 x 3",
               "layer.1.attention.probabilities 24 x 3",
               "layer.1.attention.heads 6 x 24",
               "layer.1.attention.output 6 x 8",
               "layer.1.attention.stream 6 x 8",
               "layer.1.mlp.input 6 x 8",
               "layer.1.mlp.hidden 6 x 10",
               "layer.1.mlp.output 6 x 8",
               "layer.1.mlp.stream 6 x 8",
               "final_hidden 6 x 8",
               "logits 6 x 7"});
}

TEST_CASE("An observer of an encoder-decoder sees the encoder, then the decoder") {
  Shape s = grouped_shape();
  s.encoder_depth = 1;
  s.depth = 1;
  s.gated_mlp = true;
  check_names(make_plan("deep-norm", {.model = s}), {.placement = NormPlacement::post},
              {"encoder.embedding 10 x 8",
               "encoder.0.attention.input 10 x 8",
               "encoder.0.attention.scores 40 x 5",
               "encoder.0.attention.probabilities 40 x 5",
               "encoder.0.attention.heads 10 x 24",
               "encoder.0.attention.output 10 x 8",
               "encoder.0.attention.stream 10 x 8",
               "encoder.0.mlp.input 10 x 8",
               "encoder.0.mlp.hidden 10 x 10",
               "encoder.0.mlp.output 10 x 8",
               "encoder.0.mlp.stream 10 x 8",
               "encoder.final_hidden 10 x 8",
               "decoder.embedding 6 x 8",
               "decoder.0.attention.input 6 x 8",
               "decoder.0.attention.scores 24 x 3",
               "decoder.0.attention.probabilities 24 x 3",
               "decoder.0.attention.heads 6 x 24",
               "decoder.0.attention.output 6 x 8",
               "decoder.0.attention.stream 6 x 8",
               "decoder.0.cross_attention.input 6 x 8",
               "decoder.0.cross_attention.scores 24 x 5",
               "decoder.0.cross_attention.probabilities 24 x 5",
               "decoder.0.cross_attention.heads 6 x 24",
               "decoder.0.cross_attention.output 6 x 8",
               "decoder.0.cross_attention.stream 6 x 8",
               "decoder.0.mlp.input 6 x 8",
               "decoder.0.mlp.hidden 6 x 10",
               "decoder.0.mlp.output 6 x 8",
               "decoder.0.mlp.stream 6 x 8",
               "decoder.final_hidden 6 x 8",
               "logits 6 x 7"});
}

TEST_CASE("Observed gradients are right for a pre-norm decoder with channel gains") {
  Shape s = grouped_shape();
  s.embedding_norm = true;
  s.tied_head = true;
  s.residual_gain = ResidualGain::channel;
  Shape base = s;
  base.depth = 1;
  base.d_model = 4;
  check_gradients(make_plan("depth-mup", {.model = s, .base = base}), {.rotary = true});
}

TEST_CASE("Observed gradients are right for a post-norm encoder with scalar gains") {
  Shape s = grouped_shape();
  s.gated_mlp = true;
  s.head_bias = true;
  s.residual_gain = ResidualGain::scalar;
  check_gradients(
      make_plan("deep-norm", {.model = s}),
      {.placement = NormPlacement::post, .activation = Activation::silu, .causal = false});
}

TEST_CASE("Observed gradients are right for the normalized transformer") {
  Shape s = grouped_shape();
  s.kv_heads = 4;
  check_gradients(make_plan("ngpt", {.model = s}),
                  {.activation = Activation::silu, .rotary = true});
}

TEST_CASE("Observed gradients are right for an encoder-decoder") {
  Shape s = grouped_shape();
  s.encoder_depth = 1;
  s.depth = 1;
  check_gradients(make_plan("standard", {.model = s}), {});
}

TEST_CASE("Observed gradients are right for a patch model") {
  check_gradients(make_plan("standard", {.model = grouped_patch_shape()}), {.causal = false});
}

TEST_CASE("Observing changes no bit, and ends") {
  Shape gated = grouped_shape();
  gated.gated_mlp = true;
  for (const Shape& s : {grouped_shape(), gated}) {
    const Plan plan = make_plan("standard", {.model = s});
    const Batch<double> batch = observed_batch(plan);
    for (const double dropout : {0.0, 0.3}) {
      Transformer<double> model(plan, {.dropout = dropout});
      prepare(model, plan);
      const double loss = model.loss_and_gradient(batch, 3);
      const Matrix<double> gradients = model.parameters().gradients();
      int calls = 0;
      model.observe([&](std::string_view, Observed, const ConstView<double>&) { ++calls; });
      const double observed = model.loss_and_gradient(batch, 3);
      CHECK(calls == 2 * 23 - 2);
      CHECK(std::memcmp(&observed, &loss, sizeof loss) == 0);
      const Matrix<double> again = model.parameters().gradients();
      CHECK(std::memcmp(again.data(), gradients.data(),
                        static_cast<std::size_t>(gradients.size()) * sizeof(double)) == 0);
      model.observe({});
      model.loss_and_gradient(batch, 3);
      CHECK(calls == 2 * 23 - 2);
    }
  }
}
