// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
/// Prints what the library computes with fmt: scalings, numbers with their formula, entries, plans,
/// slopes and verdicts.
///
///     fmt::print("{}\n", plan.at("head"));            // one line
///     fmt::print("{:.3}\n", entry.learning_rate);      // digits of the value
///     fmt::print("{:>30latex}\n", entry.learning_rate);
///
/// Format:   [[fill]align][width][.digits][text|latex|ascii]; text is how papers print a formula
/// Accuracy: 4 digits unless it says otherwise; 2 of a slope, which are decimals.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "scalewise/check/verdict.hpp"
#include "scalewise/numeric/line.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::check::detail {

enum class Style { text, latex, ascii };

/// A formula in ASCII: "1/(n√n)" is "1/(n*sqrt(n))".
inline std::string ascii(std::string_view text) {
  std::string out;
  const auto take = [&](std::string_view what) {
    const bool found = text.starts_with(what);
    if (found) text.remove_prefix(what.size());
    return found;
  };
  const auto in_symbol = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  };
  while (!text.empty()) {
    if (take("√")) {
      out += out.empty() || !in_symbol(out.back()) ? "sqrt" : "*sqrt";
      if (text.starts_with('(')) continue;
      std::size_t size = 0;
      while (size < text.size() && in_symbol(text[size])) ++size;
      out += "(" + std::string(text.substr(0, size)) + ")";
      text.remove_prefix(size);
    } else if (take("²")) {
      out += "^2";
    } else if (take("³")) {
      out += "^3";
    } else if (take("·")) {
      out += "*";
    } else if (take("β")) {
      out += "beta";
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

/// Base of the formatters below: the format, and the texts of their parts.
class Formatter {
 public:
  /// Throws:   fmt::format_error for another format.
  constexpr auto parse(fmt::format_parse_context& context) {
    const char* end = context.begin();
    while (end != context.end() && *end != '}') ++end;
    std::string_view format(context.begin(), static_cast<std::size_t>(end - context.begin()));
    for (const auto& [word, style] : {std::pair{std::string_view("text"), Style::text},
                                      std::pair{std::string_view("latex"), Style::latex},
                                      std::pair{std::string_view("ascii"), Style::ascii}}) {
      if (!format.ends_with(word)) continue;
      style_ = style;
      format.remove_suffix(word.size());
      break;
    }
    if (const std::size_t dot = format.rfind('.'); dot != std::string_view::npos) {
      digits_ = 0;
      for (const char c : format.substr(dot + 1)) {
        if (c < '0' || c > '9') throw fmt::format_error("digits are a whole number");
        digits_ = 10 * digits_ + (c - '0');
      }
      format = format.substr(0, dot);
    }
    fmt::format_parse_context layout(fmt::string_view(format.data(), format.size()));
    if (layout_.parse(layout) != format.data() + format.size()) {
      throw fmt::format_error("expected [align][width][.digits][text|latex|ascii]");
    }
    return end;
  }

 protected:
  template <class Context>
  auto put(const std::string& text, Context& context) const {
    return layout_.format({text.data(), text.size()}, context);
  }

  std::string text(const Scaling& scaling) const {
    if (style_ == Style::latex) return to_latex(scaling);
    return style_ == Style::ascii ? ascii(to_text(scaling)) : to_text(scaling);
  }
  template <Kind kind>
  std::string text(const Number<kind>& number) const {
    std::string value = fmt::format("{:.{}g}", number.value, digits(4));
    if (number.formula() == numeric::number_text(number.value)) return value;
    return value + " = " + text(number.scaling);
  }
  std::string text(const Entry& entry) const {
    std::string line = entry.name + ":";
    plan::for_each_number(entry, [&](const char* name, const auto& number) {
      line += fmt::format("{} {} {}", line.ends_with(':') ? "" : ",", name, text(number));
    });
    return line;
  }
  std::string text(const Plan& plan) const {
    std::string lines =
        fmt::format("{} for {}, {} tensors, {} parameters", plan.rule, plan.optimizer.name,
                    plan.entries.size(), plan.parameter_count());
    for (const Entry& entry : plan.entries) lines += "\n" + text(entry);
    return lines;
  }
  std::string text(const numeric::Line& slope) const {
    return fmt::format("{:+.{}f} ± {:.{}f}", slope.slope, digits(2), slope.error, digits(2));
  }
  std::string text(Verdict verdict) const { return std::string(to_string(verdict)); }

 private:
  int digits(int usual) const { return digits_ < 0 ? usual : digits_; }

  fmt::formatter<fmt::string_view> layout_;
  Style style_ = Style::text;
  int digits_ = -1;
};

/// The formatter of one type.
template <class T>
struct FormatterOf : Formatter {
  template <class Context>
  auto format(const T& value, Context& context) const {
    return put(text(value), context);
  }
};

}  // namespace scalewise::check::detail

template <>
struct fmt::formatter<scalewise::Scaling>
    : scalewise::check::detail::FormatterOf<scalewise::Scaling> {};
template <scalewise::Kind kind>
struct fmt::formatter<scalewise::Number<kind>>
    : scalewise::check::detail::FormatterOf<scalewise::Number<kind>> {};
template <>
struct fmt::formatter<scalewise::Entry> : scalewise::check::detail::FormatterOf<scalewise::Entry> {
};
template <>
struct fmt::formatter<scalewise::Plan> : scalewise::check::detail::FormatterOf<scalewise::Plan> {};
template <>
struct fmt::formatter<scalewise::numeric::Line>
    : scalewise::check::detail::FormatterOf<scalewise::numeric::Line> {};
template <>
struct fmt::formatter<scalewise::check::Verdict>
    : scalewise::check::detail::FormatterOf<scalewise::check::Verdict> {};
