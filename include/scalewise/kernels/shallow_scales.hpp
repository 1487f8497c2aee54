// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include "scalewise/messages/error.hpp"
#include "scalewise/plan/check_plan.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::kernels {

/// The numbers of a shallow encoder f(X) = τ₁ w_O · mean over tokens of ReLU(A W_H), with
/// A = softmax(τ₀ X W_Qᵀ W_K Xᵀ) X W_Vᵀ. The source has W_H = 1, and names work with ReLU for softmax.
/// Source:   Wu, Liu, Chrysos, Cevher 2023 (arXiv:2311.01575), table of initializations.
/// Units:    eta_* are the variances of the weights' entries.
struct ShallowScales {
  long width = 1;  // d_m
  double eta_O = 1;
  double eta_V = 1;
  double eta_Q = 1;
  double eta_K = 1;
  double tau_0 = 1;
  double tau_1 = 1;
  double eta_H = 0;          // 0: W_H is the identity, and not learned
  bool relu_scores = false;  // ReLU in place of softmax

  /// The variance of the entries of W_HᵀW_V, which stand for W_V.
  double value_variance() const {
    return eta_H > 0 ? eta_V * eta_H * static_cast<double>(width) : eta_V;
  }
};

/// The numbers that a plan of shallow-lecun, shallow-he or shallow-ntk holds.
/// Throws:   InvalidInput for a plan of another model.
inline ShallowScales shallow_scales(const Plan& plan) {
  check_plan(plan);
  plan::require_no_extras(plan, "the theory does not know where it is");
  if (plan.shape.blocks != Blocks::shallow_encoder) {
    throw InvalidInput("rule", plan.rule, "a rule of the shallow encoder",
                       "shallow-lecun, shallow-he or shallow-ntk");
  }
  const auto variance = [&](const char* name) { return plan.at(name).init_variance.value; };
  return {.width = plan.shape.d_model,
          .eta_O = variance("head"),
          .eta_V = variance("layer.0.value"),
          .eta_Q = variance("layer.0.query"),
          .eta_K = variance("layer.0.key"),
          .tau_0 = plan.model.attention_scale.value,
          .tau_1 = plan.model.logit_multiplier.value};
}

namespace detail {

inline void require_shallow(const ShallowScales& s) {
  const auto positive = [](const char* name, double x) {
    if (!(x > 0 && std::isfinite(x))) {
      throw InvalidInput(name, numeric::number_text(x), "a positive finite number");
    }
  };
  positive("width", static_cast<double>(s.width));
  positive("eta_O", s.eta_O);
  positive("eta_V", s.eta_V);
  positive("eta_Q", s.eta_Q);
  positive("eta_K", s.eta_K);
  positive("tau_0", s.tau_0);
  positive("tau_1", s.tau_1);
  if (s.eta_H != 0) positive("eta_H", s.eta_H);
}

}  // namespace detail

}  // namespace scalewise::kernels
