// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Classes by regression with a kernel.
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "lab/programs/kernel/samples.hpp"
#include "scalewise/kernels/regression.hpp"

namespace scalewise::experiment {

/// Regularizers times the mean diagonal: 1e-7, 1e-6, … 1.
inline std::vector<kernels::Regularizer> regularizers() {
  std::vector<kernels::Regularizer> all;
  for (int power = -7; power <= 0; ++power) all.push_back({std::pow(10.0, power)});
  return all;
}

/// The accuracy of a kernel on a split.
struct Classified {
  kernels::ChosenRegularizer chosen;
  double test = 0;
  double test_se = 0;
};

/// The regularizer from the validation inputs, the accuracy from the test inputs.
inline Classified classify(const Eigen::MatrixXd& gram, const Samples& samples) {
  const kernels::Index n = samples.train;
  const kernels::Index v = samples.validation;
  const kernels::Index m = gram.rows() - n - v;
  const std::span<const int> labels(samples.labels);
  const Eigen::MatrixXd targets =
      kernels::class_targets(labels.first(static_cast<std::size_t>(n)), samples.classes);
  const Eigen::MatrixXd train = gram.topLeftCorner(n, n);
  const auto all = regularizers();
  Classified result;
  result.chosen = kernels::choose_regularizer(
      train, gram.block(0, n, n, v), targets,
      labels.subspan(static_cast<std::size_t>(n), static_cast<std::size_t>(v)), all);
  const kernels::RegularizedKernel factor(train, result.chosen.regularizer);
  result.test = kernels::accuracy(gram.block(0, n + v, n, m).transpose() * factor.solve(targets),
                                  labels.last(static_cast<std::size_t>(m)));
  result.test_se = std::sqrt(result.test * (1 - result.test) / static_cast<double>(m));
  return result;
}

}  // namespace scalewise::experiment
