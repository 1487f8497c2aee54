// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "scalewise/kernels/shallow_scales.hpp"
#include "scalewise/kernels/symmetric_eigen.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/parallel.hpp"
#include "scalewise/numeric/random.hpp"

namespace scalewise::kernels {

/// A tangent kernel of the shallow encoder, by the weights that it comes from.
/// Shapes:   every part (n, n), n inputs
struct ShallowKernel {
  Eigen::MatrixXd output;  // of w_O
  Eigen::MatrixXd value;   // of W_V
  Eigen::MatrixXd query;   // of W_Q
  Eigen::MatrixXd key;     // of W_K
  Eigen::MatrixXd hidden;  // of W_H, zero for the identity

  /// The whole tangent kernel.
  /// Source:   definition: the kernel is a sum over parameters.
  Eigen::MatrixXd total() const { return output + value + query + key + hidden; }
};

namespace detail {

/// Self-attention over the tokens of one input, and how it bends where its scores move.
struct Attended {
  Eigen::MatrixXd tokens;  // (T, d): z_a = Σ_b S_ab x_b
  std::vector<Eigen::MatrixXd>
      bend;  // T of (d, d): B_a = Σ_b S_ab (x_b - z_a) x_bᵀ, or Σ_b S'_ab x_b x_bᵀ
};

inline Eigen::MatrixXd softmax_rows(Eigen::MatrixXd scores) {
  for (Eigen::Index a = 0; a < scores.rows(); ++a) {
    scores.row(a).array() = (scores.row(a).array() - scores.row(a).maxCoeff()).exp();
    scores.row(a) /= scores.row(a).sum();
  }
  return scores;
}

/// The attention weights of the tokens of x, from their scores.
inline Eigen::MatrixXd weights_of(const Eigen::MatrixXd& scores, const ShallowScales& s) {
  return s.relu_scores ? scores.cwiseMax(0.0).eval() : softmax_rows(scores);
}

inline Attended attend(const Eigen::MatrixXd& x, const Eigen::MatrixXd& scores,
                       const ShallowScales& scales) {
  const Eigen::MatrixXd s = weights_of(x * scores * x.transpose(), scales);
  Attended result{s * x, {}};
  for (Eigen::Index a = 0; a < x.rows(); ++a) {
    const auto z = result.tokens.row(a);
    if (scales.relu_scores) {
      const Eigen::RowVectorXd slopes = (s.row(a).array() > 0).cast<double>();
      result.bend.emplace_back(x.transpose() * slopes.asDiagonal() * x);
    } else {
      result.bend.emplace_back(x.transpose() * s.row(a).asDiagonal() * x - z.transpose() * z);
    }
  }
  return result;
}

inline Eigen::Index require_inputs(std::span<const Eigen::MatrixXd> inputs) {
  if (inputs.empty()) throw InvalidInput("inputs", "(empty)", "at least one");
  const Eigen::Index features = inputs[0].cols();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "inputs[" + std::to_string(i) + "]";
    if (inputs[i].rows() == 0 || inputs[i].cols() != features || features == 0) {
      throw InvalidInput(
          name, std::to_string(inputs[i].rows()) + " x " + std::to_string(inputs[i].cols()),
          "at least one token of " + std::to_string(features) + " features, as the first has");
    }
    if (!inputs[i].allFinite()) throw InvalidInput(name, "(not finite)", "finite numbers");
  }
  return features;
}

inline void require_scores(const Eigen::MatrixXd& scores, Eigen::Index features) {
  if (scores.rows() == features && scores.cols() == features && scores.allFinite()) return;
  throw InvalidInput("scores",
                     std::to_string(scores.rows()) + " x " + std::to_string(scores.cols()),
                     "a finite square matrix of the inputs' features");
}

/// Sums over the pairs of tokens of two inputs, each 2π times what it says, with w ~ N(0, I).
struct TokenSums {
  double output = 0;  // E[ReLU(w·z) ReLU(w·u)]
  double value = 0;   // z·u E[ReLU' ReLU']
  double bent = 0;    // x·y E[ReLU' ReLU' (B w)·(B' w)]
};

inline TokenSums token_sums(const Eigen::MatrixXd& x, const Attended& left,
                            const Eigen::MatrixXd& y, const Attended& right) {
  TokenSums sum;
  for (Eigen::Index a = 0; a < x.rows(); ++a) {
    const Eigen::VectorXd z = left.tokens.row(a).transpose();
    const Eigen::MatrixXd& bend = left.bend[static_cast<std::size_t>(a)];
    for (Eigen::Index b = 0; b < y.rows(); ++b) {
      const Eigen::VectorXd u = right.tokens.row(b).transpose();
      const Eigen::MatrixXd& other = right.bend[static_cast<std::size_t>(b)];
      const double zz = z.squaredNorm();
      const double uu = u.squaredNorm();
      if (zz == 0 || uu == 0) continue;
      const double zu = z.dot(u);
      const double root = std::sqrt(zz) * (u - zu / zz * z).norm();  // √(zz uu - zu²)
      const double angle = std::numbers::pi - std::atan2(root, zu);
      sum.output += root + angle * zu;
      sum.value += angle * zu;
      double moment = angle * bend.cwiseProduct(other).sum();
      if (root > 1e-12 * std::sqrt(zz * uu)) {  // below, the rest vanishes like the root
        const Eigen::VectorXd bz = bend * z;
        const Eigen::VectorXd bu = bend * u;
        const Eigen::VectorXd oz = other * z;
        const Eigen::VectorXd ou = other * u;
        moment += (bz.dot(ou) + bu.dot(oz) - zu / zz * bz.dot(oz) - zu / uu * bu.dot(ou)) / root;
      }
      sum.bent += x.row(a).dot(y.row(b)) * moment;
    }
  }
  return sum;
}

}  // namespace detail

