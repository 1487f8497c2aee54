// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The attention core and rotary positions, each alone.

#include "scalewise/nn/attention.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "scalewise/nn/rotary.hpp"
#include "support/catch.hpp"
#include "support/numeric_gradient.hpp"
#include "support/reference_attention.hpp"
#include "support/reference_layers.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

/// Queries, keys and values with everything that the core writes.
struct Core {
  AttentionSizes n;
  double scale = 0.37;
  Dropout dropout;
  Matrix<double> q, k, v, p, o, kept, dq, dk, dv, ds;
  Matrix<double> mask;  // what dropout multiplies probabilities by

  explicit Core(const AttentionSizes& sizes, double deviation = 1, const Dropout& drop = {})
      : n(sizes), dropout(drop) {
    const Index queries = n.batch * n.query_tokens;
    const Index keys = n.batch * n.key_tokens;
    q = normal_matrix(queries, n.heads * n.head_dim, "q", deviation);
    k = normal_matrix(keys, n.kv_heads * n.head_dim, "k", deviation);
    v = normal_matrix(keys, n.kv_heads * n.head_dim, "v", deviation);
    p = Matrix<double>::Constant(n.batch * n.heads * n.query_tokens, n.key_tokens, 99);
    o = Matrix<double>::Constant(q.rows(), q.cols(), 99);
    dq = dk = dv = ds = kept = p;
    dq.setConstant(q.rows(), q.cols(), 99);
    dk.setConstant(k.rows(), k.cols(), 99);
    dv.setConstant(v.rows(), v.cols(), 99);
    mask.setOnes(p.rows(), p.cols());
    dropout.apply(dense::view(mask));
  }

  const Matrix<double>& forward() {
    attention_scores(n, scale, dense::read(q), dense::read(k), dense::view(p));
    return mix();
  }
  /// The same from the scores in p on.
  const Matrix<double>& mix() {
    attention_mix(n, dropout, dense::read(v), dense::view(p), dense::view(kept), dense::view(o));
    return o;
  }
  void backward(const Matrix<double>& dout) {
    attention_backward(
        n, scale, dropout,
        {.o_gradient = dense::read(dout),
         .q = dense::read(q),
         .k = dense::read(k),
         .v = dense::read(v),
         .p = dense::read(p)},
        dense::view(kept),
        {.q = dense::view(dq), .k = dense::view(dk), .v = dense::view(dv), .s = dense::view(ds)});
  }

  /// From the definition, also what backward computes.
  reference::AttentionCore expected() const {
    return reference::attention_core(n, scale, q, k, v, mask);
  }
  reference::AttentionCoreGradient expected_backward(const Matrix<double>& dout) const {
    return reference::attention_core_backward(n, scale, dout, q, k, v, expected().probabilities,
                                              mask);
  }

  /// The largest difference between the output and the definition.
  double error() const { return largest(o - expected().heads); }
};

/// B = 3, T = 5, S = 7, D = 6, and longer ones; heads and key heads as 4 to 2, 4 to 4, 4 to 1, 6 to 2.
std::vector<AttentionSizes> all_sizes() {
  std::vector<AttentionSizes> all;
  for (const auto& [heads, kv_heads] : {std::pair<Index, Index>{4, 2}, {4, 4}, {4, 1}, {6, 2}}) {
    all.push_back({3, 5, 5, heads, kv_heads, 6, true});
    all.push_back({3, 5, 5, heads, kv_heads, 6, false});
    all.push_back({3, 5, 7, heads, kv_heads, 6, false});
    all.push_back({3, 7, 5, heads, kv_heads, 6, false});
    all.push_back({3, 5, 7, heads, kv_heads, 6, true});  // the later keys are seen by none
    all.push_back({1, 1, 1, heads, kv_heads, 1, true});
  }
  // More than one tile of tokens, the last of them cut.
  static_assert(nn::detail::causal_tile < 65);
  all.push_back({2, 70, 70, 4, 2, 2, true});
  all.push_back({1, 65, 130, 2, 2, 2, true});
  all.push_back({1, 65, 130, 2, 1, 2, true});
  return all;
}

std::string name(const AttentionSizes& n) {
  return "T " + std::to_string(n.query_tokens) + ", S " + std::to_string(n.key_tokens) + ", H " +
         std::to_string(n.heads) + ", K " + std::to_string(n.kv_heads) +
         (n.causal ? ", causal" : "");
}

