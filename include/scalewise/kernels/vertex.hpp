// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Corrections of order 1/n to the effective theory: how far the kernel of a network of width n is from its limit.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

#include "scalewise/kernels/effective_theory.hpp"
#include "scalewise/kernels/finite_layer.hpp"
#include "scalewise/kernels/symmetric_eigen.hpp"

namespace scalewise::kernels {

/// The kernel of two tokens a and b, and the covariance of its three entries over networks of width n, times n.
/// Equation: kernel = (G_aa, G_ab, G_bb); vertex_(12)(34) = lim n Cov(Ĝ_12, Ĝ_34), Ĝ_12 = (1/n) Σ_i z_1i z_2i; of
///           features i ≠ j that are normal given Ĝ, E[z_1i z_2i z_3j z_4j] connected is vertex_(12)(34)/n
/// Source:   Dinan, Yaida, Zhang 2023 (arXiv:2304.02034), (1.71)-(1.72), which ends at O(1/n).
struct PairVertex {
  Eigen::Vector3d kernel;
  Eigen::Matrix3d vertex;
};

namespace detail {

/// Pairs of tokens of the entries of a PairVertex: aa, ab, bb.
inline constexpr std::array<std::array<int, 2>, 3> pairs_of_two{{{0, 0}, {0, 1}, {1, 1}}};

/// X_13 Y_24 + X_14 Y_23, for all entries (12) and (34).
inline Eigen::Matrix3d contracted(const Eigen::Vector3d& x, const Eigen::Vector3d& y) {
  Eigen::Matrix3d all;
  for (Index i = 0; i < 3; ++i) {
    for (Index j = 0; j < 3; ++j) {
      const auto [p, q] = pairs_of_two[static_cast<std::size_t>(i)];
      const auto [r, s] = pairs_of_two[static_cast<std::size_t>(j)];
      all(i, j) = x(p + r) * y(q + s) + x(p + s) * y(q + r);
    }
  }
  return all;
}

/// Points and weights on [-1, 1].
/// Source:   Golub, Welsch 1969: eigenvalues of the recurrence of Legendre polynomials.
struct GaussLegendre {
  Eigen::VectorXd points, weights;

