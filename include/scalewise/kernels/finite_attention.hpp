// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/kernels/attention.hpp"
#include "scalewise/kernels/finite_layer.hpp"
#include "scalewise/kernels/symmetric_eigen.hpp"

namespace scalewise::kernels::detail {

/// Both attention layers in one form: queries and keys see seen g + read E, or [g, E] where E is appended, values see the
/// same or g, and the output is skip g + branch attention.
struct FiniteForm {
  SelfAttention layer;
  double seen = 1;
  double read = 0;
  double skip = 0;
  double branch = 1;
  bool append = false;
};

/// The features of appended encodings.
/// Throws:   InvalidInput for a share of the tokens' own features that leaves no whole number.
inline Index appended_features(double alpha, Index features) {
  const double exact = static_cast<double>(features) * (1 - alpha) / alpha;
  if (!(std::abs(exact - std::round(exact)) < 1e-9 * static_cast<double>(features))) {
    throw InvalidInput(
        "alpha", numeric::number_text(alpha),
        "features/(features + a whole number), of " + std::to_string(features) + " features");
  }
  return static_cast<Index>(std::round(exact));
}

inline FiniteForm finite_form(const SelfAttention& layer) {
  if (layer.encodings.geometry == Encodings::Geometry::none) return {layer};
  if (layer.encodings.append) return {.layer = layer, .read = 1, .append = true};
  return {layer, std::sqrt(layer.encodings.alpha), std::sqrt(1 - layer.encodings.alpha)};
}

inline FiniteForm finite_form(const ResidualAttention& layer) {
  SelfAttention attention;
  attention.weights = SelfAttention::WeightFunction::identity;
  attention.sigma_q = layer.sigma_qk;
  attention.sigma_v = layer.sigma_ov;
  attention.encodings = layer.encodings;
  attention.encodings.in_values = false;
  return {attention, 0, 1, std::sqrt(layer.encodings.alpha), std::sqrt(1 - layer.encodings.alpha)};
}

/// Self-attention with finitely many heads of finite size.
/// Source:   Hron et al. 2020 (arXiv:2006.10540), Section 2: queries and keys over √n d^τ, heads side
///           by side, all weights standard normal times σ/√fan_in.
class FiniteAttention : public FiniteLayer {
 public:
  FiniteAttention(const FiniteForm& form, Index tokens, Index in, const FiniteSizes& sizes,
                  std::uint64_t seed, const std::string& name)
      : form_(form),
        heads_(sizes.heads),
        dim_(sizes.head_dim),
        value_dim_(sizes.value_dim > 0 ? sizes.value_dim : sizes.head_dim) {
    const SelfAttention& l = form.layer;
    // Not 0: heads of zeros, of ReLU where all scores are negative, stay zeros.
    for (Index h = 0; l.norm_heads && h < heads_; ++h) norms_.emplace_back(1e-12);
    const auto root = [](Index n) { return std::sqrt(static_cast<double>(n)); };
    const Index all = heads_ * dim_;
    const Index values = heads_ * value_dim_;
    const bool tied = l.scores == SelfAttention::ScoreScale::tied_over_d;
    const Index own = form.append ? appended_features(l.encodings.alpha, in) : in;  // of E
    const Index seen = form.append ? in + own : in;
    query_ = normal_matrix(seen, all, seed, name, ".query");
    key_ = tied ? query_ : normal_matrix(seen, all, seed, name, ".key");
    value_ = normal_matrix(l.encodings.in_values ? seen : in, values, seed, name, ".value");
    output_ = normal_matrix(values, sizes.width, seed, name, ".output");
    bias_ = normal_matrix(1, sizes.width, seed, name, ".bias");
    q_scale_ = l.sigma_q / root(seen);
    k_scale_ = l.sigma_k / root(seen);
    v_scale_ = l.sigma_v / root(value_.rows());
    o_scale_ = l.sigma_o / root(values);
    score_scale_ = l.scores == SelfAttention::ScoreScale::over_root_d
                       ? 1 / root(dim_)
                       : 1 / static_cast<double>(dim_);
    if (form.read > 0) {
      covariance_ = l.encodings.covariance(tokens, tokens);
      const auto [eigenvalues, vectors] = symmetric_eigen(covariance_);
      root_ = vectors * eigenvalues.cwiseMax(0.0).cwiseSqrt().asDiagonal();
      standard_ = normal_matrix(tokens, own, seed, name, ".encodings");
      encodings_ = root_ * standard_;
    }
  }

