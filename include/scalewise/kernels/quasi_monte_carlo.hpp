// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "scalewise/kernels/pair_kernel.hpp"
#include "scalewise/numeric/random.hpp"

namespace scalewise::kernels {

/// How many points estimate an expectation that has no affordable rule.
struct QuasiMonteCarlo {
  Index points = 8192;  // per random shift
  Index shifts = 16;    // independent estimates, from which the standard error comes
  std::uint64_t seed = 0;

  /// Throws:   InvalidInput for fewer than one point or two shifts.
  void check() const {
    if (points < 1) throw InvalidInput("points", std::to_string(points), "at least 1");
    if (shifts < 2) throw InvalidInput("shifts", std::to_string(shifts), "at least 2");
  }

  /// Standard normal points, shift after shift.
  /// Equation: z_kj = Φ⁻¹(|2 {k √p_j + shift_j} - 1|), p_j the j-th prime, {} the fractional part
  /// Source:   Richtmyer 1951; folded and shifted as in Genz and Bretz 2002.
  /// Shapes:   (shifts * points, dimensions)
  Matrix<> normals(Index dimensions) const {
    Matrix<> z(shifts * points, dimensions);
    int prime = 1;
    for (Index j = 0; j < dimensions; ++j) {
      do ++prime;
      while (!is_prime(prime));
      const double root = std::sqrt(static_cast<double>(prime));
      numeric::RandomStream stream(seed, "shift.", std::to_string(j));
      for (Index s = 0; s < shifts; ++s) {
        const double shift = stream.uniform();
        for (Index k = 0; k < points; ++k) {
          const double at = static_cast<double>(k + 1) * root + shift;
          const double folded = std::abs(2 * (at - std::floor(at)) - 1);
          z(s * points + k, j) = numeric::RandomStream::normal_quantile(
              std::fmin(std::fmax(folded, 0x1p-53), 1 - 0x1p-53));
        }
      }
    }
    return z;
  }

 private:
  static bool is_prime(int n) {
    for (int d = 2; d * d <= n; ++d) {
      if (n % d == 0) return false;
    }
    return true;
  }
};

}  // namespace scalewise::kernels
