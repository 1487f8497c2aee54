// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Gaussian expectations against sums over grids; layers by what must not change them.

#include <cmath>
#include <limits>

#include "kernels/random_kernel.hpp"
#include "scalewise/kernels/shallow_kernel.hpp"
#include "scalewise/kernels/stacked_kernel.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

using namespace scalewise;
using namespace scalewise::kernels;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {}  // namespace

TEST_CASE("duals of variances from 1e-300 to 1e100") {
  // By mpmath with 400 digits from the equations of dual(), which quadrature confirms above: those of
  // gelu, then of erf. Relu and abs are known where tokens coincide.
  struct Case {
    double v1, v2, c;
    Dual gelu, erf;
  };
  for (const Case& k : {
           Case{1e-300,
                1e-300,
                1e-300,
                {2.5e-301, 0.25},
                {1.2732395447351627e-300, 1.2732395447351627}},
           Case{1e-8,
                1e-8,
                1e-8,
                {2.5000000477464822e-9, 0.2500000063661976},
                {1.2732395192703724e-8, 1.2732395192703726}},
           Case{1e10,
                1e10,
                1e10,
                {4999999999.9999981, 0.50000056269769737},
                {0.99999363380227646, 6.366197723596236e-6}},
           Case{1e16,
                1e16,
                1e16,
                {5e15, 0.5000000005626977},
                {0.99999999363380228, 6.3661977236758134e-9}},
           Case{1e20,
                1e20,
                1e20,
                {5e19, 0.50000000000562698},
                {0.99999999993633802, 6.3661977236758134e-11}},
           Case{1e100, 1e100, 1e100, {5e99, 0.5}, {1, 6.3661977236758134e-51}},
           Case{1e12,
                1e12,
                999999e6,
                {499999500150.0525, 0.49977492101474356},
                {0.99909968338373764, 4.5015815807855303e-10}},
           Case{1e12,
                4e12,
                1e12,
                {608997781044.05707, 0.33333333333339076},
                {0.33333333333321847, 3.6755259694770822e-13}},
           Case{1e60,
                1e-20,
                5e19,
                {1.2500000001989437e19, 0.25000000001591549},
                {4.5015815807855305e-11, 9.0031631615710609e-31}},
           Case{1e16,
                1e16,
                -5e15,
                {544988905221146.65, 0.16666666666666666},
                {-0.33333333333333331, 7.3510519389572268e-17}},
       }) {
    CAPTURE(k.v1, k.v2, k.c);
    const double deviations = std::sqrt(k.v1) * std::sqrt(k.v2);
    // Four roundings of a covariance, which matter near ±1 only: tokens that coincide are exact.
    const double r = k.c / deviations;
    const double sine2 = 1 - r * r > 1e-14 ? 1 - r * r : 1;
    const double rounding = 4 * 0x1p-53;
    const Dual gelu = dual(Function::gelu, k.v1, k.v2, k.c);
    CHECK_THAT(gelu.value, WithinAbs(k.gelu.value, 1e-15 * deviations));
    CHECK_THAT(gelu.derivative, WithinAbs(k.gelu.derivative, 1e-15 + rounding / std::sqrt(sine2)));
    const Dual erf = dual(Function::erf, k.v1, k.v2, k.c);
    CHECK_THAT(erf.value, WithinAbs(k.erf.value, 1e-15 + rounding / std::sqrt(sine2)));
    CHECK_THAT(erf.derivative, WithinRel(k.erf.derivative, 1e-15 + rounding / sine2));
    if (r * r < 1 - 1e-14) continue;
    CHECK_THAT(dual(Function::relu, k.v1, k.v2, k.c).value, WithinRel(k.c / 2, 1e-15));
    CHECK_THAT(dual(Function::abs, k.v1, k.v2, -k.c).value, WithinRel(k.c, 1e-15));
  }
}

