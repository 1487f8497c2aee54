// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "scalewise/kernels/pair_kernel.hpp"
#include "scalewise/kernels/symmetric_eigen.hpp"

namespace scalewise::kernels::detail {

/// Expectations of products f(ξ)g(η) of two standard normals with correlation ρ, by coefficients of
/// f and of g that do not depend on ρ.
/// Equation: E f(ξ)g(η) = Σ_n ρ^λ_n f_n g_n, f_n = Σ_k transform_nk f(ξ_k), on equidistant nodes ξ_k.
///           The joint density is √p(ξ) ρ^H √p(η) with p the normal density and H = -d²/dξ² + ξ²/4 -
///           1/2 the harmonic oscillator (Mehler's formula), whose eigenvalues are 0, 1, 2, …; H is
///           replaced by its matrix on the nodes, λ and the eigenvectors in `transform` are its own.
/// Source:   Mehler 1866; sinc collocation of Colbert and Miller 1992 for H.
/// Shapes:   nodes (N), exponents (N), transform (N, N)
struct Oscillator {
  /// The nodes that a width and a decay need: N, and the distance between them.
  struct Nodes {
    Nodes(double width, double decay) {
      constexpr double pi = std::numbers::pi;
      const double strip = (std::min)(analytic(width), std::sqrt(2 * decay));
      step = pi / (decay / (2 * strip) + strip / 4);
      size = 2 * std::ceil(std::sqrt(2 * decay) / step) + 1;
    }
    /// Functions are analytic up to here.
    static double analytic(double width) { return std::numbers::pi / (std::max)(width, 1e-3); }

    double step = 0;
    double size = 0;
  };

  Array nodes;
  Array exponents;  // λ_n, ascending; eigenvectors alternate between even and odd
  Eigen::MatrixXd transform;
  Index levels = 0;  // how many coefficients matter

  /// For functions that are analytic in |Im ξ| < π/width and bounded by 1.
  /// Accuracy: about e^-decay. With f√p band-limited to Ω = π/step the error is e^(-2Ωy + y²/2) for
  ///           every y up to π/width, of which 2Ω is best; beyond the last node it is that of p's
  ///           tail; f_n g_n falls like e^(-2√n π/width).
  Oscillator(double width, double decay) {
    constexpr double pi = std::numbers::pi;
    const Nodes needed(width, decay);
    const double step = needed.step;
    const auto n = static_cast<Index>(needed.size);
    const Index half = n / 2;
    levels = static_cast<Index>(
        (std::min)(needed.size, 4 + std::ceil(std::pow(decay / (2 * Nodes::analytic(width)), 2))));
    nodes = Array::LinSpaced(n, -static_cast<double>(half), static_cast<double>(half)) * step;
    Eigen::MatrixXd h(n, n);
    for (Index k = 0; k < n; ++k) {
      for (Index l = 0; l < n; ++l) {
        const auto apart = static_cast<double>(k - l);
        h(k, l) = k == l ? pi * pi / (3 * step * step) + nodes(k) * nodes(k) / 4 - 0.5
                         : ((k - l) % 2 == 0 ? 2 : -2) / (step * step * apart * apart);
      }
    }
    const SymmetricEigen eigen = symmetric_eigen(h);
    exponents = eigen.values;
    exponents(0) = 0;
    const Array root_density = (step / std::sqrt(2 * pi)) * (-nodes.square() / 2).exp();
    transform = eigen.vectors.transpose() * root_density.sqrt().matrix().asDiagonal();
  }

  /// ρ^λ_n.
  Array weights(double correlation) const {
    Array w = (exponents * std::log((std::max)(std::abs(correlation), 1e-300))).exp();
    if (correlation < 0) {
      for (Index n = 1; n < w.size(); n += 2) w(n) = -w(n);
    }
    return w;
  }
};

}  // namespace scalewise::kernels::detail
