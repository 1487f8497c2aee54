// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The simple normalized network of arXiv:2604.27077v2, Definition A.10, and what Lemma A.11 says of its updates.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "scalewise/numeric/random.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/ngpt_complete_p.hpp"
#include "support/catch.hpp"
#include "support/vectors.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {

/// The derivative of Norm at `a`, which is symmetric, times `v`: (v - û û.v)/|a|, û = a/|a|.
Vector through_norm(const Vector& a, const Vector& v) {
  const Vector u = unit(a);
  return mixed(1 / length(a), v, -inner(u, v) / length(a), u);
}

/// Rows of unit length.
struct Matrix {
  std::vector<Vector> rows;

  Vector times(const Vector& x) const {
    Vector y;
    for (const Vector& row : rows) y.push_back(inner(row, x));
    return y;
  }
  Vector transposed_times(const Vector& x) const {
    Vector y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y = mixed(1, y, x[i], rows[i]);
    return y;
  }
};

/// Of width n, layers L and exponent a: h~ = (1 - L^-a) h + L^-a Norm(W h), h <- Norm(h~).
class Network {
 public:
  Network(std::size_t n, std::size_t layers, double exponent, std::uint64_t seed)
      : share_(std::pow(static_cast<double>(layers), -exponent)),
        stream_(seed, "simple normalized network"),
        states_{unit(drawn(stream_, n))} {
    for (std::size_t l = 0; l < layers; ++l) {
      Matrix w;
      for (std::size_t i = 0; i < n; ++i) w.rows.push_back(unit(drawn(stream_, n)));
      branch_.push_back(w.times(states_.back()));
      before_norm_.push_back(mixed(1 - share_, states_.back(), share_, unit(branch_.back())));
      states_.push_back(unit(before_norm_.back()));
      weights_.push_back(w);
    }
  }

  /// The largest part that one layer's update has in the movement of any later state, to first order, when each entry
  /// moves by the rate against the sign of the gradient of a random direction of the last state (signGD).
  double largest_part(double rate) {
    differentiate();
    double largest = 0;
    for (std::size_t l = 0; l < weights_.size(); ++l) {
      Vector change = through_layer(l, Vector(states_[l].size()), rate);
      for (std::size_t k = l + 1;; ++k) {
        largest = std::max(largest, length(change));
        if (k == weights_.size()) break;
        change = through_layer(k, change, 0);
      }
    }
    return largest;
  }

  /// The movement of the last state when all of these and the input move.
  double movement(double hidden_rate, double input_rate) {
    differentiate();
    Vector change = steps(at_input_, input_rate);
    for (std::size_t l = 0; l < weights_.size(); ++l)
      change = through_layer(l, change, hidden_rate);
    return length(change);
  }

 private:
  /// Gradients of a random direction of the last state.
  void differentiate() {
    at_input_ = drawn(stream_, states_[0].size());
    at_branch_.resize(weights_.size());
    for (std::size_t l = weights_.size(); l-- > 0;) {
      const Vector before = through_norm(before_norm_[l], at_input_);
      at_branch_[l] = through_norm(branch_[l], mixed(share_, before, 0, before));
      at_input_ = mixed(1 - share_, before, 1, weights_[l].transposed_times(at_branch_[l]));
    }
  }

  /// How a layer's output moves with its input and its own matrix.
  Vector through_layer(std::size_t l, const Vector& change, double rate) const {
    double absolute = 0;  // (sign(g) sign(h)') h = |h|_1 sign(g)
    for (const double h : states_[l]) absolute += std::abs(h);
    const Vector moved =
        mixed(1, weights_[l].times(change), 1, steps(at_branch_[l], rate * absolute));
    return through_norm(before_norm_[l],
                        mixed(1 - share_, change, share_, through_norm(branch_[l], moved)));
  }

  static Vector steps(const Vector& gradient, double rate) {
    Vector step;
    for (const double g : gradient) step.push_back(std::copysign(rate, g));
    return step;
  }

  double share_;
  numeric::RandomStream stream_;
  std::vector<Vector> states_;
  std::vector<Matrix> weights_;
  std::vector<Vector> branch_, before_norm_, at_branch_;
  Vector at_input_;
};

/// The mean of f(network) over networks.
template <class F>
double mean(std::size_t n, std::size_t layers, double exponent, const F& f) {
  constexpr std::uint64_t networks = 6;
  double total = 0;
  for (std::uint64_t seed = 1; seed <= networks; ++seed) {
    Network network(n, layers, exponent, seed);
    total += f(network);
  }
  return total / networks;
}

/// Of a quantity over 8 times the size.
void check_slope(double first, double last, double expected) {
  const double slope = std::log(last / first) / std::log(8);
  CHECK_THAT(slope, Catch::Matchers::WithinAbs(expected, 0.15));
}

}  // namespace

TEST_CASE("Lemma A.11: one layer moves later states by at most its rate times the width over L^a") {
  for (const double a : {0.5, 1.0}) {
    const auto part = [&](std::size_t n, std::size_t layers) {
      return mean(n, layers, a, [](Network& network) { return network.largest_part(1); });
    };
    CAPTURE(a);
    check_slope(part(48, 4), part(384, 4), 1);  // N^(-1/2) of a length is N^(1/2) of a component
    check_slope(part(96, 4), part(96, 32), -a);
  }
}

TEST_CASE("The rates of the rule keep the movement of the simple network over width and depth") {
  for (const double a : {0.5, 1.0}) {
    const auto planned = [&](std::size_t n, std::size_t layers, double hidden, double input) {
      const Shape base{.d_model = 48, .depth = 4, .heads = 1, .context = 4, .vocab = 8};
      Shape model = base;
      model.d_model = static_cast<long>(n);
      model.depth = static_cast<long>(layers);
      const Plan plan =
          make_plan(NGptCompleteP{.depth_exponent = a}, {.model = model, .base = base});
      const double of_hidden = plan.at("layer.0.query").learning_rate.value;
      const double of_input = plan.at("token_embedding").learning_rate.value;
      return mean(n, layers, a, [&](Network& network) {
        return network.movement(hidden * of_hidden, input * of_input);
      });
    };
    CAPTURE(a);
    check_slope(planned(48, 4, 1, 0), planned(384, 4, 1, 0), 0);
    check_slope(planned(48, 4, 1, 0), planned(48, 32, 1, 0), 0);
    check_slope(planned(48, 4, 0, 1), planned(384, 4, 0, 1), 0);
    check_slope(planned(48, 4, 0, 1), planned(48, 32, 0, 1), 0);
  }
}
