// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Logits of whole models, and every intermediate that observers see, against a second transformer,
// from the equations alone: it looks tensors up by name and multiplies each by its multiplier.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/plan/make_plan.hpp"
#include "scalewise/propagation/fold.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/model_gradient.hpp"
#include "support/reference_attention.hpp"
#include "support/reference_layers.hpp"
#include "support/told.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

class Reference {
 public:
  Reference(const Plan& plan, const Config& config, Parameters<double>& parameters)
      : plan_(plan), s_(plan.shape), config_(config), parameters_(parameters) {}

  Matrix<double> logits(const Batch<double>& batch) {
    size_ = batch.size;
    Matrix<double> x;
    if (s_.input == Input::patch) {
      x = reference::linear(batch.patches, acting("patch_embedding"), acting_or_none("patch_bias"));
      if (has("class_token")) x = with_class_token(x);
      add_positions(x, "position_embedding");
      x = stack(x, Stack::main, nullptr);
      const Index tokens = x.rows() / size_;
      Matrix<double> pooled(size_, s_.d_model);
      for (Index b = 0; b < size_; ++b) {
        pooled.row(b) = x.middleRows(b * tokens, tokens).colwise().mean();
        if (has("class_token")) pooled.row(b) = x.row(b * tokens);
      }
      x = pooled;
    } else if (s_.encoder_depth > 0) {
      const Matrix<double> memory = stack(embed(batch.source, "encoder."), Stack::encoder, nullptr);
      x = stack(embed(batch.tokens, "decoder."), Stack::decoder, &memory);
    } else {
      x = stack(embed(batch.tokens, ""), Stack::main, nullptr);
    }
    const Matrix<double> head =
        *s_.tied_head ? Matrix<double>(raw("token_embedding").transpose()) : raw("head");
    Matrix<double> logits = plan_.model.logit_multiplier.value * x * head;
    if (has("logit_scale")) logits = logits * acting("logit_scale").asDiagonal();
    if (has("head_bias")) logits.rowwise() += acting("head_bias").row(0);
    for (double& z : logits.reshaped()) z = reference::capped(config_.logit_cap, z);
    keep("logits", logits);
    return logits;
  }

  std::map<std::string, double> epsilon_factors;  // of norms whose epsilon is not the model's

  /// Every intermediate under its observer's name.
  const std::map<std::string, Matrix<double>>& intermediates() const { return intermediates_; }

 private:
  void keep(const std::string& name, const Matrix<double>& values) {
    intermediates_[name] = values;
  }

  bool has(const std::string& name) const { return parameters_.find(name) >= 0; }
  Matrix<double> raw(const std::string& name) {
    return parameters_.value(static_cast<std::size_t>(parameters_.find(name)));
  }
  Matrix<double> acting(const std::string& name) {
    return plan_.at(name).multiplier.value * raw(name);
  }
  Matrix<double> acting_or_none(const std::string& name) {
    return has(name) ? acting(name) : Matrix<double>();
  }

  /// The class token before the patches of each image.
  Matrix<double> with_class_token(const Matrix<double>& x) {
    const Index patches = x.rows() / size_;
    Matrix<double> all(x.rows() + size_, x.cols());
    for (Index b = 0; b < size_; ++b) {
      all.middleRows(b * (patches + 1), patches + 1) << acting("class_token"),
          x.middleRows(b * patches, patches);
    }
    return all;
  }

  void add_positions(Matrix<double>& x, const std::string& name) {
    if (!has(name)) return;
    const Matrix<double> table = acting(name);
    for (Index i = 0; i < x.rows(); ++i) x.row(i) += table.row(i % (x.rows() / size_));
  }

  Matrix<double> embed(const std::vector<int>& ids, const std::string& top) {
    const Matrix<double> table = acting("token_embedding");
    Matrix<double> x(static_cast<Index>(ids.size()), s_.d_model);
    for (Index i = 0; i < x.rows(); ++i) x.row(i) = table.row(ids[static_cast<std::size_t>(i)]);
    if (has("segment_embedding")) x.rowwise() += acting("segment_embedding").row(0);
    add_positions(x, top + "position_embedding");
    return x;
  }

  Matrix<double> norm(const Matrix<double>& x, const std::string& name) {
    const auto own = epsilon_factors.find(name);
    const double epsilon = config_.norm_epsilon * (own == epsilon_factors.end() ? 1 : own->second);
    return reference::norm(config_.norm, epsilon, x, acting_or_none(name + "_gain"),
                           acting_or_none(name + "_bias"));
  }

