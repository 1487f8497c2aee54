// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <string>

#include "scalewise/numeric/number_text.hpp"
#include "scalewise/scaling/scaling.hpp"

namespace scalewise {

namespace detail {

/// The small differences between plain text and LaTeX.
template <bool latex>
struct Notation {
  static std::string symbol(const scaling::Factor& factor) {
    if (factor.is_integer()) return std::to_string(factor.integer);
    const Symbol& letter = *factor.symbol;
    if (factor.ratio) return latex ? letter.ratio_latex : letter.ratio_text;
    return latex ? letter.latex : letter.text;
  }
  static std::string raised(const std::string& base, Exponent e) {
    if (e == Exponent(1)) return base;
    if (!latex && e == Exponent(2)) return base + "²";
    if (!latex && e == Exponent(3)) return base + "³";
    std::string power = numeric::number_text(e.value());
    if (e.real == 0) {
      power = std::to_string(e.num) + (e.den == 1 ? "" : "/" + std::to_string(e.den));
    }
    return base + (latex ? "^{" + power + "}" : "^(" + power + ")");
  }
  static std::string root(const std::string& radicand, bool one_symbol) {
    if (latex) return "\\sqrt{" + radicand + "}";
    return one_symbol ? "√" + radicand : "√(" + radicand + ")";
  }
  static std::string fraction(const std::string& over, const std::string& under, bool one_symbol) {
    if (latex) return "\\frac{" + over + "}{" + under + "}";
    return over + "/" + (one_symbol ? under : "(" + under + ")");
  }
};

/// A product while it is being written: letters stand side by side, longer names are set apart.
template <bool latex>
struct Product {
  std::string text;
  int parts = 0;

  void times(const std::string& part) {
    const bool opens_itself = part[0] == '(' || part.starts_with("√") || part.starts_with('\\');
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const bool after_digit = parts > 0 && is_digit(text.back());
    const bool apart =
        after_digit ? is_digit(part[0]) : parts > 0 && part.size() > 1 && !opens_itself;
    text += (apart ? (latex ? "\\," : "·") : "") + part;
    ++parts;
  }
};

/// One side of the fraction bar.
template <bool latex>
struct Side {
  Product<latex> plain;
  Product<latex> under_root;

  bool empty() const { return plain.parts + under_root.parts == 0; }
  bool one_symbol() const { return plain.parts + (under_root.parts > 0 ? 1 : 0) == 1; }
  std::string text() const {
    Product<latex> all = plain;
    if (under_root.parts > 0) {
      all.times(Notation<latex>::root(under_root.text, under_root.parts == 1));
    }
    return all.parts == 0 ? "1" : all.text;
  }
};

/// Writes a coefficient as a small fraction where it is one, so that PyTorch's 1/3 stays 1/3.
template <bool latex>
void write_number(double number, Side<latex>& over, Side<latex>& under) {
  for (int den = 2; den <= 64; den *= 2) {  // 0.5 is a half, but 0.05 stays as the papers print it
    if (number * den != 1) continue;
    under.plain.times(std::to_string(den));
    return;
  }
  const std::string decimal = numeric::number_text(number);
  for (int den = 2; den <= 64 && decimal.size() > 6; ++den) {
    if (number < 1e-3 || number > 1e3) break;
    const auto num = static_cast<int>(number * den * 2 + 1) / 2;
    const double gap = number * den / num - 1;
    if (gap < 1e-15 && gap > -1e-15) {
      if (num != 1) over.plain.times(std::to_string(num));
      under.plain.times(std::to_string(den));
      return;
    }
  }
  if (number != 1) over.plain.times(decimal);
}

/// Exponents that are neither whole nor half.
constexpr bool is_odd_power(const Exponent& e) { return e.real != 0 || e.den > 2; }

/// Symbols to an odd power keep its sign and share a bracket when they share it: (2L)^(1/4).
template <bool latex>
void write_odd_powers(const scaling::Factors& factors, Side<latex>& over) {
  for (const scaling::Factor& first : factors) {
    if (!is_odd_power(first.exponent)) continue;
    Product<latex> base;
    bool written = false;
    for (const scaling::Factor& factor : factors) {
      if (factor.exponent != first.exponent) continue;
      written = written || (base.parts == 0 && !factor.same_symbol(first));
      base.times(Notation<latex>::symbol(factor));
    }
    if (written) continue;
    if (base.parts > 1) base.text = "(" + base.text + ")";
    over.plain.times(Notation<latex>::raised(base.text, first.exponent));
  }
}

template <bool latex>
std::string write(const Scaling& scaling) {
  using N = Notation<latex>;
  if (scaling.is_zero()) return "0";
  Side<latex> over;
  Side<latex> under;
  write_number(scaling.number(), over, under);
  for (const scaling::Factor& factor : scaling.factors()) {
    const Exponent e = factor.exponent;
    if (is_odd_power(e)) continue;
    Side<latex>& side = e.num < 0 ? under : over;
    const int halves = (e.num < 0 ? -e.num : e.num) * 2 / e.den;
    const std::string symbol = N::symbol(factor);
    if (halves >= 2) side.plain.times(N::raised(symbol, halves / 2));
    if (halves % 2 == 1) side.under_root.times(symbol);
  }
  write_odd_powers(scaling.factors(), over);

  if (under.empty()) return over.text();
  const bool only_roots = !over.empty() && over.plain.parts == 0 && under.plain.parts == 0;
  if (only_roots) {  // √a/√b is written √(a/b)
    const bool one_symbol = under.under_root.parts == 1;
    return N::root(N::fraction(over.under_root.text, under.under_root.text, one_symbol), false);
  }
  return N::fraction(over.text(), under.text(), under.one_symbol());
}

}  // namespace detail

/// The scaling as the papers print it, in plain text: "1/(n√n)", "m_N^(-3/4)", "(2L)^(1/4)".
template <std::same_as<Scaling> S>
std::string to_text(const S& scaling) {
  return detail::write<false>(scaling);
}

/// The scaling as the papers print it, in LaTeX: "\frac{1}{n\sqrt{n}}".
template <std::same_as<Scaling> S>
std::string to_latex(const S& scaling) {
  return detail::write<true>(scaling);
}

}  // namespace scalewise
