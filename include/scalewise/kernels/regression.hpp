// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>

#include "scalewise/messages/error.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::kernels {

/// The number that is added to the diagonal of a kernel before it is inverted.
/// Units:    relative: times the mean of that diagonal; otherwise as the kernel
struct Regularizer {
  double value = 0;
  bool relative = true;

  /// The number that is added to the diagonal of this kernel.
  /// Source:   definition.
  double times(const Eigen::MatrixXd& kernel) const {
    return relative ? value * kernel.diagonal().mean() : value;
  }
};

/// Targets of a regression that stands for classes.
/// Equation: (C-1)/C for the class, -1/C for the others
/// Source:   Hron et al. 2020 (arXiv:2006.10540), appendix A.1.
/// Shapes:   (labels, classes)
/// Throws:   InvalidInput for no label, fewer than two classes, and a label that is not a class.
inline Eigen::MatrixXd class_targets(std::span<const int> labels, int classes) {
  if (classes < 2) throw InvalidInput("classes", std::to_string(classes), "at least 2");
  if (labels.empty()) throw InvalidInput("labels", "(empty)", "at least one");
  Eigen::MatrixXd targets =
      Eigen::MatrixXd::Constant(static_cast<Eigen::Index>(labels.size()), classes, -1.0 / classes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes) {
      throw InvalidInput("labels[" + std::to_string(i) + "]", std::to_string(labels[i]),
                         "a class from 0 to " + std::to_string(classes - 1));
    }
    targets(static_cast<Eigen::Index>(i), labels[i]) += 1;
  }
  return targets;
}

/// The part of the rows whose largest entry stands at the label.
/// Source:   definition.
/// Shapes:   scores (labels, classes)
/// Throws:   InvalidInput for no label, and for other than one per row.
inline double accuracy(const Eigen::MatrixXd& scores, std::span<const int> labels) {
  if (labels.empty() || scores.rows() != static_cast<Eigen::Index>(labels.size())) {
    throw InvalidInput("labels", std::to_string(labels.size()),
                       std::to_string(scores.rows()) + ", one per row, and at least one");
  }
  std::size_t right = 0;
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    Eigen::Index best = 0;
    scores.row(i).maxCoeff(&best);
    right += static_cast<std::size_t>(best == labels[static_cast<std::size_t>(i)]);
  }
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

namespace detail {

inline std::string sizes(const Eigen::MatrixXd& m) {
  return std::to_string(m.rows()) + " x " + std::to_string(m.cols());
}

inline void require_kernel(const char* name, const Eigen::MatrixXd& kernel, Eigen::Index rows,
                           Eigen::Index columns) {
  if (kernel.rows() != rows || kernel.cols() != columns) {
    throw InvalidInput(name, sizes(kernel), std::to_string(rows) + " x " + std::to_string(columns));
  }
  if (!kernel.allFinite()) throw InvalidInput(name, "(not finite)", "finite numbers");
}

}  // namespace detail

/// A kernel of the training inputs with its regularizer, ready to be solved with.
/// Equation: K + r I = L Lᵀ
/// Shapes:   kernel (n, n); solve() takes (n, k) and returns (n, k)
class RegularizedKernel {
 public:
  /// Throws:   InvalidInput for a kernel that is empty, not square, not finite, not symmetric to a
  ///           relative 1e-6, or not positive definite after the regularizer; for a negative one.
  RegularizedKernel(const Eigen::MatrixXd& kernel, const Regularizer& regularizer) {
    if (kernel.rows() == 0) throw InvalidInput("kernel", "(empty)", "at least one training input");
    detail::require_kernel("kernel", kernel, kernel.rows(), kernel.rows());
    if (!(regularizer.value >= 0 && std::isfinite(regularizer.value))) {
      throw InvalidInput("regularizer", numeric::number_text(regularizer.value),
                         "a number from 0 on");
    }
    const double largest = kernel.cwiseAbs().maxCoeff();
    if ((kernel - kernel.transpose()).cwiseAbs().maxCoeff() > 1e-6 * largest) {
      throw InvalidInput("kernel", "(not symmetric)", "a symmetric matrix");
    }
    Eigen::MatrixXd sum = kernel;
    sum.diagonal().array() += regularizer.times(kernel);
    factor_.compute(sum);
    if (factor_.info() != Eigen::Success) {
      throw InvalidInput("kernel", "(not positive definite)", "positive eigenvalues",
                         "are two inputs the same? A larger regularizer than " +
                             numeric::number_text(regularizer.value) + " may help");
    }
  }

  Eigen::Index size() const { return factor_.rows(); }

  /// (K + r I)⁻¹ B.
  /// Throws:   InvalidInput when B has another number of rows, or is not finite.
  Eigen::MatrixXd solve(const Eigen::MatrixXd& right) const {
    detail::require_kernel("right side", right, size(), right.cols());
    return factor_.solve(right);
  }

 private:
  Eigen::LLT<Eigen::MatrixXd> factor_;
};

/// Kernels between training inputs and test inputs.
/// Shapes:   train (n, n), cross (n, m), test (m, m)
struct KernelBlocks {
  Eigen::MatrixXd train;
  Eigen::MatrixXd cross;
  Eigen::MatrixXd test;
};