  /// The norm of queries or keys, over each head or over all of them.
  void normalize_heads(Matrix<double>& x, const std::string& name) {
    if (s_.qk_norm == QkNorm::none || s_.blocks != Blocks::residual) return;
    const Index width = s_.qk_norm == QkNorm::head ? s_.head_dim : x.cols();
    for (Index c = 0; c < x.cols(); c += width) {
      x.middleCols(c, width) = norm(x.middleCols(c, width), name);
    }
  }

  Matrix<double> attention(const Matrix<double>& x, const Matrix<double>& source,
                           const std::string& at, bool causal, bool rotary) {
    reference::Attention layer;
    layer.sizes = {
        size_, x.rows() / size_, source.rows() / size_, s_.heads, s_.kv_heads, s_.head_dim, causal};
    layer.scale = plan_.model.attention_scale.value;
    layer.rotary = rotary;
    layer.score_cap = config_.score_cap;
    layer.query_norm = [&](Matrix<double>& q) { normalize_heads(q, at + "query_norm"); };
    layer.key_norm = [&](Matrix<double>& k) { normalize_heads(k, at + "key_norm"); };
    reference::for_each_attention_tensor(
        layer.w, [&](const char* name, Matrix<double>& w) { w = acting_or_none(at + name); });
    const Matrix<double> y = layer.forward(x, source);
    keep(at + "attention.scores", layer.core.scores);
    keep(at + "attention.probabilities", layer.core.probabilities);
    keep(at + "attention.heads", layer.core.heads);
    return y;
  }

  /// The weight of each expert: 0 of those that are not among the best.
  Matrix<double> expert_weights(const Matrix<double>& z) const {
    Matrix<double> g = Matrix<double>::Zero(z.rows(), z.cols());
    const auto k = static_cast<double>(s_.experts_per_token);
    for (Index i = 0; i < z.rows(); ++i) {
      double all = 0, best = 0;
      for (Index e = 0; e < z.cols(); ++e) {
        const long better = (z.row(i).array() > z(i, e)).count();
        all += std::exp(z(i, e));
        if (better < s_.experts_per_token) best += g(i, e) = std::exp(z(i, e));
      }
      for (Index e = 0; e < z.cols(); ++e) {
        if (g(i, e) == 0) continue;
        if (config_.gates == Gates::softmax) g(i, e) /= all;
        if (config_.gates == Gates::renormalized) g(i, e) /= best;
        if (config_.gates == Gates::sigmoid) g(i, e) /= k * (1 + g(i, e));
      }
    }
    return g;
  }

  Matrix<double> experts(const Matrix<double>& x, const std::string& at) {
    const Matrix<double> z = reference::linear(x, acting(at + "router"), {});
    keep(at + "mlp.router", z);
    const Matrix<double> g = expert_weights(z);
    Matrix<double> y = Matrix<double>::Zero(x.rows(), x.cols());
    for (Index e = 0; e < s_.experts; ++e) {
      const auto own = [&](const char* name) {
        const Matrix<double> all = acting_or_none(at + name);
        return Matrix<double>(all.middleRows(e * all.rows() / s_.experts, all.rows() / s_.experts));
      };
      reference::Mlp layer;
      layer.kind = config_.activation;
      layer.w.up = own("expert_up"), layer.w.gate = own("expert_gate");
      layer.w.down = own("expert_down");
      y += g.col(e).asDiagonal() * layer.forward(x);
    }
    return y;
  }

  Matrix<double> mlp(const Matrix<double>& x, const std::string& at) {
    if (s_.experts > 0) return experts(x, at);
    reference::Mlp layer;
    layer.kind = config_.activation;
    reference::for_each_mlp_tensor(
        layer.w, [&](const char* name, Matrix<double>& w) { w = acting_or_none(at + name); });
    const Matrix<double> y = layer.forward(x);
    keep(at + "mlp.hidden", layer.hidden);
    return y;
  }

  template <class Inner>
  Matrix<double> residual(const Matrix<double>& x, Stack which, int layer, const std::string& name,
                          const Inner& inner) {
    const Matrix<double> y = stream_behind(x, which, layer, name, [&](const Matrix<double>& in) {
      keep(name + ".input", in);
      Matrix<double> out = inner(in);
      if (has(name + "_branch_norm_gain")) out = norm(out, name + "_branch_norm");
      keep(name + ".output", out);
      return out;
    });
    keep(name + ".stream", y);
    return y;
  }

