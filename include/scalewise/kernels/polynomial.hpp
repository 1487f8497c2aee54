// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <array>
#include <cstddef>
#include <utility>

namespace scalewise::kernels::detail {

/// Σ c_i w^i by Horner's rule, of a number or a packet of them. As one expression of Eigen's, its
/// types would take compilers longer than the rest of the kernels.
template <std::size_t terms>
struct Polynomial {
  std::array<double, terms> coefficients;

  double operator()(double w) const { return packetOp(w); }

  template <class Packet>
  Packet packetOp(  // NOLINT(readability-identifier-naming): Eigen calls it so
      const Packet& w) const {
    using namespace Eigen::internal;
    auto sum = pset1<Packet>(coefficients[terms - 1]);
    const auto add = [&](double c) { sum = padd(pset1<Packet>(c), pmul(w, sum)); };
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (add(coefficients[terms - 2 - i]), ...);  // a loop takes half as long again
    }
    (std::make_index_sequence<terms - 1>());
    return sum;
  }
};
template <class... Numbers>
Polynomial(Numbers...) -> Polynomial<sizeof...(Numbers)>;

}  // namespace scalewise::kernels::detail

template <std::size_t terms>
struct Eigen::internal::functor_traits<scalewise::kernels::detail::Polynomial<terms>> {
  // NOLINTNEXTLINE(readability-identifier-naming): Eigen's names
  enum { Cost = 2 * terms * NumTraits<double>::MulCost, PacketAccess = true };
};
