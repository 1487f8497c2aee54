// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "scalewise/check/matrix_view.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::check {

/// Parameters that contribute to a kernel together, usually one tensor.
struct ParameterRange {
  std::string name;
  std::size_t begin = 0;  // in the row of all parameters
  std::size_t size = 0;
};

/// The empirical neural tangent kernel of some outputs, split by where it comes from.
/// Equation: K_g(i, j) = Σ_{p in g} ∂f_i/∂θ_p ∂f_j/∂θ_p
/// Source:   Jacot, Gabriel, Hongler 2018 (arXiv:1806.07572), eq. for Θ(θ); per group with its own
///           rate: Dinan, Yaida, Zhang 2023 (arXiv:2304.02034).
/// Shapes:   every part (outputs, outputs), row-major
struct TangentKernel {
  std::size_t outputs = 0;
  std::vector<std::string> names;
  std::vector<std::vector<double>> parts;

  /// Σ_g weight_g K_g; without weights the plain sum.
  /// Units:    the rates of SGD as weights make it the kernel of that optimizer, df/dt = -K dL/df,
  ///           which does not depend on the formulation of a rule.
  /// Throws:   InvalidInput unless there is a weight per part, or none.
  std::vector<double> total(std::span<const double> weights = {}) const {
    if (!weights.empty() && weights.size() != parts.size()) {
      throw InvalidInput("weights", std::to_string(weights.size()) + " numbers",
                         std::to_string(parts.size()) + ", one per part of the kernel");
    }
    std::vector<double> sum(outputs * outputs);
    for (std::size_t g = 0; g < parts.size(); ++g) {
      const double weight = weights.empty() ? 1 : weights[g];
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * parts[g][i];
    }
    return sum;
  }
};