  const Residual* weights_of(Stack which, int layer) const {
    const Residual* weights = nullptr;
    for (const Residual& r : plan_.model.residuals) {
      if (r.stack == which && r.layer == layer) weights = &r;
    }
    return weights;
  }

  template <class Inner>
  Matrix<double> stream_behind(const Matrix<double>& x, Stack which, int layer,
                               const std::string& name, const Inner& inner) {
    if (has(name + "_step")) {
      const Matrix<double> step = acting(name + "_step").cwiseAbs();  // some are negative
      const Matrix<double> y = inner(x).rowwise().normalized();
      return (x + (y - x) * step.row(0).asDiagonal()).rowwise().normalized();
    }
    const Residual* weights = weights_of(which, layer);
    const bool pre = config_.placement == NormPlacement::pre;
    Matrix<double> y = inner(pre ? norm(x, name + "_norm") : x);
    if (has(name + "_gain")) {
      const Matrix<double> gain = acting(name + "_gain");
      for (Index c = 0; c < y.cols(); ++c) y.col(c) *= gain(0, gain.size() == 1 ? 0 : c);
    }
    const Matrix<double> sum = weights->skip.value * x + weights->branch.value * y;
    return pre ? sum : norm(sum, name + "_norm");
  }

  Matrix<double> stack(Matrix<double> x, Stack which, const Matrix<double>* memory) {
    const std::string top = which == Stack::encoder   ? "encoder."
                            : which == Stack::decoder ? "decoder."
                                                      : "";
    const bool causal = which == Stack::main ? config_.causal : which == Stack::decoder;
    const bool residual_blocks = s_.blocks == Blocks::residual;
    if (s_.embedding_norm && residual_blocks) x = norm(x, top + "embedding_norm");
    keep(top + "embedding", x);
    const long depth = which == Stack::encoder ? s_.encoder_depth : s_.depth;
    for (int l = 0; l < depth; ++l) {
      const std::string at = (top.empty() ? "layer." : top) + std::to_string(l) + ".";
      const Matrix<double> entered = x;
      x = residual(x, which, l, at + "attention", [&](const Matrix<double>& in) {
        return attention(in, in, at, causal, config_.rotary);
      });
      if (memory != nullptr) {
        x = residual(x, which, l, at + "cross_attention", [&](const Matrix<double>& in) {
          return attention(in, *memory, at + "cross_", false, false);
        });
      }
      const auto of_mlp = [&](const Matrix<double>& in) { return mlp(in, at); };
      if (config_.parallel) {
        x -= weights_of(which, l)->skip.value * entered;
        x += residual(entered, which, l, at + "mlp", of_mlp);
        keep(at + "mlp.stream", x);
      } else {
        x = residual(x, which, l, at + "mlp", of_mlp);
      }
    }
    if (s_.final_norm && residual_blocks) x = norm(x, top + "final_norm");
    keep(top + "final_hidden", x);
    return x;
  }

  const Plan& plan_;
  Shape s_;
  Config config_;
  Parameters<double>& parameters_;
  Index size_ = 0;
  std::map<std::string, Matrix<double>> intermediates_;
};

Shape uneven_shape() {
  Shape s{.d_model = 14, .depth = 3, .heads = 4, .kv_heads = 2, .head_dim = 6, .d_ff = 17};
  s.context = 8;
  s.vocab = 11;
  return s;
}

Plan scrambled_plan(const std::string& rule, const Shape& shape) {
  return scrambled(make_plan(test::told(rule), {.model = shape, .base = shape}));
}