  Matrix<> forward(Matrix<> x) override {
    Features p;
    p.a = form_.seen * x;
    if (form_.append) {
      p.a.conservativeResize(Eigen::NoChange, x.cols() + encodings_.cols());
      p.a.rightCols(encodings_.cols()) = encodings_;
    } else if (form_.read > 0) {
      p.a += form_.read * encodings_;
    }
    p.b = form_.layer.encodings.in_values && form_.read > 0 ? p.a : x;
    p.q = q_scale_ * (p.a * query_);
    p.k = k_scale_ * (p.a * key_);
    p.v = v_scale_ * (p.b * value_);
    p.o.resize(x.rows(), p.v.cols());
    for (Index h = 0; h < heads_; ++h) {
      p.scores.push_back(score_scale_ * head(p.q, h, dim_) * head(p.k, h, dim_).transpose());
      p.weights.push_back(weigh(p.scores.back()));
      Matrix<> o = p.weights.back() * head(p.v, h, value_dim_);
      if (!norms_.empty()) o = norms_[static_cast<std::size_t>(h)].forward(std::move(o));
      p.o.middleCols(h * value_dim_, value_dim_) = o;
    }
    Matrix<> y = o_scale_ * (p.o * output_);
    y.rowwise() += form_.layer.sigma_b * bias_.row(0);
    y *= form_.branch;
    if (form_.skip > 0) y += form_.skip * x;
    passes_.push_back(std::move(p));
    return y;
  }

  Matrix<> backward(std::size_t input, const Matrix<>& delta) override {
    Features& p = passes_[input];
    p.delta = form_.branch * delta;
    const Matrix<> d_normed = o_scale_ * (p.delta * output_.transpose());
    p.d_q.resize(p.q.rows(), p.q.cols());
    p.d_k = p.d_q;
    p.d_v.resize(p.v.rows(), p.v.cols());
    for (Index h = 0; h < heads_; ++h) {
      const auto at = static_cast<std::size_t>(h);
      Matrix<> d_o = head(d_normed, h, value_dim_);
      if (!norms_.empty()) d_o = norms_[at].backward(input, d_o);
      const Matrix<> d_weights = d_o * head(p.v, h, value_dim_).transpose();
      const Matrix<> d_scores = score_scale_ * bend(p.scores[at], p.weights[at], d_weights);
      p.d_v.middleCols(h * value_dim_, value_dim_) = p.weights[at].transpose() * d_o;
      p.d_q.middleCols(h * dim_, dim_) = d_scores * head(p.k, h, dim_);
      p.d_k.middleCols(h * dim_, dim_) = d_scores.transpose() * head(p.q, h, dim_);
    }
    const Matrix<> d_a =
        q_scale_ * (p.d_q * query_.transpose()) + k_scale_ * (p.d_k * key_.transpose());
    const Matrix<> d_b = v_scale_ * (p.d_v * value_.transpose());
    const bool in_values = form_.layer.encodings.in_values && form_.read > 0;
    const Matrix<> d_seen = in_values ? Matrix<>(d_a + d_b) : d_a;
    const Index in = d_seen.cols() - (form_.append ? encodings_.cols() : 0);
    p.d_e = form_.read * (form_.append ? Matrix<>(d_seen.rightCols(encodings_.cols())) : d_seen);
    Matrix<> d_x = form_.seen * d_seen.leftCols(in);
    if (!in_values) d_x += d_b;
    if (form_.skip > 0) d_x += form_.skip * delta;
    return d_x;
  }

  double tangent(std::size_t i, std::size_t j) const override {
    const Features& p = passes_[i];
    const Features& r = passes_[j];
    const double bias = form_.layer.sigma_b;
    double sum = o_scale_ * o_scale_ * product(p.o, r.o, p.delta, r.delta) +
                 v_scale_ * v_scale_ * product(p.b, r.b, p.d_v, r.d_v) +
                 bias * bias * (p.delta * r.delta.transpose()).sum();
    if (form_.layer.scores == SelfAttention::ScoreScale::tied_over_d) {
      const auto shared = [&](const Features& of) -> Matrix<> {
        return q_scale_ * of.d_q + k_scale_ * of.d_k;
      };
      sum += product(p.a, r.a, shared(p), shared(r));
    } else {
      sum += q_scale_ * q_scale_ * product(p.a, r.a, p.d_q, r.d_q) +
             k_scale_ * k_scale_ * product(p.a, r.a, p.d_k, r.d_k);
    }
    if (form_.read == 0) return sum;
    const Matrix<> between = p.d_e * r.d_e.transpose();
    switch (form_.layer.encodings.trained) {
      case Encodings::Trained::through_root:
        return sum + covariance_.cwiseProduct(between).sum();
      case Encodings::Trained::itself:
        return sum + between.trace();
      case Encodings::Trained::nothing:
        break;
    }
    return sum;
  }

