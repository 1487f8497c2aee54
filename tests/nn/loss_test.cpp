// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Activations and losses.

#include "scalewise/nn/loss.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "scalewise/nn/activation.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/numeric_gradient.hpp"
#include "support/reference_layers.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

constexpr Activation all_activations[] = {Activation::relu, Activation::gelu, Activation::silu};

/// Points away from the kink of relu, from tails to the middle.
std::vector<double> points() {
  std::vector<double> xs;
  for (int i = 0; i < 400; ++i) xs.push_back(-9.97 + 0.05 * i);
  return xs;
}

struct Activated {
  double value = 0;
  double slope = 0;
};
Activated activated(Activation kind, double x) {
  Activated a;
  nn::activate(kind, 1, &x, &a.value, &a.slope);
  return a;
}
double activate(Activation kind, double x) { return activated(kind, x).value; }
double activation_slope(Activation kind, double x) { return activated(kind, x).slope; }

/// The loss alone, without the rows' own.
double entropy(const ConstView<double>& logits, const std::vector<int>& targets,
               View<double> gradient) {
  dense::Buffer<double> row_losses;
  return cross_entropy(logits, std::span<const int>(targets), gradient, row_losses);
}

}  // namespace

TEST_CASE("Activations have the values of their definitions") {
  for (const double x : points()) {
    INFO(x);
    const long double wide = x;
    CHECK(activate(Activation::relu, x) == reference::activation(Activation::relu, x));
    // The argument's rounding acts on a tail as the square of the argument.
    const double tail = 4 * epsilon * (1 + x * x);
    for (const Activation kind : {Activation::gelu, Activation::silu}) {
      const auto expected = static_cast<double>(reference::activation(kind, wide));
      CHECK(std::abs(activate(kind, x) - expected) <= tail * std::abs(expected));
    }
  }
}

TEST_CASE("Activations have the slope of their central differences") {
  for (const Activation kind : all_activations) {
    GradientError worst;
    for (double x : points()) {
      const double slope = activation_slope(kind, x);
      const double size = std::max(1.0, std::abs(activate(kind, x)));
      const std::string at = std::to_string(x);
      worst.offer(at, slope, central_difference(x, [&] { return activate(kind, x); }),
                  rounding_floor(size));
    }
    INFO(static_cast<int>(kind) << ": " << worst);
    CHECK(worst.accepted());
  }
}

TEST_CASE("Activations of huge and tiny inputs are finite") {
  for (const Activation kind : all_activations) {
    for (const double x : {0.0, 1e-300, -1e-300, 700.0, -700.0, 1e100, -1e100}) {
      INFO(static_cast<int>(kind) << " at " << x);
      CHECK(std::isfinite(activate(kind, x)));
      CHECK(std::isfinite(activation_slope(kind, x)));
      if (x <= -700) CHECK(std::abs(activate(kind, x)) < 1e-290);
      if (x >= 700) CHECK(activate(kind, x) == x);
    }
  }
  CHECK(activation_slope(Activation::relu, 0.0) == 0);
}

namespace {

constexpr Index positions = 15;
constexpr Index classes = 11;

}  // namespace

TEST_CASE("Activations in float agree with those in double, in rows of any length and in place") {
  for (const Activation kind : {Activation::relu, Activation::gelu, Activation::silu}) {
    for (const Index count : {Index{1}, Index{7}, Index{256}, Index{257}, Index{6001}}) {
      std::vector<float> x(static_cast<std::size_t>(count));
      for (Index i = 0; i < count; ++i) {
        x[static_cast<std::size_t>(i)] = float(30 * (double(i) + 0.5) / double(count) - 15);
      }
      std::vector<float> value(x.size());
      std::vector<float> slope = x;  // overwritten
      nn::activate(kind, count, slope.data(), value.data(), slope.data());
      double worst = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const Activated expected = activated(kind, double(x[i]));
        worst = std::max({worst, std::abs(double(value[i]) - expected.value),
                          std::abs(double(slope[i]) - expected.slope)});
      }
      CHECK(worst <= 15 * 5e-7);
    }
  }
}

