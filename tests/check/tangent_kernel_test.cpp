// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Kernels of a linear model, whose kernel is known, and distances of kernels.

#include "scalewise/check/tangent_kernel.hpp"

#include <cmath>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"

namespace {

using namespace scalewise::check;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using scalewise::test::error_message;

/// f_k(x) = Σ_c V_kc x_c + b_k for outputs (x, k): K((x, k), (y, l)) = [k = l] (x·y + 1).
struct LinearModel {
  std::vector<std::vector<double>> inputs;
  std::size_t classes;

  std::size_t features() const { return inputs[0].size(); }
  std::size_t outputs() const { return inputs.size() * classes; }
  std::size_t parameters() const { return classes * features() + classes; }
  std::vector<ParameterRange> ranges() const {
    return {{"weights", 0, classes * features()}, {"biases", classes * features(), classes}};
  }

  template <class Scalar>
  void gradient(std::size_t output, std::span<Scalar> row) const {
    std::fill(row.begin(), row.end(), Scalar(0));
    const std::size_t k = output % classes;
    for (std::size_t c = 0; c < features(); ++c) {
      row[k * features() + c] = static_cast<Scalar>(inputs[output / classes][c]);
    }
    row[classes * features() + k] = 1;
  }

  double kernel(std::size_t i, std::size_t j, bool biases) const {
    if (i % classes != j % classes) return 0;
    if (biases) return 1;
    double dot = 0;
    for (std::size_t c = 0; c < features(); ++c) {
      dot += inputs[i / classes][c] * inputs[j / classes][c];
    }
    return dot;
  }
};

/// 5 inputs of `features` integers, so that products are exact in any order.
LinearModel model(std::size_t features) {
  LinearModel m{{}, 3};
  for (std::size_t i = 0; i < 5; ++i) {
    std::vector<double> x(features);
    for (std::size_t c = 0; c < features; ++c)
      x[c] = static_cast<double>((i + 2) * (c + 3) % 17) - 8;
    m.inputs.push_back(x);
  }
  return m;
}

template <class Scalar>
TangentKernel kernel_of(const LinearModel& m, std::size_t rows_at_once, int* calls = nullptr) {
  const std::vector<ParameterRange> ranges = m.ranges();
  return tangent_kernel<Scalar>(
      m.outputs(), m.parameters(), ranges,
      [&](std::size_t i, std::span<Scalar> row) {
        if (calls != nullptr) ++*calls;
        m.gradient(i, row);
      },
      rows_at_once);
}

}  // namespace

TEST_CASE("The kernel of a linear model, in blocks of any size") {
  for (const std::size_t features : {6U, 1029U}) {  // below and above a block of columns
    const LinearModel m = model(features);
    for (const std::size_t rows : {1U, 4U, 15U, 99U}) {
      int calls = 0;
      const TangentKernel k = kernel_of<float>(m, rows, &calls);
      REQUIRE(k.names == std::vector<std::string>{"weights", "biases"});
      double wrong = 0;
      const std::vector<double> total = k.total();
      for (std::size_t i = 0; i < 15; ++i) {
        for (std::size_t j = 0; j < 15; ++j) {
          wrong += std::abs(k.parts[0][i * 15 + j] - m.kernel(i, j, false));
          wrong += std::abs(k.parts[1][i * 15 + j] - m.kernel(i, j, true));
          wrong += std::abs(total[i * 15 + j] - m.kernel(i, j, false) - m.kernel(i, j, true));
        }
      }
      CHECK(wrong == 0);
      // Blocks 1, 2, 3, … of `rows` outputs need all rows before them once more.
      CHECK(calls == (rows >= 15 ? 15 : rows == 4 ? 15 + 4 + 8 + 12 : 15 + 14 * 15 / 2));
    }
  }
}

TEST_CASE("Weights are the rates of groups") {
  const TangentKernel k = kernel_of<double>(model(6), 15);
  const std::vector<double> rates{2, 0.5};
  const std::vector<double> total = k.total(rates);
  CHECK(total[0] == 2 * k.parts[0][0] + 0.5);
  CHECK(trace(k.parts[1], 15) == 15);
  const std::vector<double> wrong{1};
  CHECK(error_message([&] { k.total(wrong); }).find("weights = 1 numbers") == 0);
}

TEST_CASE("Drift and distance of kernels") {
  const std::vector<double> a{3, 1, 1, 2};
  std::vector<double> b = a;
  for (double& entry : b) entry *= 1.25;
  CHECK_THAT(relative_change<double>(a, b), WithinRel(0.25, 1e-15));
  CHECK_THAT(kernel_distance(a, b), WithinAbs(0, 1e-15));
  const std::vector<double> diagonal{1, 0, 0, 0};
  const std::vector<double> other{0, 0, 0, 5};
  CHECK_THAT(kernel_distance(diagonal, other), WithinRel(1, 1e-15));
  CHECK_THAT(kernel_distance(diagonal, std::vector<double>{1, 0, 0, 1}),
             WithinRel(1 - 1 / std::sqrt(2.0), 1e-15));
  const std::vector<float> w0{3, 4};
  const std::vector<float> w{3, 5};
  CHECK_THAT(relative_change<float>(w0, w), WithinRel(0.2, 1e-15));
}

TEST_CASE("Kernels refuse what does not fit") {
  const std::vector<ParameterRange> ranges{{"late", 5, 4}};
  const auto fill = [](std::size_t, std::span<double>) {};
  CHECK(error_message([&] { tangent_kernel<double>(2, 8, ranges, fill, 1); }) ==
        "range late = 5 + 4: expected at most 8 parameters");
  CHECK(error_message([&] { tangent_kernel<double>(2, 9, ranges, fill, 0); }) ==
        "rows_at_once = 0: expected at least 1");
  const std::vector<double> a{1, 2};
  const std::vector<double> b{1};
  CHECK(error_message([&] { kernel_distance(a, b); }).find("size = 1") == 0);
}
