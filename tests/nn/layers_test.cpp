// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Linear maps, norms and activations, each alone.

#include <cmath>
#include <stdexcept>
#include <vector>

#include "scalewise/nn/activation.hpp"
#include "scalewise/nn/norm.hpp"
#include "scalewise/nn/weight.hpp"
#include "support/catch.hpp"
#include "support/numeric_gradient.hpp"
#include "support/reference_layers.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

constexpr Index rows = 15;  // B*T = 3*5
constexpr Index width = 14;
constexpr Index inner = 17;

/// A plan of one matrix and one vector, which is what it takes to make a Weight.
Plan linear_plan(double weight_multiplier, double bias_multiplier) {
  Plan plan;
  Entry weight;
  weight.name = "w";
  weight.group = Group::mlp_up;
  weight.rows = width;
  weight.columns = inner;
  weight.multiplier.value = weight_multiplier;
  Entry bias;
  bias.name = "b";
  bias.group = Group::hidden_bias;
  bias.rows = inner;
  bias.multiplier.value = bias_multiplier;
  plan.entries = {weight, bias};
  return plan;
}

struct Linear {
  Plan plan = linear_plan(1.7, -0.6);
  Parameters<double> parameters{plan};
  Weight<double> w{parameters, plan, "w"};
  Weight<double> b{parameters, plan, "b"};
  Weight<double> none{parameters, plan, "no such tensor"};
  Matrix<double> x = normal_matrix(rows, width, "x");
  Matrix<double> y{rows, inner};

  Linear() {  // in place: weights point into the parameters
    parameters.value(0) = normal_matrix(width, inner, "w");
    parameters.value(1) = normal_matrix(1, inner, "b");
  }
  Matrix<double> acting_w() const { return 1.7 * w.value(); }
  Matrix<double> acting_b(bool present) const {
    if (!present) return {};
    return -0.6 * b.value();
  }
  const Matrix<double>& forward(bool bias) {
    linear_forward(w, bias ? b : none, dense::read(x), dense::view(y));
    return y;
  }
};

}  // namespace

TEST_CASE("A linear map is the sum over its inputs, plus a bias, each with its multiplier") {
  Linear l;
  CHECK_FALSE(l.none.present());
  for (const bool bias : {true, false}) {
    l.y.setConstant(99);
    l.forward(bias);
    CHECK(largest(l.y - reference::linear(l.x, l.acting_w(), l.acting_b(bias))) <=
          forward_relative * largest(l.y));
  }
}

TEST_CASE("A linear map has the gradient of its central differences") {
  Linear l;
  const Probe probe(rows, inner);
  Matrix<double> dx(rows, width);
  for (const bool bias : {true, false}) {
    l.parameters.gradients().setZero();
    linear_backward(l.w, bias ? l.b : l.none, dense::read(l.x), dense::read(probe.weights),
                    dense::view(dx));
    const double size = probe.magnitude(l.forward(bias));
    const auto f = [&] { return probe(l.forward(bias)); };
    const auto worst_x = gradient_error("x", dense::view(l.x), dx, f, size);
    const auto worst_w = gradient_error("w", l.parameters.value(0), l.w.gradient(), f, size);
    const auto worst_b = gradient_error("b", l.parameters.value(1), l.b.gradient(), f, size);
    INFO(worst_x << "; " << worst_w << "; " << worst_b);
    CHECK(worst_x.accepted());
    CHECK(worst_w.accepted());
    CHECK(worst_b.accepted());
    CHECK((largest(l.b.gradient()) > 0) == bias);
  }
}

TEST_CASE("A linear map's gradients replace the last ones, and its input's add up where asked") {
  Linear l;
  const Probe probe(rows, inner);
  Matrix<double> dx(rows, width);
  linear_backward(l.w, l.b, dense::read(l.x), dense::read(probe.weights), dense::view(dx));
  const Matrix<double> once = l.parameters.gradients();
  const Matrix<double> dx_once = dx;
  linear_backward(l.w, l.b, dense::read(l.x), dense::read(probe.weights), dense::view(dx));
  CHECK(l.parameters.gradients() == once);
  CHECK(dx == dx_once);
  linear_backward(l.w, l.b, dense::read(l.x), dense::read(probe.weights), dense::view(dx),
                  dense::Into::sum);
  CHECK(largest(dx - 2 * dx_once) <= forward_relative * largest(dx_once));
}

