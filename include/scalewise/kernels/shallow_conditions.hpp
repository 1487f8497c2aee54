// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numbers>
#include <optional>
#include <span>
#include <vector>

#include "scalewise/kernels/shallow_kernel.hpp"
#include "scalewise/kernels/shallow_scales.hpp"
#include "scalewise/kernels/symmetric_eigen.hpp"

namespace scalewise::kernels {

/// The exponents ĉ for which a tail of similarities is as thin as the theorem assumes.
struct TailExponents {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();

  bool exist() const { return most > 0 && least <= most; }
};

/// The constants of the convergence theorem's assumptions, as these data have them.
struct ShallowAssumptions {
  double bound = 0;           // C_x
  double independence = 1;    // the lowest ratio of singular values of an input, least to greatest
  std::size_t dependent = 0;  // inputs whose tokens are linearly dependent
  TailExponents tail;

  bool hold() const { return dependent == 0 && tail.exist(); }
};

/// The exponents ĉ with P(similarity >= t) <= exp(-t^ĉ) at every similarity of a sample.
/// Equation: P(similarity >= t) of the k-th largest t of m: k/(m+1)
/// Source:   Wu, Liu, Chrysos, Cevher 2023 (arXiv:2311.01575), third assumption on data.
/// Accuracy: that of a sample; a scale of the data is part of the assumption, which is about 1.
inline TailExponents tail_exponents(std::vector<double> similarities) {
  std::ranges::sort(similarities, std::greater<>());
  TailExponents tail;
  const auto size = static_cast<double>(similarities.size() + 1);
  for (std::size_t k = 0; k < similarities.size(); ++k) {
    const double t = similarities[k];
    const double nats = std::log(size / static_cast<double>(k + 1));  // of the probability
    const double exponent = std::log(nats) / std::log(t);
    if (t > 1) tail.most = (std::min)(tail.most, exponent);
    if (t < 1 && t > 0) tail.least = (std::max)(tail.least, exponent);
    if (t == 1 && nats < 1) tail.most = 0;
  }
  return tail;
}

/// Checks the assumptions of the convergence theorem on data.
/// Equation: ‖X‖_F <= √T C_x; X of full row rank; P(⟨X_iᵀX_i, X_jᵀX_j⟩ >= t) <= exp(-t^ĉ) over pairs
/// Source:   Wu, Liu, Chrysos, Cevher 2023 (arXiv:2311.01575), assumptions on data.
/// Shapes:   every input (T, features), T its own
/// Accuracy: tokens are dependent where the ratio of singular values is below 1e-7.
/// Throws:   InvalidInput for no input, inputs of different features, and numbers that are not finite.
inline ShallowAssumptions shallow_assumptions(std::span<const Eigen::MatrixXd> inputs) {
  detail::require_inputs(inputs);
  ShallowAssumptions found;
  std::vector<double> similarities;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Eigen::MatrixXd& x = inputs[i];
    found.bound = (std::max)(found.bound, x.norm() / std::sqrt(static_cast<double>(x.rows())));
    const Eigen::VectorXd powers = detail::symmetric_eigenvalues(x * x.transpose());
    const double greatest = powers(powers.size() - 1);
    const double ratio = greatest > 0 ? std::sqrt((std::max)(powers(0), 0.0) / greatest) : 0;
    found.independence = (std::min)(found.independence, ratio);
    found.dependent += ratio < 1e-7 ? 1 : 0;
    for (std::size_t j = 0; j < i; ++j) {
      similarities.push_back((x * inputs[j].transpose()).squaredNorm());
    }
  }
  found.tail = tail_exponents(std::move(similarities));
  return found;
}

/// The eigenvalue λ₀ that the convergence theorem rests on, and bounds with constants.
struct ShallowEigenvalue {
  double lambda_0 = 0;
  double lower = 0;            // η_V λ_min(ΦΦᵀ)/4
  double upper = 0;            // η_V min ‖φ_k‖²/2
  double least_attention = 1;  // min ‖β_k‖², of softmax at least 1/T

  /// The rate of convergence: the loss falls by 1 - γ α²/2 a step.
  /// Equation: α² >= τ₁² d_m λ₀/4
  double alpha_squared(const ShallowScales& s) const {
    return s.tau_1 * s.tau_1 * static_cast<double>(s.width) * lambda_0 / 4;
  }
};

/// λ₀ of data under given scores: zero for τ₀ = d_m^-1, drawn for τ₀ = d_m^-1/2.
/// Equation: λ₀ = λ_min(E[ReLU(Φw) ReLU(Φw)ᵀ]), w ~ N(0, η_V I), rows φ_i = X_iᵀβ_i of Φ, β_i the
///           attention of the first token;
///           η_V λ_min(ΦΦᵀ)/4 <= λ₀ <= η_V min ‖φ_k‖²/2, and ‖φ_k‖² <= T C_x²
/// Source:   Wu, Liu, Chrysos, Cevher 2023 (arXiv:2311.01575), lemma on the minimum eigenvalue and
///           its proof, whose constants are put in: the first Hermite coefficient of ReLU is 1/2.
/// Shapes:   as shallow_kernel()
/// Accuracy: exact to rounding. The lower bound is 0 for more inputs than features.
/// Throws:   InvalidInput as shallow_kernel().
/// Differs:  the lemma has η_V/T and η_V T, up to constants that depend on the data.
inline ShallowEigenvalue shallow_eigenvalue(std::span<const Eigen::MatrixXd> inputs,
                                            const ShallowScales& s, const Eigen::MatrixXd& scores) {
  detail::require_shallow(s);
  const Eigen::Index features = detail::require_inputs(inputs);
  detail::require_scores(scores, features);
  std::vector<Eigen::MatrixXd> first;
  Eigen::MatrixXd phi(static_cast<Eigen::Index>(inputs.size()), features);
  ShallowEigenvalue found;
  for (const Eigen::MatrixXd& x : inputs) {
    const Eigen::MatrixXd beta = detail::weights_of(x.row(0) * scores * x.transpose(), s);
    found.least_attention = (std::min)(found.least_attention, beta.squaredNorm());
    phi.row(static_cast<Eigen::Index>(first.size())) = beta * x;
    first.emplace_back(beta * x);
  }
  const ShallowScales one{.eta_V = s.value_variance()};
  found.lambda_0 = smallest_eigenvalue(
      shallow_kernel(first, one, Eigen::MatrixXd::Zero(features, features)).output);
  const double linear = smallest_eigenvalue(phi * phi.transpose());
  found.lower = one.eta_V * (std::max)(linear, 0.0) / 4;
  found.upper = one.eta_V * phi.rowwise().squaredNorm().minCoeff() / 2;
  return found;
}

/// The power of the number n of samples to which a width is enough, up to a constant that the theorems
/// do not state, and up to logarithms for d_m^-1/2; none where they say nothing.
/// Equation: Ω(n³) under LeCun and He with τ₀ = d_m^-1/2; under NTK Ω(n²), and Ω(n) with d_m^-1
/// Source:   Wu, Liu, Chrysos, Cevher 2023 (arXiv:2311.01575), both theorems; steps γ = O(n^-1/2).
constexpr std::optional<int> width_power(bool ntk, double tau0) {
  if (tau0 == 0.5) return ntk ? 2 : 3;
  if (tau0 == 1 && ntk) return 1;
  return {};
}

}  // namespace scalewise::kernels