TEST_CASE("tokens that coincide have an angle of zero") {
  for (const double v : {1e-3, 0.3, 1.7, 1e6}) {
    const Dual relu = dual(Function::relu, v, v, v);
    CHECK_THAT(relu.value / v, WithinAbs(0.5, 1e-15));
    CHECK(relu.derivative == 0.5);
    CHECK(dual(Function::abs, v, v, -v).derivative == -1);
  }
  CHECK(dual(Function::relu, 0, 1, 0).value == 0);
}

TEST_CASE("the tangent kernel of a token with itself keeps its digits through deep ReLU") {
  // Where tokens coincide ReLU halves both kernels. A correlation of 1 - 2^-53, taken as an angle,
  // would be off by 2.4e-9 in every layer.
  const double w = 1.3 * 1.3;
  const double b = 0.4 * 0.4;
  std::vector<Layer> layers;
  for (int i = 0; i < 12; ++i) {
    layers.emplace_back(Dense{1.3, 0.4});
    layers.emplace_back(Nonlinearity{Function::relu});
  }
  Matrix<> x(40, 5);  // more pairs of tokens than a piece
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = std::sin(1.7 * static_cast<double>(i));
  const PreparedInput input = Network(layers).prepare(x);
  for (Index a = 0; a < x.rows(); ++a) {
    double k = x.row(a).squaredNorm() / 5;
    double theta = 0;
    for (int i = 0; i < 12; ++i) {
      k = w * k + b;
      theta = (k + w * theta) / 2;
      k /= 2;
    }
    CAPTURE(a);
    CHECK_THAT(input.last.nngp.read()(a, a) / k, WithinAbs(1, 1e-14));
    CHECK_THAT(input.last.ntk.read()(a, a) / theta, WithinAbs(1, 1e-14));
  }
}

TEST_CASE("a row of activations longer than a piece is that of its parts") {
  const Kernel k = random_kernel({70, 3}, 5);
  const Kernel whole = propagate(Nonlinearity{Function::gelu}, k);
  for (const Index b : {0, 63, 64, 69, 72}) {
    const Dual d = dual(Function::gelu, k.nngp(7, 7), k.nngp(b, b), k.nngp(7, b));
    CHECK_THAT(whole.nngp(7, b), WithinAbs(d.value, 1e-14));
    CHECK_THAT(whole.ntk(7, b), WithinAbs(d.derivative * k.ntk(7, b), 1e-14));
  }
}

TEST_CASE("a pair alone has the kernels of its block") {
  SelfAttention attention;
  attention.encodings = {Encodings::Geometry::string, 0.7, 1.1, 2.0};
  attention.sigma_b = 0.3;
  std::vector<Layer> layers{Dense{1.2, 0.1}, Nonlinearity{}, attention, LayerNorm{1e-5}};
  SECTION("averaged") {
    layers.emplace_back(ResidualAttention{{Encodings::Geometry::string, 0.6, 1, 2}});
    layers.emplace_back(GlobalAveragePool{});
  }
  SECTION("flattened, of which the diagonal is all that attention has to compute") {
    layers.emplace_back(Flatten{.padded_length = 5});
  }
  SECTION("flattened after an average of all tokens, which needs them all") {
    layers.emplace_back(LocalAveragePool{});
    layers.emplace_back(GlobalAveragePool{});
    layers.emplace_back(Flatten{.padded_length = 1});
  }
  SECTION("flattened behind residual attention") {
    layers.emplace_back(ResidualAttention{{Encodings::Geometry::string, 0.6, 1, 2}});
    layers.emplace_back(Flatten{.padded_length = 5});
  }
  SECTION("flattened behind a convolution, whose diagonal is that of what enters it") {
    layers.emplace_back(LocalAveragePool{});
    layers.emplace_back(Convolution{1.2, 0.3});
    layers.emplace_back(Flatten{.padded_length = 5});
  }
  layers.emplace_back(Dense{1.1, 0.2});
  const std::vector<Matrix<>> inputs{random_matrix(4, 3, 1), random_matrix(2, 3, 2)};
  Kernel stacked = stacked_input_kernel(inputs);
  for (const Layer& layer : layers) stacked = propagate(layer, stacked);
  const Network network(layers);
  const PreparedInput x = network.prepare(inputs[0]);
  const PreparedInput y = network.prepare(inputs[1]);
  PairKernel pair;
  constexpr double rounding = 2e-15;            // of sums in another order, of numbers of order one
  for (int repeat = 0; repeat < 2; ++repeat) {  // buffers are used again
    network.pair(y, x, pair);
    CHECK_THAT(pair.nngp.read()(0, 0), WithinAbs(stacked.nngp(1, 0), rounding));
    CHECK_THAT(pair.ntk.read()(0, 0), WithinAbs(stacked.ntk(1, 0), rounding));
  }
  CHECK_THAT(x.last.ntk.read()(0, 0), WithinAbs(stacked.ntk(0, 0), rounding));
}