TEST_CASE("Products of more rows than a tile, and of a single row, are whole") {
  for (const Index n : {1, 15, 16, 17, 33, 255, 256, 257, 515, 1030}) {
    const Matrix<double> a = normal_matrix(n, 5, "a");
    const Matrix<double> b = normal_matrix(5, 7, "b");
    const Matrix<double> wide = normal_matrix(5, n, "wide");
    const Matrix<double> tall = normal_matrix(7, 5, "tall");
    const Matrix<double> start = normal_matrix(n, 7, "start");
    for (const dense::Into into : {dense::Into::fresh, dense::Into::sum}) {
      const Matrix<double> base = into == dense::Into::sum ? start : Matrix<double>::Zero(n, 7);
      Matrix<double> c = start;
      multiply(1.3, dense::read(a), dense::read(b), dense::view(c), into);
      CHECK(largest(c - base - 1.3 * a * b) <= forward_relative * 10);
      c = start;
      multiply(1.3, dense::transposed(dense::read(wide)), dense::read(b), dense::view(c), into);
      CHECK(largest(c - base - 1.3 * wide.transpose() * b) <= forward_relative * 10);
      c = start;
      multiply(1.3, dense::read(a), dense::transposed(dense::read(tall)), dense::view(c), into);
      CHECK(largest(c - base - 1.3 * a * tall.transpose()) <= forward_relative * 10);
    }
  }
}

TEST_CASE("Products with more columns than rows, and more than a tile, are whole") {
  for (const Index columns : {16, 17, 20, 33, 512, 513, 1024, 1025, 1100}) {
    const Matrix<double> a = normal_matrix(19, 5, "a");
    const Matrix<double> b = normal_matrix(5, columns, "b");
    Matrix<double> c(19, columns);
    multiply(1.0, dense::read(a), dense::read(b), dense::view(c));
    CHECK(largest(c - a * b) <= forward_relative * 10);
    const Matrix<double> bt = b.transpose();
    multiply(1.0, dense::read(a), dense::transposed(dense::read(bt)), dense::view(c));
    CHECK(largest(c - a * b) <= forward_relative * 10);
    const Matrix<double> at = a.transpose();
    multiply(1.0, dense::transposed(dense::read(at)), dense::read(b), dense::view(c));
    CHECK(largest(c - a * b) <= forward_relative * 10);
  }
}

TEST_CASE("A product with more than 16 rows or columns is cut for two threads") {
  for (const Index rows : {1, 16, 30, 512, 513, 4096}) {
    for (const Index columns : {1, 16, 30, 512, 513, 4096}) {
      for (const bool a : {false, true}) {
        for (const bool b : {false, true}) {
          const TileSizes tile = tile_sizes(rows, columns, a, b);
          const Index tiles =
              (rows + tile.rows - 1) / tile.rows * ((columns + tile.columns - 1) / tile.columns);
          CAPTURE(rows, columns, a, b, tile.rows, tile.columns);
          CHECK((tiles >= 2) == ((std::max)(rows, columns) > 16));
          CHECK(tile.rows <= 512);
          CHECK(tile.columns <= (a ? 1024 : 512));
        }
      }
    }
  }
}

TEST_CASE("Sums over rows with more columns than a tile are whole") {
  const Matrix<double> c = normal_matrix(19, 1100, "c");
  const Matrix<double> other = normal_matrix(19, 1100, "other");
  Matrix<double> sums = Matrix<double>::Constant(1, 1100, 2);
  sum_products(0.5, dense::read(c), dense::read(other), dense::view(sums));
  const Matrix<double> products = 0.5 * c.cwiseProduct(other).colwise().sum();
  CHECK(largest((sums - products).array() - 2) <= forward_relative * 100);
  sum_rows(0.5, dense::read(c), dense::view(sums));
  const Matrix<double> totals = 0.5 * c.colwise().sum();
  CHECK(largest(sums - totals) <= forward_relative * 100);
  sum_rows(0.5, dense::read(c), dense::view(sums), true);
  CHECK(largest(sums - 2 * totals) <= forward_relative * 200);
}

namespace {

struct NormCase {
  Norm kind = Norm::layer;
  bool has_gain = true;
  bool has_bias = true;
  Index count = rows;
  double epsilon = 1e-5;
  double deviation = 1;
  Matrix<double> x = normal_matrix(count, width, "x", deviation);
  Matrix<double> gain = normal_matrix(1, width, "gain");
  Matrix<double> bias = normal_matrix(1, width, "bias");
  Matrix<double> y{count, width};
  NormCache<double> cache{};

