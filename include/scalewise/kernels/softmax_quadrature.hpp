// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "scalewise/kernels/oscillator.hpp"
#include "scalewise/kernels/score_basis.hpp"
#include "scalewise/kernels/score_moments.hpp"

namespace scalewise::kernels {

namespace detail {

/// The functions of a row's scores that the moments need: T weights p_c, then the T(T-1)/2 products
/// p_c p_d, c < d, which are -J_cd.
inline Index softmax_functions(Index tokens) { return tokens + tokens * (tokens - 1) / 2; }

/// Softmax over the first keys; the rest of p is zero.
template <class Row>
void softmax(Row&& p, Index keys) {
  auto seen = p.head(keys);
  seen = (seen - seen.maxCoeff()).exp();
  seen /= seen.sum();
  p.tail(p.size() - keys).setZero();
}

/// The largest difference of scores per unit of each normal, given the largest variance of a query.
inline Array widths(double query, const Matrix<>& factor, double variance) {
  const double deviation = std::sqrt(variance * query);
  return deviation * (factor.colwise().maxCoeff() - factor.colwise().minCoeff()).array();
}

/// A tensor product of oscillators, one per direction of a ScoreBasis.
class SoftmaxGrid {
 public:
  SoftmaxGrid(const ScoreBasis& basis, const Array& widths, double decay)
      : correlations_(basis.correlations) {
    for (Index i = 0; i < widths.size(); ++i) {
      axes_.emplace_back(widths(i), decay);
      // Terms that the correlation suppresses in every row are left out.
      const Array w = axes_.back().weights(correlations_(i)).abs();
      kept_.push_back(std::clamp<Index>((w > 1e-15).count(), 1, axes_.back().levels));
    }
  }

  /// How many numbers are held at once for inputs of `tokens` tokens.
  double size(Index tokens) const {
    double nodes = 1;
    double coefficients = 1;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      nodes *= static_cast<double>(axes_[i].nodes.size());
      coefficients *= static_cast<double>(kept_[i]);
    }
    return static_cast<double>(softmax_functions(tokens)) *
           (2 * nodes + static_cast<double>(tokens + 1) * coefficients);
  }

  /// Coefficients of all functions of one row with scores deviation · factor · ξ.
  /// Shapes:   (functions, coefficients)
  Matrix<> coefficients(const Matrix<>& factor, double deviation, Index keys) const {
    const Index tokens = factor.rows();
    const Index functions = softmax_functions(tokens);
    Index nodes = 1;
    for (const Oscillator& axis : axes_) nodes *= axis.nodes.size();
    Matrix<> values(nodes, functions);
    Eigen::RowVectorXd xi(factor.cols());
    for (Index node = 0; node < nodes; ++node) {
      Index rest = node;
      for (std::size_t i = axes_.size(); i-- > 0;) {
        const Index n = axes_[i].nodes.size();
        xi(static_cast<Index>(i)) = deviation * axes_[i].nodes(rest % n);
        rest /= n;
      }
      auto row = values.row(node);
      row.head(tokens).noalias() = xi * factor.transpose();
      softmax(row.head(tokens).array(), keys);
      Index f = tokens;
      for (Index c = 0; c < tokens; ++c) {
        for (Index d = c + 1; d < tokens; ++d) row(f++) = row(c) * row(d);
      }
    }
    // One axis after another, from the front of the indices to their end.
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const Index n = axes_[i].nodes.size();
      const Eigen::Map<const Matrix<>> front(values.data(), n, values.size() / n);
      Matrix<> next(front.cols(), kept_[i]);
      next.noalias() = front.transpose() * axes_[i].transform.topRows(kept_[i]).transpose();
      values.swap(next);
    }
    return Eigen::Map<const Matrix<>>(values.data(), functions, values.size() / functions);
  }

  /// The weights of all coefficients for two rows whose scores correlate by `rows` times those of
  /// the basis.
  Eigen::VectorXd weights(double rows) const {
    Eigen::VectorXd result = Eigen::VectorXd::Ones(1);
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const Array w = axes_[i].weights(rows * correlations_(static_cast<Index>(i))).head(kept_[i]);
      Matrix<> next(result.size(), w.size());
      next.noalias() = result * w.matrix().transpose();
      result = Eigen::Map<const Eigen::VectorXd>(next.data(), next.size());
    }
    return result;
  }

 private:
  Array correlations_;
  std::vector<Oscillator> axes_;
  std::vector<Index> kept_;
};

/// Σ_{c<d, c'<d'} E(p_c p_d p'_c' p'_d') (δX δ')(δY δ'), δ the difference of two keys' rows: the
/// contraction of softmax's derivatives, J = Σ_{c<d} p_c p_d (e_c - e_d)(e_c - e_d)ᵀ.
template <class Products>
double contract_slopes(const Products& products, const Matrix<>& x, const Matrix<>& y) {
  double sum = 0;
  Index i = 0;
  for (Index c = 0; c < x.rows(); ++c) {
    for (Index d = c + 1; d < x.rows(); ++d, ++i) {
      Index j = 0;
      for (Index e = 0; e < x.cols(); ++e) {
        for (Index f = e + 1; f < x.cols(); ++f, ++j) {
          sum += products(i, j) * (x(c, e) - x(c, f) - x(d, e) + x(d, f)) *
                 (y(c, e) - y(c, f) - y(d, e) + y(d, f));
        }
      }
    }
  }
  return sum;
}

}  // namespace detail

