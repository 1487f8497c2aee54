// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Exponents, scalings and kinds: exactness and refusals. Compiling this file is the test.

#include <array>
#include <concepts>
#include <type_traits>

#include "scalewise/architecture/values.hpp"
#include "scalewise/policy/all.hpp"

namespace static_scalings {

using namespace scalewise;
using namespace scalewise::symbols;

// Exponents are fractions in lowest terms with a positive denominator.
static_assert(Exponent(2, 4) == Exponent(1, 2));
static_assert(Exponent(1, -2) == Exponent(-1, 2));
static_assert(Exponent(-3, -6) == Exponent(1, 2));
static_assert(Exponent(0, 7) == Exponent(0));
static_assert(Exponent(1, 2) + Exponent(1, 3) == Exponent(5, 6));
static_assert(Exponent(1, 2) - Exponent(1, 2) == Exponent(0));
static_assert(Exponent(2, 3) * Exponent(3, 4) == Exponent(1, 2));
static_assert(-Exponent(3, 4) == Exponent(-3, 4));
static_assert(Exponent(1, 2) != Exponent(1, 3));
static_assert(!(Exponent(1, 2) == Exponent(-1, 2)));
static_assert(Exponent(3, 4).value() == 0.75);
static_assert(Exponent(0).is_zero() && !Exponent(1, 64).is_zero());
static_assert(Exponent(2).is_whole() && !Exponent(1, 2).is_whole());

// A double that is a small fraction becomes that fraction; another is kept.
static_assert(exponent(0) == Exponent(0));
static_assert(exponent(1) == Exponent(1));
static_assert(exponent(-2) == Exponent(-2));
static_assert(exponent(0.25) == Exponent(1, 4));
static_assert(exponent(-0.25) == Exponent(-1, 4));
static_assert(exponent(0.3) == Exponent(3, 10));
static_assert(exponent(1.0 / 3) == Exponent(1, 3));
static_assert(exponent(-0.75) == Exponent(-3, 4));
static_assert(exponent(0.6) != Exponent(5, 8));
static_assert(exponent(0.123456789).real == 0.123456789);
static_assert(exponent(0.123456789).num == 0);
static_assert(exponent(0.123456789).value() == 0.123456789);
static_assert(!exponent(0.123456789).is_whole() && !exponent(0.123456789).is_zero());
static_assert((exponent(0.123456789) - exponent(0.123456789)).is_zero());

// Products of powers are exact.
static_assert(sqrt(n) * sqrt(n) == n);
static_assert(M * n == F);
static_assert(F / M == n);
static_assert(F / n == M);
static_assert(n / n == Scaling(1));
static_assert((n / n).factors().empty());
static_assert(n * F == F * n);
static_assert(n * F != n && n != n * F && Scaling(1) != n && n != F);
static_assert(2 * n != n && n != 2 * n);
static_assert(1 / (1 / n) == n);
static_assert(1 / (n * sqrt(n)) == pow(n, {-3, 2}));
static_assert(pow(pow(n, {3, 4}), {4, 3}) == n);
static_assert(pow(pow(n * L, {1, 3}), 3) == n * L);
static_assert(pow(sqrt(2 * L), 2) == 2 * L);
static_assert(sqrt(M * n) * sqrt(M * n) == F);
static_assert(sqrt(n) * sqrt(F) == sqrt(n * F));
static_assert(pow(n, 0) == Scaling(1));
static_assert(pow(n, exponent(0.123456789)) * pow(n, -exponent(0.123456789)) == Scaling(1));
static_assert(2 * n / 4 == 0.5 * n);
static_assert(sqrt(Scaling(4)) == Scaling(2));
static_assert(sqrt(8 * L) == 2 * sqrt(2 * L));
static_assert(pow(Scaling(2), {1, 4}) * pow(Scaling(2), {3, 4}) == Scaling(2));
static_assert(pow(Scaling(0.25), {1, 2}) == Scaling(0.5));
static_assert(Scaling(0) * n == Scaling(0));
static_assert((Scaling(0) * n).is_zero());

// Scalings that differ are not equal.
static_assert(n != F);
static_assert(n != M * n);
static_assert(!(n == 2 * n));
static_assert(n != sqrt(n));
static_assert(n != 1 / n);
static_assert(pow(n, {3, 4}) != pow(n, {2, 3}));
static_assert(fi != fo);
static_assert(fi != n);
static_assert(n != m_N);
static_assert(m_fi != fi);
static_assert(L != m_L);
static_assert(1 / sqrt(n) != 1 / sqrt(m_N));
static_assert(C != n);
static_assert(Scaling(1) != Scaling(1 + 1e-12));
static_assert(Scaling(1) != Scaling(-1));
static_assert(pow(n, exponent(0.123456789)) != pow(n, exponent(0.123456788)));
static_assert(2 / L != 2 / (L * L));

// Ratios to a base.
static_assert(ratio(n) == m_N);
static_assert(ratio(1 / sqrt(n)) == 1 / sqrt(m_N));
static_assert(ratio(fi) == m_fi && ratio(fo) == m_fo);
static_assert(ratio(M) * ratio(n) == ratio(F));
static_assert(ratio(ratio(n)) == ratio(n));
static_assert(ratio(pow(2 * L, {1, 4})) == pow(Scaling(2), {1, 4}) * pow(m_L, {1, 4}));
static_assert(m_N.needs_base() && (n / m_C).needs_base());
static_assert(!n.needs_base() && !Scaling(3).needs_base() && !(1 / sqrt(C)).needs_base());
static_assert(!(m_N / m_N).needs_base());

// Substitution keeps ratios ratios.
static_assert(substitute(1 / fi, symbols::fan_in, F) == 1 / F);
static_assert(substitute(1 / m_fi, symbols::fan_in, F) == 1 / ratio(F));
static_assert(substitute(1 / sqrt(m_fi), symbols::fan_in, n) == 1 / sqrt(m_N));
static_assert(substitute(m_fi, symbols::fan_in, 1) == Scaling(1));
static_assert(substitute(fo / fi, symbols::fan_in, fo) == Scaling(1));
static_assert(substitute(n, symbols::fan_in, F) == n);
static_assert(substitute(2 * fi * L, symbols::fan_in, M* n) == 2 * F * L);
static_assert(substitute(sqrt(F), symbols::d_ff, 4 * n) == 2 * sqrt(n));

static_assert((n * sqrt(m_N)).exponent_of(symbols::d_model) == Exponent(3, 2));
static_assert((n / L).exponent_of(symbols::depth) == Exponent(-1));
static_assert(n.exponent_of(symbols::depth).is_zero());

// Kinds: a number or a scaling makes a cell; a cell of one kind makes no cell of another.
template <class From, class To>
constexpr bool converts = std::is_convertible_v<From, To> || std::is_constructible_v<To, From> ||
                          std::is_assignable_v<To&, From>;
template <class From, class... To>
constexpr int conversions = (0 + ... + (converts<From, To> ? 1 : 0));
template <class... Kinds>
constexpr bool only_to_itself = ((conversions<Kinds, Kinds...> == 1) && ...);
static_assert(only_to_itself<Variance, StandardDeviation, Mean, Multiplier, Rate, Decay, Epsilon>);
static_assert(!std::is_constructible_v<Variance, Rate>);
static_assert(!std::is_constructible_v<StandardDeviation, Variance>);
static_assert(!std::is_constructible_v<Variance, StandardDeviation>);
static_assert(!std::is_convertible_v<Rate, Scaling> && !std::is_convertible_v<Rate, double>);
static_assert(std::is_convertible_v<Scaling, Variance> && std::is_convertible_v<double, Rate>);
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a == b;
};
static_assert(Comparable<Rate, Rate>);
static_assert(!Comparable<Variance, StandardDeviation> && !Comparable<Rate, Decay>);