  const Matrix<double>& forward() {
    const ConstView<double> g = dense::read(gain);
    const ConstView<double> b = dense::read(bias);
    norm_forward(kind, dense::read(x),
                 {.gain = has_gain ? &g : nullptr, .bias = has_bias ? &b : nullptr}, epsilon, cache,
                 dense::view(y));
    return y;
  }
  void backward(const Matrix<double>& dy, Matrix<double>& dx, Matrix<double>& dgain,
                Matrix<double>& dbias, const ConstView<double>* beside = nullptr,
                double beside_factor = 1) {
    const ConstView<double> g = dense::read(gain);
    View<double> dg = dense::view(dgain);
    View<double> db = dense::view(dbias);
    norm_backward(kind, dense::read(dy), dense::read(x), has_gain ? &g : nullptr, cache,
                  {.x = dense::view(dx),
                   .gain = has_gain ? &dg : nullptr,
                   .bias = has_bias ? &db : nullptr,
                   .beside = beside,
                   .beside_factor = beside_factor});
  }
};

std::vector<NormCase> norm_cases() {
  std::vector<NormCase> all;
  for (const Norm kind : {Norm::layer, Norm::rms}) {
    for (const bool gain : {true, false}) {
      for (const bool bias : {true, false})
        all.push_back({.kind = kind, .has_gain = gain, .has_bias = bias});
    }
    all.push_back({.kind = kind, .epsilon = 0.3});
    all.push_back({.kind = kind, .count = 65});  // more than a tile
  }
  return all;
}

}  // namespace

TEST_CASE("A norm divides each row by its deviation, then applies gain and bias") {
  const Matrix<double> none;
  for (NormCase& n : norm_cases()) {
    n.forward();
    const Matrix<double> expected = reference::norm(
        n.kind, n.epsilon, n.x, n.has_gain ? n.gain : none, n.has_bias ? n.bias : none);
    CHECK(largest(n.y - expected) <= forward_relative * largest(n.y));
  }
}

TEST_CASE("A norm has the gradient of its central differences, which adds up over calls") {
  std::vector<NormCase> all = norm_cases();
  // Small rows, of which epsilon is a good part.
  all.push_back({.kind = Norm::layer, .epsilon = 0.01, .deviation = 0.1});
  all.push_back({.kind = Norm::rms, .epsilon = 0.01, .deviation = 0.1});
  for (NormCase& n : all) {
    const Probe probe(n.count, width);
    const double size = probe.magnitude(n.forward());
    Matrix<double> dx(n.count, width);
    Matrix<double> dgain = Matrix<double>::Zero(1, width);
    Matrix<double> dbias = Matrix<double>::Zero(1, width);
    n.backward(probe.weights, dx, dgain, dbias);
    const auto f = [&] { return probe(n.forward()); };
    const auto worst_x = gradient_error("x", dense::view(n.x), dx, f, size);
    const auto worst_gain = gradient_error("gain", dense::view(n.gain), dgain, f, size);
    const auto worst_bias = gradient_error("bias", dense::view(n.bias), dbias, f, size);
    INFO(worst_x << "; " << worst_gain << "; " << worst_bias);
    CHECK(worst_x.accepted());
    CHECK(worst_gain.accepted());
    CHECK(worst_bias.accepted());
    n.forward();
    const Matrix<double> dx_once = dx;
    const Matrix<double> gain_once = dgain;
    const Matrix<double> bias_once = dbias;
    n.backward(probe.weights, dx, dgain, dbias);
    CHECK(dx == dx_once);
    CHECK(largest(dgain - 2 * gain_once) <= forward_relative * std::max(1.0, largest(dgain)));
    CHECK(largest(dbias - 2 * bias_once) <= forward_relative * std::max(1.0, largest(dbias)));
    // The gradient that passes beside the norm is added, and may be where the result goes.
    const Matrix<double> beside = normal_matrix(n.count, width, "beside");
    Matrix<double> both = beside;
    const ConstView<double> passing = dense::read(both);
    n.backward(probe.weights, both, dgain, dbias, &passing, 0.6);
    CHECK(largest(both - dx - 0.6 * beside) <= forward_relative * largest(both));
  }
}