/// The score matrix τ₀ W_Qᵀ W_K of a wide encoder: its entries are independent normals.
/// Equation: M_ij ~ N(0, τ₀² d_m η_Q η_K)
/// Source:   Wu, Liu, Chrysos, Cevher 2023 (arXiv:2311.01575), the two scalings: with
///           τ₀ = d_m^-1/2 entries keep a variance of order one, with τ₀ = d_m^-1 they vanish.
/// Shapes:   (features, features)
/// Accuracy: the variances hold at every width, the distribution in the limit.
/// Throws:   InvalidInput for scales that are not positive and finite, or no features.
inline Eigen::MatrixXd draw_scores(const ShallowScales& s, Eigen::Index features,
                                   std::uint64_t seed) {
  detail::require_shallow(s);
  if (features < 1) throw InvalidInput("features", std::to_string(features), "at least 1");
  numeric::RandomStream stream(seed, "scores");
  const double std_dev = s.tau_0 * std::sqrt(static_cast<double>(s.width) * s.eta_Q * s.eta_K);
  Eigen::MatrixXd scores(features, features);
  for (double& entry : scores.reshaped()) entry = std_dev * stream.normal();
  return scores;
}

/// The tangent kernel of a wide shallow encoder whose score matrix τ₀ W_Qᵀ W_K is `scores`: zero in
/// the limit of τ₀ = d_m^-1, a random matrix that stays random in that of τ₀ = d_m^-1/2.
/// Equation: with z_a the attended tokens, w ~ N(0, η_V I), c = τ₁² d_m/(T T'), sums over tokens a of
///           X and b of X', and η_V η_H d_m for η_V where there is W_H:
///           output = c Σ E[ReLU(w·z_a) ReLU(w·z'_b)]
///           value  = c η_O Σ z_a·z'_b E[ReLU'(w·z_a) ReLU'(w·z'_b)]
///           query  = c η_O τ₀² d_m η_K Σ x_a·x'_b E[ReLU' ReLU' (B_a w)·(B'_b w)]; key with η_Q
///           hidden = c η_O d_m η_V Σ z_a·z'_b E[ReLU' ReLU'], and value the same with d_m η_H for d_m η_V
/// Source:   the model and its output part: Wu, Liu, Chrysos, Cevher 2023 (arXiv:2311.01575), proof
///           framework. The other parts, and query and key averaged over w_O, are derived in
///           docs/theory/shallow_encoder.md.
/// Shapes:   every input (T, features), T its own; scores (features, features)
/// Accuracy: output and value are the mean over W_V and w_O at every width; query and key where
///           W_KᵀW_K and W_QᵀW_Q are their means, and all with W_H where W_VᵀW_V is, which holds to a
///           relative O(d_m^-1/2).
/// Throws:   InvalidInput for no input, inputs of different features, scores of another shape, and
///           numbers that are not finite.
inline ShallowKernel shallow_kernel(std::span<const Eigen::MatrixXd> inputs, const ShallowScales& s,
                                    const Eigen::MatrixXd& scores) {
  detail::require_shallow(s);
  const Eigen::Index features = detail::require_inputs(inputs);
  detail::require_scores(scores, features);
  std::vector<detail::Attended> attended;
  attended.reserve(inputs.size());
  for (const Eigen::MatrixXd& x : inputs) attended.push_back(detail::attend(x, scores, s));

  const auto n = static_cast<Eigen::Index>(inputs.size());
  const auto width = static_cast<double>(s.width);
  ShallowKernel kernel;
  for (auto* part : {&kernel.output, &kernel.value, &kernel.query, &kernel.key, &kernel.hidden}) {
    part->setZero(n, n);
  }
  const double variance = s.value_variance();
  numeric::parallel_for(n, [&](Eigen::Index i) {
    const detail::Attended& left = attended[static_cast<std::size_t>(i)];
    const Eigen::MatrixXd& x = inputs[static_cast<std::size_t>(i)];
    for (Eigen::Index j = 0; j <= i; ++j) {
      const detail::Attended& right = attended[static_cast<std::size_t>(j)];
      const Eigen::MatrixXd& y = inputs[static_cast<std::size_t>(j)];
      const detail::TokenSums sum = detail::token_sums(x, left, y, right);
      const double c = s.tau_1 * s.tau_1 * width * variance /
                       (2 * std::numbers::pi * static_cast<double>(x.rows() * y.rows()));
      const double score = c * s.eta_O * s.tau_0 * s.tau_0 * width * sum.bent;
      kernel.output(i, j) = kernel.output(j, i) = c * sum.output;
      kernel.value(i, j) = kernel.value(j, i) = c * s.eta_O / s.eta_V * sum.value;
      kernel.query(i, j) = kernel.query(j, i) = score * s.eta_K;
      kernel.key(i, j) = kernel.key(j, i) = score * s.eta_Q;
      if (s.eta_H > 0) {
        kernel.hidden(i, j) = kernel.hidden(j, i) = c * s.eta_O / s.eta_H * sum.value;
      }
    }
  });
  return kernel;
}

/// The smallest eigenvalue of a symmetric matrix. Of the output part it bounds the rate at which
/// gradient descent takes the loss to zero.
/// Source:   Wu, Liu, Chrysos, Cevher 2023 (arXiv:2311.01575), proof framework.
/// Shapes:   kernel (n, n)
/// Units:    those of the kernel
/// Throws:   InvalidInput for a matrix that is empty, not square or not finite.
inline double smallest_eigenvalue(const Eigen::MatrixXd& kernel) {
  if (kernel.rows() == 0 || kernel.rows() != kernel.cols() || !kernel.allFinite()) {
    throw InvalidInput("kernel",
                       std::to_string(kernel.rows()) + " x " + std::to_string(kernel.cols()),
                       "a finite square matrix");
  }
  return detail::symmetric_eigenvalues(kernel)(0);
}

}  // namespace scalewise::kernels
