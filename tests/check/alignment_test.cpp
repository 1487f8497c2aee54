// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Alignment exponents in cases that can be computed by hand, and of random matrices.

#include "scalewise/check/alignment.hpp"

#include <cmath>
#include <random>
#include <vector>

#include "scalewise/check/recorder.hpp"
#include "support/catch.hpp"
#include "support/coverage.hpp"
#include "support/error_message.hpp"

namespace {

using namespace scalewise::check;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using scalewise::test::Coverage;
using scalewise::test::error_message;

struct MovingMatrix {
  std::size_t rows, columns;
  std::vector<double> entries;

  MovingMatrix(std::size_t r, std::size_t c) : rows(r), columns(c), entries(r * c) {}
  double& operator()(std::size_t r, std::size_t c) { return entries[r * columns + c]; }
  MatrixView<double> view() const { return {entries.data(), rows, columns}; }
};

/// Sums of twelve uniform numbers: nearly normal, and the same with every standard library.
MovingMatrix random_matrix(std::size_t rows, std::size_t columns, std::mt19937_64& source) {
  MovingMatrix m(rows, columns);
  for (double& entry : m.entries) {
    entry = -6;
    for (int i = 0; i < 12; ++i) entry += std::ldexp(static_cast<double>(source() >> 11U), -53);
  }
  return m;
}

MovingMatrix outer(const std::vector<double>& u, const std::vector<double>& v) {
  MovingMatrix m(u.size(), v.size());
  for (std::size_t i = 0; i < m.rows; ++i) {
    for (std::size_t j = 0; j < m.columns; ++j) m(i, j) = u[i] * v[j];
  }
  return m;
}

}  // namespace

TEST_CASE("An input along a matrix of rank one is fully aligned") {
  std::mt19937_64 source(1);
  const MovingMatrix u = random_matrix(1, 37, source);
  const MovingMatrix v = random_matrix(1, 11, source);
  const MovingMatrix dw = outer(u.entries, v.entries);
  const MovingMatrix w0 = random_matrix(37, 11, source);
  MovingMatrix x0(3, 37);
  MovingMatrix dx(3, 37);
  for (std::size_t c = 0; c < 37; ++c) {
    for (std::size_t r = 0; r < 3; ++r) {
      x0(r, c) = (static_cast<double>(r) + 1) * u.entries[c];
      dx(r, c) = -0.25 * u.entries[c];
    }
  }
  const Alignment a = alignment(w0.view(), dw.view(), x0.view(), dx.view());
  CHECK_THAT(a.alpha.mean, WithinAbs(1, 1e-14));
  CHECK_THAT(a.nu.mean, WithinAbs(1, 1e-14));
  CHECK(a.alpha.count == 3);
  CHECK(a.omega.mean < 0.95);
}

TEST_CASE("The identity keeps an input's length: exponent one half") {
  // ‖x I‖ = ‖x‖ and ‖I‖_F = √n, so n^e = √n; twice the identity and any x change nothing.
  MovingMatrix w(16, 16);
  for (std::size_t i = 0; i < 16; ++i) w(i, i) = 2;
  MovingMatrix x(2, 16);
  for (std::size_t c = 0; c < 16; ++c) x(0, c) = 1, x(1, c) = static_cast<double>(c);
  const Alignment a = alignment(w.view(), w.view(), x.view(), x.view());
  for (const Estimate& e : {a.alpha, a.omega, a.nu}) {
    CHECK_THAT(e.mean, WithinAbs(0.5, 1e-14));
    CHECK_THAT(e.standard_error, WithinAbs(0, 1e-14));
  }
}

TEST_CASE("A hand-computed exponent") {
  // x = (3, 4), W = [[1, 0, 0], [0, 0, 2]]: x W = (3, 0, 8), ‖x W‖ = √73, ‖W‖ = √5, ‖x‖ = 5.
  MovingMatrix w(2, 3);
  w(0, 0) = 1, w(1, 2) = 2;
  MovingMatrix x(1, 2);
  x(0, 0) = 3, x(0, 1) = 4;
  const double expected = std::log(2 * std::sqrt(73.0) / (std::sqrt(5.0) * 5)) / std::log(2.0);
  CHECK_THAT(alignment(w.view(), w.view(), x.view(), x.view()).alpha.mean,
             WithinRel(expected, 1e-14));
}

