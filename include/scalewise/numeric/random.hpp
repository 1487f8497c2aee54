// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "scalewise/numeric/power.hpp"

namespace scalewise::inline numeric {

/// A stream of random numbers that belongs to a seed and a name, so that adding or zeroing one
/// tensor shifts no other.
/// Source:   SplitMix64 (Steele, Lea, Flood 2014) from an initial state that mixes the seed with the FNV-1a
///           hash of the name.
/// Accuracy: the same numbers on every platform with IEEE 754 doubles and no contraction into fused
///           multiply-add.
class RandomStream {
 public:
  /// A name in two parts is their concatenation.
  constexpr RandomStream(std::uint64_t seed, std::string_view name, std::string_view end = {}) {
    std::uint64_t hash = 14695981039346656037ULL;
    for (const std::string_view part : {name, end}) {
      for (const char c : part) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
      }
    }
    state_ = mix(seed + 0x9E3779B97F4A7C15ULL) ^ hash;
  }

  /// 64 random bits.
  constexpr std::uint64_t bits() {
    state_ += 0x9E3779B97F4A7C15ULL;
    return mix(state_);
  }

  /// Uniform on (0, 1), never 0 or 1.
  /// Units:    none; standard deviation 1/√12
  constexpr double uniform() {
    const double u = (static_cast<double>(bits() >> 11U) + 0.5) * 0x1p-53;
    return u < 1 ? u : 0x1.fffffffffffffp-1;  // the largest sum is rounded up to 1
  }

  /// Standard normal, by the inverse of its distribution function.
  /// Units:    standard deviations
  constexpr double normal() { return normal_quantile(uniform()); }

  /// Standard normal, drawn again until it lies within two standard deviations.
  /// Units:    standard deviations of the normal that is cut; its own variance is 0.774
  constexpr double truncated_normal() {
    for (;;) {
      const double z = normal();
      if (z > -2 && z < 2) return z;
    }
  }

  /// A mixing of 64 bits in which every bit of the result depends on every bit of z.
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }

  /// Inverse of the standard normal distribution function.
  /// Source:   Wichura 1988, algorithm AS 241, PPND16.
  /// Units:    p is a probability, the result standard deviations
  /// Accuracy: relative 1e-15. Requires: 0 < p < 1.
  static constexpr double normal_quantile(double p) {
    const double q = p - 0.5;
    if (q > -0.425 && q < 0.425) {
      const double r = 0.180625 - q * q;
      return q * ratio(r, center_over, center_under);
    }
    const double tail = root(-natural_log(q < 0 ? p : 1 - p), 2);
    const double z = tail <= 5 ? ratio(tail - 1.6, middle_over, middle_under)
                               : ratio(tail - 5, far_over, far_under);
    return q < 0 ? -z : z;
  }

 private:
  using Coefficients = double[8];

  static constexpr double ratio(double r, const Coefficients& over, const Coefficients& under) {
    double top = 0;
    double bottom = 0;
    for (int i = 7; i >= 0; --i) {
      top = top * r + over[i];
      bottom = bottom * r + under[i];
    }
    return top / bottom;
  }

  // clang-format off
  static constexpr Coefficients center_over{
      3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
      4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr Coefficients center_under{
      1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
      2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4, 5.2264952788528545610e+3};
  static constexpr Coefficients middle_over{
      1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
      1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr Coefficients middle_under{
      1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
      1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9};
  static constexpr Coefficients far_over{
      6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
      2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr Coefficients far_under{
      1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
      7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15};
  // clang-format on

  std::uint64_t state_ = 0;
};

}  // namespace scalewise::inline numeric