// The one way from a variance to a standard deviation.
static_assert(std::same_as<decltype(std_dev(Variance(n))), StandardDeviation>);
static_assert(std_dev(Variance(1 / n)) == StandardDeviation(1 / sqrt(n)));
static_assert(std_dev(Variance(n * n)) == StandardDeviation(n));
template <class Any>
concept HasStdDev = requires(Any any) {
  std_dev(any);
};
static_assert(HasStdDev<Variance>);
static_assert(!HasStdDev<Rate> && !HasStdDev<StandardDeviation>);

// Evaluation, in a constant expression and exact where the roots are.
constexpr Shape model(long d_model, long depth, long heads) {
  Shape shape{.d_model = d_model, .depth = depth, .heads = heads, .context = 16, .vocab = 100};
  shape.iterations = 1000;
  return shape;
}
constexpr Shape small = model(64, 4, 4);     // C = 16, F = 256
constexpr Shape large = model(1024, 16, 4);  // C = 256, F = 4096

static_assert(architecture::at(n, small) == 64 && architecture::at(F, small) == 256 &&
              architecture::at(M, small) == 4);
static_assert(architecture::at(C, small) == 16 && architecture::at(L, small) == 4 &&
              architecture::at(n_out, small) == 100);
static_assert(architecture::at(1 / (n * sqrt(n)), small) == 1.0 / 512);
static_assert(architecture::at(1 / (n * sqrt(n)), large) == 1.0 / 32768);
static_assert(architecture::at(pow(n, {3, 2}), large) == 32768);
static_assert(architecture::at(1 / (n * sqrt(M * n)), small) == 1.0 / 1024);
static_assert(architecture::at(1 / sqrt(C), large) == 1.0 / 16);
static_assert(architecture::at(pow(n, {1, 3}), small) == 4 &&
              architecture::at(pow(L, {-3, 2}), small) == 0.125);
static_assert(architecture::at(1e-3 * pow(n, {3, 2}), large) == 1e-3 * 32768);
static_assert(architecture::relative(n, large, small) == 16);
static_assert(architecture::relative(1 / n, large, small) == 1.0 / 16);
static_assert(architecture::relative(pow(n, {-3, 4}), large, small) == 1.0 / 8);
static_assert(architecture::relative(1 / sqrt(L), large, small) == 0.5);
static_assert(architecture::relative(1 / (n * sqrt(M * n)), small, small) == 1);
static_assert(architecture::relative(pow(n, {-1, 3}) * pow(L, {-5, 7}), large, large) == 1);

}  // namespace static_scalings
