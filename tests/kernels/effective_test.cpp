// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Cross attention in the effective theory against sampled scores, and its corrections of order 1/n against sampled
// networks.

#include <Eigen/Cholesky>
#include <cmath>

#include "kernels/random_kernel.hpp"
#include "scalewise/kernels/softmax_monte_carlo.hpp"
#include "scalewise/kernels/softmax_quadrature.hpp"
#include "scalewise/kernels/vertex.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

using namespace scalewise;
using namespace scalewise::kernels;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

namespace {

EffectiveScales some_scales() {
  EffectiveScales scales;
  scales.epsilon = 0.1;
  scales.query = {1.7, 0.3};
  scales.key = {0.6, 1.1};
  scales.value = {0.8, 0.7};
  scales.attention_output = {1.4, 0.9};
  scales.mlp_up = {1.3, 1};
  scales.mlp_down = {2.5, 1};
  return scales;
}

/// Softmax of one query's scores.
Eigen::VectorXd softmax_of(const Eigen::VectorXd& scores) {
  const Eigen::VectorXd e = scores.array().exp();
  return e / e.sum();
}

/// Its derivatives by every score, from central differences.
Matrix<> slopes_of(const Eigen::VectorXd& scores) {
  constexpr double h = 1e-6;
  Matrix<> j(scores.size(), scores.size());
  for (Index d = 0; d < scores.size(); ++d) {
    Eigen::VectorXd up = scores;
    Eigen::VectorXd down = scores;
    up(d) += h;
    down(d) -= h;
    j.col(d) = (softmax_of(up) - softmax_of(down)) / (2 * h);
  }
  return j;
}

TEST_CASE("Cross attention has the kernels of sampled scores") {
  const Kernel decoder = random_kernel({2, 2}, 21);
  const Kernel memory = random_kernel({2, 3}, 22);
  const EffectiveScales scales = some_scales();
  const EffectiveBlock block = cross_attention_block(decoder, memory, scales);
  // By hand: what LayerNorm makes of both, between token 1 of the first and token 0 of the second input.
  const auto normalized = [](const Kernel& k, const Matrix<>& m) {
    Matrix<> f = m;
    for (Index i = 0; i < f.rows(); ++i) {
      for (Index j = 0; j < f.cols(); ++j)
        f(i, j) /= std::sqrt((k.nngp(i, i) + 0.1) * (k.nngp(j, j) + 0.1));
    }
    return f;
  };
  const Matrix<> q = normalized(decoder, decoder.nngp);
  const Matrix<> q_theta = normalized(decoder, decoder.ntk);
  const Matrix<> f = normalized(memory, memory.nngp);
  const Matrix<> f_theta = normalized(memory, memory.ntk);
  const Index left = 1;
  const Index right = 2;
  // Scores of one query of either input: two and three keys.
  Eigen::MatrixXd covariance(5, 5);
  for (Index i = 0; i < 5; ++i) {
    for (Index j = 0; j < 5; ++j) {
      covariance(i, j) = 1.7 * 0.6 * q(i < 2 ? left : right, j < 2 ? left : right) * f(i, j);
    }
  }
  covariance.diagonal().array() += 1e-13;
  const Eigen::MatrixXd root = covariance.llt().matrixL();
  const Matrix<> keys = f.block(0, 2, 2, 3);
  const Matrix<> keys_theta = f_theta.block(0, 2, 2, 3);
  constexpr int samples = 40'000;
  numeric::RandomStream stream(5, "cross scores");
  Eigen::Array2d sum = Eigen::Array2d::Zero();
  Eigen::Array2d squares = sum;
  for (int n = 0; n < samples; ++n) {
    Eigen::VectorXd z(5);
    for (double& x : z) x = stream.normal();
    z = root * z;
    const Eigen::VectorXd p = softmax_of(z.head(2));
    const Eigen::VectorXd r = softmax_of(z.tail(3));
    const double value = p.dot(keys * r);
    const Matrix<> through_scores = slopes_of(z.head(2)).transpose() * keys * slopes_of(z.tail(3));
    const double slope = through_scores.cwiseProduct(keys).sum();
    const double slope_ntk = through_scores.cwiseProduct(keys_theta).sum();
    const double own = (0.9 * 0.8 + 0.7 * 1.4) * value +
                       1.4 * 0.8 * (1.1 * 1.7 + 0.3 * 0.6) * q(left, right) * slope;
    const double passed = 1.4 * 0.8 *
                          (p.dot(keys_theta * r) +
                           1.7 * 0.6 * (q_theta(left, right) * slope + q(left, right) * slope_ntk));
    const Eigen::Array2d one(1.4 * 0.8 * value, own + passed);
    sum += one;
    squares += one.square();
  }
  const Eigen::Array2d mean = sum / samples;
  const Eigen::Array2d error = ((squares / samples - mean.square()) / samples).sqrt();
  const Eigen::Array2d found(block.kernel.nngp(left, right) - decoder.nngp(left, right),
                             block.kernel.ntk(left, right) - decoder.ntk(left, right));
  CAPTURE(mean, error, found);
  CHECK((error < 0.02 * mean.abs()).all());
  CHECK(((found - mean).abs() < 4.5 * error).all());
}

TEST_CASE(
    "Cross attention to the stream itself is attention, and samples where it cannot integrate") {
  const Kernel k = random_kernel({3, 2}, 23);
  const EffectiveScales scales = some_scales();
  const Kernel self = attention_block(k, scales, /*causal=*/false).kernel;
  const Kernel cross = cross_attention_block(k, Kernel(k), scales).kernel;
  CHECK((self.nngp - cross.nngp).norm() < 1e-12);
  CHECK((self.ntk - cross.ntk).norm() < 1e-12);
  const Matrix<> own_left = k.tokens.block(k.nngp, 0, 0);
  const Matrix<> own_right = k.tokens.block(k.nngp, 1, 1);
  const Matrix<> a = k.tokens.block(k.nngp, 0, 1);
  const Matrix<> theta = k.tokens.block(k.ntk, 0, 1);
  const Queries queries{Array::Constant(1, 1.2), Array::Constant(4, 0.9),
                        Matrix<>::Constant(1, 4, -0.5)};
  const ScoreKernels s{own_left, own_right, a, theta, a, theta, 0.8, false, &queries};
  const ScoreMoments exact = SoftmaxQuadrature(s).moments();
  const ScoreMoments sampled = mean(softmax_monte_carlo(s, {}));
  REQUIRE(exact.slope.cols() == 4);
  CHECK((exact.value - sampled.value).norm() < 1e-3 * exact.value.norm());
  CHECK((exact.slope_ntk - sampled.slope_ntk).norm() < 1e-3 * exact.slope_ntk.norm());
  CHECK_THAT(error_message([&] { cross_attention_block(k, random_kernel({2}, 1), scales); }),
             ContainsSubstring("inputs of the memory = 1: expected 2"));
}

TEST_CASE("Blocks follow each other, however many tokens a text has") {
  QuasiMonteCarlo sample;
  sample.points = 64;
  for (const bool causal : {true, false}) {
    Kernel k = language_stem({{1, 2, 3, 4, 5, 6, 7}, {3, 3, 2, 1, 8, 1}}, {});
    for (int layer = 0; layer < 2; ++layer) {
      k = attention_block(k, {}, causal, sample).kernel;
      k = mlp_block(k, {}, Function::gelu).kernel;  // which refuses what is no kernel
    }
    CHECK(k.nngp.allFinite());
  }
}

TEST_CASE("Moments of the vertex keep their digits where activations are steps") {
  for (const Function f : {Function::erf, Function::gelu, Function::relu}) {
    for (const double c_w : {30.0, 100.0, 1e4}) {
      EffectiveScales scales;
      scales.mlp_up.variance = c_w;
      const Eigen::Vector3d k = mlp_block_vertex(stem_vertex({2, 0.999, 1}), scales, f, 4).kernel -
                                Eigen::Vector3d(2, 0.999, 1);
      CHECK_THAT(k(0), WithinRel(dual(f, c_w, c_w, c_w).value, 1e-9));
      CHECK_THAT(k(1), WithinRel(dual(f, c_w, c_w, c_w * 0.999 / std::sqrt(2)).value, 1e-9));
    }
  }
}

TEST_CASE("Constants that no network has are refused") {
  const Kernel k = random_kernel({2}, 3);
  EffectiveScales scales = some_scales();
  scales.query.variance = -1;
  CHECK_THAT(error_message([&] { attention_block(k, scales, true); }),
             ContainsSubstring("C of query = -1"));
  scales = some_scales();
  scales.mlp_down.rate = std::nan("");
  CHECK_THAT(error_message([&] { mlp_block(k, scales, Function::relu); }),
             ContainsSubstring("Λ of mlp_down = nan"));
  CHECK_THAT(error_message([&] { EffectiveHead{}(k, scales); }), ContainsSubstring("mlp_down"));
  CHECK_THAT(error_message([] {
               mlp_block_vertex(stem_vertex({1, 2, 1}), {}, Function::relu, 4);
             }),
             ContainsSubstring("covariance = 2"));
}

TEST_CASE("Moments of the vertex have closed forms") {
  const Eigen::Vector3d k(1.3, -0.4, 0.8);
  // Wick's theorem for the identity.
  const auto linear = kernels::detail::pair_moments(Function::identity, k);
  CHECK((linear.second - k).norm() < 1e-12);
  CHECK((linear.jacobian - Eigen::Matrix3d::Identity()).norm() < 1e-12);
  CHECK_THAT(linear.fourth(0, 0), WithinRel(2 * 1.3 * 1.3, 1e-12));
  CHECK_THAT(linear.fourth(0, 2), WithinRel(2 * 0.4 * 0.4, 1e-12));
  CHECK_THAT(linear.fourth(1, 1), WithinRel(1.3 * 0.8 + 0.4 * 0.4, 1e-12));
  CHECK_THAT(linear.fourth(1, 2), WithinRel(2 * -0.4 * 0.8, 1e-12));
  // ReLU: E f⁴ = 3 k²/2, E f² = k/2; E f f and its derivatives are dual() and its differences.
  const auto relu = kernels::detail::pair_moments(Function::relu, k);
  CHECK_THAT(relu.fourth(0, 0), WithinRel(1.3 * 1.3 * (1.5 - 0.25), 1e-12));
  CHECK_THAT(relu.jacobian(2, 2), WithinRel(0.5, 1e-12));
  for (const Function f : {Function::relu, Function::gelu, Function::erf}) {
    const auto m = kernels::detail::pair_moments(f, k);
    CHECK_THAT(m.second(1), WithinRel(dual(f, k(0), k(2), k(1)).value, 1e-9));
    for (Index j = 0; j < 3; ++j) {
      Eigen::Vector3d up = k;
      Eigen::Vector3d down = k;
      up(j) += 1e-5;
      down(j) -= 1e-5;
      const double difference =
          dual(f, up(0), up(2), up(1)).value - dual(f, down(0), down(2), down(1)).value;
      CHECK_THAT(m.jacobian(1, j), WithinRel(difference / 2e-5, 1e-7));
    }
  }
}

/// n Cov of the kernel of two tokens over networks, and of that of preactivations: normal embeddings, then blocks of
/// LayerNorm and an MLP.
struct Scatter {
  Eigen::Matrix3d stream, preactivations, stream_error, preactivations_error;
};

/// n Cov of the columns, and its standard errors.
void covariance(const Eigen::MatrixX3d& kernels, Index n, Eigen::Matrix3d& mean,
                Eigen::Matrix3d& error) {
  const Eigen::MatrixX3d centred = kernels.rowwise() - kernels.colwise().mean();
  const auto networks = static_cast<double>(kernels.rows());
  mean.setZero();
  error.setZero();
  for (const auto& row : centred.rowwise()) {
    const Eigen::Matrix3d product = static_cast<double>(n) * row.transpose() * row;
    mean += product / networks;
    error += product.cwiseAbs2() / networks;
  }
  error = ((error - mean.cwiseAbs2()) / networks).cwiseSqrt();
}

Scatter sampled_vertex(Function f, const Eigen::Matrix2d& stem, Index n, Index multiplier,
                       int blocks, int networks) {
  numeric::RandomStream stream(9, "networks of the vertex");
  const auto nd = static_cast<double>(n);
  const auto normal = [&](Index rows, Index columns) {
    Matrix<> m(rows, columns);
    for (double& x : m.reshaped()) x = stream.normal();
    return m;
  };
  const auto of_preactivations = [&](const Matrix<>& z) {
    Matrix<> s = z.colwise() - z.rowwise().mean().eval();
    for (Index t = 0; t < 2; ++t) s.row(t) /= std::sqrt(s.row(t).squaredNorm() / nd + 0.1);
    return Eigen::Matrix2d(1.3 * s * s.transpose() / nd);
  };
  const Eigen::Matrix2d root = stem.llt().matrixL();
  Eigen::MatrixX3d of_stream(networks, 3);
  Eigen::MatrixX3d of_w(networks, 3);
  for (int network = 0; network < networks; ++network) {
    Matrix<> z = root * normal(2, n);
    for (int block = 0; block < blocks; ++block) {
      // Weights are normal: given what enters, a neuron's preactivations, and later its features, are too.
      const Eigen::Matrix2d root_of_w = of_preactivations(z).llt().matrixL();
      const Matrix<> w = root_of_w * normal(2, multiplier * n);
      const Matrix<> x =
          w.unaryExpr([f](double u) { return kernels::detail::FiniteActivation::value(f, u); });
      const Eigen::Matrix2d of_r = 2.5 * x * x.transpose() / (nd * static_cast<double>(multiplier));
      const Eigen::Matrix2d root_of_r = of_r.llt().matrixL();
      z += root_of_r * normal(2, n);
    }
    const Eigen::Matrix2d g = z * z.transpose() / nd;
    const Eigen::Matrix2d w = of_preactivations(z);
    of_stream.row(network) << g(0, 0), g(0, 1), g(1, 1);
    of_w.row(network) << w(0, 0), w(0, 1), w(1, 1);
  }
  Scatter all;
  covariance(of_stream, n, all.stream, all.stream_error);
  covariance(of_w, n, all.preactivations, all.preactivations_error);
  return all;
}

/// Each entry within its standard errors and 3 % for the next order in 1/n.
void check_vertex(const Eigen::Matrix3d& sampled, const Eigen::Matrix3d& error,
                  const Eigen::Matrix3d& vertex) {
  CAPTURE(sampled, vertex, error);
  const Eigen::Vector3d sizes = vertex.diagonal().cwiseSqrt();
  const Eigen::Matrix3d allowed = 4.5 * error + 0.03 * sizes * sizes.transpose();
  CHECK(((sampled - vertex).array().abs() < allowed.array()).all());
  CHECK((error.diagonal().array() < 0.03 * vertex.diagonal().array()).all());
}

TEST_CASE("Kernels of finite networks scatter by the vertex") {
  Eigen::Matrix2d stem;
  stem << 1.4, 0.8, 0.8, 0.9;
  for (const Function f : {Function::relu, Function::gelu}) {
    PairVertex stream = stem_vertex({1.4, 0.8, 0.9});
    for (int blocks = 0; blocks < 3; ++blocks) {
      if (blocks > 0) stream = mlp_block_vertex(stream, some_scales(), f, 2);
      CAPTURE(static_cast<int>(f), blocks);
      const Scatter sampled = sampled_vertex(f, stem, 192, 2, blocks, 6000);
      check_vertex(sampled.stream, sampled.stream_error, stream.vertex);
      check_vertex(sampled.preactivations, sampled.preactivations_error,
                   preactivation_vertex(stream, some_scales()).vertex);
    }
  }
  CHECK_THAT(error_message([] {
               preactivation_vertex(stem_vertex({0, 0, 1}), {});
             }),
             ContainsSubstring("variance of a token = 0"));
  CHECK_THAT(error_message([] {
               mlp_block_vertex(stem_vertex({1, 0, 1}), {}, Function::relu, 0);
             }),
             ContainsSubstring("multiplier = 0"));
}

TEST_CASE("The fourth moment of preactivations is connected by the vertex") {
  // (1.71) for weights by weights: features of a normal stem, LayerNorm, a matrix W; features i and j of the output.
  constexpr Index n = 24;
  constexpr int networks = 20'000;
  const EffectiveScales scales = some_scales();
  const PairVertex w = preactivation_vertex(stem_vertex({1.4, 0.5, 0.9}), scales);
  const Eigen::Matrix2d root = (Eigen::Matrix2d() << 1.4, 0.5, 0.5, 0.9).finished().llt().matrixL();
  const auto normalized_stem = [&](numeric::RandomStream& stream) {
    Matrix<> z(2, n);
    for (double& x : z.reshaped()) x = stream.normal();
    z = (root * z).eval();
    z.colwise() -= z.rowwise().mean().eval();
    for (Index t = 0; t < 2; ++t) z.row(t) /= std::sqrt(z.row(t).squaredNorm() / n + 0.1);
    return z;
  };
  numeric::RandomStream stream(10, "preactivations");
  Eigen::ArrayXd connected(networks);
  for (double& one : connected) {
    const Matrix<> z = normalized_stem(stream);
    Matrix<> weights(n, n);
    for (double& x : weights.reshaped()) x = std::sqrt(1.3 / n) * stream.normal();
    const Matrix<> out = z * weights;
    // Over all pairs i ≠ j: w_ai w_bi w_aj w_bj, the entry (ab)(ab).
    const Eigen::ArrayXd product = out.row(0).cwiseProduct(out.row(1));
    one = (std::pow(product.sum(), 2) - product.square().sum()) / (n * (n - 1.0));
  }
  // The mean of a product of two features, over n - 1 degrees of freedom; its square is taken off.
  numeric::RandomStream again(11, "preactivations");
  Eigen::ArrayXd pair(networks);
  for (double& one : pair) {
    const Matrix<> z = normalized_stem(again);
    one = 1.3 * z.row(0).dot(z.row(1)) / n;
  }
  const double mean = pair.mean();
  const double found = n * (connected.mean() - mean * mean);
  const double error = n * std::sqrt((connected - connected.mean()).square().mean() / networks);
  CAPTURE(found, w.vertex(1, 1), error);
  CHECK(error < 0.1 * w.vertex(1, 1));
  CHECK(std::abs(found - w.vertex(1, 1)) < 4 * error + 3 * w.vertex(1, 1) / n);
}

}  // namespace