TEST_CASE("Activations pass a NaN on, and their slopes stay in range at huge arguments") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (const Activation kind : {Activation::relu, Activation::gelu, Activation::silu}) {
    CHECK(std::isnan(activate(kind, none)));
    CHECK(std::isnan(activation_slope(kind, none)));
    for (const float x : {-3e38F, -1e20F, -200.0F, 200.0F, 1e20F, 3e38F}) {
      float value[20];
      float slope[20];
      const std::vector<float> row(20, x);  // long enough for vectors
      nn::activate(kind, 20, row.data(), value, slope);
      for (const float s : slope) CHECK(std::abs(s - (x > 0 ? 1.0F : 0.0F)) <= 1e-6F);
    }
  }
}

TEST_CASE("The distribution function in float is accurate relative to its tail") {
  for (double x = -12; x < 12; x += 1e-3) {
    const auto at = float(x);
    const float gauss = std::exp(-at * at / 2);
    const double expected = 0.5 * std::erfc(-double(at) / std::sqrt(2.0));
    const double error = std::abs(double(nn::detail::normal_distribution(at, gauss)) - expected);
    if (error > (std::abs(x) <= 3 ? 6e-7 : 5e-6) * expected) FAIL_CHECK("at " << x);
    if (error > 2e-7) FAIL_CHECK("at " << x);
  }
}

TEST_CASE("Cross-entropy is the mean of minus the log-softmax of the targets") {
  const Matrix<double> logits = normal_matrix(positions, classes, "logits", 2);
  const std::vector<int> targets = random_ids(positions, classes, "targets");
  Matrix<double> gradient(positions, classes);
  const double loss = entropy(dense::read(logits), targets, dense::view(gradient));
  double expected = 0;
  for (Index i = 0; i < positions; ++i) {
    double total = 0;
    for (Index c = 0; c < classes; ++c) total += std::exp(logits(i, c));
    const Index target = targets[static_cast<std::size_t>(i)];
    expected -= std::log(std::exp(logits(i, target)) / total) / double(positions);
  }
  CHECK(std::abs(loss - expected) <= forward_relative * expected);
}

TEST_CASE("Cross-entropy has the gradient of its central differences, and rows that sum to zero") {
  for (const double deviation : {2.0, 0.0, 1e-6}) {
    Matrix<double> logits = normal_matrix(positions, classes, "logits", deviation);
    const std::vector<int> targets = random_ids(positions, classes, "targets");
    Matrix<double> gradient(positions, classes);
    Matrix<double> scratch(positions, classes);
    const double loss = entropy(dense::read(logits), targets, dense::view(gradient));
    const auto worst = gradient_error(
        "logits", dense::view(logits), gradient,
        [&] { return entropy(dense::read(logits), targets, dense::view(scratch)); },
        std::max(1.0, loss));
    INFO(worst);
    CHECK(worst.accepted());
    CHECK(gradient.rowwise().sum().cwiseAbs().maxCoeff() <= 4 * epsilon);
    if (deviation == 0) CHECK(std::abs(loss - std::log(double(classes))) <= 4 * epsilon);
  }
}

