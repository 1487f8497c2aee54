// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/core/scaling.hpp"

namespace scalewise {

/// A double as the shortest decimal that reads back to it, with an exponent where it is small or
/// large: "0.05", "1e-06".
/// Accuracy: exact for up to 16 digits, which every coefficient of a rule has; others are cut there.
/// Differs:  std::to_chars does the same for any double, but <charconv> would cost every user of the
///           library a tenth of its compile time.
inline std::string number_text(double x) {
  if (x < 0) return "-" + number_text(-x);
  if (x == 0) return "0";
  if (!(x < 1e300)) return x > 0 ? "inf" : "nan";
  int exponent = 0;  // x = m 10^exponent with 1 <= m < 10
  const auto ten_to = [](int k) { return power(10, Exponent(k)); };
  while (x >= ten_to(exponent + 1)) ++exponent;
  while (x < ten_to(exponent)) --exponent;
  long digits = 0;
  int decimals = 0;  // digits / 10^decimals is x, or as near as 16 digits come
  for (int count = 1; count <= 16; ++count) {
    decimals = count - 1 - exponent;
    const double scaled = decimals >= 0 ? x * ten_to(decimals) : x / ten_to(-decimals);
    digits = static_cast<long>(scaled * 2 + 1) / 2;
    const auto whole = static_cast<double>(digits);
    if ((decimals >= 0 ? whole / ten_to(decimals) : whole * ten_to(-decimals)) == x) break;
  }
  std::string text = std::to_string(digits);
  if (exponent >= -5 && exponent < 7) {
    if (decimals <= 0) return text + std::string(static_cast<std::size_t>(-decimals), '0');
    const auto places = static_cast<std::size_t>(decimals);
    if (text.size() <= places) text.insert(0, places + 1 - text.size(), '0');
    return text.insert(text.size() - places, 1, '.');
  }
  if (text.size() > 1) text.insert(1, 1, '.');
  const std::string power = std::to_string(exponent < 0 ? -exponent : exponent);
  return text + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
}

namespace detail {

// Templates on the notation, so that only who prints compiles them.

/// The small differences between plain text and LaTeX.
template <bool latex>
struct Notation {
  static std::string symbol(const Factor& factor) {
    if (factor.axis == Axis::number) return std::to_string(factor.number);
    const AxisName& name = name_of(factor.axis);
    if (factor.ratio) return std::string(latex ? name.ratio_latex : name.ratio_text);
    return std::string(latex ? name.latex : name.text);
  }
  static std::string raised(const std::string& base, Exponent e) {
    if (e == Exponent(1)) return base;
    if (!latex && e == Exponent(2)) return base + "²";
    if (!latex && e == Exponent(3)) return base + "³";
    std::string power = number_text(e.value());
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
  /// Letters stand side by side; longer names are set apart.
  static std::string product(const std::vector<std::string>& parts) {
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
template <class Notation>
struct Side {
  std::vector<std::string> plain;
  std::vector<std::string> under_root;

  bool empty() const { return plain.empty() && under_root.empty(); }
  bool one_symbol() const { return plain.size() + (under_root.empty() ? 0 : 1) == 1; }
  std::string text() const {
    std::vector<std::string> parts = plain;
    if (!under_root.empty()) {
      parts.push_back(Notation::root(Notation::product(under_root), under_root.size() == 1));
    }
    return parts.empty() ? "1" : Notation::product(parts);
  }
};

/// Writes a coefficient as a small fraction where it is one, so that PyTorch's 1/3 stays 1/3.
template <class Notation>
void write_number(double number, Side<Notation>& over, Side<Notation>& under) {
  for (int den = 2; den <= 64; den *= 2) {  // 0.5 is a half, but 0.05 stays as the papers print it
    if (number * den != 1) continue;
    under.plain.push_back(std::to_string(den));
    return;
  }
  const std::string decimal = number_text(number);
  for (int den = 2; den <= 64 && decimal.size() > 6; ++den) {
    if (number < 1e-3 || number > 1e3) break;
    const auto num = static_cast<int>(number * den * 2 + 1) / 2;
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
template <class Notation>
void write_powers(std::vector<Factor> powers, Side<Notation>& over) {
  while (!powers.empty()) {
    const Exponent shared = powers.front().exponent;
    std::vector<std::string> symbols;
    std::erase_if(powers, [&](const Factor& factor) {
      if (factor.exponent != shared) return false;
      symbols.push_back(Notation::symbol(factor));
      return true;
    });
    const std::string base = Notation::product(symbols);
    over.plain.push_back(Notation::raised(symbols.size() == 1 ? base : "(" + base + ")", shared));
  }
}

template <class Notation>
std::string write(const Scaling& scaling) {
  if (scaling.is_zero()) return "0";
  Side<Notation> over;
  Side<Notation> under;
  std::vector<Factor> powers;
  write_number(scaling.number(), over, under);
  for (const Factor& factor : scaling.factors()) {
    const Exponent e = factor.exponent;
    if (e.real != 0 || e.den > 2) {
      powers.push_back(factor);
      continue;
    }
    Side<Notation>& side = e.num < 0 ? under : over;
    const int halves = (e.num < 0 ? -e.num : e.num) * 2 / e.den;
    const std::string symbol = Notation::symbol(factor);
    if (halves >= 2) side.plain.push_back(Notation::raised(symbol, halves / 2));
    if (halves % 2 == 1) side.under_root.push_back(symbol);
  }
  write_powers(powers, over);

  if (under.empty()) return over.text();
  const bool only_roots = !over.empty() && over.plain.empty() && under.plain.empty();
  if (only_roots) {  // √a/√b is written √(a/b)
    const std::string top = Notation::product(over.under_root);
    const std::string bottom = Notation::product(under.under_root);
    return Notation::root(Notation::fraction(top, bottom, under.under_root.size() == 1), false);
  }
  return Notation::fraction(over.text(), under.text(), under.one_symbol());
}

}  // namespace detail

/// The scaling as the papers print it, in plain text: "1/(n√n)", "m_N^(-3/4)", "(2L)^(1/4)".
template <std::same_as<Scaling> S>
std::string to_text(const S& scaling) {
  return detail::write<detail::Notation<false>>(scaling);
}

/// The scaling as the papers print it, in LaTeX: "\frac{1}{n\sqrt{n}}".
template <std::same_as<Scaling> S>
std::string to_latex(const S& scaling) {
  return detail::write<detail::Notation<true>>(scaling);
}

}  // namespace scalewise