  explicit GaussLegendre(Index size) {
    Eigen::MatrixXd recurrence = Eigen::MatrixXd::Zero(size, size);
    for (Index i = 1; i < size; ++i) {
      const auto k = static_cast<double>(i);
      recurrence(i, i - 1) = k / std::sqrt(4 * k * k - 1);
    }
    auto [values, vectors] = symmetric_eigen(recurrence);
    points = values;
    weights = 2 * vectors.row(0).cwiseAbs2().transpose();
  }
};

/// E h(u, v) of normals of covariance k = (uu, uv, vv), of h with kinks where u or v is 0, or with steps of the width
/// `step` there: panels halve towards the kink until they are as narrow.
template <std::size_t size, class F>
Eigen::Array<double, size, 1> normal_mean(const Eigen::Vector3d& k, double step, const F& h) {
  using Values = Eigen::Array<double, size, 1>;
  static const GaussLegendre rule(48);
  constexpr double end = 9;  // deviations
  const auto panel = [&](double from, double to, const auto& of) -> Values {
    Values sum = Values::Zero();
    for (Index i = 0; i < rule.points.size(); ++i) {
      const double z = (from + to + (to - from) * rule.points(i)) / 2;
      const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
      sum += (to - from) / 2 * rule.weights(i) * density * of(z);
    }
    return sum;
  };
  const auto panels = [&](double kink, double deviation, const auto& of) -> Values {
    const double middle = std::clamp(kink, -end, end);
    Values sum = Values::Zero();
    for (const double outer : {-end, end}) {
      double to = outer;
      while (std::abs(to - middle) * deviation > end * step && step > 0) {
        const double from = (to + middle) / 2;
        sum += panel((std::min)(from, to), (std::max)(from, to), of);
        to = from;
      }
      sum += panel((std::min)(middle, to), (std::max)(middle, to), of);
    }
    return sum;
  };
  const double root = std::sqrt(k(0));
  const double along = root > 0 ? k(1) / root : 0;
  const double across = std::sqrt((std::max)(0.0, k(2) - along * along));
  return panels(0, (std::max)(root, std::abs(along)), [&](double x) -> Values {
    if (across == 0) return h(root * x, along * x);
    return panels(-along * x / across, across,
                  [&](double z) -> Values { return h(root * x, along * x + across * z); });
  });
}

/// Moments of f(u) and f(v), and how they depend on the covariance of u and v.
struct PairMoments {
  Eigen::Vector3d second;    // E f f, of uu, uv, vv
  Eigen::Matrix3d fourth;    // E f f f f - E f f E f f
  Eigen::Matrix3d jacobian;  // ∂second/∂k
};

/// Equation: ∂E f(u)f(v)/∂k_uv = E f'f', and by Stein's lemma ∂/∂k_uu = (E u f'(u)f(v) - k_uv E f'f')/(2 k_uu);
///           ∂E f(u)²/∂k_uu = E u f f'/k_uu
inline PairMoments pair_moments(Function function, const Eigen::Vector3d& k) {
  const bool smooth = function == Function::erf || function == Function::gelu;
  const auto means = normal_mean<13>(k, smooth ? 3 : 0, [&](double u, double v) {
    const double f = FiniteActivation::value(function, u);
    const double g = FiniteActivation::value(function, v);
    const double df = FiniteActivation::derivative(function, u);
    const double dg = FiniteActivation::derivative(function, v);
    Eigen::Array<double, 13, 1> all;
    all << f * f, f * g, g * g, std::pow(f, 4), f * f * f * g, f * f * g * g, f * g * g * g,
        std::pow(g, 4), df * dg, u * df * g, v * dg * f, u * f * df, v * g * dg;
    return all;
  });
  PairMoments m;
  m.second = means.head(3);
  for (Index i = 0; i < 3; ++i) {
    for (Index j = 0; j < 3; ++j) m.fourth(i, j) = means(3 + i + j);
  }
  m.fourth -= m.second * m.second.transpose();
  const double both = means(8);
  m.jacobian << means(11) / k(0), 0, 0,                                                     //
      (means(9) - k(1) * both) / (2 * k(0)), both, (means(10) - k(1) * both) / (2 * k(2)),  //
      0, 0, means(12) / k(2);
  return m;
}

/// ∂(C_W F)/∂G of LayerNorm and the first matrix.
/// Throws:   InvalidInput for a token without variance.
inline Eigen::Matrix3d preactivation_jacobian(const Eigen::Vector3d& kernel,
                                              const EffectiveScales& scales) {
  if (!(kernel(0) > 0 && kernel(2) > 0)) {
    throw InvalidInput("variance of a token", numeric::number_text(kernel.minCoeff()),
                       "a positive number");
  }
  const double a = kernel(0) + scales.epsilon;
  const double b = kernel(2) + scales.epsilon;
  const double f = kernel(1) / std::sqrt(a * b);
  Eigen::Matrix3d d;
  d << scales.epsilon / (a * a), 0, 0,                   //
      -f / (2 * a), 1 / std::sqrt(a * b), -f / (2 * b),  //
      0, 0, scales.epsilon / (b * b);
  return scales.mlp_up.variance * d;
}

}  // namespace detail

/// That of features drawn from a normal distribution, such as embeddings, given their kernel.
/// Equation: vertex_(12)(34) = G_13 G_24 + G_14 G_23
/// Source:   Wick's theorem.
inline PairVertex stem_vertex(const Eigen::Vector3d& kernel) {
  return {kernel, detail::contracted(kernel, kernel)};
}

/// That of the preactivations w of an MLP block, (1.71), from that of the stream.
/// Equation: kernel = C_W F, vertex = C_W² D V Dᵀ, D = ∂F/∂G of LayerNorm
/// Source:   the first two steps of (1.71), where the covariance of two means of s s is not left out.
/// Throws:   InvalidInput for a token without variance, a covariance beyond the variances, and constants that are
///           negative or not finite.
inline PairVertex preactivation_vertex(const PairVertex& stream, const EffectiveScales& scales) {
  detail::require_scales(scales);
  const Eigen::Vector3d& g = stream.kernel;
  if (!(g(1) * g(1) <= g(0) * g(2) * (1 + 1e-8))) {
    throw InvalidInput("covariance", numeric::number_text(g(1)),
                       "at most the root of the variances' product in size");
  }
  const Eigen::Matrix3d d = detail::preactivation_jacobian(stream.kernel, scales);
  const double a = stream.kernel(0) + scales.epsilon;
  const double b = stream.kernel(2) + scales.epsilon;
  const Eigen::Vector3d f(stream.kernel(0) / a, stream.kernel(1) / std::sqrt(a * b),
                          stream.kernel(2) / b);
  return {scales.mlp_up.variance * f, d * stream.vertex * d.transpose()};
}

/// That of the stream after a block of LayerNorm and an MLP, M times as wide, with a skip connection.
/// Equation: G' = G + R, R = C_X E σσ; V' = J V Jᵀ + (C_X²/M)(E σσσσ - E σσ E σσ) + G_13 R_24 + G_14 R_23 + R_13 G_24
///           + R_14 G_23 + R_13 R_24 + R_14 R_23, J = ∂G'/∂G
/// Source:   derived, as in (1.71): given stream and activations, what the block adds is normal with the covariance
///           (C_X/(Mn)) Σ σσ, a mean over Mn neurons that are independent given F.
/// Accuracy: the leading order in 1/n; expectations to 1e-9.
/// Throws:   InvalidInput as preactivation_vertex(), and for M that is not positive.
inline PairVertex mlp_block_vertex(const PairVertex& stream, const EffectiveScales& scales,
                                   Function activation, double multiplier) {
  if (!(multiplier > 0)) {
    throw InvalidInput("multiplier", numeric::number_text(multiplier), "a positive number");
  }
  const double c_x = scales.mlp_down.variance;
  const Eigen::Vector3d& g = stream.kernel;
  const detail::PairMoments m =
      detail::pair_moments(activation, preactivation_vertex(stream, scales).kernel);
  const Eigen::Vector3d r = c_x * m.second;
  const Eigen::Matrix3d jacobian =
      Eigen::Matrix3d::Identity() + c_x * m.jacobian * detail::preactivation_jacobian(g, scales);
  return {g + r, jacobian * stream.vertex * jacobian.transpose() +
                     c_x * c_x / multiplier * m.fourth + detail::contracted(g, r) +
                     detail::contracted(r, g) + detail::contracted(r, r)};
}

}  // namespace scalewise::kernels