/// Checks logits and intermediates.
void check_forward(const std::string& rule, const Shape& shape, const Config& config) {
  const Plan plan = scrambled_plan(rule, shape);
  Transformer<double> model(plan, config);
  prepare(model, plan);
  const Batch<double> batch = random_batch(plan.shape, 3, 5, 7);
  std::map<std::string, Matrix<double>> seen;
  model.observe([&](std::string_view name, Observed quantity, const ConstView<double>& values) {
    CHECK(quantity == Observed::value);
    CHECK(seen.emplace(name, values).second);
  });
  model.loss(batch);
  Reference reference(plan, config, model.parameters());
  const Matrix<double> expected = reference.logits(batch);
  INFO(rule);
  CHECK(seen.size() == reference.intermediates().size());
  for (const auto& [name, values] : reference.intermediates()) {
    INFO(name);
    REQUIRE(seen[name].rows() == values.rows());
    REQUIRE(seen[name].cols() == values.cols());
    CHECK(largest(seen[name] - values) <= 1e-11 * largest(values));
  }
  REQUIRE(model.logits().rows() == expected.rows());
  REQUIRE(model.logits().cols() == expected.cols());
  const double size = expected.cwiseAbs().maxCoeff();
  CHECK(size > 0.1);
  CHECK((model.logits() - expected).cwiseAbs().maxCoeff() <= 1e-11 * size);
}

/// Checks that a model whose residual weights went into its matrices has the same logits: to
/// rounding when each norm has its own epsilon, here so large that it counts, or none has one.
void check_folded(const std::string& rule, const Shape& shape, NormPlacement placement) {
  const Plan plan = scrambled_plan(rule, shape);
  const Config config{.placement = placement, .activation = Activation::relu, .norm_epsilon = 0.1};
  const propagation::Folded folded = propagation::fold_residuals(
      plan, placement == NormPlacement::pre ? NormPlacement::pre : NormPlacement::post);
  Transformer<double> model(plan, config);
  prepare(model, plan);
  const Batch<double> batch = random_batch(plan.shape, 3, 5, 7);
  model.loss(batch);
  const Matrix<double> expected = model.logits();

  Config without = config;
  without.norm_epsilon = 0;
  Transformer<double> plain(plan, without);
  prepare(plain, plan);
  plain.loss(batch);
  const Matrix<double> expected_without = plain.logits();

  Transformer<double> inference(folded.plan, without);
  inference.parameters().values() = model.parameters().values();
  for (const propagation::TensorFactor& factor : folded.tensors) {
    const std::ptrdiff_t index = inference.parameters().find(factor.name);
    INFO(factor.name);
    REQUIRE(index >= 0);
    inference.parameters().value(static_cast<std::size_t>(index)) *= factor.value;
  }
  Reference reference(folded.plan, config, inference.parameters());
  for (const propagation::TensorFactor& factor : folded.epsilons) {
    INFO(factor.name);
    CHECK(inference.parameters().find(factor.name + "_gain") >= 0);
    reference.epsilon_factors[factor.name] = factor.value;
  }
  inference.loss(batch);
  INFO(rule);
  CHECK(largest(reference.logits(batch) - expected) <= 1e-12 * largest(expected));
  CHECK(largest(inference.logits() - expected_without) <= 1e-12 * largest(expected_without));
  CHECK(largest(expected - expected_without) > 1e-4 * largest(expected));
  for (const Residual& r : folded.plan.model.residuals) {
    CHECK(r.skip.value == 1);
    CHECK(r.branch.value == 1);
  }
}

}  // namespace

TEST_CASE("Residual weights fold into matrices") {
  Shape s = uneven_shape();
  check_folded("deep-scale-lm", s, NormPlacement::pre);
  check_folded("deep-scale-lm", s, NormPlacement::post);
  s.final_norm = false;
  s.biases = false;
  check_folded("layer-scale", s, NormPlacement::pre);
  s.final_norm = true;
  s.encoder_depth = 3;
  check_folded("deep-scale-lm", s, NormPlacement::pre);
  check_folded("deep-norm", s, NormPlacement::post);
  s.final_norm = false;
  CHECK(test::error_message([&] {
          propagation::fold_residuals(scrambled_plan("gpt2", s), NormPlacement::pre);
        }).find("final_norm") != std::string::npos);
}

TEST_CASE("A decoder computes its equations") {
  Shape s = uneven_shape();
  check_forward("gpt2", s, {});
  check_forward("gpt2", s, {.norm = Norm::rms, .activation = Activation::relu, .causal = false});
  s.gated_mlp = true;
  s.learned_positions = false;
  s.norm_gain = false;
  s.head_bias = true;
  check_forward("standard", s, {.activation = Activation::silu, .rotary = true});
}