  void for_each_parameter(const Visit& visit) override {
    Matrix<> d_output = Matrix<>::Zero(output_.rows(), output_.cols());
    Matrix<> d_bias = Matrix<>::Zero(1, bias_.cols());
    Matrix<> d_value = Matrix<>::Zero(value_.rows(), value_.cols());
    Matrix<> d_query = Matrix<>::Zero(query_.rows(), query_.cols());
    Matrix<> d_key = d_query;
    Matrix<> d_encodings = Matrix<>::Zero(encodings_.rows(), encodings_.cols());
    for (const Features& p : passes_) {
      d_output.noalias() += p.o.transpose() * p.delta;
      d_bias += p.delta.colwise().sum();
      d_value.noalias() += p.b.transpose() * p.d_v;
      d_query.noalias() += p.a.transpose() * p.d_q;
      d_key.noalias() += p.a.transpose() * p.d_k;
      if (form_.read > 0) d_encodings += p.d_e;
    }
    visit(output_, o_scale_ * d_output);
    visit(bias_, form_.layer.sigma_b * d_bias);
    visit(value_, v_scale_ * d_value);
    if (form_.layer.scores == SelfAttention::ScoreScale::tied_over_d) {
      visit(query_, q_scale_ * d_query + k_scale_ * d_key);
      key_ = query_;
    } else {
      visit(query_, q_scale_ * d_query);
      visit(key_, k_scale_ * d_key);
    }
    if (form_.read == 0) return;
    switch (form_.layer.encodings.trained) {
      case Encodings::Trained::through_root:
        visit(standard_, root_.transpose() * d_encodings);
        encodings_ = root_ * standard_;
        break;
      case Encodings::Trained::itself:
        visit(encodings_, d_encodings);
        break;
      case Encodings::Trained::nothing:
        break;
    }
  }
  void clear() override {
    passes_.clear();
    for (FiniteNorm& norm : norms_) norm.clear();
  }

 private:
  struct Features {
    Matrix<> a, b, q, k, v, o;
    std::vector<Matrix<>> scores, weights;
    Matrix<> delta, d_q, d_k, d_v, d_e;
  };

  static ConstView<double> head(const Matrix<>& m, Index h, Index dim) {
    return {m.data() + h * dim, m.rows(), dim, Eigen::OuterStride<>(m.cols())};
  }

  /// ζ of the scores of a head.
  Matrix<> weigh(Matrix<> scores) const {
    for (Index a = 0; a < scores.rows(); ++a) {
      auto row = scores.row(a).head(form_.layer.causal ? a + 1 : scores.cols()).array();
      switch (form_.layer.weights) {
        case SelfAttention::WeightFunction::softmax:
          row = (row - row.maxCoeff()).exp();
          row /= row.sum();
          break;
        case SelfAttention::WeightFunction::identity:
          break;
        case SelfAttention::WeightFunction::relu:
          row = (row.max)(0.0);
          break;
        case SelfAttention::WeightFunction::abs:
          row = row.abs();
          break;
      }
      scores.row(a).tail(scores.cols() - row.size()).setZero();
    }
    return scores;
  }

  /// The gradient of the scores, from that of the weights.
  Matrix<> bend(const Matrix<>& scores, const Matrix<>& weights, Matrix<> gradient) const {
    for (Index a = 0; a < scores.rows(); ++a) {
      auto row = gradient.row(a).array();
      const auto w = weights.row(a).array();
      switch (form_.layer.weights) {
        case SelfAttention::WeightFunction::softmax:
          row = w * (row - (w * row).sum());
          break;
        case SelfAttention::WeightFunction::identity:
          break;
        case SelfAttention::WeightFunction::relu:
          row *= (scores.row(a).array() > 0).cast<double>();
          break;
        case SelfAttention::WeightFunction::abs:
          row *= scores.row(a).array().sign();
          break;
      }
      if (form_.layer.causal) row.tail(scores.cols() - a - 1).setZero();
    }
    return gradient;
  }

  FiniteForm form_;
  Index heads_;
  Index dim_, value_dim_;
  Matrix<> query_, key_, value_, output_, bias_;
  Matrix<> covariance_, root_, standard_, encodings_;  // R, R^(1/2), E~ and E
  double q_scale_ = 0, k_scale_ = 0, v_scale_ = 0, o_scale_ = 0, score_scale_ = 0;
  std::vector<Features> passes_;
  std::deque<FiniteNorm> norms_;  // of each head; none without
};

}  // namespace scalewise::kernels::detail
