// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Lemmas A.3 to A.9 of arXiv:2604.27077v2, one by one: blocks of the normalized transformer with drawn matrices, one
// step of signGD that is fully aligned with their inputs, and the planned rates. Slopes are over 8 times the width.

#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "scalewise/numeric/random.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/ngpt.hpp"
#include "scalewise/policy/nu_gpt_full_align.hpp"
#include "support/catch.hpp"
#include "support/vectors.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {

constexpr double global_rate = 0.005;
constexpr std::size_t narrow = 64;
constexpr std::size_t wide = 512;

double sum_of(const Vector& a, const std::function<double(double)>& f) {
  double sum = 0;
  for (const double x : a) sum += f(x);
  return sum;
}
double rms(const Vector& a) {
  return std::sqrt(sum_of(a, [](double x) { return x * x; }) / static_cast<double>(a.size()));
}
Vector sign(Vector a) {
  for (double& x : a) x = std::copysign(1.0, x);
  return a;
}

/// A matrix whose vectors along the model's width have unit length, and its step -rate sign(g) sign(x)' for the input x
/// that it is aligned with.
class Moving {
 public:
  Moving(numeric::RandomStream& stream, std::size_t out, std::size_t in, std::size_t width)
      : out_(out), entries_(drawn(stream, out * in)), gradient_(sign(drawn(stream, out))) {
    for (double& x : entries_) x /= std::sqrt(static_cast<double>(width));
  }

  Vector times(const Vector& x) const {
    Vector y(out_);
    for (std::size_t i = 0; i < out_; ++i) {
      for (std::size_t j = 0; j < x.size(); ++j) y[i] += entries_[i * x.size() + j] * x[j];
    }
    return y;
  }
  /// After the step, of another input.
  Vector moved(const Vector& aligned, const Vector& x, double rate) const {
    return mixed(1, times(x), rate * inner(sign(aligned), x), gradient_);
  }
  void share_direction(const Moving& other) { gradient_ = other.gradient_; }

 private:
  std::size_t out_;
  Vector entries_;
  Vector gradient_;
};

/// Rates and rescalers of a model as wide, under a rule.
struct Planned {
  Plan plan;

  template <class Rule>
  Planned(const Rule& rule, std::size_t width, long depth = 4)
      : plan(make_plan(rule, {.model = shape(width, depth), .base = shape(narrow, 4)})) {}

  static Shape shape(std::size_t width, long depth) {
    const auto n = static_cast<long>(width);
    return {.d_model = n, .depth = depth, .heads = n / 16, .context = 4, .vocab = 32};
  }
  double rate(const std::string& tensor) const {
    return global_rate * plan.at(tensor).learning_rate.value;
  }
  double rescaler(const std::string& tensor) const {
    return plan.at(tensor).multiplier.value * plan.at(tensor).init_mean.value;
  }
  double rescaler_change(const std::string& tensor) const {
    return plan.at(tensor).multiplier.value * rate(tensor);
  }
};

/// Activations of one width at initialization, and their changes.
struct Sizes {
  double start = 0, change = 0;
};
using Measured = std::function<Sizes(std::size_t width, numeric::RandomStream& stream)>;

/// Slopes of root mean squares over eight draws.
Sizes slopes(const Measured& of) {
  const auto at = [&](std::size_t width) {
    Sizes squares;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      numeric::RandomStream stream(seed, "normalized lemmas");
      const Sizes one = of(width, stream);
      squares.start += one.start * one.start;
      squares.change += one.change * one.change;
    }
    return squares;
  };
  const Sizes first = at(narrow);
  const Sizes last = at(wide);
  const double octaves = 2 * std::log(8.0);
  return {std::log(last.start / first.start) / octaves,
          std::log(last.change / first.change) / octaves};
}

void check_slopes(const Measured& of, double start, double change) {
  const Sizes found = slopes(of);
  CHECK_THAT(found.start, Catch::Matchers::WithinAbs(start, 0.12));
  CHECK_THAT(found.change, Catch::Matchers::WithinAbs(change, 0.12));
}

/// A state of unit length, and the same moved by 0.3.
struct Stream {
  Vector before, after;

  Stream(numeric::RandomStream& stream, std::size_t width)
      : before(unit(drawn(stream, width))),
        after(mixed(1, before, 0.3, unit(drawn(stream, width)))) {}
};

}  // namespace

TEST_CASE("Lemma A.3: the embedding has unit length and moves by order one") {
  check_slopes(
      [](std::size_t n, numeric::RandomStream& stream) {
        const double rate = Planned(NuGptFullAlign{}, n).rate("token_embedding");
        const Vector column = unit(drawn(stream, n));
        return Sizes{length(column), length(mixed(rate, sign(drawn(stream, n)), 0, column))};
      },
      0, 0);
}