TEST_CASE("Recorded sums make the exponent of all tokens together") {
  // Products (3, 0, 8) and twice that, over a matrix of length √5 and inputs of lengths 5 and 10.
  Recorder recorder({.size = 2, .seed = 1});
  const std::vector<float> products{3, 0, 8, 6, 0, 16};
  const std::vector<float> matrix{1, 0, 0, 0, 0, 2};
  const std::vector<float> inputs{3, 4, 6, 8};
  recorder.record("product", products.data(), products.size(), 0);
  recorder.record_update("matrix", matrix.data(), matrix.size(), 0);
  recorder.record("input", inputs.data(), inputs.size(), 0);
  const auto sums = [&](Signal signal, const char* name) {
    return recorder.records().all().at({signal, name}).at(0).at(recorder.run());
  };
  const double exponent =
      alignment_exponent(sums(Signal::value, "product"), sums(Signal::update, "matrix"),
                         sums(Signal::value, "input"), 2);
  const double expected = std::log(2 * std::sqrt(73.0) / (std::sqrt(5.0) * 5)) / std::log(2.0);
  CHECK_THAT(exponent, WithinRel(expected, 1e-14));
}

TEST_CASE("Independent inputs and matrices have exponent one half") {
  // ‖x W‖²/(‖W‖²‖x‖²) has mean 1/n; the mean over rows and matrices of log ‖x W‖² is that of a
  // chi-square of m degrees, which is log m - 1/m + O(1/m²).
  std::mt19937_64 source(2);
  constexpr std::size_t n = 64;
  constexpr std::size_t m = 96;
  std::vector<double> means;
  for (int repeat = 0; repeat < 40; ++repeat) {
    const MovingMatrix w0 = random_matrix(n, m, source);
    const MovingMatrix dw = random_matrix(n, m, source);
    const MovingMatrix x0 = random_matrix(20, n, source);
    const MovingMatrix dx = random_matrix(20, n, source);
    const Alignment a = alignment(w0.view(), dw.view(), x0.view(), dx.view());
    for (const Estimate& e : {a.alpha, a.omega, a.nu}) means.push_back(e.mean);
  }
  // alpha, omega and nu of one repeat share matrices, so each is a sample of its own only nearly:
  // twice the standard error is more than enough.
  const Estimate all = estimate(means);
  const double expected = 0.5 - 0.5 / m / std::log(double(n));
  CHECK(std::abs(all.mean - expected) < 5 * 2 * all.standard_error);
  CHECK(all.standard_error < 2e-3);
}

TEST_CASE("A mean lies within Student's interval of its standard error in 95 of 100 draws") {
  // Five normal numbers, t(0.975; 4) = 2.7764: of 4000 draws 3800 ± 14 hold the mean of zero, and
  // a right error leaves 3729 to 3864 in one run of a million. One that is 15 % off holds it in 3689
  // or 3867.
  std::mt19937_64 source(5);
  int held = 0;
  for (int draw = 0; draw < 4000; ++draw) {
    std::vector<double> five;
    for (int i = 0; i < 5; ++i) {
      const auto uniform = [&] {
        return std::ldexp(static_cast<double>((source() >> 11U) + 1), -53);
      };
      const double radius = std::sqrt(-2 * std::log(uniform()));
      five.push_back(radius * std::cos(6.283185307179586 * uniform()));
    }
    const Estimate e = estimate(five);
    held += std::abs(e.mean) <= 2.7764 * e.standard_error ? 1 : 0;
  }
  INFO(held);
  CHECK(Coverage(4000, 0.95).accepts(held));
  CHECK_THAT(estimate(std::vector<double>{1, 2, 6}).standard_error,
             WithinRel(std::sqrt(7.0 / 3), 1e-15));
}

TEST_CASE("Scales and the order of rows, inputs and outputs do not matter") {
  std::mt19937_64 source(3);
  const MovingMatrix w0 = random_matrix(9, 7, source);
  const MovingMatrix dw = random_matrix(9, 7, source);
  const MovingMatrix x0 = random_matrix(19, 9, source);
  const MovingMatrix dx = random_matrix(19, 9, source);
  // permutes rows, columns, and scales
  const auto moved = [](const MovingMatrix& m, std::size_t row_step, std::size_t column_step,
                        double by) {
    MovingMatrix out(m.rows, m.columns);
    for (std::size_t r = 0; r < m.rows; ++r) {
      for (std::size_t c = 0; c < m.columns; ++c) {
        out(r * row_step % m.rows, c * column_step % m.columns) = by * m.entries[r * m.columns + c];
      }
    }
    return out;
  };
  const Alignment a = alignment(w0.view(), dw.view(), x0.view(), dx.view());
  const Alignment b = alignment(moved(w0, 2, 3, -3).view(), moved(dw, 2, 3, 1e-7).view(),
                                moved(x0, 4, 2, 1e4).view(), moved(dx, 4, 2, 0.5).view());
  CHECK_THAT(b.alpha.mean, WithinRel(a.alpha.mean, 1e-13));
  CHECK_THAT(b.omega.mean, WithinRel(a.omega.mean, 1e-13));
  CHECK_THAT(b.nu.mean, WithinRel(a.nu.mean, 1e-13));
  CHECK_THAT(b.nu.standard_error, WithinRel(a.nu.standard_error, 1e-12));
}

