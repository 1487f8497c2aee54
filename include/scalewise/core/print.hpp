// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/core/scaling.hpp"

namespace scalewise {

/// A double as the shortest text that reads back to it; without an exponent where that is short.
inline std::string number_text(double x) {
  char buffer[64];
  const double size = x < 0 ? -x : x;
  const auto format = x == 0 || (size >= 1e-5 && size < 1e7) ? std::chars_format::fixed
                                                             : std::chars_format::scientific;
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, x, format).ptr};
}

namespace detail {

/// The small differences between plain text and LaTeX.
struct Notation {
  bool latex;

  std::string symbol(const Factor& factor) const {
    if (factor.axis == Axis::number) return std::to_string(factor.number);
    const AxisName& name = name_of(factor.axis);
    if (factor.ratio) return std::string(latex ? name.ratio_latex : name.ratio_text);
    return std::string(latex ? name.latex : name.text);
  }
  std::string raised(const std::string& base, Exponent e) const {
    if (e == Exponent(1)) return base;
    if (!latex && e == Exponent(2)) return base + "²";
    if (!latex && e == Exponent(3)) return base + "³";
    std::string power = number_text(e.value());
    if (e.real == 0) {
      power = std::to_string(e.num) + (e.den == 1 ? "" : "/" + std::to_string(e.den));
    }
    return base + (latex ? "^{" + power + "}" : "^(" + power + ")");
  }
  std::string root(const std::string& radicand, bool one_symbol) const {
    if (latex) return "\\sqrt{" + radicand + "}";
    return one_symbol ? "√" + radicand : "√(" + radicand + ")";
  }
  std::string fraction(const std::string& over, const std::string& under, bool one_symbol) const {
    if (latex) return "\\frac{" + over + "}{" + under + "}";
    return over + "/" + (one_symbol ? under : "(" + under + ")");
  }
  /// Letters stand side by side; longer names are set apart.
  std::string product(const std::vector<std::string>& parts) const {
    std::string text;
    for (const std::string& part : parts) {
      const bool opens_itself = part[0] == '(' || part.starts_with("√") || part.starts_with('\\');
      const bool after_digit = !text.empty() && text.back() >= '0' && text.back() <= '9';
      const bool apart = !text.empty() && part.size() > 1 && !opens_itself && !after_digit;
      text += (apart ? (latex ? "\\," : "·") : "") + part;
    }
    return text;
  }
};

/// One side of the fraction bar while it is being written.
struct Side {
  std::vector<std::string> plain;
  std::vector<std::string> under_root;

  bool empty() const { return plain.empty() && under_root.empty(); }
  bool one_symbol() const { return plain.size() + (under_root.empty() ? 0 : 1) == 1; }
  std::string text(const Notation& notation) const {
    std::vector<std::string> parts = plain;
    if (!under_root.empty()) {
      parts.push_back(notation.root(notation.product(under_root), under_root.size() == 1));
    }
    return parts.empty() ? "1" : notation.product(parts);
  }
};

/// Writes a coefficient as a small fraction where it is one, so that PyTorch's 1/3 stays 1/3.
inline void write_number(double number, Side& over, Side& under) {
  for (int den = 2; den <= 64; den *= 2) {  // 0.5 is a half, but 0.05 stays as the papers print it
    if (number * den != 1) continue;
    under.plain.push_back(std::to_string(den));
    return;
  }
  const std::string decimal = number_text(number);
  for (int den = 2; den <= 64 && decimal.size() > 6; ++den) {
    if (number < 1e-3 || number > 1e3) break;
    const auto num = static_cast<int>(number * den + 0.5);
    const double gap = number * den / num - 1;
    if (gap < 1e-15 && gap > -1e-15) {
      if (num != 1) over.plain.push_back(std::to_string(num));
      under.plain.push_back(std::to_string(den));
      return;
    }
  }
  if (number != 1) over.plain.push_back(decimal);
}

/// Symbols whose exponents are neither whole nor half keep their sign and share a bracket when
/// they share an exponent: (2L)^(1/4), m_N^(-3/4).
inline void write_powers(std::vector<Factor> powers, const Notation& notation, Side& over) {
  while (!powers.empty()) {
    const Exponent shared = powers.front().exponent;
    std::vector<std::string> symbols;
    std::erase_if(powers, [&](const Factor& factor) {
      if (factor.exponent != shared) return false;
      symbols.push_back(notation.symbol(factor));
      return true;
    });
    const std::string base = notation.product(symbols);
    over.plain.push_back(notation.raised(symbols.size() == 1 ? base : "(" + base + ")", shared));
  }
}

inline std::string write(const Scaling& scaling, const Notation& notation) {
  if (scaling.is_zero()) return "0";
  Side over;
  Side under;
  std::vector<Factor> powers;
  write_number(scaling.number(), over, under);
  for (const Factor& factor : scaling.factors()) {
    const Exponent e = factor.exponent;
    if (e.real != 0 || e.den > 2) {
      powers.push_back(factor);
      continue;
    }
    Side& side = e.num < 0 ? under : over;
    const int halves = (e.num < 0 ? -e.num : e.num) * 2 / e.den;
    const std::string symbol = notation.symbol(factor);
    if (halves >= 2) side.plain.push_back(notation.raised(symbol, halves / 2));
    if (halves % 2 == 1) side.under_root.push_back(symbol);
  }
  write_powers(powers, notation, over);

  if (under.empty()) return over.text(notation);
  const bool only_roots = !over.empty() && over.plain.empty() && under.plain.empty();
  if (only_roots) {  // √a/√b is written √(a/b)
    const std::string top = notation.product(over.under_root);
    const std::string bottom = notation.product(under.under_root);
    return notation.root(notation.fraction(top, bottom, under.under_root.size() == 1), false);
  }
  return notation.fraction(over.text(notation), under.text(notation), under.one_symbol());
}

}  // namespace detail

/// The scaling as the papers print it, in plain text: "1/(n√n)", "m_N^(-3/4)", "(2L)^(1/4)".
inline std::string to_text(const Scaling& scaling) { return detail::write(scaling, {false}); }

/// The scaling as the papers print it, in LaTeX: "\frac{1}{n\sqrt{n}}".
inline std::string to_latex(const Scaling& scaling) { return detail::write(scaling, {true}); }

}  // namespace scalewise