TEST_CASE("Lemma A.4: an MLP and its parts keep their sizes, the gate is of order one") {
  enum Part { up, gate, output };
  const auto part = [](Part which) {
    return [which](std::size_t n, numeric::RandomStream& stream) {
      const Planned planned(NuGptFullAlign{}, n);
      const Stream h(stream, n);
      const Moving w_u(stream, 4 * n, n, n);
      const Moving w_v(stream, 4 * n, n, n);
      const Moving w_o(stream, n, 4 * n, n);
      const double s_u = planned.rescaler("layer.0.up_scale");
      const double s_v = planned.rescaler("layer.0.gate_scale") * std::sqrt(static_cast<double>(n));
      const double ds_u = planned.rescaler_change("layer.0.up_scale");
      const double ds_v =
          planned.rescaler_change("layer.0.gate_scale") * std::sqrt(static_cast<double>(n));
      const Vector u = mixed(s_u, w_u.times(h.before), 0, Vector(4 * n));
      const Vector v = mixed(s_v, w_v.times(h.before), 0, Vector(4 * n));
      const Vector u_after =
          mixed(s_u + ds_u, w_u.moved(h.before, h.after, planned.rate("layer.0.mlp_up")), 0,
                Vector(4 * n));
      const Vector v_after =
          mixed(s_v + ds_v, w_v.moved(h.before, h.after, planned.rate("layer.0.mlp_gate")), 0,
                Vector(4 * n));
      if (which == up) return Sizes{rms(u), rms(mixed(1, u_after, -1, u))};
      if (which == gate) return Sizes{rms(v), rms(mixed(1, v_after, -1, v))};
      const auto hidden = [](const Vector& of_u, const Vector& of_v) {
        Vector x(of_u.size());
        for (std::size_t i = 0; i < x.size(); ++i)
          x[i] = of_u[i] * of_v[i] / (1 + std::exp(-of_v[i]));
        return x;
      };
      const Vector x = hidden(u, v);
      const Vector y = w_o.times(x);
      const Vector y_after =
          w_o.moved(x, hidden(u_after, v_after), planned.rate("layer.0.mlp_down"));
      return Sizes{rms(y), rms(mixed(1, y_after, -1, y))};
    };
  };
  check_slopes(part(up), -0.5, -0.5);
  check_slopes(part(gate), 0, 0);
  check_slopes(part(output), -0.5, -0.5);
}

TEST_CASE("Remark A.5: under nGPT matrices move more and more, rescalers negligibly") {
  // start: what the rescaler's change moves; change: what the matrix's does.
  check_slopes(
      [](std::size_t n, numeric::RandomStream& stream) {
        const Planned planned(NGpt{}, n);
        const Stream h(stream, n);
        const Moving w(stream, 4 * n, n, n);
        const Vector u = w.times(h.before);
        const Vector moved = w.moved(h.before, h.before, planned.rate("layer.0.mlp_up"));
        return Sizes{planned.rescaler_change("layer.0.up_scale") * rms(u),
                     rms(mixed(1, moved, -1, u))};
      },
      -0.5, 0.5);
}

namespace {

/// Two tokens' query and key in a head of unit length, before and after the step, and their score.
struct Head {
  Vector query, query_after;
  double score = 0, score_after = 0;

  Head(std::size_t n, std::size_t size, bool aligned, numeric::RandomStream& stream) {
    const Planned planned(NuGptFullAlign{}, n);
    const Stream h(stream, n);
    const Stream g(stream, n);
    const Moving w_q(stream, size, n, n);
    Moving w_k(stream, size, n, n);
    if (aligned) w_k.share_direction(w_q);
    const double s = planned.rescaler("layer.0.qk_scale");
    const double moved = s + planned.rescaler_change("layer.0.qk_scale");
    // Where they align, enough for that to be more than what a random change of either does.
    const double rate = (aligned ? 4 : 1) * planned.rate("layer.0.query");
    const Vector none(size);
    query = mixed(s, unit(w_q.times(h.before)), 0, none);
    query_after = mixed(moved, unit(w_q.moved(h.before, h.after, rate)), 0, none);
    const Vector key = mixed(s, unit(w_k.times(g.before)), 0, none);
    const Vector key_after = mixed(moved, unit(w_k.moved(g.before, g.after, rate)), 0, none);
    const double root = std::sqrt(static_cast<double>(size));
    score = root * inner(query, key);
    score_after = root * inner(query_after, key_after);
  }
};

Measured score_of(std::size_t growth, bool aligned) {
  return [=](std::size_t n, numeric::RandomStream& stream) {
    Sizes squares;
    for (int pair = 0; pair < 12; ++pair) {
      const Head head(n, growth == 0 ? 16 : n / growth, aligned, stream);
      squares.start += head.score * head.score / 12;
      squares.change += std::pow(head.score_after - head.score, 2) / 12;
    }
    return Sizes{std::sqrt(squares.start), std::sqrt(squares.change)};
  };
}

}  // namespace