TEST_CASE("Cross-entropy leaves out rows without a target") {
  const Matrix<double> logits = normal_matrix(positions, classes, "logits", 2);
  std::vector<int> targets = random_ids(positions, classes, "targets");
  std::vector<Index> kept;
  for (Index i = 0; i < positions; ++i) {
    if (i % 3 == 1) {
      kept.push_back(i);
    } else {
      targets[static_cast<std::size_t>(i)] = no_target;
    }
  }
  Matrix<double> gradient = Matrix<double>::Constant(positions, classes, 9);
  const double loss = entropy(dense::read(logits), targets, dense::view(gradient));
  double expected = 0;
  for (const Index i : kept) {
    const double total = logits.row(i).array().exp().sum();
    const Index target = targets[static_cast<std::size_t>(i)];
    expected += (std::log(total) - logits(i, target)) / double(kept.size());
    for (Index c = 0; c < classes; ++c) {
      const double slope =
          (std::exp(logits(i, c)) / total - (c == target ? 1 : 0)) / double(kept.size());
      CHECK(std::abs(gradient(i, c) - slope) <= 16 * epsilon);
    }
    gradient.row(i).setZero();
  }
  CHECK(std::abs(loss - expected) <= forward_relative * expected);
  CHECK(gradient.cwiseAbs().maxCoeff() == 0);
  targets.assign(positions, no_target);
  CHECK(error_message([&] { entropy(dense::read(logits), targets, dense::view(gradient)); }) ==
        "targets = none: expected at least one");
}

TEST_CASE("Cross-entropy of huge logits is finite and exact") {
  for (const double size : {1e3, 1e8, 1e300}) {
    Matrix<double> logits = Matrix<double>::Constant(1, classes, -size);
    logits(0, 4) = size;
    Matrix<double> gradient(1, classes);
    CHECK(entropy(dense::read(logits), std::vector<int>{4}, dense::view(gradient)) == 0);
    CHECK(gradient.cwiseAbs().maxCoeff() < 1e-300);
    CHECK(entropy(dense::read(logits), std::vector<int>{5}, dense::view(gradient)) == 2 * size);
    CHECK(gradient(0, 4) == 1);
    CHECK(gradient(0, 5) == -1);
  }
}

TEST_CASE("Cross-entropy of a sure answer keeps the gradient of the others") {
  Matrix<double> logits = Matrix<double>::Zero(1, 2);
  logits(0, 0) = 30;
  Matrix<double> gradient(1, 2);
  const double loss = entropy(dense::read(logits), std::vector<int>{0}, dense::view(gradient));
  CHECK(std::abs(loss - std::log1p(std::exp(-30.0))) <= 64 * epsilon);
  CHECK(std::abs(gradient(0, 1) / (std::exp(-30.0) / (1 + std::exp(-30.0))) - 1) <= 4 * epsilon);
}

TEST_CASE("Cross-entropy refuses a target that is not a class") {
  const Matrix<double> logits = normal_matrix(2, classes, "logits");
  Matrix<double> gradient(2, classes);
  const auto loss = [&](int target) {
    return entropy(dense::read(logits), std::vector<int>{0, target}, dense::view(gradient));
  };
  CHECK_THROWS_AS(loss(-1), InvalidInput);
  CHECK_THROWS_AS(loss(classes), InvalidInput);
  CHECK_THROWS_AS(loss(std::numeric_limits<int>::max()), InvalidInput);
  CHECK(std::isfinite(loss(classes - 1)));
}

TEST_CASE("Mean squared error is half the mean square, with the gradient of its differences") {
  Matrix<double> y = normal_matrix(positions, classes, "y");
  const Matrix<double> target = normal_matrix(positions, classes, "target");
  Matrix<double> gradient(positions, classes);
  Matrix<double> scratch(positions, classes);
  const double loss =
      mean_squared_error(dense::read(y), dense::read(target), dense::view(gradient));
  double expected = 0;
  for (Index i = 0; i < positions; ++i) {
    for (Index c = 0; c < classes; ++c) expected += std::pow(y(i, c) - target(i, c), 2) / 2;
  }
  expected /= double(positions * classes);
  CHECK(std::abs(loss - expected) <= forward_relative * expected);
  const auto f = [&] {
    return mean_squared_error(dense::read(y), dense::read(target), dense::view(scratch));
  };
  const auto worst = gradient_error("y", dense::view(y), gradient, f, std::max(1.0, loss));
  INFO(worst);
  CHECK(worst.accepted());
  CHECK(mean_squared_error(dense::read(y), dense::read(y), dense::view(gradient)) == 0);
  CHECK(gradient.cwiseAbs().maxCoeff() == 0);
}
