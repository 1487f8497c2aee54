// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// An attention block in plain loops, forward and backward, with random weights, data and masks.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "propagation/statistics.hpp"
#include "scalewise/numeric/random.hpp"
#include "scalewise/propagation/attention.hpp"
#include "scalewise/propagation/token_covariance.hpp"

namespace scalewise::test {

/// A matrix whose rows are tokens.
struct Rows {
  Rows(std::size_t rows_, std::size_t columns_)
      : rows(rows_), columns(columns_), values(rows_ * columns_) {}

  double* row(std::size_t t) { return values.data() + t * columns; }
  const double* row(std::size_t t) const { return values.data() + t * columns; }

  std::size_t rows, columns;
  std::vector<double> values;
};

inline double dot(const double* a, const double* b, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

inline void add_to(double* y, double factor, const double* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

/// x w, w being (x.columns, n).
inline Rows times(const Rows& x, const Rows& w) {
  Rows y(x.rows, w.columns);
  for (std::size_t t = 0; t < x.rows; ++t) {
    for (std::size_t i = 0; i < x.columns; ++i) add_to(y.row(t), x.row(t)[i], w.row(i), w.columns);
  }
  return y;
}

/// y + g wᵀ
inline void add_transposed(Rows& y, const Rows& g, const Rows& w) {
  for (std::size_t t = 0; t < g.rows; ++t) {
    for (std::size_t i = 0; i < w.rows; ++i) y.row(t)[i] += dot(g.row(t), w.row(i), w.columns);
  }
}

inline Rows normals(numeric::RandomStream& stream, std::size_t rows, std::size_t columns,
                    double variance) {
  Rows x(rows, columns);
  for (double& v : x.values) v = std::sqrt(variance) * stream.normal();
  return x;
}

/// One entry per token: a shared part and one of its own, shared²+own² its variance.
struct Token {
  double shared, own;
};

inline Rows draw(numeric::RandomStream& stream, const std::vector<Token>& tokens,
                 std::size_t columns) {
  Rows x(tokens.size(), columns);
  for (std::size_t i = 0; i < columns; ++i) {
    const double shared = stream.normal();
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      x.row(t)[i] = tokens[t].shared * shared + tokens[t].own * stream.normal();
    }
  }
  return x;
}

inline propagation::TokenCovariance covariance_of(const std::vector<Token>& tokens) {
  propagation::TokenCovariance c(tokens.size());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    for (std::size_t u = 0; u < tokens.size(); ++u) {
      c.at(t, u) =
          tokens[t].shared * tokens[u].shared + (t == u ? tokens[t].own * tokens[t].own : 0);
    }
  }
  return c;
}

/// The output of attention: y = dropout(Wo heads(x, memory)).
class AttentionNetwork {
 public:
  AttentionNetwork(const propagation::Attention& a, std::size_t heads, std::size_t queries,
                   std::size_t keys, numeric::RandomStream& stream)
      : a_(a),
        heads_(heads),
        head_dim_(static_cast<std::size_t>(a.heads) / heads),
        scale_(a.score_scale / std::sqrt(static_cast<double>(head_dim_))),
        wq_(normals(stream, width(), inner(), a.query)),
        wk_(normals(stream, width(), inner(), a.key)),
        wv_(normals(stream, width(), inner(), a.value)),
        wo_(normals(stream, inner(), width(), a.output)),
        out_mask_(mask(stream, queries, width(), a.dropout)),
        mask_(mask(stream, heads * queries, keys, a.probability_dropout)),
        probabilities_(heads * queries, keys) {}

  Rows forward(const Rows& x, const Rows& memory) {
    q_ = times(x, wq_), k_ = times(memory, wk_), v_ = times(memory, wv_);
    Rows mixed(x.rows, inner());
    for (std::size_t h = 0; h < heads_; ++h) {
      for (std::size_t t = 0; t < x.rows; ++t) {
        double* p = probabilities_.row(h * x.rows + t);
        const std::size_t n = a_.causal ? t + 1 : memory.rows;
        double total = 0;
        for (std::size_t s = 0; s < n; ++s) {
          p[s] = std::exp(scale_ *
                          dot(q_.row(t) + h * head_dim_, k_.row(s) + h * head_dim_, head_dim_));
          total += p[s];
        }
        for (std::size_t s = 0; s < n; ++s) {
          p[s] /= total;
          add_to(mixed.row(t) + h * head_dim_, p[s] * mask_.row(h * x.rows + t)[s],
                 v_.row(s) + h * head_dim_, head_dim_);
        }
      }
    }
    Rows y = times(mixed, wo_);
    for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] *= out_mask_.values[i];
    return y;
  }

