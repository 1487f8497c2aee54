// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "scalewise/messages/words.hpp"
#include "scalewise/policy/policy.hpp"
#include "scalewise/policy/relu_correlation.hpp"

namespace scalewise {

/// DeepScaleLM: initial variances and residual weights that keep the variance of every block's
/// output, and of its gradient, at one through hundreds of layers.
/// Equation: y = λ skip + β block, β² = k/L^a, λ² = 1 - β²;
///           value and attention output of layer l: √((1-p)/r_l)/n; MLP: √(2(1-p)/(F n));
///           r <- λ² r + β² (1-p), then r <- λ² r + β² (1-p) F(r), starting from the input
///           correlation times (1-p), with F(r) = r/2 + √(1-r²)/π + r asin(r)/π
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), section 3.5, appendices A, B, E, F and M.
/// Units:    init_variance is a variance; p is the dropout probability; r_l a correlation.
/// Accuracy: the recursion is exact to rounding; it assumes long sequences.
/// Throws:   InvalidInput for a gated MLP or another activation than ReLU, for which there is no
///           formula here, and without a dropout or a correlation of the input, which are of the
///           training and of its data.
/// Differs:  the MLP variance is written for any F (the source has F = 4n) and keeps the block's
///           output variance at one. Cross attention has the rows of self-attention, and the correlation does
///           not follow it. Rows marked "derived" are tensors that the source's models lack.
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

  std::optional<double> dropout = {};
  std::optional<double> input_correlation = {};  // of tokens, before dropout
  int embedding_tables = 0;                      // how many are added; 0 counts those of the shape
  double k = 2;
  double a = 1;

  constexpr Row row(Group group, const policy::Context& context) const {
    constexpr Scaling r = token_correlation;
    return row(group, sqrt(keep / r), context.shape);
  }

  constexpr ModelRow model() const {
    using namespace symbols;
    return {.residual_skip = sqrt(Scaling(skip_power)),
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
    const Scaling mlp = sqrt(2 * keep / (F * n));
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
      case Group::mlp_down:          return {.init_variance = mlp,            .source = "section 3.5, item 2"};
      case Group::head:              return {.init_variance = 1,              .source = "derived, as a tied head"};
      default:                       break;
    }
    // clang-format on
    const bool vector = !architecture::is_matrix(group) && role_of(group) != Role::rescaler;
    return vector ? vector_row(group) : not_stated();
  }

  /// r_l for l = 1 … depth, then the correlation after the last layer.
  std::vector<double> token_correlations(long depth) const {
    const double beta2 = branch_power(depth);
    const double p = dropout.value();
    double r = input_correlation.value() * (1 - p);
    std::vector<double> all{r};
    for (long layer = 0; layer < depth; ++layer) {
      r = (1 - beta2) * r + beta2 * (1 - p);
      r = (1 - beta2) * r + beta2 * (1 - p) * policy::relu_correlation(r);
      all.push_back(r);
    }
    return all;
  }

  std::vector<policy::OwnValues> own_values(const policy::Context& context) const {
    std::vector<policy::OwnValues> values = constant_values(context);
    values.push_back({&token_correlation, token_correlations(context.depth())});
    return values;
  }

  /// Values that all layers share.
  std::vector<policy::OwnValues> constant_values(const policy::Context& context) const {
    return {{&keep_probability, {1 - dropout.value()}},
            {&skip_power, {1 - branch_power(context.depth())}}};
  }

  /// β² = k/L^a.
  constexpr double branch_power(long depth) const {
    return k / numeric::power(static_cast<double>(depth), exponent(a));
  }

  /// Its formulas are those of an MLP of two matrices with ReLU.
  constexpr Shape adapt(Shape shape) const {
    if (!shape.activation) shape.activation = Activation::relu;
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
    require(embedding_tables >= 0, "embedding_tables", embedding_tables, "0 or a positive integer");
    require(k > 0, "k", k, "a positive number");
    for (const long depth : {shape.depth, shape.encoder_depth}) {
      if (depth == 0) continue;
      require(branch_power(depth) < 1, "depth", static_cast<double>(depth),
              "a depth for which k/depth^a < 1");
    }
    constexpr const char* hint =
        "its variances are exact for two matrices with ReLU alone; set "
        "gated_mlp=false and activation=relu";
    if (shape.gated_mlp) throw InvalidInput("gated_mlp", "true", "false", hint);
    if (shape.activation && *shape.activation != Activation::relu) {
      throw InvalidInput("activation",
                         std::string(word(architecture::activation_words, *shape.activation)),
                         "relu", hint);
    }
    constexpr const char* trained = "the dropout probability of the training, 0 for none";
    if (!dropout) throw InvalidInput("dropout", "none", trained);
    require(*dropout >= 0 && *dropout < 1, "dropout", *dropout, "a probability below 1");
  }

  static void parameters(auto& self, auto&& visit) {
    visit("dropout", self.dropout);
    visit("input_correlation", self.input_correlation);
    visit("embedding_tables", self.embedding_tables);
    visit("k", self.k);
    visit("a", self.a);
  }

 private:
  static constexpr Scaling keep = keep_probability;
};

static_assert(Policy<DeepScaleLM>);

}  // namespace scalewise
