// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "scalewise/messages/error.hpp"
#include "scalewise/scaling/scaling.hpp"

namespace scalewise {

namespace detail {

/// A symbol with its own texts.
struct StoredSymbol {
  std::string text, latex, meaning;
  Symbol symbol{text.c_str(), latex.c_str(), text.c_str(), latex.c_str(), meaning.c_str()};
};

/// A symbol that no rule here defines, for as long as the program runs: scalings refer to it.
inline const Symbol& stored_symbol(const std::string& text, const std::string& latex,
                                   const std::string& meaning) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::unique_ptr<StoredSymbol>> all;
  const std::lock_guard lock(mutex);
  auto& stored = all[{text, latex}];
  if (!stored) stored.reset(new StoredSymbol{text, latex, meaning});
  return stored->symbol;
}

/// Symbols by the texts that formulas have for them.
struct SymbolTable {
  std::map<std::string, Scaling, std::less<>> by_text;
  std::size_t longest = 0;

  /// Adds a symbol, unless there is one of that text.
  void add(const std::string& text, const Scaling& symbol) {
    by_text.emplace(text, symbol);
    longest = (std::max)(longest, text.size());
  }
};

/// Reads what to_text() writes.
class FormulaReader {
 public:
  FormulaReader(std::string_view text, const SymbolTable& symbols)
      : rest_(text), symbols_(symbols) {}

  /// The scaling, or nothing where the text is not a formula.
  std::optional<Scaling> read() try {
    const Scaling result = product();
    const bool finite = result.number() > -1e308 && result.number() < 1e308;
    if (!good_ || !rest_.empty() || !finite) return {};
    return result;
  } catch (const std::out_of_range&) {  // more symbols than a scaling holds
    return {};
  }

 private:
  static constexpr int deepest = 50;

  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  bool at_number() const { return !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; }

  /// Factors side by side or with a dot between them, and what stands below a bar.
  Scaling product() {
    if (++depth_ > deepest) good_ = false;
    Scaling result = take("-") ? -1 : 1;
    for (bool below = false; good_;) {
      const Scaling next = factor();
      if (below && next.is_zero()) good_ = false;
      result = below ? result / next : result * next;
      while (take(" ")) {
      }
      below = take("/");
      if (!below && !take("·") && (rest_.empty() || rest_[0] == ')')) break;
      while (take(" ")) {
      }
    }
    --depth_;
    return result;
  }

  Scaling factor() {
    if (take("√")) return sqrt(base());
    const Scaling of = base();
    const Exponent e = take("²")    ? 2
                       : take("³")  ? 3
                       : take("⁻¹") ? -1
                       : take("⁻²") ? -2
                       : take("^(") ? power()
                                    : 1;
    if (of.is_zero() && e.value() <= 0) good_ = false;
    return good_ ? pow(of, e) : of;
  }

  Scaling base() {
    for (std::size_t size = (std::min)(rest_.size(), symbols_.longest); size > 0; --size) {
      const auto symbol = symbols_.by_text.find(rest_.substr(0, size));
      if (symbol == symbols_.by_text.end()) continue;
      rest_.remove_prefix(size);
      return symbol->second;
    }
    if (at_number()) return number();
    good_ = good_ && take("(");
    if (!good_) return 1;
    const Scaling inner = product();
    good_ = good_ && take(")");
    return inner;
  }

  std::size_t digits(std::size_t from) const {
    while (from < rest_.size() && rest_[from] >= '0' && rest_[from] <= '9') ++from;
    return from;
  }
  double number() {
    std::size_t size = digits(0);
    if (size < rest_.size() && rest_[size] == '.') size = digits(size + 1);
    if (size + 2 < rest_.size() && rest_[size] == 'e' &&
        (rest_[size + 1] == '-' || rest_[size + 1] == '+')) {
      size = digits(size + 2);
    }
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (*end != '.') return value;
    *end = ',';  // of the locale
    return std::strtod(text.c_str(), nullptr);
  }

  Exponent power() {
    const bool negative = take("-");
    if (!at_number()) good_ = false;
    const double over = good_ ? number() : 1;
    const double under = take("/") && at_number() ? number() : 1;
    good_ = good_ && take(")") && over < 1e6 && under >= 1 && under < 1e6;
    if (!good_) return 1;
    const Exponent e =
        under == 1 ? exponent(over) : Exponent(static_cast<int>(over), static_cast<int>(under));
    return negative ? -e : e;
  }

  std::string_view rest_;
  const SymbolTable& symbols_;
  int depth_ = 0;
  bool good_ = true;
};

}  // namespace detail

namespace scaling {

/// The symbols that a formula may have: those of all rules, and a file's own.
class FormulaSymbols {
 public:
  FormulaSymbols() {
    for (const Symbol* symbol : known_symbols) {
      all_.add(symbol->text, Scaling(*symbol));
      all_.add(symbol->ratio_text, Scaling(*symbol, true));
    }
  }

  /// Adds a symbol that no rule here defines; one that is known stays.
  void add(const std::string& text, const std::string& latex, const std::string& meaning) {
    if (all_.by_text.contains(text)) return;
    all_.add(text, Scaling(detail::stored_symbol(text, latex, meaning)));
  }

  /// The scaling that to_text() wrote.
  /// Accuracy: fractions of exponents are exact; other numbers have the digits of the text, up to 16.
  /// Throws:   InvalidInput, with the name of the field, for a text that is not a product of powers of these symbols.
  Scaling read(const std::string& field, const std::string& formula) const {
    const std::optional<Scaling> found = detail::FormulaReader(formula, all_).read();
    if (found) return *found;
    throw InvalidInput(field, messages::printable(formula),
                       "a product of powers of the plan's symbols",
                       "such as 1/(n√n) or m_N^(-3/4)");
  }

 private:
  detail::SymbolTable all_;
};

}  // namespace scaling

}  // namespace scalewise