TEST_CASE("the documentation's network") {
  SelfAttention struct_attention;  // softmax over d, W_Q = W_K
  struct_attention.encodings = {Encodings::Geometry::string, /*alpha=*/0.75, /*rho=*/1,
                                /*phi=*/2.5};
  const Network network({Dense{1.4, 0.2}, Nonlinearity{Function::relu}, struct_attention,
                         LayerNorm{1e-5}, GlobalAveragePool{}, Dense{}});

  Matrix<> x(3, 2);  // three tokens of two features
  x << 1, 0, 0.5, 0.5, 0, 1;
  Matrix<> y(2, 2);
  y << 0, 1, 1, 1;
  const PreparedInput a = network.prepare(x);  // once per input
  const PreparedInput b = network.prepare(y);
  PairKernel pair;  // used again for every pair
  network.pair(a, b, pair);
  const double nngp = pair.nngp.read()(0, 0);  // 0.949108
  const double ntk = pair.ntk.read()(0, 0);    // 3.65911
  // From the formulas in numpy.
  CHECK_THAT(nngp, WithinAbs(0.9491076855924295, 1e-14));
  CHECK_THAT(ntk, WithinAbs(3.659110993934937, 1e-14));
}

TEST_CASE("A LayerNorm is refused where channels have another mean than zero") {
  const auto says = [](const std::vector<Layer>& layers) {
    return error_message([&] { Network{layers}; });
  };
  for (const Function f : {Function::relu, Function::abs, Function::gelu}) {
    CHECK_THAT(
        says({Dense{}, Nonlinearity{f}, LayerNorm{}, Dense{}}),
        ContainsSubstring("LayerNorm = after relu, abs or gelu: expected a dense or attention"));
    CHECK(says({Dense{}, Nonlinearity{f}, Dense{}, LayerNorm{}}) == "no error");
  }
  CHECK(says({Dense{}, Nonlinearity{Function::erf}, LayerNorm{}}) == "no error");
}

