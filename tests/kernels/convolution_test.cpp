// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Positions on grids, convolutions and local means against loops over coordinates and finite networks; what attention
// can and cannot do of a convolution.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/random_kernel.hpp"
#include "scalewise/kernels/finite_network.hpp"
#include "scalewise/kernels/network_gram.hpp"
#include "scalewise/kernels/stacked_kernel.hpp"
#include "support/catch.hpp"

using namespace scalewise;
using namespace scalewise::kernels;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;

namespace {

/// The kernels of one pair after a layer, of inputs whose own kernels are those of `own`.
PairKernel mapped(const Layer& layer, const Matrix<>& own, const Matrix<>& nngp,
                  const Matrix<>& ntk) {
  const auto load = [](const Matrix<>& k, const Matrix<>& theta) {
    PairKernel pair;
    pair.nngp.shape(k.rows(), k.cols()) = k;
    pair.ntk.shape(k.rows(), k.cols()) = theta;
    return pair;
  };
  const auto prepared = kernels::detail::prepare(layer, load(own, own));
  PairKernel pair = load(nngp, ntk);
  kernels::detail::map(layer, pair, prepared, prepared);
  return pair;
}

TEST_CASE("Positions of a video decay along three axes") {
  const Encodings video{
      .geometry = Encodings::Geometry::grid, .rho = 1.3, .phi = 2.5, .sides = {2, 3, 4}};
  const Matrix<> r = video.covariance(24, 24);
  const auto at = [](int frame, int y, int x) { return (frame * 3 + y) * 4 + x; };
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 4; ++x) {
      const double d2 = 0.25 + (y - 1) * (y - 1) / 9.0 + (x - 2) * (x - 2) / 16.0;
      CHECK_THAT(r(at(0, y, x), at(1, 1, 2)), WithinAbs(1.3 * std::exp(-2.5 * d2), 1e-15));
    }
  }
  Encodings row = video;
  row.sides = {5};
  Encodings text = row;
  text.geometry = Encodings::Geometry::string;
  CHECK((row.covariance(5, 5) - text.covariance(5, 5)).norm() < 1e-15);
}

/// Σ_δ m(a+δ, b+δ)/9 of images of 3 x 4 tokens, zero beyond the border.
Matrix<> convolved(const Matrix<>& m) {
  constexpr int height = 3;
  constexpr int width = 4;
  const auto inside = [](int y, int x) { return y >= 0 && y < height && x >= 0 && x < width; };
  Matrix<> result = Matrix<>::Zero(12, 12);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int v = 0; v < height; ++v) {
        for (int u = 0; u < width; ++u) {
          for (int dy = -1; dy <= 1; ++dy) {
            for (int dx = -1; dx <= 1; ++dx) {
              if (!inside(y + dy, x + dx) || !inside(v + dy, u + dx)) continue;
              result(y * width + x, v * width + u) +=
                  m((y + dy) * width + x + dx, (v + dy) * width + u + dx) / 9;
            }
          }
        }
      }
    }
  }
  return result;
}

TEST_CASE("A convolution's kernels are those of the loops of its definition") {
  const Kernel k = random_kernel({12}, 3);
  const Matrix<> nngp = random_matrix(12, 12, 4);
  const Matrix<> ntk = random_matrix(12, 12, 5);
  Convolution layer{.sigma_w = 1.4, .sigma_b = 0.6, .sides = {3, 4}};
  const Matrix<> expected = (1.96 * convolved(nngp)).array() + 0.36;
  const PairKernel padded = mapped(layer, k.nngp, nngp, ntk);
  CHECK((padded.nngp.read() - expected).norm() < 1e-14);
  CHECK((padded.ntk.read() - expected - 1.96 * convolved(ntk)).norm() < 1e-14);
  layer.padded = false;  // one row of two tokens: (1, 1) and (1, 2)
  const PairKernel valid = mapped(layer, k.nngp, nngp, ntk);
  REQUIRE(valid.nngp.rows() == 2);
  const std::array<Index, 2> kept{5, 6};
  CHECK((valid.nngp.read() - expected(kept, kept)).norm() < 1e-14);
  // A filter of one token is a dense layer.
  layer.filter = 1;
  const PairKernel one = mapped(layer, k.nngp, nngp, ntk);
  const PairKernel dense = mapped(Dense{1.4, 0.6}, k.nngp, nngp, ntk);
  CHECK((one.ntk.read() - dense.ntk.read()).norm() == 0);
}