/// Compares every entry of the gradients of queries, keys and values.
void check_gradient(const AttentionSizes& n, const Dropout& dropout) {
  Core core(n, 1, dropout);
  const Probe probe(core.o.rows(), core.o.cols());
  const double size = probe.magnitude(core.forward());
  core.backward(probe.weights);
  const auto f = [&] { return probe(core.forward()); };
  const auto worst_q = gradient_error("q", dense::view(core.q), core.dq, f, size);
  const auto worst_k = gradient_error("k", dense::view(core.k), core.dk, f, size);
  const auto worst_v = gradient_error("v", dense::view(core.v), core.dv, f, size);
  INFO(name(n) << ": " << worst_q << "; " << worst_k << "; " << worst_v);
  CHECK(worst_q.accepted());
  CHECK(worst_k.accepted());
  CHECK(worst_v.accepted());
}

void rotate(Matrix<double>& x, Index tokens, Index head_dim, int sign) {
  RotaryTable<double> table;
  table.prepare(2, head_dim);  // too short: it has to grow
  table.prepare(tokens, head_dim);
  table.rotate(dense::view(x), tokens, sign);
}

}  // namespace

TEST_CASE("Attention is the mean of the values, weighted by the softmax of the scores") {
  for (const AttentionSizes& n : all_sizes()) {
    Core core(n);
    core.forward();
    INFO(name(n));
    CHECK(core.error() <= forward_relative * largest(core.v));
    CHECK((core.p.rowwise().sum().array() - 1).abs().maxCoeff() <= 8 * epsilon);
    CHECK(core.p.minCoeff() >= 0);
  }
}

TEST_CASE("Dropout in attention multiplies the probabilities by its mask") {
  const Dropout dropout(0.3, 7, 3, "probabilities");
  for (const AttentionSizes& n : all_sizes()) {
    Core core(n, 1, dropout);
    core.forward();
    INFO(name(n));
    CHECK((core.mask.array() == 0).any());
    CHECK(core.error() <= 2 * forward_relative * largest(core.v));
    CHECK((core.p.rowwise().sum().array() - 1).abs().maxCoeff() <= 8 * epsilon);  // before dropout
  }
}

TEST_CASE("Attention has the gradient of its central differences") {
  for (const Dropout& dropout : {Dropout(), Dropout(0.3, 7, 3, "probabilities")}) {
    check_gradient({3, 5, 5, 4, 2, 6, true}, dropout);
    check_gradient({3, 5, 7, 4, 2, 6, false}, dropout);
  }
}

TEST_CASE("Attention has the gradient of its definition") {
  for (const Dropout& dropout : {Dropout(), Dropout(0.3, 7, 3, "probabilities")}) {
    if (test::sanitized && !dropout.active()) continue;
    for (const AttentionSizes& n : all_sizes()) {
      Core core(n, 1, dropout);
      core.forward();
      const Matrix<double> dout = normal_matrix(core.o.rows(), core.o.cols(), "dout");
      core.backward(dout);
      const reference::AttentionCoreGradient d = core.expected_backward(dout);
      // Scores, an error in which acts on a probability times the score's size; softmax, products
      // with the values and their mean; a sum over keys, or over the queries of the heads of a group.
      const auto score = static_cast<Index>(std::ceil(largest(core.expected().scores)));
      const Index added = std::max(n.key_tokens, n.heads / n.kv_heads * n.query_tokens);
      const double relative = accumulated((score + 1) * n.head_dim + 2 * n.key_tokens + added);
      // Where terms cancel, their roundings stay: errors are relative to the largest gradient.
      const double size = std::max({largest(d.scores), largest(d.q), largest(d.k), largest(d.v)});
      INFO(name(n));
      CHECK(largest(core.ds - d.scores) <= relative * size);
      CHECK(largest(core.dq - d.q) <= relative * size);
      CHECK(largest(core.dk - d.k) <= relative * size);
      CHECK(largest(core.dv - d.v) <= relative * size);
    }
  }
}

TEST_CASE("The gradient of the scores is that of their central differences") {
  Core core({3, 5, 5, 4, 2, 6, true}, 1, {0.3, 7, 3, "probabilities"});
  const Probe probe(core.o.rows(), core.o.cols());
  const double size = probe.magnitude(core.forward());
  core.backward(probe.weights);
  attention_scores(core.n, core.scale, dense::read(core.q), dense::read(core.k),
                   dense::view(core.p));
  Matrix<double> scores = core.p;
  const auto f = [&] {
    core.p = scores;
    return probe(core.mix());
  };
  const auto worst = gradient_error("scores", dense::view(scores), core.ds, f, size);
  INFO(worst);
  CHECK(worst.accepted());
}

