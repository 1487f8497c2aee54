// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/policy.hpp"

namespace scalewise {

namespace detail {

inline constexpr Source shallow_source{"On the Convergence of Encoder-only Shallow Transformers",
                                       "Wu, Liu, Chrysos, Cevher", "2023", "arXiv:2311.01575",
                                       "table of initializations"};

constexpr Shape shallow_shape(Shape shape) {
  if (shape.input != Input::patch) {
    throw InvalidInput("input", "token", "patch", "the shallow encoder reads real vectors");
  }
  shape.blocks = Blocks::shallow_encoder;
  shape.activation = Activation::relu;
  shape.depth = 1;
  shape.encoder_depth = 0;
  shape.tied_head = false;
  return shape;
}

constexpr ModelRow shallow_model(double tau0) {
  return {.attention_scale = pow(symbols::n, exponent(-tau0)), .source = "tau_0"};
}

constexpr void shallow_validate(double tau0) {
  if (tau0 != 0.5 && tau0 != 1) {
    throw InvalidInput("tau0", numeric::number_text(tau0), "0.5 or 1",
                       "the scores are times d_m^-tau0");
  }
}

/// Variances of one initialization: a row of the table.
struct ShallowRow {
  Variance eta_O;
  Variance eta_V;
  Variance eta_Q;
  Variance eta_K;
  Multiplier tau_1 = 1;
};

constexpr Row shallow_row(Group group, const ShallowRow& row) {
  // clang-format off
  switch (group) {
    case Group::head:  return {.init_variance = row.eta_O, .multiplier = row.tau_1, .source = "eta_O, tau_1"};
    case Group::value: return {.init_variance = row.eta_V, .source = "eta_V"};
    case Group::query: return {.init_variance = row.eta_Q, .source = "eta_Q"};
    case Group::key:   return {.init_variance = row.eta_K, .source = "eta_K"};
    default:           return not_stated();
  }
  // clang-format on
}

}  // namespace detail

/// The shallow encoder f(X) = w_O · mean over tokens of τ₁ ReLU(A), with
/// A = softmax(τ₀ X W_Qᵀ W_K Xᵀ) X W_Vᵀ, under LeCun's initialization.
/// Equation: (η_O, η_V, η_Q, η_K, τ₁) = (1/d_m, 1/d, 1/d, 1/d, 1); τ₀ = d_m^-tau0
/// Source:   Wu, Liu, Chrysos, Cevher 2023 (arXiv:2311.01575), table of initializations.
/// Units:    variances; d is patch_dim (n_patch), d_m is d_model (n); W_H is the identity, not
///           trained; τ₁ is the head's multiplier, which is the same function.
/// Differs:  none; rates are 1, as the source trains by plain gradient descent.
struct ShallowLeCun {
  static constexpr std::string_view id = "shallow-lecun";
  static constexpr Source source = detail::shallow_source;
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  double tau0 = 0.5;

  constexpr Row row(Group group) const {
    using namespace symbols;
    return detail::shallow_row(group, {1 / n, 1 / n_patch, 1 / n_patch, 1 / n_patch, 1});
  }
  constexpr ModelRow model() const { return detail::shallow_model(tau0); }
  constexpr Shape adapt(Shape shape) const { return detail::shallow_shape(shape); }
  constexpr void validate(const Shape&) const { detail::shallow_validate(tau0); }
  static void parameters(auto& self, auto&& visit) { visit("tau0", self.tau0); }
};

/// The shallow encoder under He's initialization.
/// Equation: (η_O, η_V, η_Q, η_K, τ₁) = (2/d_m, 2/d, 2/d, 2/d, 1); τ₀ = d_m^-tau0
/// Source:   Wu, Liu, Chrysos, Cevher 2023 (arXiv:2311.01575), table of initializations.
/// Units:    as ShallowLeCun.
/// Differs:  none.
struct ShallowHe {
  static constexpr std::string_view id = "shallow-he";
  static constexpr Source source = detail::shallow_source;
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  double tau0 = 0.5;

  constexpr Row row(Group group) const {
    using namespace symbols;
    return detail::shallow_row(group, {2 / n, 2 / n_patch, 2 / n_patch, 2 / n_patch, 1});
  }
  constexpr ModelRow model() const { return detail::shallow_model(tau0); }
  constexpr Shape adapt(Shape shape) const { return detail::shallow_shape(shape); }
  constexpr void validate(const Shape&) const { detail::shallow_validate(tau0); }
  static void parameters(auto& self, auto&& visit) { visit("tau0", self.tau0); }
};

/// The shallow encoder under the neural-tangent initialization.
/// Equation: (η_O, η_V, η_Q, η_K, τ₁) = (1, 1, 1, 1, 1/√d_m); τ₀ = d_m^-tau0
/// Source:   Wu, Liu, Chrysos, Cevher 2023 (arXiv:2311.01575), table of initializations.
/// Units:    as ShallowLeCun.
/// Differs:  none.
struct ShallowNtk {
  static constexpr std::string_view id = "shallow-ntk";
  static constexpr Source source = detail::shallow_source;
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  double tau0 = 0.5;

  constexpr Row row(Group group) const {
    using namespace symbols;
    return detail::shallow_row(group, {1, 1, 1, 1, 1 / sqrt(n)});
  }
  constexpr ModelRow model() const { return detail::shallow_model(tau0); }
  constexpr Shape adapt(Shape shape) const { return detail::shallow_shape(shape); }
  constexpr void validate(const Shape&) const { detail::shallow_validate(tau0); }
  static void parameters(auto& self, auto&& visit) { visit("tau0", self.tau0); }
};

static_assert(Policy<ShallowLeCun> && Policy<ShallowHe> && Policy<ShallowNtk>);

}  // namespace scalewise