TEST_CASE("A norm of rows without variance is finite, and its gradient too") {
  for (const Norm kind : {Norm::layer, Norm::rms}) {
    for (const double value : {0.0, 3.0, 1e-200}) {
      NormCase n{.kind = kind};
      n.x.setConstant(value);
      CHECK(n.forward().allFinite());
      const Probe probe(rows, width);
      Matrix<double> dx(rows, width);
      Matrix<double> dgain = Matrix<double>::Zero(1, width);
      Matrix<double> dbias = Matrix<double>::Zero(1, width);
      n.backward(probe.weights, dx, dgain, dbias);
      CHECK(dx.allFinite());
      if (kind == Norm::layer) {
        for (Index i = 0; i < rows; ++i) CHECK(largest(n.y.row(i) - n.bias) == 0);
      }
    }
  }
}

TEST_CASE("A unit norm gives rows of length one, and has the gradient of its differences") {
  for (const double deviation : {1.0, 100.0, 1e-150}) {
    Matrix<double> x = normal_matrix(rows, width, "x", deviation);
    Matrix<double> y(rows, width);
    Matrix<double> inverse(rows, 1);
    const Probe probe(rows, width);
    const auto forward = [&] {
      unit_forward(dense::read(x), dense::view(y), dense::view(inverse));
      return probe(y);
    };
    forward();
    for (Index i = 0; i < rows; ++i) {
      double square = 0;
      for (Index c = 0; c < width; ++c) square += y(i, c) * y(i, c);
      CHECK(std::abs(square - 1) <= forward_relative);
      CHECK(std::abs(x(i, 3) * inverse(i, 0) - y(i, 3)) <= forward_relative);
    }
    Matrix<double> dx(rows, width);
    unit_backward(dense::read(probe.weights), dense::read(y), dense::read(inverse),
                  dense::view(dx));
    Matrix<double> in_place = probe.weights;
    unit_backward(dense::read(in_place), dense::read(y), dense::read(inverse),
                  dense::view(in_place));
    CHECK(in_place == dx);
    if (deviation < 1) continue;  // a step of 6e-6 is not a small one there
    const auto worst = gradient_error("x", dense::view(x), dx, forward, probe.magnitude(y));
    INFO(worst);
    CHECK(worst.accepted());
  }
}

TEST_CASE("A row of zeros has no direction: it stays, and passes no gradient") {
  Matrix<double> x = Matrix<double>::Zero(2, width);
  x.row(1) = normal_matrix(1, width, "x");
  Matrix<double> y(2, width);
  Matrix<double> inverse(2, 1);
  unit_forward(dense::read(x), dense::view(y), dense::view(inverse));
  CHECK(y.row(0).norm() == 0);
  CHECK(std::abs(y.row(1).norm() - 1) <= forward_relative);
  Matrix<double> dx(2, width);
  const Matrix<double> dy = normal_matrix(2, width, "dy");
  unit_backward(dense::read(dy), dense::read(y), dense::read(inverse), dense::view(dx));
  CHECK(dx.row(0).norm() == 0);
  CHECK(dx.row(1).allFinite());
}

TEST_CASE("A row with a NaN leaves every norm as NaN: nothing hides it") {
  const double none = std::nan("");
  Matrix<double> inverse(rows, 1);
  Matrix<double> unit(rows, width);
  NormCase n{.kind = Norm::layer};
  n.x(2, 5) = none;
  unit_forward(dense::read(n.x), dense::view(unit), dense::view(inverse));
  for (const Norm kind : {Norm::layer, Norm::rms}) {
    n.kind = kind;
    n.forward();
    for (const Matrix<double>* y : {&n.y, &unit}) {
      for (Index i = 0; i < rows; ++i) CHECK(y->row(i).array().isNaN().all() == (i == 2));
      CHECK(y->row(1).allFinite());
    }
  }
}

TEST_CASE("What a task throws reaches the caller, after all tasks have ended") {
  std::vector<int> done;
  const auto task = [&](Index i) {
    done[static_cast<std::size_t>(i)] = 1;
    if (i == 50) throw std::runtime_error("task 50");
  };
  done.assign(100, 0);
  CHECK_THROWS_AS(numeric::parallel_for(100, task), std::runtime_error);
  CHECK(done[50] == 1);
  done.assign(100, 0);
  CHECK_THROWS_AS(numeric::parallel_parts(100, task), std::runtime_error);
  CHECK(done[50] == 1);
}
