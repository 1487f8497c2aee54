// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "scalewise/numeric/exponent.hpp"
#include "scalewise/numeric/power.hpp"
#include "scalewise/scaling/symbol.hpp"

namespace scalewise {

namespace scaling {

/// One symbol to a power; `ratio` means the target's size over the base's.
struct Factor {
  const Symbol* symbol = &symbols::integer;
  bool ratio = false;
  int integer = 0;  // for symbols::integer only
  Exponent exponent;

  /// By their texts: a symbol that was read from a file is another constant. GCC's sanitizer of undefined
  /// behaviour takes no comparison of addresses for a constant expression.
  constexpr bool is_integer() const { return *symbol->text == *symbols::integer.text; }
  constexpr bool is(const Symbol& other) const {
    return std::string_view(symbol->text) == other.text;
  }
  constexpr bool same_symbol(const Factor& other) const {
    return is(*other.symbol) && ratio == other.ratio && integer == other.integer;
  }
  /// True where a product writes this factor left of another.
  constexpr bool before(const Factor& other) const {
    if (!is(*other.symbol)) {
      if (symbol->place != other.symbol->place) return symbol->place < other.symbol->place;
      return std::string_view(symbol->text) < other.symbol->text;
    }
    if (ratio != other.ratio) return other.ratio;
    return integer < other.integer;
  }
};

/// The factors of a scaling, in a fixed order; refers to it.
struct Factors {
  const Factor* first = nullptr;
  const Factor* last = nullptr;

  constexpr const Factor* begin() const { return first; }
  constexpr const Factor* end() const { return last; }
  constexpr bool empty() const { return first == last; }
};

}  // namespace scaling

/// An exact scaling: a number times powers of symbols, as one cell of a paper's table.
/// Equation: number * prod symbol^e * prod (symbol_target/symbol_base)^e
/// Accuracy: exponents are exact (see Exponent); the number is a double.
/// Requires: at most 12 different symbols; one more does not compile in a constant expression and
///           throws std::out_of_range elsewhere.
/// Two scalings are equal when their exponents and numbers agree to 1e-14 relative, after M is
/// written as F/n: that is the rounding of products of roots, and of exponents that are not fractions.
class Scaling {
 public:
  static constexpr std::size_t capacity = 12;

  constexpr Scaling() = default;
  constexpr Scaling(double number) : number_(number) {}
  constexpr Scaling(const Symbol& symbol, bool ratio = false)
      : factors_{scaling::Factor{&symbol, ratio, 0, 1}}, size_(1) {}
  Scaling(const Symbol&& temporary, bool ratio = false) = delete;

  /// The number that the powers of symbols multiply.
  /// Units:    none, or those of the cell that the scaling stands in
  constexpr double number() const { return number_; }
  constexpr scaling::Factors factors() const { return {factors_.data(), factors_.data() + size_}; }
  constexpr bool is_zero() const { return number_ == 0; }

  /// True when the value depends on a base shape.
  constexpr bool needs_base() const {
    for (const scaling::Factor& factor : factors()) {
      if (factor.ratio) return true;
    }
    return false;
  }

  /// Sum of the exponents with which a symbol enters, absolute and as a ratio.
  constexpr Exponent exponent_of(const Symbol& symbol) const {
    Exponent sum;
    for (const scaling::Factor& factor : factors()) {
      if (factor.is(symbol)) sum = sum + factor.exponent;
    }
    return sum;
  }

  friend constexpr Scaling operator*(Scaling a, const Scaling& b) {
    a.number_ *= b.number_;
    if (a.number_ == 0) return 0;
    for (const scaling::Factor& factor : b.factors()) a.multiply(factor);
    return a;
  }
  friend constexpr Scaling operator/(const Scaling& a, const Scaling& b) {
    return a * pow(b, Exponent(-1));
  }

  /// A scaling to a power. An integer keeps its root symbolic: pow(2 * L, Exponent{1, 4}) is (2L)^(1/4).
  friend constexpr Scaling pow(const Scaling& base, Exponent e) {
    Scaling result;
    if (base.number_ != 1) {
      const bool moderate = base.number_ >= 1 && base.number_ < 1e6;
      const int whole = moderate ? static_cast<int>(base.number_) : 0;
      if (e.is_whole() || whole != base.number_ || whole < 1) {
        result.number_ = base.number_ == 0 ? 0 : numeric::power(base.number_, e);
      } else {
        result.multiply(scaling::Factor{&symbols::integer, false, whole, e});
      }
    }
    for (scaling::Factor factor : base.factors()) {
      factor.exponent = factor.exponent * e;
      result.multiply(factor);
    }
    return result;
  }
  friend constexpr Scaling sqrt(const Scaling& base) { return pow(base, Exponent{1, 2}); }