TEST_CASE("A local average is that of the loops of its definition, a wide one the global one") {
  // The mean over a window on either side: apart from a factor, a convolution of each side by itself.
  const Kernel k = random_kernel({3}, 3);
  const Matrix<> ntk = random_matrix(3, 3, 5);
  const PairKernel near_ones = mapped(LocalAveragePool{}, k.nngp, k.nngp, ntk);
  Matrix<> p(3, 3);
  p << 1, 1, 0, 1, 1, 1, 0, 1, 1;
  CHECK((near_ones.nngp.read() - p * k.nngp * p.transpose() / 9).norm() < 1e-14);
  CHECK((near_ones.ntk.read() - p * ntk * p.transpose() / 9).norm() < 1e-14);
  const PairKernel wide = mapped(LocalAveragePool{5}, k.nngp, k.nngp, ntk);
  const PairKernel all = mapped(GlobalAveragePool{}, k.nngp, k.nngp, ntk);
  CHECK_THAT(wide.ntk.read()(0, 2), WithinAbs(all.ntk.read()(0, 0) * 9 / 25, 1e-14));
}

TEST_CASE("Kernels of finite convolutional networks scatter around their limit") {
  // The inputs of ReLU are normal at any width, and all that follows is linear: means have no bias.
  const std::vector<Matrix<>> inputs{random_matrix(12, 2, 1), random_matrix(12, 2, 2)};
  const GridSides sides{3, 4};
  const std::vector<Layer> layers{Convolution{1.4, 0.6, 3, sides},
                                  Nonlinearity{Function::relu},
                                  LocalAveragePool{3, sides},
                                  Convolution{1.2, 0.3, 3, sides, /*padded=*/false},
                                  Flatten{},
                                  Dense{1.3, 0.2}};
  const Network network(layers);
  const std::vector<PreparedInput> prepared = prepare(network, inputs);
  const GramMatrices limit = gram(2, NetworkPairs(network, prepared));
  constexpr int networks = 2000;
  using Sums = Eigen::Array<double, 6, 1>;
  Sums sum = Sums::Zero();
  Sums squares = Sums::Zero();
  const auto numbers = [](const GramMatrices& k) -> Sums {
    Sums all;
    all << k.nngp(0, 0), k.nngp(0, 1), k.nngp(1, 1), k.ntk(0, 0), k.ntk(0, 1), k.ntk(1, 1);
    return all;
  };
  for (int i = 0; i < networks; ++i) {
    const Sums one =
        numbers(finite_kernels(layers, inputs, {4, 1, 1}, static_cast<std::uint64_t>(i)));
    sum += one;
    squares += one.square();
  }
  const Sums mean = sum / networks;
  const Sums error = ((squares / networks - mean.square()) / networks).sqrt();
  const Sums expected = numbers(limit);
  for (Index i = 0; i < 6; ++i) {
    CAPTURE(i, mean(i), expected(i), error(i));
    CHECK(error(i) < 0.05 * expected(i));
    CHECK(std::abs(mean(i) - expected(i)) < 4.5 * error(i));
  }
}

/// The contribution of every entry of a kernel of 5 tokens to the middle one after a layer, its own input fixed.
Matrix<> influence(const Layer& layer, const Matrix<>& own) {
  Matrix<> all(5, 5);
  for (Index c = 0; c < 5; ++c) {
    for (Index d = 0; d < 5; ++d) {
      Matrix<> k = Matrix<>::Zero(5, 5);
      k(c, d) = 1;
      all(c, d) = mapped(layer, own, k, Matrix<>::Zero(5, 5)).nngp.read()(2, 2);
    }
  }
  return all;
}

TEST_CASE("With scores over d no attention is a convolution") {
  // Proposition 2: Σ_cd K_cd z_c z_d has rank one in K's coefficients, a convolution of d_f tokens has d_f equal
  // singular values 1/d_f. The nearest matrix of rank one leaves out all of them but one.
  using enum SelfAttention::WeightFunction;
  const Matrix<> filter = influence(Convolution{1, 0}, Matrix<>::Identity(5, 5));
  Matrix<> expected = Matrix<>::Zero(5, 5);
  expected.diagonal() << 0, 1, 1, 1, 0;
  CHECK((filter - expected / 3).norm() < 1e-15);
  double nearest = 1;
  for (const auto weights : {softmax, identity, relu, abs}) {
    for (const double phi : {0.0, 3.0, 300.0}) {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        SelfAttention layer;
        layer.weights = weights;
        layer.encodings = {Encodings::Geometry::string, 0.5, 1, phi};
        layer.encodings.in_values = false;
        const Kernel own = random_kernel({5}, seed);
        const Matrix<> of_attention = influence(layer, own.nngp);
        const Eigen::VectorXd eigenvalues = kernels::detail::symmetric_eigenvalues(of_attention);
        REQUIRE(eigenvalues.head(4).cwiseAbs().maxCoeff() < 1e-12 * eigenvalues(4));
        for (const double scale : {1.0, 1 / of_attention.trace()}) {
          nearest = std::min(nearest, (scale * of_attention - filter).norm());
        }
      }
    }
  }
  CAPTURE(nearest);
  CHECK(nearest > std::sqrt(2) / 3);
}