namespace detail {

/// Σ a_p b_p in eight partial sums, which a compiler may keep in one register.
template <class Scalar>
double dot(const Scalar* a, const Scalar* b, std::size_t size) {
  std::array<double, 8> lanes{};
  std::size_t p = 0;
  for (; p + 8 <= size; p += 8) {
    for (std::size_t l = 0; l < 8; ++l) {
      lanes[l] += static_cast<double>(a[p + l]) * static_cast<double>(b[p + l]);
    }
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (; p < size; ++p) sum += static_cast<double>(a[p]) * static_cast<double>(b[p]);
  return sum;
}

/// Adds rows [first_a, …) times rows [first_b, …) to every part, some columns at a time so that the
/// rows come from memory once.
template <class Scalar>
void add_products(const MatrixView<Scalar>& a, std::size_t first_a, const MatrixView<Scalar>& b,
                  std::size_t first_b, std::span<const ParameterRange> ranges,
                  TangentKernel& kernel) {
  constexpr std::size_t columns = 1024;
  for (std::size_t g = 0; g < ranges.size(); ++g) {
    std::vector<double>& part = kernel.parts[g];
    for (std::size_t begin = 0; begin < ranges[g].size; begin += columns) {
      const std::size_t size = (std::min)(columns, ranges[g].size - begin);
      const std::size_t at = ranges[g].begin + begin;
      for (std::size_t i = 0; i < a.rows; ++i) {
        const std::size_t row = first_a + i;
        for (std::size_t j = 0; j < b.rows && first_b + j <= row; ++j) {
          part[row * kernel.outputs + first_b + j] += dot(a.row(i) + at, b.row(j) + at, size);
        }
      }
    }
  }
}

}  // namespace detail

/// The exact kernel from gradients that are computed one row at a time.
/// fill(i, row) writes the gradient of output i with respect to all parameters.
/// Keeps `rows_at_once` rows, each computed once, where that is all of them. Otherwise it keeps two
/// blocks of as many, and computes a row once for every later block: memory is paid for in time.
/// Throws:   InvalidInput for a range that ends after the last parameter or rows_at_once of 0.
template <class Scalar, class Fill>
TangentKernel tangent_kernel(std::size_t outputs, std::size_t parameters,
                             std::span<const ParameterRange> ranges, const Fill& fill,
                             std::size_t rows_at_once) {
  TangentKernel kernel;
  kernel.outputs = outputs;
  for (const ParameterRange& range : ranges) {
    if (range.begin > parameters || range.size > parameters - range.begin) {
      throw InvalidInput("range " + range.name,
                         std::to_string(range.begin) + " + " + std::to_string(range.size),
                         "at most " + std::to_string(parameters) + " parameters");
    }
    kernel.names.push_back(range.name);
    kernel.parts.emplace_back(outputs * outputs);
  }
  if (rows_at_once == 0) throw InvalidInput("rows_at_once", "0", "at least 1");
  const std::size_t block = (std::min)(rows_at_once, outputs);
  std::vector<Scalar> kept(block * parameters);
  std::vector<Scalar> other(block < outputs ? block * parameters : 0);
  const auto filled = [&](std::vector<Scalar>& memory, std::size_t first) {
    const std::size_t rows = (std::min)(block, outputs - first);
    for (std::size_t i = 0; i < rows; ++i) {
      fill(first + i, std::span<Scalar>(memory.data() + i * parameters, parameters));
    }
    return MatrixView<Scalar>{memory.data(), rows, parameters};
  };
  for (std::size_t first = 0; first < outputs; first += block) {
    const MatrixView<Scalar> a = filled(kept, first);
    detail::add_products(a, first, a, first, ranges, kernel);
    for (std::size_t before = 0; before < first; before += block) {
      detail::add_products(a, first, filled(other, before), before, ranges, kernel);
    }
  }
  for (std::vector<double>& part : kernel.parts) {  // the upper half
    for (std::size_t i = 0; i < outputs; ++i) {
      for (std::size_t j = 0; j < i; ++j) part[j * outputs + i] = part[i * outputs + j];
    }
  }
  return kernel;
}

/// The sum of the diagonal of a kernel.
/// Shapes:   kernel (outputs, outputs), row-major
inline double trace(std::span<const double> kernel, std::size_t outputs) {
  double sum = 0;
  for (std::size_t i = 0; i < outputs; ++i) sum += kernel[i * outputs + i];
  return sum;
}

namespace detail {

inline void require_same_size(std::size_t a, std::size_t b) {
  if (a == b) return;
  throw InvalidInput("size", std::to_string(b), std::to_string(a) + ", as the first has");
}

}  // namespace detail

/// How far numbers have moved, relative to where they began; of a kernel its drift, of weights
/// their movement.
/// Equation: ‖b - a‖/‖a‖, Euclidean (for matrices: Frobenius) norms
/// Shapes:   a and b of one length
/// Units:    a ratio of lengths
/// Throws:   InvalidInput for different lengths.
template <class Scalar>
double relative_change(std::span<const Scalar> a, std::span<const Scalar> b) {
  detail::require_same_size(a.size(), b.size());
  double change = 0;
  double size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto from = static_cast<double>(a[i]);
    const double by = static_cast<double>(b[i]) - from;
    change += by * by;
    size += from * from;
  }
  return std::sqrt(change / size);
}

/// How far two kernels point apart, whatever their sizes: 0 for the same direction.
/// Equation: 1 - Σ a b/(‖a‖ ‖b‖)
/// Source:   Fort et al. 2020 (arXiv:2010.15110), kernel distance S.
/// Shapes:   a and b of one length
/// Units:    1 minus a cosine
/// Throws:   InvalidInput for different lengths.
inline double kernel_distance(std::span<const double> a, std::span<const double> b) {
  detail::require_same_size(a.size(), b.size());
  const double along = detail::dot(a.data(), b.data(), a.size());
  return 1 - along / std::sqrt(detail::dot(a.data(), a.data(), a.size()) *
                               detail::dot(b.data(), b.data(), b.size()));
}

}  // namespace scalewise::check