TEST_CASE("A decoder with parallel branches, caps and norms within computes its equations") {
  Shape s = uneven_shape();
  check_forward("standard", s, {.parallel = true, .score_cap = 0.7, .logit_cap = 1.3});
  s.branch_norm = true;
  s.qk_norm = QkNorm::head;
  check_forward("standard", s, {.norm = Norm::rms, .rotary = true, .score_cap = 2});
  s.qk_norm = QkNorm::full;
  s.biases = false;
  s.attention_biases = AttentionBiases::qkv;
  check_forward("standard", s, {.parallel = true});
  check_forward("standard", s, {.placement = NormPlacement::post});
}

TEST_CASE("A mixture of experts computes its equations") {
  Shape s = uneven_shape();
  s.experts = 6;
  s.experts_per_token = 3;
  s.expert_ff = 9;
  check_forward("standard", s, {});
  s.gated_mlp = true;
  check_forward("standard", s, {.activation = Activation::silu, .gates = Gates::renormalized});
  check_forward("standard", s, {.parallel = true, .gates = Gates::sigmoid});
}

TEST_CASE("A post-norm encoder computes its equations") {
  Shape s = uneven_shape();
  s.segments = 2;
  s.embedding_norm = true;
  s.final_norm = false;
  check_forward("bert", s, {.placement = NormPlacement::post, .causal = false});
}

TEST_CASE("A normalized transformer computes its equations") {
  Shape s = uneven_shape();
  s.kv_heads = 4;
  check_forward("nu-gpt", s, {.activation = Activation::silu, .rotary = true});
}

TEST_CASE("An encoder-decoder computes its equations") {
  Shape s = uneven_shape();
  s.encoder_depth = 2;
  s.embedding_norm = true;
  check_forward("complete-p", s, {});
  s.learned_positions = false;
  check_forward("deep-norm", s, {.placement = NormPlacement::post, .rotary = true});
}

TEST_CASE("A patch model computes its equations") {
  Shape s = uneven_shape();
  s.input = Input::patch;
  s.patch_dim = 10;
  s.classes = 9;
  check_forward("layer-scale", s, {.causal = false});
  s.class_token = true;
  check_forward("neural-tangent", s, {.causal = false});
  s.biases = false;
  check_forward("layer-scale", s, {.causal = false, .rotary = true});
  s.class_token = false;
  check_forward("rezero", s, {.placement = NormPlacement::post, .norm = Norm::rms});
}

TEST_CASE("A plan with tensors that the shape does not say is refused") {
  const Plan plan =
      make_plan("gpt2", {.model = uneven_shape(), .extras = {{"layer.*.gain", Group::norm_gain}}});
  const std::string refused = "extra = layer.*.gain: expected no tensor of your own";
  CHECK(test::error_message([&] { nn::Transformer<double>(plan, {}); }).starts_with(refused));
}

TEST_CASE("A plan that contradicts its shape, or is another model's, is refused") {
  const Plan good = make_plan("standard", {.model = uneven_shape()});
  const OptimizerConfig settings;
  Transformer<double> model(good, {});
  const auto refused = [&](const Plan& plan) {
    CHECK_THROWS_AS(Transformer<double>(plan, {}), InvalidInput);
    CHECK_THROWS_AS(PlannedOptimizer<double>(plan, settings).step(model.parameters()),
                    InvalidInput);
    CHECK_THROWS_AS(initialize(model.parameters(), plan, 1), InvalidInput);
  };
  Plan plan = good;
  plan.entries[5].rows = 1000;
  refused(plan);
  plan = good;
  plan.entries.push_back(plan.entries.back());
  refused(plan);
  plan = good;
  plan.entries.pop_back();
  refused(plan);
  plan = good;
  plan.shape.d_model *= 2;
  CHECK_THROWS_AS(Transformer<double>(plan, {}), InvalidInput);

  Shape wide = uneven_shape();
  wide.vocab *= 2;
  const Plan other = make_plan("standard", {.model = wide});
  CHECK_THROWS_AS(initialize(model.parameters(), other, 1), InvalidInput);
  PlannedOptimizer<double> optimizer(other, settings);
  CHECK_THROWS_AS(optimizer.step(model.parameters()), InvalidInput);
  CHECK(optimizer.state().steps == 0);
  Shape normalized = uneven_shape();
  normalized.kv_heads = normalized.heads;
  const Plan unit = make_plan("ngpt", {.model = normalized});
  CHECK_THROWS_AS(normalize_matrices(model.parameters(), unit), InvalidInput);
}