TEST_CASE("Lemma A.6: queries and keys go with the head's size, scores with its root at most") {
  const auto query = [](std::size_t n, numeric::RandomStream& stream) {
    const Head head(n, n / 4, false, stream);
    return Sizes{rms(head.query), rms(mixed(1, head.query_after, -1, head.query))};
  };
  check_slopes(query, -0.5, -0.5);
  check_slopes(score_of(/*growth=*/0, /*aligned=*/true), 0, 0);
  check_slopes(score_of(/*growth=*/4, /*aligned=*/true), 0, 0.5);
}

TEST_CASE("Lemma A.6: values and the output of attention keep their sizes") {
  constexpr std::size_t tokens = 6;
  constexpr std::size_t size = 16;
  const auto of_attention = [](bool output) {
    return [output](std::size_t n, numeric::RandomStream& stream) {
      const Planned planned(NuGptFullAlign{}, n);
      // All heads attend alike: weights of order one before and after.
      const auto weights = [&] {
        Vector p = drawn(stream, tokens);
        for (double& x : p) x = std::exp(x);
        return mixed(1 / sum_of(p, [](double x) { return x; }), p, 0, p);
      };
      const Vector p = weights();
      const Vector p_after = weights();
      const Moving w_v(stream, n / size * size, n, n);
      const Moving w_o(stream, n, n, n);
      const double rate = planned.rate("layer.0.value");
      Vector heads(n);
      Vector heads_after(n);
      Vector value;
      Vector value_after;
      for (std::size_t t = 0; t < tokens; ++t) {
        const Stream h(stream, n);
        value = w_v.times(h.before);
        value_after = w_v.moved(h.before, h.after, rate);
        heads = mixed(1, heads, p[t], value);
        heads_after = mixed(1, heads_after, p_after[t], value_after);
      }
      if (!output) return Sizes{rms(value), rms(mixed(1, value_after, -1, value))};
      const Vector y = w_o.times(heads);
      const Vector y_after =
          w_o.moved(heads, heads_after, planned.rate("layer.0.attention_output"));
      return Sizes{rms(y), rms(mixed(1, y_after, -1, y))};
    };
  };
  check_slopes(of_attention(false), -0.5, -0.5);
  check_slopes(of_attention(true), -0.5, -0.5);
}

TEST_CASE("Lemma A.7: a step along a block's output and its movement go with the initial step") {
  const auto step = [](const std::string& name, long depth) {
    return [=](std::size_t n, numeric::RandomStream& stream) {
      const Planned planned(NuGptFullAlign{}, n, depth);
      const Stream h(stream, n);
      const double a = planned.rescaler(name);
      const double moved = a + planned.rescaler_change(name);
      return Sizes{a * rms(h.before), rms(mixed(moved, h.after, -a, h.before))};
    };
  };
  for (const std::string name : {"layer.0.attention_step", "layer.0.mlp_step"}) {
    check_slopes(step(name, 4), -0.5, -0.5);
    // The initial step falls as 1/depth, and both with it.
    numeric::RandomStream stream(1, "depth");
    numeric::RandomStream again(1, "depth");
    const Sizes shallow = step(name, 4)(narrow, stream);
    const Sizes deep = step(name, 32)(narrow, again);
    CHECK_THAT(shallow.start / deep.start, Catch::Matchers::WithinRel(8, 1e-12));
    CHECK_THAT(shallow.change / deep.change, Catch::Matchers::WithinRel(8, 1e-12));
  }
}

namespace {

/// Logits s_z (E h), given s_z, its change and the rate of E.
Sizes logits(std::size_t n, numeric::RandomStream& stream, double s, double ds, double rate) {
  const Stream h(stream, n);
  const Moving e(stream, 32, n, n);
  const Vector z = mixed(s, e.times(h.before), 0, Vector(32));
  const Vector after = mixed(s + ds, e.moved(h.before, h.after, rate), 0, Vector(32));
  return {rms(z), rms(mixed(1, after, -1, z))};
}

}  // namespace

TEST_CASE(
    "Lemma A.8: with a scale of the root of the width, logits are of order one and move by as "
    "much") {
  check_slopes(
      [](std::size_t n, numeric::RandomStream& stream) {
        const Planned planned(NuGptFullAlign{}, n);
        return logits(n, stream, planned.rescaler("logit_scale"),
                      planned.rescaler_change("logit_scale"), planned.rate("head"));
      },
      0, 0);
}

TEST_CASE(
    "Lemma A.9: with a constant scale and a rate of n^(1/2 - 1), logits begin small and move by "
    "order one") {
  // No rule here has this rate. The movement of a step that is aligned outgrows that of h, which falls.
  check_slopes(
      [](std::size_t n, numeric::RandomStream& stream) {
        return logits(n, stream, 1, 0, 0.1 * std::sqrt(64.0 / static_cast<double>(n)));
      },
      -0.5, 0);
}
