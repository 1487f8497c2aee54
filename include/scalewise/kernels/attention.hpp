// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "scalewise/kernels/encodings.hpp"
#include "scalewise/kernels/pair_kernel.hpp"
#include "scalewise/kernels/softmax_moments.hpp"

namespace scalewise::kernels {

namespace detail {

/// A mean of matrices, entry by entry, and its standard error; zero of one matrix.
struct MatrixEstimate {
  Matrix<> mean, error;
};

inline MatrixEstimate mean_of(const std::vector<Matrix<>>& samples) {
  const Matrix<> zero = Matrix<>::Zero(samples[0].rows(), samples[0].cols());
  const auto n = static_cast<double>(samples.size());
  MatrixEstimate result{zero, zero};
  for (const Matrix<>& sample : samples) result.mean += sample;
  result.mean /= n;
  if (samples.size() == 1) return result;
  for (const Matrix<>& sample : samples) result.error += (sample - result.mean).cwiseAbs2();
  result.error = (result.error / (n * (n - 1))).cwiseSqrt();
  return result;
}

}  // namespace detail

/// Self-attention with infinitely many heads of infinite width.
/// Equation: per head Q = g W_Q, K = g W_K, V = g W_V, scores G = Q Kᵀ/d^τ, output ζ(G) V, all heads
///           side by side times W_O, plus a bias.
///           G over d (τ = 1): Z = ζ(σ_qk A(x,x)) is deterministic, and
///           K' = σ_ov² Z(x) B(x,x') Z(x')ᵀ + σ_b²; Θ' = 2(K' - σ_b²) + σ_ov² Z(x) Θ_B Z(x')ᵀ + σ_b²
///           with A and B the kernels that queries and keys, and values see, σ_qk = σ_Q σ_K and
///           σ_ov = σ_O σ_V; with a LayerNorm of each head before W_O, σ_V Z B Z'ᵀ σ_V is divided by the roots of its
///           variances, and so are the terms of Θ'
///           G over √d (τ = 1/2): G is Gaussian, and with the ScoreMoments
///           K' = σ_ov² value + σ_b², Θ' = 2(K' - σ_b²) + σ_ov² value_ntk +
///           σ_ov² σ_qk² ((2A + Θ_A)_ab slope_ab + A_ab slope_ntk_ab) + σ_b²
/// Source:   Hron et al. 2020 (arXiv:2006.10540), (7), (12), (15) for τ = 1; (8), (9) and Theorem 18
///           for τ = 1/2; the norm of heads: Section 4.1, derived.
/// Accuracy: closed forms, except for softmax over √d: see softmax_moments().
struct SelfAttention {
  /// tied_over_d: τ = 1 and W_Q = W_K up to their deviations; over_d: τ = 1, independent, so that
  /// all scores vanish; over_root_d: τ = 1/2, independent.
  enum class ScoreScale { tied_over_d, over_d, over_root_d };
  /// ζ, over the keys of a query (softmax) or on every score.
  enum class WeightFunction { softmax, identity, relu, abs };

  ScoreScale scores = ScoreScale::tied_over_d;
  WeightFunction weights = WeightFunction::softmax;
  bool causal = false;      // a token sees itself and earlier ones
  bool norm_heads = false;  // LayerNorm over the output of each head; kernels: of scores over d
  double sigma_q = 1;
  double sigma_k = 1;
  double sigma_v = 1;
  double sigma_o = 1;
  double sigma_b = 0;  // of the output bias
  Encodings encodings;
  QuasiMonteCarlo sample;  // of softmax over √d of many tokens

  struct Own {
    Matrix<> weights;    // σ_ov Z, or A(x,x) where scores are over √d
    Matrix<> encodings;  // R(x,x)
  };

  /// Throws:   InvalidInput for a deviation that is negative or not finite, or as the encodings do; for heads that are
  ///           normalized of scores over √d, whose kernel is not known, and where their output has no variance.
  Own prepare(const PairKernel& own) const {
    for (const double sigma : {sigma_q, sigma_k, sigma_v, sigma_o, sigma_b}) {
      detail::require_nonnegative(sigma, "sigma");
    }
    detail::variances(own);
    const Index tokens = own.rows();
    Own result;
    result.encodings = encodings.covariance(tokens, tokens);
    PairKernel seen = own;
    encodings.interpolate(seen, dense::entries(result.encodings));
    result.weights = seen.nngp.read();
    if (scores == ScoreScale::over_root_d) {
      if (norm_heads) {
        throw InvalidInput("norm_heads", "true", "scores over d",
                           "weights over the root stay random");
      }
      return result;
    }
    result.weights *= scores == ScoreScale::over_d ? 0 : sigma_q * sigma_k;
    for (Index a = 0; a < tokens; ++a)
      weigh(result.weights.row(a).array(), causal ? a + 1 : tokens);
    if (norm_heads) normalize(result.weights, encodings.in_values ? seen : own);
    result.weights *= sigma_o * sigma_v;
    return result;
  }

  void map(PairKernel& pair, const Own& left, const Own& right) const {
    if (scores == ScoreScale::over_root_d) {
      const Sampled e = estimate(pair, left, right);
      pair.nngp.view() = e.nngp;
      pair.ntk.view() = e.ntk;
      return;
    }
    if (encodings.in_values) {
      if (pair.rows() == pair.cols()) {
        encodings.interpolate(pair, dense::entries(left.encodings));
      } else {
        encodings.covariance(pair.rows(), pair.cols(), pair.work.shape(pair.rows(), pair.cols()));
        encodings.interpolate(pair, pair.work.entries());
      }
    }
    pair.ntk.entries() += 2 * pair.nngp.entries();
    const double bias = sigma_b * sigma_b;
    for (auto* m : {&pair.nngp, &pair.ntk}) {
      detail::sandwich(left.weights, m->view(), right.weights,
                       pair.work.shape(pair.rows(), pair.cols()), pair.diagonal_only);
      if (bias > 0) m->entries() += bias;
    }
  }