  /// Gradients with respect to what forward() was last called with.
  struct Gradients {
    Rows x, memory;
  };

  Gradients backward(Rows g) const {
    for (std::size_t i = 0; i < g.values.size(); ++i) g.values[i] *= out_mask_.values[i];
    Rows mixed(g.rows, inner());
    add_transposed(mixed, g, wo_);
    const std::size_t keys = k_.rows;
    Rows gq(g.rows, inner());
    Rows gk(keys, inner());
    Rows gv(keys, inner());
    std::vector<double> gp(keys);
    for (std::size_t h = 0; h < heads_; ++h) {
      const std::size_t at = h * head_dim_;
      for (std::size_t t = 0; t < g.rows; ++t) {
        const double* p = probabilities_.row(h * g.rows + t);
        const double* kept = mask_.row(h * g.rows + t);
        const std::size_t n = a_.causal ? t + 1 : keys;
        double along = 0;
        for (std::size_t s = 0; s < n; ++s) {
          gp[s] = kept[s] * dot(mixed.row(t) + at, v_.row(s) + at, head_dim_);
          along += p[s] * gp[s];
          add_to(gv.row(s) + at, p[s] * kept[s], mixed.row(t) + at, head_dim_);
        }
        for (std::size_t s = 0; s < n; ++s) {
          const double score = scale_ * p[s] * (gp[s] - along);
          add_to(gq.row(t) + at, score, k_.row(s) + at, head_dim_);
          add_to(gk.row(s) + at, score, q_.row(t) + at, head_dim_);
        }
      }
    }
    Gradients gradients{Rows(g.rows, width()), Rows(keys, width())};
    add_transposed(gradients.x, gq, wq_);
    add_transposed(gradients.memory, gk, wk_);
    add_transposed(gradients.memory, gv, wv_);
    return gradients;
  }

 private:
  static Rows mask(numeric::RandomStream& stream, std::size_t rows, std::size_t columns, double p) {
    Rows m(rows, columns);
    for (double& v : m.values) v = p == 0 ? 1 : stream.uniform() < p ? 0 : 1 / (1 - p);
    return m;
  }
  std::size_t width() const { return static_cast<std::size_t>(a_.width); }
  std::size_t inner() const { return heads_ * head_dim_; }

  propagation::Attention a_;
  std::size_t heads_, head_dim_;
  double scale_;
  Rows wq_, wk_, wv_, wo_, out_mask_, mask_, probabilities_;
  Rows q_{0, 0}, k_{0, 0}, v_{0, 0};
};

/// Means over networks of products of two tokens, entry by entry of (L, L).
class TokenAverages {
 public:
  explicit TokenAverages(std::size_t tokens) : tokens_(tokens), means_(tokens * tokens) {}

  void add(const Rows& x) {
    for (std::size_t t = 0; t < tokens_; ++t) {
      for (std::size_t u = 0; u <= t; ++u) {
        at(t, u).add(dot(x.row(t), x.row(u), x.columns) / static_cast<double>(x.columns));
      }
    }
  }

  Average& at(std::size_t t, std::size_t u) { return means_[t * tokens_ + u]; }

  /// The largest distance of a prediction in units of what is accepted: standard errors, plus
  /// `accuracy` times √(variance variance) of the two tokens.
  double worst(const propagation::TokenCovariance& predicted, double accuracy) {
    double most = 0;
    for (std::size_t t = 0; t < tokens_; ++t) {
      for (std::size_t u = 0; u <= t; ++u) {
        const double accepted = standard_errors * at(t, u).error() +
                                accuracy * std::sqrt(predicted.at(t, t) * predicted.at(u, u));
        const double off = std::abs(at(t, u).mean() - predicted.at(t, u)) / accepted;
        most = std::max(most, off);
      }
    }
    return most;
  }

 private:
  std::size_t tokens_;
  std::vector<Average> means_;
};

}  // namespace scalewise::test