TEST_CASE("With scores over the root of d attention can be a convolution") {
  // Proposition 4: every head attends to one place i of all windows, drawn once for all tokens. Scores are then not
  // normal; softmax makes weights of them in the limit of large ones.
  const Kernel k = random_kernel({6, 6}, 8);
  const Convolution filter{.sigma_w = 1.1, .padded = false};
  const Kernel expected = propagate(filter, k);
  const auto after_attention = [&](double score) {
    Matrix<> mean = Matrix<>::Zero(8, 8);
    for (Index place = 0; place < 3; ++place) {  // of the same probability
      Matrix<> z = Matrix<>::Zero(8, 12);
      for (Index input = 0; input < 2; ++input) {
        for (Index a = 0; a < 4; ++a) {
          Eigen::RowVectorXd weights = Eigen::RowVectorXd::Ones(6);
          weights(a + place) = std::exp(score);
          weights /= weights.sum();
          z.row(4 * input + a).segment(6 * input, 6) = weights;
        }
      }
      mean += z * k.nngp * z.transpose() / 3;
    }
    return Matrix<>(1.21 * mean);
  };
  CHECK((after_attention(40) - expected.nngp).norm() < 1e-14);
  CHECK((after_attention(0) - expected.nngp).norm() > 0.1);
}

TEST_CASE("A norm of each head is one of the layer, but for what leaves the heads") {
  // Scores over d are constants, so that all heads have one variance.
  const Kernel k = random_kernel({3, 2}, 4);
  SelfAttention layer;
  layer.causal = true;
  layer.sigma_q = 1.3;
  layer.sigma_v = 0.7;
  layer.encodings = {Encodings::Geometry::string, 0.6, 1, 2};
  for (const bool in_values : {true, false}) {
    layer.encodings.in_values = in_values;
    layer.norm_heads = false;
    const Kernel of_layer = propagate(LayerNorm{}, propagate(layer, k));
    layer.norm_heads = true;
    const Kernel of_heads = propagate(layer, k);
    CHECK((of_heads.nngp - of_layer.nngp).norm() < 1e-13);
    CHECK((of_heads.ntk - of_layer.ntk).norm() < 1e-13);
  }
  layer.scores = SelfAttention::ScoreScale::over_root_d;
  CHECK_THROWS_WITH(propagate(layer, k), ContainsSubstring("norm_heads = true: expected scores"));
}

TEST_CASE("Kernels of finite networks with normalized heads scatter around their limit") {
  // Uniform attention, whose heads have the mean token's variance; a norm over 64 features has a bias of order 1/64.
  const Matrix<> x = random_matrix(3, 4, 1);
  const std::vector<Matrix<>> inputs{x, 0.8 * x + 0.6 * random_matrix(3, 4, 2)};
  SelfAttention attention;
  attention.scores = SelfAttention::ScoreScale::over_d;
  attention.norm_heads = true;
  attention.sigma_q = 0;
  attention.sigma_v = 1.1;
  attention.sigma_o = 1.4;
  attention.sigma_b = 0.4;
  const std::vector<Layer> layers{attention, GlobalAveragePool{}, Dense{1.3, 0.2}};
  const Network network(layers);
  const std::vector<PreparedInput> prepared = prepare(network, inputs);
  const GramMatrices limit = gram(2, NetworkPairs(network, prepared));
  constexpr int networks = 600;
  Eigen::Array2d sum = Eigen::Array2d::Zero();
  Eigen::Array2d squares = sum;
  for (int i = 0; i < networks; ++i) {
    const GramMatrices one =
        finite_kernels(layers, inputs, {16, 2, 1, 64}, static_cast<std::uint64_t>(i));
    const Eigen::Array2d both(one.nngp(0, 1), one.ntk(0, 1));
    sum += both;
    squares += both.square();
  }
  const Eigen::Array2d mean = sum / networks;
  const Eigen::Array2d error = ((squares / networks - mean.square()) / networks).sqrt();
  const Eigen::Array2d expected(limit.nngp(0, 1), limit.ntk(0, 1));
  CAPTURE(mean, error, expected);
  CHECK((error < 0.05 * expected).all());
  CHECK(((mean - expected).abs() < 4.5 * error + 0.02 * expected).all());
}

}  // namespace
