// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/kernels/regression.hpp"

#include <Eigen/Core>
#include <cmath>
#include <vector>

#include "support/catch.hpp"

using namespace scalewise;
using namespace scalewise::kernels;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using Eigen::MatrixXd;

namespace {

MatrixXd matrix(int rows, int columns, const std::vector<double>& values) {
  MatrixXd m(rows, columns);
  for (int i = 0; i < rows * columns; ++i)
    m(i / columns, i % columns) = values[static_cast<std::size_t>(i)];
  return m;
}

// Two training inputs and one test input.
const KernelBlocks k{matrix(2, 2, {2, 1, 1, 3}), matrix(2, 1, {1, 2}), matrix(1, 1, {4})};
const KernelBlocks theta{matrix(2, 2, {5, 2, 2, 4}), matrix(2, 1, {3, 1}), matrix(1, 1, {6})};
const MatrixXd y = matrix(2, 1, {1, -1});

}  // namespace

TEST_CASE("Posteriors of two points agree with inverses by hand") {
  // K + I = (3 1; 1 4), its inverse (4 -1; -1 3)/11.
  const Posterior nngp = nngp_posterior(k, y, {1, false});
  CHECK_THAT(nngp.mean(0), WithinRel(((4 - 2) * 1 - (-1 + 6)) / 11.0, 1e-14));
  CHECK_THAT(nngp.covariance(0), WithinRel(4 - (1 * 2 + 2 * 5) / 11.0, 1e-14));
  // Θ + 0.5 I (5 + 4)/2 at regularizer 1/9: (5.5 2; 2 4.5), determinant 20.75.
  const Posterior ntk = ntk_posterior(k, theta, y, {1.0 / 9});
  const double x0 = (3 * 4.5 - 1 * 2) / 20.75;
  const double x1 = (-3 * 2 + 1 * 5.5) / 20.75;
  CHECK_THAT(ntk.mean(0), WithinRel(x0 - x1, 1e-14));
  const double between = x0 * 1 + x1 * 2;
  CHECK_THAT(ntk.covariance(0),
             WithinRel(4 + 2 * x0 * x0 + 2 * x0 * x1 + 3 * x1 * x1 - 2 * between, 1e-14));
}

TEST_CASE("With the tangent kernel that is the kernel, the mean is that of the process") {
  const Posterior nngp = nngp_posterior(k, y, {0, false});
  const Posterior ntk = ntk_posterior(k, k, y, {0, false});
  CHECK_THAT(ntk.mean(0), WithinRel(nngp.mean(0), 1e-14));
  CHECK_THAT(ntk.covariance(0), WithinRel(nngp.covariance(0), 1e-14));
}

TEST_CASE("A kernel is cut into blocks") {
  const KernelBlocks blocks = split_kernel(matrix(3, 3, {2, 1, 1, 1, 3, 2, 1, 2, 4}), 2);
  CHECK(blocks.train == k.train);
  CHECK(blocks.cross == k.cross);
  CHECK(blocks.test == k.test);
  CHECK_THROWS_WITH(split_kernel(matrix(1, 1, {1}), 2), ContainsSubstring("train = 2"));
}

TEST_CASE("Targets of classes sum to zero, accuracy counts the largest") {
  const std::vector<int> labels{2, 0};
  const MatrixXd targets = class_targets(labels, 4);
  CHECK(targets == matrix(2, 4, {-0.25, -0.25, 0.75, -0.25, 0.75, -0.25, -0.25, -0.25}));
  CHECK(accuracy(targets, labels) == 1);
  CHECK(accuracy(targets, std::vector<int>{2, 1}) == 0.5);
  CHECK_THROWS_WITH(class_targets(std::vector<int>{0, 4}, 4), ContainsSubstring("labels[1] = 4"));
  CHECK_THROWS_WITH(accuracy(targets, std::vector<int>{2}), ContainsSubstring("labels = 1"));
}

TEST_CASE("The regularizer is chosen on validation inputs") {
  // One training input per class; the validation input is nearer to the first only through the
  // off-diagonal of the kernel, which a large regularizer makes count for less.
  const MatrixXd train = matrix(2, 2, {1, 0.9, 0.9, 1});
  const MatrixXd cross = matrix(2, 1, {0.5, 0.49});
  const MatrixXd targets = class_targets(std::vector<int>{0, 1}, 2);
  const std::vector<Regularizer> candidates{{100}, {1e-3}, {1e-6}};
  const auto best = choose_regularizer(train, cross, targets, std::vector<int>{0}, candidates);
  CHECK(best.accuracy == 1);
  CHECK(best.regularizer.value == 1e-6);  // all are right; the weakest shrinks the least
  // (0.5 - 0.49) (1 + r - 0.9)⁻¹ / 2 for either class, with opposite signs; wanted is 1/2.
  CHECK_THAT(best.error, WithinRel(std::pow(0.5 - 0.005 / (0.1 + 1e-6), 2), 1e-9));
}

TEST_CASE("Bad input of a regression is refused") {
  const MatrixXd indefinite = matrix(2, 2, {1, 2, 2, 1});
  CHECK_THROWS_WITH(RegularizedKernel(indefinite, {0.5}),
                    ContainsSubstring("not positive definite"));
  CHECK_NOTHROW(RegularizedKernel(indefinite, {1.5}));
  CHECK_THROWS_WITH(RegularizedKernel(matrix(2, 2, {1, 2, 0, 9}), {}),
                    ContainsSubstring("not symmetric"));
  CHECK_THROWS_WITH(RegularizedKernel(MatrixXd(), {}), ContainsSubstring("kernel (empty)"));
  CHECK_THROWS_WITH(RegularizedKernel(matrix(1, 1, {std::nan("")}), {}),
                    ContainsSubstring("not finite"));
  CHECK_THROWS_WITH(RegularizedKernel(k.train, {-1}), ContainsSubstring("regularizer = -1"));
  CHECK_THROWS_WITH(nngp_posterior(k, matrix(1, 1, {1}), {}),
                    ContainsSubstring("1 x 1: expected 2 x 1"));
  CHECK_THROWS_WITH(ntk_posterior(k, theta, matrix(3, 1, {1, 2, 3}), {}),
                    ContainsSubstring("targets = 3 x 1"));
  CHECK_THROWS_WITH(
      choose_regularizer(indefinite, k.cross, class_targets(std::vector<int>{0, 1}, 2),
                         std::vector<int>{0}, std::vector<Regularizer>{{0.1}}),
      ContainsSubstring("not positive definite"));
}
