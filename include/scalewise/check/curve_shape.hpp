// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "scalewise/numeric/line.hpp"

namespace scalewise::check {

/// The distance from the optimum, in octaves, at which the variance of a loss about the curve of its seed is twice that
/// at the optimum: seeds differ in how steeply their losses rise.
/// Equation: variance(v) = variance(0) (1 + v⁴)
/// Measured: recorded_sweeps.py of lab/studies/error_rates
inline constexpr double noise_doubles = 1;

/// The error of a cubic is common to the seeds of a size: its variance over that of a loss about the curve
/// of its seed. So a size's shape is known no better than from seven seeds.
/// Measured: between the two shares of recorded_sweeps.py of lab/studies/error_rates, -0.02 and 0.47
inline constexpr double cubic_misfit = 0.15;

/// How losses rise around an optimum.
/// Units:    nats per octave², nats per octave³
struct CurveShape {
  double curvature = 0;
  double third = 0;

  CurveShape operator+(const CurveShape& o) const {
    return {curvature + o.curvature, third + o.third};
  }
};

/// A symmetric matrix over the two.
struct CurveMatrix {
  double curvature = 0;
  double both = 0;
  double third = 0;

  CurveMatrix operator+(const CurveMatrix& o) const {
    return {curvature + o.curvature, both + o.both, third + o.third};
  }
  CurveShape operator*(const CurveShape& s) const {
    return {curvature * s.curvature + both * s.third, both * s.curvature + third * s.third};
  }
  CurveMatrix operator*(double factor) const {
    return {factor * curvature, factor * both, factor * third};
  }
  CurveMatrix inverse() const {
    const double determinant = curvature * third - both * both;
    return {third / determinant, -both / determinant, curvature / determinant};
  }
};

/// Standard deviations between the sizes of a sweep, as shares of the mean curvature; and of the mean third order
/// between sweeps.
/// Measured: recorded_sweeps.py of lab/studies/error_rates
inline constexpr CurveShape shapes_differ{0.2, 0.1};
inline constexpr double usual_third = 0.12;

/// One seed at one size, within reach of the lowest loss.
struct SeedCurve {
  long seed = 0;
  std::vector<double> octaves = {};
  std::vector<double> losses = {};
  double offset = 0;   // of the fit: its loss at the size's optimum,
  double tilt = 0;     // its slope there,
  double optimum = 0;  // and its own optimum
};

namespace detail {

inline double product(const CurveShape& a, const CurveShape& b) {
  return a.curvature * b.curvature + a.third * b.third;
}

/// The trace of the matrices' product.
inline double product(const CurveMatrix& a, const CurveMatrix& b) {
  return a.curvature * b.curvature + 2 * a.both * b.both + a.third * b.third;
}

/// The product of the diagonal matrix of `d` with a shape.
inline CurveShape scaled(const CurveShape& d, const CurveShape& s) {
  return {d.curvature * s.curvature, d.third * s.third};
}

/// The rates of a curve as distances from an optimum, with the weights that their losses have in sums.
class Distances {
 public:
  Distances(const SeedCurve& curve, double optimum) {
    for (const double octave : curve.octaves) {
      v_.push_back(octave - optimum);
      weight_.push_back(1 / growth(v_.back()));
      sum_ += weight_.back();
      mean_ += weight_.back() * v_.back();
    }
    mean_ /= sum_;
    for (std::size_t i = 0; i < v_.size(); ++i) {
      spread_ += weight_[i] * (v_[i] - mean_) * (v_[i] - mean_);
    }
  }

  /// The variance of a loss over that at the optimum.
  static double growth(double v) {
    const double square = v * v / (noise_doubles * noise_doubles);
    return 1 + square * square;
  }

  /// Σ w (v - mean)²
  double spread() const { return spread_; }

  std::vector<double> power(int n) const {
    std::vector<double> all;
    for (const double v : v_) all.push_back(n == 2 ? v * v : v * v * v);
    return all;
  }

  double product(const std::vector<double>& a, const std::vector<double>& b) const {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += weight_[i] * a[i] * b[i];
    return sum;
  }

  /// A function on the rates without what offset and slope can say, and those.
  numeric::Line remove_line(std::vector<double>& f) const {
    double mean = 0;
    double slope = 0;
    for (std::size_t i = 0; i < f.size(); ++i) {
      mean += weight_[i] * f[i] / sum_;
      slope += weight_[i] * (v_[i] - mean_) * f[i] / spread_;
    }
    for (std::size_t i = 0; i < f.size(); ++i) f[i] -= mean + slope * (v_[i] - mean_);
    return {.slope = slope, .intercept = mean - slope * mean_};
  }

 private:
  std::vector<double> v_, weight_;
  double sum_ = 0, mean_ = 0, spread_ = 0;
};

/// Sums over curves that determine a shape.
struct ShapeSums {
  CurveMatrix matrix = {};
  CurveShape vector = {};
  double squares = 0;  // of the losses
  std::size_t degrees = 0;

  ShapeSums operator+(const ShapeSums& o) const {
    return {matrix + o.matrix, vector + o.vector, squares + o.squares, degrees + o.degrees};
  }
  /// The sum of squares that a shape leaves.
  double rest(const CurveShape& s) const {
    return squares - 2 * product(s, vector) + product(s, matrix * s);
  }
};

}  // namespace detail

}  // namespace scalewise::check
