// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scalewise/check/estimate.hpp"
#include "scalewise/check/matrix_view.hpp"
#include "scalewise/check/moments.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::check {

/// How strongly a matrix and its input have aligned in training, mean over rows.
/// alpha: the initial input with the change of the matrix; omega: the change of the input with the
/// initial matrix; nu: both changes. Standard errors treat rows as independent, which tokens of one
/// text are not: for a real uncertainty repeat the run with other seeds.
struct Alignment {
  Estimate alpha, omega, nu;
};

/// The exponent e of one product x W.
/// Equation: ‖x W‖/√fan_out = fan_in^e · ‖W‖_F/√(fan_out fan_in) · ‖x‖/√fan_in, solved for e
/// Source:   Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2), Definition 3.1, after Everett et al.
///           2024 (arXiv:2407.05872); all norms are Euclidean, ‖W‖_F over all entries.
/// Units:    an exponent of fan_in; norms are lengths √Σx², fan_in a number of features
/// Accuracy: at most 1, reached where W has rank one and x lies along it; 1/2 on average where x
///           and W are independent; a product that is c times longer than that has log c/log(fan_in)
///           more. Not a number where a norm is 0.
/// Requires: fan_in above 1.
inline double alignment_exponent(double product_norm, double matrix_norm, double input_norm,
                                 double fan_in) {
  if (!(product_norm > 0 && matrix_norm > 0 && input_norm > 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return 1 + std::log(product_norm / (matrix_norm * input_norm)) / std::log(fan_in);
}

/// The same of all tokens together, from what a Recorder keeps of the product, the matrix and the
/// input: their lengths are √Σx².
/// Units:    an exponent of fan_in
inline double alignment_exponent(const Moments& product, const Moments& matrix,
                                 const Moments& input, double fan_in) {
  return alignment_exponent(std::sqrt(product.sum_squares), std::sqrt(matrix.sum_squares),
                            std::sqrt(input.sum_squares), fan_in);
}

/// The input of alignment(), wherever the products were computed.
/// Shapes:   vectors have one entry per row of the input
struct AlignmentNorms {
  std::size_t fan_in = 0;
  double w0 = 0;                            // ‖W0‖_F
  double dw = 0;                            // ‖dW‖_F
  std::vector<double> x0, dx;               // ‖x0‖, ‖dx‖
  std::vector<double> x0_dw, dx_w0, dx_dw;  // ‖x0 dW‖, ‖dx W0‖, ‖dx dW‖
};

/// The exponents of one matrix; a row that has not changed counts for none that needs its change.
/// Throws:   InvalidInput for fan_in below 2 or vectors of different lengths.
inline Alignment alignment(const AlignmentNorms& norms) {
  if (norms.fan_in < 2) {
    throw InvalidInput("fan_in", std::to_string(norms.fan_in), "at least 2",
                       "the logarithm of the fan-in is divided by");
  }
  const std::size_t rows = norms.x0.size();
  for (const auto* each : {&norms.dx, &norms.x0_dw, &norms.dx_w0, &norms.dx_dw}) {
    if (each->size() == rows) continue;
    throw InvalidInput("alignment norms", std::to_string(each->size()) + " rows",
                       std::to_string(rows) + ", as x0 has");
  }
  const auto mean = [&](const std::vector<double>& products, double matrix,
                        const std::vector<double>& inputs) {
    std::vector<double> exponents(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      exponents[i] =
          alignment_exponent(products[i], matrix, inputs[i], static_cast<double>(norms.fan_in));
    }
    return estimate(exponents);
  };
  return {mean(norms.x0_dw, norms.dw, norms.x0), mean(norms.dx_w0, norms.w0, norms.dx),
          mean(norms.dx_dw, norms.dw, norms.dx)};
}

/// Length of every row.
/// Shapes:   x (rows, columns) -> (rows)
/// Units:    those of the entries; √Σx², not the root mean square
template <class Scalar>
std::vector<double> row_norms(const MatrixView<Scalar>& x) {
  std::vector<double> norms(x.rows);
  for (std::size_t i = 0; i < x.rows; ++i) {
    double sum = 0;
    for (std::size_t c = 0; c < x.columns; ++c) {
      const auto entry = static_cast<double>(x.row(i)[c]);
      sum += entry * entry;
    }
    norms[i] = std::sqrt(sum);
  }
  return norms;
}

/// Length of all entries together.
/// Units:    those of the entries; √Σx², not the root mean square
template <class Scalar>
double frobenius_norm(const MatrixView<Scalar>& x) {
  double sum = 0;
  for (const double norm : row_norms(x)) sum += norm * norm;
  return std::sqrt(sum);
}

namespace detail {

/// Length of every row of x W, some rows at a time so that W comes from memory less often.
template <class Scalar>
std::vector<double> product_norms(const MatrixView<Scalar>& x, const MatrixView<Scalar>& w) {
  constexpr std::size_t at_once = 8;
  std::vector<double> norms(x.rows);
  std::vector<double> y(at_once * w.columns);
  for (std::size_t first = 0; first < x.rows; first += at_once) {
    const std::size_t rows = (std::min)(at_once, x.rows - first);
    std::fill(y.begin(), y.end(), 0.0);
    for (std::size_t k = 0; k < w.rows; ++k) {
      const Scalar* from = w.row(k);
      for (std::size_t r = 0; r < rows; ++r) {
        const auto factor = static_cast<double>(x.row(first + r)[k]);
        double* to = y.data() + r * w.columns;
        for (std::size_t c = 0; c < w.columns; ++c) to[c] += factor * static_cast<double>(from[c]);
      }
    }
    const std::vector<double> of_rows = row_norms(MatrixView<double>{y.data(), rows, w.columns});
    std::copy(of_rows.begin(), of_rows.end(), norms.begin() + static_cast<std::ptrdiff_t>(first));
  }
  return norms;
}

}  // namespace detail

/// The exponents of one matrix from its initial value, its change, and the same of what it reads.
/// A factor that always multiplies the matrix does not matter.
/// Shapes:   w0, dw (fan_in, fan_out), acting as x W; x0, dx (rows, fan_in)
/// Accuracy: sums in double. Plain loops, about a second for 512 rows of a 1024 x 1024 matrix;
///           where that is too slow compute the norms elsewhere and call alignment(norms).
/// Throws:   InvalidInput for sizes that do not fit.
template <class Scalar>
Alignment alignment(const MatrixView<Scalar>& w0, const MatrixView<Scalar>& dw,
                    const MatrixView<Scalar>& x0, const MatrixView<Scalar>& dx) {
  const auto require = [](const char* name, const MatrixView<Scalar>& m, std::size_t rows,
                          std::size_t columns) {
    if (m.rows == rows && m.columns == columns) return;
    throw InvalidInput(name, std::to_string(m.rows) + " x " + std::to_string(m.columns),
                       std::to_string(rows) + " x " + std::to_string(columns));
  };
  require("dw", dw, w0.rows, w0.columns);
  require("x0", x0, x0.rows, w0.rows);
  require("dx", dx, x0.rows, w0.rows);
  return alignment({.fan_in = w0.rows,
                    .w0 = frobenius_norm(w0),
                    .dw = frobenius_norm(dw),
                    .x0 = row_norms(x0),
                    .dx = row_norms(dx),
                    .x0_dw = detail::product_norms(x0, dw),
                    .dx_w0 = detail::product_norms(dx, w0),
                    .dx_dw = detail::product_norms(dx, dw)});
}

/// Mean over steps in which a step weighs as much as it lowers the loss.
/// Equation: Σ_t w_t e_t / Σ_t w_t, w_t = max(0, min_{s<t} L_s - L_t)
/// Source:   arXiv:2604.27077v2, section 4.3 and Figure 5: "if we weight them by the loss
///           decrease".
/// Shapes:   exponents (steps), losses (steps + 1): the first is from before the first step
/// Returns:  nothing where no step with a finite exponent lowers the loss.
/// Throws:   InvalidInput unless losses are one more than exponents.
/// Differs:  the paper does not say what a step counts that raises the loss: here 0, and the next
///           counts from the lowest loss so far, so that weights add up to the whole decrease.
inline std::optional<double> loss_weighted_mean(std::span<const double> exponents,
                                                std::span<const double> losses) {
  if (losses.size() != exponents.size() + 1) {
    throw InvalidInput("losses", std::to_string(losses.size()) + " numbers",
                       std::to_string(exponents.size() + 1) + ", one more than exponents");
  }
  double lowest = losses[0];
  double sum = 0;
  double weights = 0;
  for (std::size_t t = 0; t < exponents.size(); ++t) {
    const double weight = (std::max)(0.0, lowest - losses[t + 1]);
    lowest = (std::min)(lowest, losses[t + 1]);
    if (!std::isfinite(exponents[t])) continue;
    sum += weight * exponents[t];
    weights += weight;
  }
  if (!(weights > 0)) return {};
  return sum / weights;
}

/// The alignments of one training run: of every kind of matrix, layer by layer and step by step.
class Alignments {
 public:
  /// The loss that a model starts from.
  explicit Alignments(double initial_loss) : losses_{initial_loss} {}

  /// Begins the next step, whose loss is of the model after it.
  void begin_step(double loss) { losses_.push_back(loss); }

  /// One layer's matrix of that name at the present step.
  void add(const std::string& matrix, const Alignment& alignment) {
    auto& steps = matrices_[matrix];
    steps.resize(losses_.size() - 1);
    steps.back().push_back(alignment);
  }

  std::size_t steps() const { return losses_.size() - 1; }
  /// The losses, the initial one first.
  /// Shapes:   (steps() + 1)
  /// Units:    as given
  const std::vector<double>& losses() const { return losses_; }

  std::vector<std::string> matrices() const {
    std::vector<std::string> names;
    for (const auto& [name, steps] : matrices_) names.push_back(name);
    return names;
  }

  /// The matrices of that name at a step from 1 to steps(); none for another name or step.
  /// Shapes:   (layers)
  std::vector<Alignment> layers(const std::string& matrix, std::size_t step) const {
    const auto found = matrices_.find(matrix);
    if (found == matrices_.end() || step < 1 || step > found->second.size()) return {};
    return found->second[step - 1];
  }

  /// Mean over layers of one exponent, such as &Alignment::alpha, at a step from 1 to steps().
  Estimate over_layers(const std::string& matrix, std::size_t step,
                       Estimate Alignment::*exponent) const {
    std::vector<double> means;
    for (const Alignment& a : layers(matrix, step)) means.push_back((a.*exponent).mean);
    return estimate(means);
  }

  /// Means over steps, layer by layer; a step without a finite exponent counts for none.
  /// Shapes:   (layers)
  /// Units:    exponents of the fan-in
  std::vector<double> by_layer(const std::string& matrix, Estimate Alignment::*exponent) const {
    std::vector<std::vector<double>> layers;
    const auto found = matrices_.find(matrix);
    if (found == matrices_.end()) return {};
    for (const std::vector<Alignment>& step : found->second) {
      layers.resize((std::max)(layers.size(), step.size()));
      for (std::size_t l = 0; l < step.size(); ++l) layers[l].push_back((step[l].*exponent).mean);
    }
    std::vector<double> means(layers.size());
    std::transform(layers.begin(), layers.end(), means.begin(),
                   [](const std::vector<double>& of_layer) { return estimate(of_layer).mean; });
    return means;
  }

  /// The mean over layers, averaged over steps by loss_weighted_mean.
  /// Units:    an exponent of the fan-in
  std::optional<double> weighted(const std::string& matrix, Estimate Alignment::*exponent) const {
    std::vector<double> of_steps;
    for (std::size_t t = 1; t <= steps(); ++t) {
      of_steps.push_back(over_layers(matrix, t, exponent).mean);
    }
    return loss_weighted_mean(of_steps, losses_);
  }

 private:
  std::vector<double> losses_;                                           // steps + 1
  std::map<std::string, std::vector<std::vector<Alignment>>> matrices_;  // [step - 1][layer]
};

}  // namespace scalewise::check