TEST_CASE("What has not changed has no exponent") {
  std::mt19937_64 source(4);
  const MovingMatrix w0 = random_matrix(5, 4, source);
  const MovingMatrix x0 = random_matrix(3, 5, source);
  MovingMatrix dx(3, 5);
  dx(1, 2) = 1;  // one of three rows
  const MovingMatrix zero(5, 4);
  const Alignment a = alignment(w0.view(), zero.view(), x0.view(), dx.view());
  CHECK(a.alpha.count == 0);
  CHECK(std::isnan(a.alpha.mean));
  CHECK(a.omega.count == 1);
  CHECK(a.nu.count == 0);
}

TEST_CASE("Steps weigh as much as they lower the loss") {
  const std::vector<double> losses{5, 3, 4, 2.5, 2.5};
  const std::vector<double> exponents{1, 9, 0.5, 9};
  // decreases of the lowest loss so far: 2, 0, 0.5, 0
  CHECK_THAT(loss_weighted_mean(exponents, losses).value(), WithinRel(2.25 / 2.5, 1e-15));
  const std::vector<double> rising{1, 2, 3, 4, 5};
  CHECK_FALSE(loss_weighted_mean(exponents, rising).has_value());

  Alignments run(5);
  for (std::size_t t = 0; t < 4; ++t) {
    run.begin_step(losses[t + 1]);
    Alignment layer;
    layer.alpha.mean = exponents[t] - 0.25;
    run.add("query", layer);
    layer.alpha.mean = exponents[t] + 0.25;
    run.add("query", layer);
  }
  CHECK(run.matrices() == std::vector<std::string>{"query"});
  REQUIRE(run.layers("query", 2).size() == 2);
  CHECK(run.layers("query", 2)[0].alpha.mean == 8.75);
  CHECK(run.layers("query", 2)[1].alpha.mean == 9.25);
  CHECK(run.layers("query", 0).empty());
  CHECK(run.layers("query", 5).empty());
  CHECK(run.layers("key", 2).empty());
  CHECK_THAT(run.over_layers("query", 3, &Alignment::alpha).mean, WithinRel(0.5, 1e-15));
  CHECK_THAT(run.over_layers("query", 3, &Alignment::alpha).standard_error, WithinRel(0.25, 1e-15));
  CHECK_THAT(run.weighted("query", &Alignment::alpha).value(), WithinRel(0.9, 1e-15));
  CHECK_FALSE(run.weighted("query", &Alignment::nu).has_value());
  // Means over the four steps: (1 + 9 + 0.5 + 9)/4 without and with a quarter.
  const std::vector<double> layers = run.by_layer("query", &Alignment::alpha);
  REQUIRE(layers.size() == 2);
  CHECK_THAT(layers[0], WithinRel(4.625, 1e-15));
  CHECK_THAT(layers[1], WithinRel(5.125, 1e-15));
  CHECK(run.by_layer("key", &Alignment::alpha).empty());
}

TEST_CASE("Alignment refuses sizes that do not fit") {
  const MovingMatrix w(3, 2);
  const MovingMatrix x(4, 3);
  const MovingMatrix wrong(4, 2);
  CHECK(error_message([&] { alignment(w.view(), x.view(), x.view(), x.view()); }) ==
        "dw = 4 x 3: expected 3 x 2");
  CHECK(error_message([&] { alignment(w.view(), w.view(), wrong.view(), x.view()); }) ==
        "x0 = 4 x 2: expected 4 x 3");
  CHECK(error_message([&] { alignment(w.view(), w.view(), x.view(), w.view()); }) ==
        "dx = 3 x 2: expected 4 x 3");
  const MovingMatrix one(1, 2);
  const MovingMatrix scalar(4, 1);
  CHECK(error_message([&] {
          alignment(one.view(), one.view(), scalar.view(), scalar.view());
        }).find("fan_in = 1") == 0);
  const std::vector<double> two{1, 2};
  CHECK(error_message([&] { loss_weighted_mean(two, two); }).find("losses = 2 numbers") == 0);
}
