// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "scalewise/dense/buffer.hpp"
#include "scalewise/nn/blocks.hpp"
#include "scalewise/nn/config.hpp"

namespace scalewise::nn {

/// A mixture of experts: MLPs, of which each token goes through the k that its router scores highest.
/// Equation: z = router x; s = softmax(z), or σ(z) one by one; T the k experts with the largest s + b, the lower number
///           first where they are equal; y = Σ_T g expert(x), g = s (softmax), s / Σ_T s (renormalized) or s / k (sigmoid).
///           The bias b has no gradient.
/// Source:   softmax: Fedus, Zoph, Shazeer 2022 (arXiv:2101.03961), eq. (1), (2); renormalized: Jiang et al. 2024
///           (arXiv:2401.04088), section 2.1; sigmoid: Jiang et al. 2026 (arXiv:2601.20205v3), a mean over active
///           experts; b: Wang et al. 2024 (arXiv:2408.15664), eq. (3).
/// Shapes:   N rows, C d_model, E experts, k of them per row, F expert_ff
/// Accuracy: the same bits for any number of threads: rows are ordered by their experts one after the other.
template <class Scalar>
struct ExpertsLayer {
  std::string name;  // what observers know it by, ending in a dot
  Gates gates = Gates::softmax;
  Eigen::Index active = 0;  // k
  Weight<Scalar> router;    // (C, E)
  std::vector<MlpLayer<Scalar>> experts;
  std::vector<Scalar> bias;  // b, (E)

  dense::Buffer<Scalar> scores;             // (N, E), z and then s
  dense::Buffer<Scalar> gate;               // (N, k), g
  dense::Buffer<Scalar> in, out, gradient;  // (N k, C), by expert
  dense::Buffer<Scalar> dgate, dscores;
  std::vector<Eigen::Index> chosen;  // (N k), T
  std::vector<Eigen::Index> place;   // (N k), where the row of each is in `in`
  std::vector<Eigen::Index> first;   // (E + 1), where the rows of each expert begin
  std::vector<Eigen::Index> filled;  // (E), and as far as they are placed

  /// Shapes: x (N, C) -> y (N, C)
  void forward(Pass<Scalar>& pass, const ConstView<Scalar>& x, View<Scalar> y) {
    View<Scalar> z = scores.shape(x.rows(), router.value().cols());
    linear_forward(router, {}, x, z);
    pass.show(name, "router", scores.read());
    choose(z);
    order_by_expert(x.rows());
    View<Scalar> rows = in.shape(x.rows() * active, x.cols());
    each_choice(x.rows(), [&](Eigen::Index i, std::size_t at) { rows.row(place[at]) = x.row(i); });
    out.shape(rows.rows(), rows.cols());
    for (std::size_t e = 0; e < experts.size(); ++e) {
      if (count(e) > 0) experts[e].forward(pass, part(in.read(), e), part(out.view(), e));
    }
    mix(y);
  }

  /// Shapes: dy (N, C) -> dx (N, C)
  /// Writes: overwrites dx and the weights' gradients.
  void backward(Pass<Scalar>& pass, const ConstView<Scalar>& dy, const ConstView<Scalar>& x,
                View<Scalar> dx) {
    View<Scalar> g = dgate.shape(dy.rows(), active);
    View<Scalar> d = gradient.shape(out.rows(), out.cols());
    const ConstView<Scalar> y = out.read();
    each_choice(dy.rows(), [&](Eigen::Index i, std::size_t at) {
      const auto slot = static_cast<Eigen::Index>(at) - i * active;
      g(i, slot) = dy.row(i).dot(y.row(place[at]));
      d.row(place[at]) = gate.read()(i, slot) * dy.row(i);
    });
    router_backward(pass, x, dx);
    for (std::size_t e = 0; e < experts.size(); ++e) {
      MlpLayer<Scalar>& expert = experts[e];
      if (count(e) > 0) {
        expert.backward(pass, part(gradient.read(), e), part(in.read(), e), part(d, e), [] {});
        continue;
      }
      for (const Weight<Scalar>* w : {&expert.up, &expert.gate, &expert.down}) {
        w->gradient().setZero();
      }
    }
    each_choice(dx.rows(), [&](Eigen::Index i, std::size_t at) { dx.row(i) += d.row(place[at]); });
  }

  /// Moves the bias of each expert by `rate` towards the mean load of the last forward pass.
  /// Equation: b += rate sign(mean load - load)
  /// Source:   Wang et al. 2024 (arXiv:2408.15664), Algorithm 1.
  /// Returns:  the largest load over the mean.
  double balance(double rate) {
    const double mean = static_cast<double>(chosen.size()) / static_cast<double>(experts.size());
    double largest = 0;
    for (std::size_t e = 0; e < experts.size(); ++e) {
      const double over = static_cast<double>(count(e)) - mean;
      bias[e] -= static_cast<Scalar>(over > 0 ? rate : over < 0 ? -rate : 0);
      largest = (std::max)(largest, 1 + over / mean);
    }
    return largest;
  }