  /// The output of the layer, with standard errors where it is an estimate and zeros where it is exact.
  struct Sampled {
    Matrix<> nngp, ntk, nngp_error, ntk_error;
  };

  /// The kernels after a layer with scores over √d.
  /// Throws:   InvalidInput for other scores, or an indefinite kernel.
  Sampled estimate(const PairKernel& pair, const Own& left, const Own& right) const {
    if (scores != ScoreScale::over_root_d) {
      throw InvalidInput("scores", "over d", "over the root of d", "use map()");
    }
    const Matrix<> k = pair.nngp.read();
    const Matrix<> theta = pair.ntk.read();
    PairKernel seen = pair;
    encodings.interpolate(seen, dense::entries(encodings.covariance(k.rows(), k.cols())));
    const Matrix<> a = seen.nngp.read();
    const Matrix<> a_ntk = seen.ntk.read();
    const bool in_values = encodings.in_values;
    const double ov = sigma_o * sigma_v * sigma_o * sigma_v;
    const double qk = sigma_q * sigma_k * sigma_q * sigma_k;
    const ScoreKernels kernels{
        left.weights, right.weights, a, a_ntk, in_values ? a : k, in_values ? a_ntk : theta,
        qk,           causal};
    std::vector<Matrix<>> nngp, ntk;
    for (const ScoreMoments& m : moments(kernels)) {
      nngp.emplace_back((ov * m.value).array() + sigma_b * sigma_b);
      ntk.emplace_back(nngp.back() + ov * (m.value + m.value_ntk +
                                           qk * ((2 * a + a_ntk).cwiseProduct(m.slope) +
                                                 a.cwiseProduct(m.slope_ntk))));
    }
    const auto [nngp_mean, nngp_error] = detail::mean_of(nngp);
    const auto [ntk_mean, ntk_error] = detail::mean_of(ntk);
    return {nngp_mean, ntk_mean, nngp_error, ntk_error};
  }

 private:
  std::vector<ScoreMoments> moments(const ScoreKernels& kernels) const {
    switch (weights) {
      case WeightFunction::softmax:
        return softmax_moments(kernels, sample);
      case WeightFunction::identity:
        return {identity_moments(kernels)};
      case WeightFunction::relu:
        return {elementwise_moments(Function::relu, kernels)};
      case WeightFunction::abs:
        return {elementwise_moments(Function::abs, kernels)};
    }
    return {};
  }

  /// Rows of weights over the deviations of the heads' output.
  void normalize(Matrix<>& z, const PairKernel& values) const {
    const Array variances =
        sigma_v * sigma_v * (z * values.nngp.read()).cwiseProduct(z).rowwise().sum().array();
    if (!(variances.minCoeff() > 0)) {
      throw InvalidInput("variance of a head", numeric::number_text(variances.minCoeff()),
                         "a positive one");
    }
    z.array().colwise() *= variances.rsqrt();
  }

  /// ζ of a row of scores that sees its first keys.
  template <class Row>
  void weigh(Row row, Index keys) const {
    auto seen = row.head(keys);
    switch (weights) {
      case WeightFunction::softmax:
        seen = (seen - seen.maxCoeff()).exp();
        seen /= seen.sum();
        break;
      case WeightFunction::identity:
        break;
      case WeightFunction::relu:
        seen = (seen.max)(0.0);
        break;
      case WeightFunction::abs:
        seen = seen.abs();
        break;
    }
    row.tail(row.size() - keys).setZero();
  }
};

/// A share of the input, next to attention whose weights are the encodings' covariance.
/// Equation: K' = α K + (1-α) σ² R K R'ᵀ, Θ' = α Θ + (1-α) σ² (2 R K R'ᵀ + R Θ R'ᵀ), R = R(x,x),
///           R' = R(x',x'), σ² = σ_qk² σ_ov²
/// Source:   Hron et al. 2020, (16), Appendix D, RESIDUAL: √α g + √(1-α) times attention over d with
///           ζ the identity, of which only queries and keys see the encodings.
/// Differs:  Table 1 prints 2(1-α)κ in Θ', which is right if κ is the branch R K R'ᵀ alone; finite
///           networks agree.
struct ResidualAttention {
  Encodings encodings{Encodings::Geometry::string};  // its α is that of the sum
  double sigma_qk = 1;
  double sigma_ov = 1;

  struct Own {
    Matrix<> weights;
  };

  /// The weights of one input.
  /// Throws:   InvalidInput for a deviation that is negative or not finite, encodings that check()
  ///           refuses, and a kernel whose diagonal holds no variances.
  Own prepare(const PairKernel& own) const {
    detail::require_nonnegative(sigma_qk, "sigma_qk");
    detail::require_nonnegative(sigma_ov, "sigma_ov");
    detail::variances(own);
    return {sigma_qk * sigma_ov * encodings.covariance(own.rows(), own.rows())};
  }

  void map(PairKernel& pair, const Own& left, const Own& right) const {
    auto k = pair.nngp.view();
    auto theta = pair.ntk.view();
    const double alpha = encodings.alpha;
    // R(Θ + 2K)R' and RKR', to be added to the skipped shares.
    auto product = pair.work.shape(k.rows(), k.cols());
    product.noalias() = left.weights * (theta + 2 * k);
    theta *= alpha;
    theta.noalias() += (1 - alpha) * product * right.weights.transpose();
    product.noalias() = left.weights * k;
    k *= alpha;
    k.noalias() += (1 - alpha) * product * right.weights.transpose();
  }
};

}  // namespace scalewise::kernels