TEST_CASE("bad kernels are refused") {
  Kernel k = random_kernel({2, 2}, 4);
  const auto says = [&](const Layer& layer) { return error_message([&] { propagate(layer, k); }); };
  SECTION("indefinite") {
    k.nngp(0, 1) = k.nngp(1, 0) = 10 * k.nngp(0, 0);
    CHECK_THAT(says(Dense{}), ContainsSubstring("positive semidefinite"));
  }
  SECTION("not finite, not symmetric, of another size") {
    k.ntk(1, 2) = std::numeric_limits<double>::quiet_NaN();
    CHECK_THAT(says(Dense{}), ContainsSubstring("ntk = not finite"));
    k.ntk = Matrix<>::Random(4, 4);
    CHECK_THAT(says(Dense{}), ContainsSubstring("symmetric"));
    k.ntk.resize(3, 3);
    CHECK_THAT(says(Dense{}), ContainsSubstring("3 x 3"));
  }
  SECTION("settings") {
    CHECK_THAT(says(Dense{-1}), ContainsSubstring("sigma_w"));
    CHECK_THAT(says(LayerNorm{-1}), ContainsSubstring("epsilon"));
    CHECK_THAT(says(Flatten{1}), ContainsSubstring("padded length"));
    SelfAttention attention;
    attention.encodings = {Encodings::Geometry::string, 1.5};
    CHECK_THAT(says(attention), ContainsSubstring("alpha"));
    attention.encodings = {Encodings::Geometry::grid};
    CHECK_THAT(says(attention), ContainsSubstring("sides (none): expected those"));
    attention.encodings.sides = {2, 3, 4};
    CHECK_THAT(says(attention), ContainsSubstring("grid = 2: expected 2 * 3 * 4"));
    CHECK_THAT(says(Convolution{.filter = 2}), ContainsSubstring("filter = 2: expected an odd"));
    CHECK_THAT(says(Convolution{.filter = 3, .padded = false}), ContainsSubstring("filter = 3"));
    CHECK_THAT(says(LocalAveragePool{.sides = {-1, -2}}), ContainsSubstring("grid = 2"));
  }
  SECTION("lengths and inputs") {
    CHECK_THAT(error_message([] {
                 propagate(Flatten{}, random_kernel({2, 3}, 1));
               }),
               ContainsSubstring("2 and 3"));
    CHECK_THAT(error_message([] { Tokens({}); }), ContainsSubstring("at least one input"));
    CHECK_THAT(error_message([] { Tokens({2, 0}); }), ContainsSubstring("at least one token"));
    CHECK_THAT(error_message([] {
                 stacked_input_kernel({Matrix<>(2, 3), Matrix<>(2, 4)});
               }),
               ContainsSubstring("3 and 4"));
    CHECK_THAT(error_message([] { Network({}).prepare(Matrix<>(0, 3)); }),
               ContainsSubstring("empty"));
    const double inf = std::numeric_limits<double>::infinity();
    CHECK_THAT(error_message([&] { Network({}).prepare(Matrix<>::Constant(1, 1, inf)); }),
               ContainsSubstring("finite"));
    CHECK_THAT(error_message([&] {
                 without_padding(k, {{true, true}, {false, false}});
               }),
               ContainsSubstring("at least one token"));
    CHECK_THAT(error_message([&] {
                 without_padding(k, {{true, true}});
               }),
               ContainsSubstring("mask"));
    CHECK_THAT(error_message([] { dual(Function::relu, 1, 1, 2); }),
               ContainsSubstring("covariance"));
    CHECK_THAT(error_message([] { dual(Function::erf, 1, 1e160, 0); }),
               ContainsSubstring("variance = 1e+160: expected at most 1e150"));
  }
}

TEST_CASE("where a shallow encoder attends evenly, its kernels have a closed form") {
  // Scores of zero: all tokens read the mean x̄, and B is the tokens' covariance. For one input
  // E[ReLU' (Bw)·(Bw)] = η_V tr(B²)/2, so that query = τ₁² d_m η_O τ₀² d_m η_K η_V tr(B²)/2 |x̄|².
  // Tokens (2, 0, 1) and (0, 0, -1): x̄ = (1, 0, 0), B = c cᵀ of c = (1, 0, 1), tr(B²) = 4.
  const ShallowScales s{.width = 8,
                        .eta_O = 0.7,
                        .eta_V = 0.9,
                        .eta_Q = 1.3,
                        .eta_K = 0.6,
                        .tau_0 = 0.5,
                        .tau_1 = 0.4};
  std::vector<Eigen::MatrixXd> input(1, Eigen::MatrixXd(2, 3));
  input[0] << 2, 0, 1, 0, 0, -1;
  const ShallowKernel k = shallow_kernel(input, s, Eigen::MatrixXd::Zero(3, 3));
  const double both = 0.4 * 0.4 * 8 * 0.7 * 0.5 * 0.5 * 8 * 0.9 * 4 / 2;
  CHECK_THAT(k.query(0, 0), WithinRel(both * 0.6, 1e-13));
  CHECK_THAT(k.key(0, 0), WithinRel(both * 1.3, 1e-13));
  CHECK_THAT(k.output(0, 0), WithinRel(0.4 * 0.4 * 8 * 0.9 / 2, 1e-13));
  CHECK_THAT(k.value(0, 0), WithinRel(0.4 * 0.4 * 8 * 0.7 / 2, 1e-13));
}