 private:
  Eigen::Index count(std::size_t e) const { return first[e + 1] - first[e]; }

  template <class AnyView>
  AnyView part(const AnyView& all, std::size_t e) const {
    return dense::block(all, first[e], 0, count(e), all.cols());
  }

  /// Calls task(row, its place in `chosen`) for every expert of every row, one row after the other on a thread.
  template <class Task>
  void each_choice(Eigen::Index rows, const Task& task) const {
    numeric::parallel_tiles(rows, 64, [&](Eigen::Index begin, Eigen::Index size) {
      for (Eigen::Index at = begin * active; at < (begin + size) * active; ++at) {
        task(at / active, static_cast<std::size_t>(at));
      }
    });
  }

  /// Turns z into s, and finds T and g.
  void choose(View<Scalar> z) {
    chosen.resize(static_cast<std::size_t>(z.rows() * active));
    View<Scalar> g = gate.shape(z.rows(), active);
    numeric::parallel_rows(z.rows(), [&](Eigen::Index i) {
      auto s = z.row(i).array();
      if (gates == Gates::sigmoid) {
        s = 1 / (1 + (-s).exp());
      } else {
        s = (s - s.maxCoeff()).exp();
        s *= 1 / s.sum();
      }
      for (Eigen::Index slot = 0; slot < active; ++slot) g(i, slot) = s(next(s, i, slot));
      if (gates == Gates::renormalized) g.row(i) *= 1 / g.row(i).sum();
      if (gates == Gates::sigmoid) g.row(i) *= 1 / static_cast<Scalar>(active);
    });
  }

  /// The expert of a slot of a row: the best that no slot before it has.
  template <class Row>
  Eigen::Index next(const Row& s, Eigen::Index row, Eigen::Index slot) {
    const auto begin = chosen.begin() + row * active;
    Eigen::Index best = -1;
    for (Eigen::Index e = 0; e < s.size(); ++e) {
      if (std::find(begin, begin + slot, e) != begin + slot) continue;
      const auto with_bias = [&](Eigen::Index of) {
        return s(of) + bias[static_cast<std::size_t>(of)];
      };
      if (best < 0 || with_bias(e) > with_bias(best)) best = e;
    }
    return *(begin + slot) = best;
  }

  void order_by_expert(Eigen::Index rows) {
    first.assign(experts.size() + 1, 0);
    for (const Eigen::Index e : chosen) ++first[static_cast<std::size_t>(e) + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    filled.assign(first.begin(), first.end() - 1);
    place.resize(static_cast<std::size_t>(rows * active));
    for (std::size_t at = 0; at < place.size(); ++at) {
      place[at] = filled[static_cast<std::size_t>(chosen[at])]++;
    }
  }

  /// y = Σ_T g expert(x), in the order of T.
  void mix(View<Scalar> y) {
    const ConstView<Scalar> g = gate.read();
    const ConstView<Scalar> of_experts = out.read();
    each_choice(y.rows(), [&](Eigen::Index i, std::size_t at) {
      const auto slot = static_cast<Eigen::Index>(at) - i * active;
      if (slot == 0) y.row(i).setZero();
      y.row(i) += g(i, slot) * of_experts.row(place[at]);
    });
  }

  /// dx = the part that comes through the router.
  /// Equation: softmax: dz = s (ds - Σ ds s), ds = dg in T, else 0; renormalized: dz = g (dg - Σ_T dg g) in T, else 0;
  ///           sigmoid: dz = dg s (1 - s) / k in T, else 0
  void router_backward(Pass<Scalar>& pass, const ConstView<Scalar>& x, View<Scalar> dx) {
    const ConstView<Scalar> s = scores.read(), g = gate.read(), dg = dgate.read();
    View<Scalar> dz = dscores.shape(s.rows(), s.cols());
    numeric::parallel_rows(s.rows(), [&](Eigen::Index i) {
      const Scalar share = dg.row(i).dot(g.row(i));  // Σ ds s, or Σ_T dg g
      dz.row(i).setZero();
      if (gates == Gates::softmax) dz.row(i) = -share * s.row(i);
      for (Eigen::Index slot = 0; slot < active; ++slot) {
        const Eigen::Index e = chosen[static_cast<std::size_t>(i * active + slot)];
        const Scalar d = gates == Gates::renormalized ? dg(i, slot) - share
                         : gates == Gates::sigmoid    ? dg(i, slot) * (1 - s(i, e))
                                                      : dg(i, slot);
        dz(i, e) += g(i, slot) * d;
      }
    });
    pass.show_gradient(name, "router", dscores.read());
    linear_backward(router, {}, x, dscores.read(), dx);
  }
};

}  // namespace scalewise::nn
