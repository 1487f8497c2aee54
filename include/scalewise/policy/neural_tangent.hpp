// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string>
#include <type_traits>

#include "scalewise/policy/policy.hpp"

namespace scalewise {

namespace policy {

/// The order-one constants of the effective theory, one per group, 1 unless set.
/// Equation: C_G multiplies a group's initial variance, Λ_G its rate.
/// Source:   arXiv:2304.02034v1, eqs. (1.25)-(1.33) and (1.99)-(1.116).
struct OrderOne {
  std::array<double, architecture::group_count> values = filled_with_one();

  constexpr double operator[](Group group) const { return values[static_cast<std::size_t>(group)]; }
  constexpr double& operator[](Group group) { return values[static_cast<std::size_t>(group)]; }

  /// Calls visit("<prefix>_<group>", constant) for every constant that can be set; of a const
  /// object, for those that have been.
  static void visit_all(const std::string& prefix, auto& constants, auto&& visit) {
    constexpr bool settable = !std::is_const_v<std::remove_reference_t<decltype(constants)>>;
    for (std::size_t g = 0; g < architecture::group_count; ++g) {
      if (!settable && constants.values[g] == 1) continue;
      const auto group = static_cast<Group>(g);
      if (group == Group::hidden || architecture::is_of_experts(group)) continue;  // without a row
      visit(prefix + "_" + std::string(architecture::group_table[g].id), constants.values[g]);
    }
  }