  /// The same powers, taken of target over base: what only counts relative to a tuned model.
  friend constexpr Scaling ratio(const Scaling& absolute) {
    Scaling result(absolute.number_);
    for (scaling::Factor factor : absolute.factors()) {
      factor.ratio = !factor.is_integer();
      result.multiply(factor);
    }
    return result;
  }

  /// Replaces a symbol by a scaling, in ratios by its ratio.
  friend constexpr Scaling substitute(const Scaling& scaling, const Symbol& symbol,
                                      const Scaling& value) {
    Scaling result(scaling.number_);
    for (const scaling::Factor& factor : scaling.factors()) {
      if (!factor.is(symbol)) {
        result.multiply(factor);
      } else {
        Scaling is = factor.ratio ? ratio(value) : value;
        if (factor.ratio) is.number_ = 1;  // the same in both models
        result = result * pow(is, factor.exponent);
      }
    }
    return result;
  }

  friend constexpr bool operator==(const Scaling& a, const Scaling& b) {
    const Scaling ca = a.canonical();
    const Scaling cb = b.canonical();
    if (!close(ca.number_, cb.number_)) return false;
    if (ca.number_ == 0) return true;
    if (ca.size_ != cb.size_) return false;
    for (const scaling::Factor& factor : ca.factors()) {
      const scaling::Factor* same = cb.find(factor);
      if (same == nullptr || !close(same->exponent.value(), factor.exponent.value())) return false;
    }
    return true;
  }

 private:
  /// Multiplies one factor in, keeping the factors sorted and free of zero exponents.
  constexpr void multiply(const scaling::Factor& factor) {
    std::size_t at = 0;
    while (at < size_ && factors_[at].before(factor)) ++at;
    scaling::Factor merged = factor;
    if (at < size_ && factors_[at].same_symbol(factor)) {
      merged.exponent = merged.exponent + factors_[at].exponent;
      remove(at);
    }
    if (merged.exponent.is_zero()) return;
    if (merged.is_integer() && merged.exponent.is_whole()) {
      number_ *= numeric::power(merged.integer, merged.exponent);
      return;
    }
    for (std::size_t i = size_; i > at; --i) factors_.at(i) = factors_[i - 1];
    factors_.at(at) = merged;
    ++size_;
  }

  static constexpr bool close(double a, double b) {
    const double gap = a < b ? b - a : a - b;
    return gap <= 1e-14 * (a < 0 ? -a : a);
  }

  constexpr const scaling::Factor* find(const scaling::Factor& factor) const {
    for (const scaling::Factor& own : factors()) {
      if (own.same_symbol(factor)) return &own;
    }
    return nullptr;
  }

  constexpr void remove(std::size_t at) {
    --size_;
    for (std::size_t i = at; i < size_; ++i) factors_[i] = factors_[i + 1];
  }

  /// M as F/n, and integers under roots as part of the number.
  constexpr Scaling canonical() const {
    Scaling result(number_);
    for (const scaling::Factor& factor : factors()) {
      if (factor.is_integer()) {
        result.number_ *= numeric::power(factor.integer, factor.exponent);
      } else if (factor.is(symbols::mlp_ratio)) {
        result.multiply({&symbols::d_ff, factor.ratio, 0, factor.exponent});
        result.multiply({&symbols::d_model, factor.ratio, 0, -factor.exponent});
      } else {
        result.multiply(factor);
      }
    }
    return result;
  }

  double number_ = 1;
  std::array<scaling::Factor, capacity> factors_{};
  std::size_t size_ = 0;
};

namespace symbols {

inline constexpr Scaling n{d_model};
inline constexpr Scaling F{d_ff};
inline constexpr Scaling M{mlp_ratio};
inline constexpr Scaling C{head_dim};
inline constexpr Scaling L{depth};
inline constexpr Scaling n_patch{patch_dim};
inline constexpr Scaling n_out{classes};
inline constexpr Scaling fi{fan_in};
inline constexpr Scaling fo{fan_out};
inline constexpr Scaling fi_plus_fo{fan_total};
inline constexpr Scaling m_N{d_model, true};
inline constexpr Scaling m_L{depth, true};
inline constexpr Scaling m_C{head_dim, true};
inline constexpr Scaling m_D{iterations, true};
inline constexpr Scaling m_E{experts, true};
inline constexpr Scaling m_fi{fan_in, true};
inline constexpr Scaling m_fo{fan_out, true};

}  // namespace symbols

}  // namespace scalewise
