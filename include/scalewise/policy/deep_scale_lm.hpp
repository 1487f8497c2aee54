// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "scalewise/messages/words.hpp"
#include "scalewise/policy/activation_product.hpp"
#include "scalewise/policy/policy.hpp"

namespace scalewise {

/// DeepScaleLM: initial variances and residual weights that keep the variance of every block's
/// output, and of its gradient, at one through hundreds of layers.
/// Equation: y = λ skip + β block, β² = k/L^a, λ² = 1 - β²;
///           value and attention output of layer l: √((1-p)/r_l)/n; MLP: √(2(1-p)/(F n));
///           r <- λ² r + β² (1-p), then r <- λ² r + β² (1-p) F(r), starting from the input
///           correlation times (1-p), with F(r) = r/2 + √(1-r²)/π + r asin(r)/π;
///           other MLPs: v/n for all matrices, v of the solution of v M(1) = (1-p) n/F, where
///           M(r) = E f(x) f(y) at the variance v, and F(r) = M(r)/M(1); gated: v² M(1), r M(r)/M(1)
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), section 3.5, appendices A, B, E, F and M.
/// Units:    init_variance is a variance; p is the dropout probability; r_l a correlation.
/// Accuracy: the recursion is exact to rounding; it assumes long sequences. Of a block with GELU, SiLU
///           or a gate, as of one with ReLU, the variance is exactly one for normal hidden units.
/// Throws:   InvalidInput without a dropout or a correlation of the input, which are of the training
///           and of its data.
/// Differs:  the MLP variance is written for any F (the source has F = 4n) and keeps the block's
///           output variance at one; the source has ReLU alone. Cross attention has the rows of self-attention, and so
///           returns the variance r_m/r_l; the correlation follows it with `cross_attention` alone. Rows marked
///           "derived" are tensors that the source's models lack. How a variance s other than one enters, of the input
///           or with `unit_skip`, is derived, for pre-norm: r is c/s of s <- λ² s + β² and the covariance c, of which each
///           block adds β² times that of the equations above.
struct DeepScaleLM {
  static constexpr std::string_view id = "deep-scale-lm";
  static constexpr Source source{
      "Transformers Get Stable: An End-to-End Signal Propagation Theory for Language Models",
      "Kedia, Zaidi, Khyalia, Jung, Goka, Lee", "2024", "arXiv:2403.09635",
      "section 3.5, appendix M"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr policy::TextModel text{.activation = Activation::relu};
  static constexpr std::array optimizers{sgd, adamw};

  static constexpr Symbol token_correlation{
      .text = "r",
      .latex = "r",
      .ratio_text = "m_r",
      .ratio_latex = "m_r",
      .meaning = "token correlation at the layer's attention input",
      .place = 101,
      .varies = true};
  static constexpr Symbol keep_probability{.text = "(1-p)",
                                           .latex = "(1-p)",
                                           .ratio_text = "m_1-p",
                                           .ratio_latex = "m_{1-p}",
                                           .meaning = "1 - dropout",
                                           .place = 102};
  static constexpr Symbol skip_power{.text = "(1-β²)",
                                     .latex = "(1-\\beta^2)",
                                     .ratio_text = "m_1-β²",
                                     .ratio_latex = "m_{1-\\beta^2}",
                                     .meaning = "1 - (residual branch multiplier)²",
                                     .place = 103,
                                     .varies = true};
  static constexpr Symbol hidden_power{
      .text = "v",
      .latex = "v",
      .ratio_text = "m_v",
      .ratio_latex = "m_v",
      .meaning = "variance of the MLP's features before the activation",
      .place = 104};

  std::optional<double> dropout = {};
  std::optional<double> input_correlation = {};  // of tokens, before dropout
  double input_variance = 1;                     // of what enters the first pre-norm layer
  int embedding_tables = 0;                      // how many are added; 0 counts those of the shape
  double k = 2;
  double a = 1;
  bool unit_skip = false;        // λ = 1
  bool cross_attention = false;  // counts in the correlation of a decoder, too
  bool learned_beta = false;     // β times a gain on each branch that starts at 1

  constexpr Row row(Group group, const policy::Context& context) const {
    constexpr Scaling r = token_correlation;
    return row(group, sqrt(keep / r), context.shape);
  }

  constexpr ModelRow model() const {
    using namespace symbols;
    return {.residual_skip = unit_skip ? Scaling(1) : sqrt(Scaling(skip_power)),
            .residual_branch = sqrt(k / pow(L, exponent(a))),
            .logit_multiplier = 1 / sqrt(n),
            .source = "section 3.5"};
  }

  /// The table, for a given numerator of the value and attention output row.
  constexpr Row row(Group group, const Scaling& attention, const Shape& shape) const {
    using namespace symbols;
    const double tables =
        embedding_tables > 0 ? embedding_tables
                             : 1 + (shape.learned_positions ? 1 : 0) + (shape.segments > 0 ? 1 : 0);
    const bool relu = is_plain(shape);
    const Scaling mlp = relu ? sqrt(2 * keep / (F * n)) : Scaling(hidden_power) / n;
    // clang-format off
    switch (group) {
      case Group::token_embedding:
      case Group::position_embedding:
      case Group::segment_embedding: return {.init_variance = keep / tables, .source = "section 3.5, item 1"};
      case Group::class_token:       return {.init_variance = keep / tables, .source = "derived, as position"};
      case Group::patch_embedding:   return {.init_variance = keep / (tables * n_patch), .source = "derived"};
      case Group::query:
      case Group::key:               return {.init_variance = 1 / n,          .source = "appendix M"};
      case Group::value:             return {.init_variance = attention / n,  .source = "section 3.5, item 3"};
      case Group::attention_output:  return {.init_variance = attention / fi, .source = "section 3.5, item 3"};
      case Group::mlp_up:
      case Group::mlp_gate:
      case Group::mlp_down:          return {.init_variance = mlp,            .source = relu ? "section 3.5, item 2" : "derived, as with ReLU"};
      case Group::residual_gain:     return {.init_mean = 1, .distribution = Distribution::constant, .source = "section 3.5, learnable beta"};
      case Group::head:              return {.init_variance = 1,              .source = "derived, as a tied head"};
      default:                       break;
    }
    // clang-format on
    const bool vector = !architecture::is_matrix(group) && role_of(group) != Role::rescaler;
    return vector ? vector_row(group) : not_stated();
  }

  /// r_l for l = 1 … depth, then the correlation after the last layer; `memory` is that of what cross attention reads.
  std::vector<double> token_correlations(long depth, const Shape& shape = {},
                                         std::optional<double> memory = {}) const {
    const double v = is_plain(shape) ? 1 : hidden_variance(shape);
    const double beta2 = branch_power(depth);
    const double p = dropout.value();
    double r = input_correlation.value() * (1 - p);
    double s = input_variance;
    const auto add = [&](double correlation, double variance) {  // of a block
      const double skip = skip_power_of(depth) * s;
      s = skip + beta2 * variance;
      r = (skip * r + beta2 * variance * correlation) / s;
    };
    std::vector<double> all{r};
    for (long layer = 0; layer < depth; ++layer) {
      add(1 - p, 1);
      if (memory) add(1 - p, *memory / all.back());
      add((1 - p) * mlp_correlation(shape, v, r), 1);
      all.push_back(r);
    }
    return all;
  }

  std::vector<policy::OwnValues> own_values(const policy::Context& context) const {
    std::vector<policy::OwnValues> values = constant_values(context);
    std::optional<double> memory;
    if (cross_attention && context.stack == Stack::decoder)
      memory = token_correlations(context.shape.encoder_depth, context.shape).back();
    values.push_back(
        {&token_correlation, token_correlations(context.depth(), context.shape, memory)});
    return values;
  }

  /// Values that all layers share.
  std::vector<policy::OwnValues> constant_values(const policy::Context& context) const {
    return {{&keep_probability, {1 - dropout.value()}},
            {&skip_power, {1 - branch_power(context.depth())}},
            {&hidden_power, {hidden_variance(context.shape)}}};
  }

  /// β² = k/L^a.
  constexpr double branch_power(long depth) const {
    return k / numeric::power(static_cast<double>(depth), exponent(a));
  }

  /// λ².
  constexpr double skip_power_of(long depth) const {
    return unit_skip ? 1 : 1 - branch_power(depth);
  }

  /// The variance v of the features that the activation reads, for which a block returns the variance one.
  /// Equation: v M = (1-p) n/F, or v² M with a gate, M = E f(x)² at the variance v
  double hidden_variance(const Shape& shape) const {
    const double goal = (1 - dropout.value()) * static_cast<double>(shape.d_model) /
                        static_cast<double>(shape.d_ff);
    const Exponent power(1, shape.gated_mlp ? 3 : 2);
    double low = numeric::power(2 * goal, power), high = numeric::power(4 * goal, power);
    if (shape.activation.value_or(Activation::relu) == Activation::relu) return low;
    for (int i = 0; i < 60; ++i) {  // v/4 <= M <= v/2
      const double v = (low + high) / 2;
      const policy::Preactivation x(*shape.activation, v);
      const double product = v * policy::activation_product(x, x, v);
      (product * (shape.gated_mlp ? v : 1) < goal ? low : high) = v;
    }
    return low;
  }

  constexpr Shape adapt(Shape shape) const {
    if (learned_beta) shape.residual_gain = ResidualGain::scalar;
    return shape;
  }

  constexpr void validate(const Shape& shape) const {
    validate_all_but_correlation(shape);
    if (input_correlation) return;
    throw InvalidInput(
        "input_correlation", "none",
        "the correlation of two tokens of the embedded data, before dropout",
        "the source measured 0.221 for the three tables of BERT, 0.29 for speech and "
        "0.46 for ViT");
  }

  /// The correlation of the input only where there is one.
  constexpr void validate_all_but_correlation(const Shape& shape) const {
    const auto require = [](bool ok, const char* field, double value, const char* expectation) {
      if (!ok) throw InvalidInput(field, numeric::number_text(value), expectation);
    };
    const double r = input_correlation.value_or(1);
    require(r > 0 && r <= 1, "input_correlation", r, "a correlation above 0 and at most 1");
    require(input_variance > 0, "input_variance", input_variance, "a positive number");
    require(embedding_tables >= 0, "embedding_tables", embedding_tables, "0 or a positive integer");
    require(k > 0, "k", k, "a positive number");
    require(!cross_attention || shape.encoder_depth > 0, "cross_attention", 1,
            "0 without an encoder");
    for (const long depth : {shape.depth, shape.encoder_depth}) {
      if (depth == 0 || unit_skip) continue;
      require(branch_power(depth) < 1, "depth", static_cast<double>(depth),
              "a depth for which k/depth^a < 1");
    }
    constexpr const char* trained = "the dropout probability of the training, 0 for none";
    if (!dropout) throw InvalidInput("dropout", "none", trained);
    require(*dropout >= 0 && *dropout < 1, "dropout", *dropout, "a probability below 1");
  }

  static void parameters(auto& self, auto&& visit) {
    visit("dropout", self.dropout);
    visit("input_correlation", self.input_correlation);
    visit("input_variance", self.input_variance);
    visit("embedding_tables", self.embedding_tables);
    visit("k", self.k);
    visit("a", self.a);
    visit("unit_skip", self.unit_skip);
    visit("cross_attention", self.cross_attention);
    visit("learned_beta", self.learned_beta);
  }

 private:
  /// The text's MLP, whose formulas are in closed form.
  static constexpr bool is_plain(const Shape& shape) {
    return !shape.gated_mlp && shape.activation.value_or(Activation::relu) == Activation::relu;
  }

  /// The correlation after the MLP of inputs with correlation r, without dropout.
  static double mlp_correlation(const Shape& shape, double v, double r) {
    if (is_plain(shape)) return policy::relu_correlation(r);
    const policy::Preactivation x(*shape.activation, v);
    const auto product = [&](double c) { return policy::activation_product(x, x, c * v); };
    return product(r) / product(1) * (shape.gated_mlp ? r : 1);
  }

  static constexpr Scaling keep = keep_probability;
};

static_assert(Policy<DeepScaleLM>);

}  // namespace scalewise