TEST_CASE("Attention's gradient overwrites what was there, and is the same a second time") {
  Core core({3, 5, 7, 4, 2, 6, false});
  core.forward();
  const Matrix<double> dout = normal_matrix(core.o.rows(), core.o.cols(), "dout");
  core.backward(dout);
  const Matrix<double> dq = core.dq;
  const Matrix<double> dk = core.dk;
  const Matrix<double> dv = core.dv;
  core.backward(dout);
  CHECK(core.dq == dq);
  CHECK(core.dk == dk);
  CHECK(core.dv == dv);
}

TEST_CASE("A causal token reads no later one") {
  const AttentionSizes n{3, 5, 5, 4, 2, 6, true};
  Core core(n);
  const Matrix<double> before = core.forward();
  for (Index b = 0; b < n.batch; ++b) {  // change the last two tokens
    core.k.middleRows(b * 5 + 3, 2).setConstant(50);
    core.v.middleRows(b * 5 + 3, 2).setConstant(-50);
  }
  core.forward();
  for (Index b = 0; b < n.batch; ++b) {
    CHECK(core.o.middleRows(b * 5, 3) == before.middleRows(b * 5, 3));
    CHECK(core.o.middleRows(b * 5 + 3, 2) != before.middleRows(b * 5 + 3, 2));
  }
}

TEST_CASE("Attention with equal, tiny and huge scores is finite") {
  for (const double deviation : {0.0, 1e-160, 1e-8, 1e4, 1e100}) {
    Core core({3, 5, 5, 4, 2, 6, true}, deviation);
    CHECK(core.forward().allFinite());
    if (deviation < 1e-7) {
      for (Index t = 0; t < 5; ++t) {
        CHECK(std::abs(core.p(t, t) - 1 / double(t + 1)) <= 4 * epsilon);
      }
    }
    core.backward(normal_matrix(core.o.rows(), core.o.cols(), "dout"));
    CHECK(core.dq.allFinite());
    CHECK(core.dk.allFinite());
    CHECK(core.dv.allFinite());
  }
}

TEST_CASE("A rotation multiplies pairs of features, as complex numbers, by a unit number") {
  constexpr Index tokens = 5;
  constexpr Index head_dim = 6;
  Matrix<double> x = normal_matrix(3 * tokens, 4 * head_dim, "x");
  const Matrix<double> before = x;
  rotate(x, tokens, head_dim, 1);
  CHECK(largest(x - reference::rotate(before, tokens, head_dim, 1)) <= forward_relative);
  CHECK(x.row(0) == before.row(0));
  CHECK(x.row(tokens) == before.row(tokens));
}

TEST_CASE("A rotation keeps lengths, and turning back undoes it") {
  for (const Index tokens : {1, 5, 100}) {  // 100: more rows than a tile
    Matrix<double> x = normal_matrix(3 * tokens, 4 * 6, "x");
    const Matrix<double> before = x;
    rotate(x, tokens, 6, 1);
    CHECK((x == before) == (tokens == 1));
    CHECK((x.rowwise().norm() - before.rowwise().norm()).cwiseAbs().maxCoeff() <= 64 * epsilon);
    rotate(x, tokens, 6, -1);
    CHECK(largest(x - before) <= 16 * epsilon);
  }
}

TEST_CASE("Scores of rotated queries and keys depend on their distance alone") {
  constexpr Index tokens = 7;
  Matrix<double> q(tokens, 6);
  Matrix<double> k(tokens, 6);
  q.rowwise() = normal_matrix(1, 6, "q").row(0);
  k.rowwise() = normal_matrix(1, 6, "k").row(0);
  rotate(q, tokens, 6, 1);
  rotate(k, tokens, 6, 1);
  const Matrix<double> scores = q * k.transpose();
  CHECK(std::abs(scores(1, 0) - scores(0, 1)) > 0.01);
  for (Index t = 1; t < tokens; ++t) {
    for (Index s = 1; s < tokens; ++s) {
      CHECK(std::abs(scores(t, s) - scores(t - 1, s - 1)) <= 64 * epsilon);
    }
  }
}