/// The moments of softmax over keys, by a deterministic rule.
/// Equation: E φ(u)ψ(v) over scores u and v of two rows, in directions whose normals correlate only
///           in pairs, so that a sum over tensor grids for u and for v replaces one over the grid for
///           both
/// Source:   Mehler's formula in each direction, see detail::Oscillator.
/// Accuracy: 1e-11 of the largest contracted entry for up to 4 tokens, 1e-7 for more; less, down to
///           1e-5, for scores so wide that this is not affordable.
/// Throws:   InvalidInput for an indefinite kernel.
class SoftmaxQuadrature {
 public:
  explicit SoftmaxQuadrature(const ScoreKernels& kernels)
      : s_(kernels),
        itself_(&s_.own_left == &s_.own_right),
        basis_(itself_ ? detail::score_basis(s_.own_left)
                       : detail::score_basis(s_.own_left, s_.own_right, s_.a)) {
    const Array width = widths();
    const double widest = width.size() > 0 ? width.maxCoeff() : 0;  // of one token, no direction
    for (double decay = first_decay(); !grid_ && decay > 15; decay -= 5) {
      const double nodes = detail::Oscillator::Nodes(widest, decay).size;
      if (nodes > most_nodes) continue;
      grid_.emplace(basis_, width, decay);
      if (grid_->size((std::max)(s_.a.rows(), s_.a.cols())) > most_numbers) grid_.reset();
    }
  }

  /// Whether all that is held at once fits into 512 MiB, and an axis has at most a thousand nodes, whose eigenvectors
  /// take some seconds.
  bool affordable() const { return grid_.has_value(); }

  /// Requires: affordable().
  ScoreMoments moments() const {
    const Index rows = s_.a.rows();
    const Index columns = s_.a.cols();
    std::vector<Matrix<>> left;
    for (Index a = 0; a < s_.left_queries(); ++a) {
      left.push_back(grid_->coefficients(basis_.left, std::sqrt(s_.variance * s_.left_query(a)),
                                         s_.keys(a, rows)));
    }
    ScoreMoments m(s_.left_queries(), s_.right_queries());
    Matrix<> right;
    for (Index b = 0; b < s_.right_queries(); ++b) {
      if (!itself_) {
        right = grid_->coefficients(basis_.right, std::sqrt(s_.variance * s_.right_query(b)),
                                    s_.keys(b, columns));
      }
      const Matrix<>& v = itself_ ? left[static_cast<std::size_t>(b)] : right;
      for (Index a = 0; a < s_.left_queries(); ++a) {
        const double scale = std::sqrt(s_.left_query(a) * s_.right_query(b));
        const double correlation =
            scale > 0 ? std::clamp(s_.query_pair(a, b) / scale, -1.0, 1.0) : 0;
        const Matrix<> u =
            left[static_cast<std::size_t>(a)] * grid_->weights(correlation).asDiagonal();
        const Matrix<> values = u.topRows(rows) * v.topRows(columns).transpose();
        const Matrix<> products =
            u.bottomRows(u.rows() - rows) * v.bottomRows(v.rows() - columns).transpose();
        m.value(a, b) = values.cwiseProduct(s_.b).sum();
        m.value_ntk(a, b) = values.cwiseProduct(s_.b_ntk).sum();
        m.slope(a, b) = detail::contract_slopes(products, s_.b, s_.a);
        m.slope_ntk(a, b) = detail::contract_slopes(products, s_.b, s_.a_ntk);
      }
    }
    return m;
  }

 private:
  // The logarithm of 1/accuracy. Products of four weights have poles of order four, which cost some
  // thousand times e^-decay.
  double first_decay() const { return (std::max)(s_.a.rows(), s_.a.cols()) <= 4 ? 34 : 24; }

  /// The largest difference of scores along each direction.
  Array widths() const {
    double widest_left = 0;
    double widest_right = 0;
    for (Index a = 0; a < s_.left_queries(); ++a)
      widest_left = (std::max)(widest_left, s_.left_query(a));
    for (Index b = 0; b < s_.right_queries(); ++b)
      widest_right = (std::max)(widest_right, s_.right_query(b));
    const Array left = detail::widths(widest_left, basis_.left, s_.variance);
    const Array right = detail::widths(widest_right, basis_.right, s_.variance);
    return (left.max)(right);
  }

  static constexpr double most_numbers = 0x1p26, most_nodes = 1000;
  const ScoreKernels& s_;
  bool itself_;  // x' is x
  detail::ScoreBasis basis_;
  std::optional<detail::SoftmaxGrid> grid_;
};

}  // namespace scalewise::kernels