 private:
  static constexpr std::array<double, architecture::group_count> filled_with_one() {
    std::array<double, architecture::group_count> all{};
    for (double& value : all) value = 1;
    return all;
  }
};

}  // namespace policy

/// Neural-tangent scaling: initial variances that keep preactivations of order one, and learning
/// rates that keep the neural tangent kernel of order one.
/// Equation: the table below, times C_G (variance) and Λ_G (rate)
/// Source:   Dinan, Yaida, Zhang 2023 (arXiv:2304.02034v1): variances eqs. (1.25)-(1.33), SGD rates
///           eqs. (1.99)-(1.107), AdamW rates eqs. (1.108)-(1.116).
/// Units:    init_variance is a variance; rates are factors on the global rate; the decay of (1.94)
///           is independent of the rate factor.
/// Differs:  rows marked "derived" are tensors that the paper's models do not have: a gain or bias
///           of fan-out fo gets rate 1 under SGD and 1/√fo under AdamW, by the argument of (1.95).
///           The head bias is not decayed, as in the source's experiments (section II 1 D).
///           Adam's epsilon follows the gradient, whose size is the AdamW rate over the SGD rate;
///           the paper keeps it fixed. Where heads x head_dim is not d_model, or key and value heads
///           are shared, the n of (1.110)-(1.113) is the fan-out of query, key and value and the
///           fan-in of the attention output, by the same argument.
struct NeuralTangent {
  static constexpr std::string_view id = "neural-tangent";
  static constexpr Source source{"Effective Theory of Transformers at Initialization",
                                 "Dinan, Yaida, Zhang", "2023", "arXiv:2304.02034v1",
                                 "eqs. (1.25)-(1.33), (1.99)-(1.116)"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  policy::OrderOne init_constant{};   // C_G
  policy::OrderOne rate_constant{};   // Λ_G
  bool mlp_ratio_in_rates = true;     // the paper's experiments drop M from the two MLP AdamW rates
  bool experiment_constants = false;  // begin with their initial variances, for images or for text

  constexpr Row row(Group group, const policy::Context& context = {}) const {
    Row row = table(group);
    if (experiment_constants) {
      row.init_variance =
          experiment_variance(group, context.shape.input, row.init_variance.scaling);
    }
    row.epsilon = row.rate(adamw).scaling / row.rate(sgd).scaling;
    row.decay_form = DecayForm::independent;
    Scaling adamw_rate = row.rate(adamw).scaling;
    if (!mlp_ratio_in_rates) adamw_rate = substitute(adamw_rate, symbols::mlp_ratio, 1);
    row.init_variance = init_constant[group] * row.init_variance.scaling;
    row.rates = {{sgd, rate_constant[group] * row.rate(sgd).scaling},
                 {adamw, rate_constant[group] * adamw_rate}};
    return row;
  }

  constexpr ModelRow model() const {
    using namespace symbols;
    return {.attention_scale = 1 / sqrt(C),
            .tied_logit_multiplier = 1 / sqrt(n),
            .source = "eq. (1.33)"};
  }

  /// The paper's language models tie the head to the token embedding.
  constexpr Shape adapt(Shape shape) const {
    if (shape.input == Input::token && !shape.tied_head) shape.tied_head = true;
    return shape;
  }

  /// Checks the parameters.
  /// Throws:   InvalidInput for a negative C of a group, and a Λ that is not positive.
  constexpr void validate(const Shape&) const {
    for (std::size_t g = 0; g < architecture::group_count; ++g) {
      const std::string_view group = architecture::group_table[g].id;
      if (!(init_constant.values[g] >= 0)) {
        throw InvalidInput("C_" + std::string(group), numeric::number_text(init_constant.values[g]),
                           "0 or more");
      }
      if (!(rate_constant.values[g] > 0)) {
        throw InvalidInput("Lambda_" + std::string(group),
                           numeric::number_text(rate_constant.values[g]), "a positive number");
      }
    }
  }

  static void parameters(auto& self, auto&& visit) {
    visit("mlp_ratio_in_rates", self.mlp_ratio_in_rates);
    if (!std::is_const_v<std::remove_reference_t<decltype(self)>> || self.experiment_constants)
      visit("experiment_constants", self.experiment_constants);
    policy::OrderOne::visit_all("C", self.init_constant, visit);
    policy::OrderOne::visit_all("Lambda", self.rate_constant, visit);
  }

 private:
  /// The initial variance of the paper's experiments, given that of the table.
  /// Equation: images: the table's times C_Q = C_K = C_V = 1/2, C_U = 1/3, C_W = 2/5, C_X = 8/5, and
  ///           C_PE = 0.02²; text: 0.02² for all matrices but the word embedding, C_WE = 1
  /// Source:   Dinan, Yaida, Zhang 2023, II 1 C and II 2 C.
  /// Differs:  II 2 C prints C_PE = 0.02 for BART-large, and 0.02² for R2C2.
  static constexpr Scaling experiment_variance(Group group, Input input, const Scaling& table) {
    constexpr double of_deviation = 0.02 * 0.02;
    const bool images = input == Input::patch;
    switch (group) {
      case Group::position_embedding:
        return of_deviation;
      case Group::query:
      case Group::key:
      case Group::value:
        return images ? 0.5 * table : of_deviation;
      case Group::attention_output:
        return images ? 1.0 / 3 * table : of_deviation;
      case Group::mlp_up:
        return images ? 0.4 * table : of_deviation;
      case Group::mlp_down:
        return images ? 1.6 * table : of_deviation;
      default:
        return table;
    }
  }

  static constexpr Row table(Group group) {
    using namespace symbols;
    using enum Group;
    const auto row = [](Variance variance, Rate by_sgd, Rate by_adamw, std::string_view equations) {
      return Row{.init_variance = variance,
                 .rates = {{sgd, by_sgd}, {adamw, by_adamw}},
                 .source = equations};
    };
    const auto vector = [group](Rate by_sgd, Rate by_adamw, std::string_view equations) {
      return vector_row(group, {.rates = {{sgd, by_sgd}, {adamw, by_adamw}}, .source = equations});
    };
    // clang-format off
    switch (group) {
      //                                     variance     SGD rate     AdamW rate              equations
      case patch_embedding:       return row(1 / n_patch, 1 / n_patch, 1 / (n_patch * sqrt(n)), "(1.25), (1.99), (1.108)");
      case token_embedding:       return row(1,           1,           1 / sqrt(n),             "(1.25), (1.99), (1.108)");
      case position_embedding:    return row(1,           1,           1 / sqrt(n),             "(1.26), (1.100), (1.109)");
      case query:                 return row(1 / n,       1 / n,       1 / (n * sqrt(fo)),      "(1.27), (1.101), (1.110)");
      case key:                   return row(1 / n,       1 / n,       1 / (n * sqrt(fo)),      "(1.28), (1.102), (1.111)");
      case value:                 return row(1 / n,       1 / n,       1 / (n * sqrt(fo)),      "(1.29), (1.103), (1.112)");
      case attention_output:      return row(1 / fi,      1 / fi,      1 / (fi * sqrt(n)),      "(1.30), (1.104), (1.113)");
      case mlp_up:                return row(1 / n,       1 / n,       1 / (n * sqrt(M * n)),   "(1.31), (1.105), (1.114)");
      case mlp_down:              return row(1 / (M * n), 1 / (M * n), 1 / (M * n * sqrt(n)),   "(1.32), (1.106), (1.115)");
      case head:                  return row(1 / n,       1 / n,       1 / (n * sqrt(n_out)),   "(1.33), (1.107), (1.116)");
      case head_bias: {
        Row bias = vector(1, 1 / sqrt(n_out), "(1.33), (1.107), (1.116)");
        bias.weight_decay = 0;
        return bias;
      }
      // Tensors that the paper's models do not have:
      case mlp_gate:              return row(1 / n,       1 / n,       1 / (n * sqrt(M * n)),   "derived, as MLP up");
      case segment_embedding:
      case class_token:           return row(1,           1,           1 / sqrt(n),             "derived, as position");
      case embedding_norm_gain:
      case embedding_norm_bias:
      case patch_bias:
      case norm_gain:
      case norm_bias:
      case hidden_bias:
      case relative_position:
      case residual_gain:
      case final_norm_gain:
      case final_norm_bias:
      case attention_step:
      case mlp_step:
      case qk_scale:
      case up_scale:
      case gate_scale:
      case logit_scale:           return vector(          1,           1 / sqrt(fo),            "derived");
      default:                    break;
    }
    // clang-format on
    return not_stated();
  }
};

static_assert(Policy<NeuralTangent>);

}  // namespace scalewise