/// Cuts a kernel of n training inputs followed by test inputs.
/// Shapes:   kernel (n + m, n + m)
/// Throws:   InvalidInput for a kernel that is not square, and n outside it.
inline KernelBlocks split_kernel(const Eigen::MatrixXd& kernel, Eigen::Index train) {
  detail::require_kernel("kernel", kernel, kernel.rows(), kernel.rows());
  if (train < 1 || train > kernel.rows()) {
    throw InvalidInput("train", std::to_string(train),
                       "a number from 1 to " + std::to_string(kernel.rows()));
  }
  const Eigen::Index test = kernel.rows() - train;
  return {kernel.topLeftCorner(train, train), kernel.topRightCorner(train, test),
          kernel.bottomRightCorner(test, test)};
}

/// The posterior of a Gaussian process at the test inputs.
/// Shapes:   mean (m, outputs), covariance (m, m), the same for every output
struct Posterior {
  Eigen::MatrixXd mean;
  Eigen::MatrixXd covariance;
};

/// The posterior of an infinitely wide network whose last layer alone is trained: Gaussian process
/// regression.
/// Equation: mean = K_*ᵀ (K + r I)⁻¹ y, covariance = K_** - K_*ᵀ (K + r I)⁻¹ K_*
/// Source:   Lee et al. 2018 (arXiv:1711.00165); r relative to the mean diagonal: Hron et al. 2020
///           (arXiv:2006.10540), appendix A.2.1.
/// Shapes:   y (n, outputs)
/// Accuracy: a condition number times 1e-16, from a Cholesky factor.
/// Throws:   InvalidInput for shapes that do not fit, and as RegularizedKernel does.
inline Posterior nngp_posterior(const KernelBlocks& k, const Eigen::MatrixXd& y,
                                const Regularizer& r) {
  const RegularizedKernel factor(k.train, r);
  detail::require_kernel("cross", k.cross, factor.size(), k.cross.cols());
  detail::require_kernel("test", k.test, k.cross.cols(), k.cross.cols());
  return {k.cross.transpose() * factor.solve(y),
          k.test - k.cross.transpose() * factor.solve(k.cross)};
}

/// Distribution over initial weights of an infinitely wide network that gradient flow on the
/// squared loss has trained for ever.
/// Equation: X = Θ_*ᵀ (Θ + r I)⁻¹, mean = X y,
///           covariance = K_** + X K Xᵀ - X K_* - (X K_*)ᵀ
/// Source:   Lee et al. 2019 (arXiv:1902.06720), eq. for infinite time; r relative to the mean
///           diagonal of Θ: Hron et al. 2020 (arXiv:2006.10540), appendix A.2.1.
/// Shapes:   k the NNGP kernel, theta the tangent kernel of the same inputs, y (n, outputs)
/// Accuracy: as nngp_posterior.
/// Throws:   InvalidInput for shapes that do not fit, and as RegularizedKernel does.
inline Posterior ntk_posterior(const KernelBlocks& k, const KernelBlocks& theta,
                               const Eigen::MatrixXd& y, const Regularizer& r) {
  const RegularizedKernel factor(theta.train, r);
  const Eigen::Index n = factor.size();
  const Eigen::Index m = theta.cross.cols();
  detail::require_kernel("tangent cross", theta.cross, n, m);
  detail::require_kernel("train", k.train, n, n);
  detail::require_kernel("cross", k.cross, n, m);
  detail::require_kernel("test", k.test, m, m);
  detail::require_kernel("targets", y, n, y.cols());
  const Eigen::MatrixXd x = factor.solve(theta.cross).transpose();
  const Eigen::MatrixXd both = x * k.cross;
  return {x * y, k.test + x * k.train * x.transpose() - both - both.transpose()};
}

/// A regularizer and how well it does.
struct ChosenRegularizer {
  Regularizer regularizer;
  double accuracy = 0;  // on the validation inputs
  double error = 0;     // mean square of mean - targets, on the validation inputs
};

/// The regularizer with the best accuracy on validation inputs; between equals the one with the
/// smaller square error. Candidates with which the kernel is not positive definite drop out.
/// Shapes:   train (n, n), cross (n, v), targets (n, classes), labels (v)
/// Throws:   InvalidInput for no candidate, or when all drop out.
inline ChosenRegularizer choose_regularizer(const Eigen::MatrixXd& train,
                                            const Eigen::MatrixXd& cross,
                                            const Eigen::MatrixXd& targets,
                                            std::span<const int> labels,
                                            std::span<const Regularizer> candidates) {
  if (candidates.empty()) throw InvalidInput("candidates", "(empty)", "at least one");
  const Eigen::MatrixXd wanted = class_targets(labels, static_cast<int>(targets.cols()));
  detail::require_kernel("cross", cross, train.rows(), wanted.rows());
  detail::require_kernel("targets", targets, train.rows(), targets.cols());
  ChosenRegularizer best;
  std::string refusal;
  bool found = false;
  for (const Regularizer& candidate : candidates) {
    try {
      const Eigen::MatrixXd mean =
          cross.transpose() * RegularizedKernel(train, candidate).solve(targets);
      const ChosenRegularizer now{candidate, accuracy(mean, labels),
                                  (mean - wanted).squaredNorm() / static_cast<double>(mean.size())};
      if (!found || now.accuracy > best.accuracy ||
          (now.accuracy == best.accuracy && now.error < best.error)) {
        best = now;
      }
      found = true;
    } catch (const InvalidInput& bad) {
      refusal = bad.what();
    }
  }
  if (!found) throw InvalidInput("candidates", "(none fits)", "one that can be solved", refusal);
  return best;
}

}  // namespace scalewise::kernels
