// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "scalewise/architecture/shape.hpp"

namespace scalewise::detail {

/// The value of an expression of a table of tensors, such as "(H+2*K)*C" or "l in dense or l < first". From weak to
/// strong: or; and; not; < <= = >= > and in, which asks a list; + -; * / %. True is 1. A quotient is whole.
class SizeExpression {
 public:
  using Value = std::function<long(const std::string& name)>;
  using Contains = std::function<bool(const std::string& list, long element)>;

  struct Refused {
    std::string value, expectation;
  };

  SizeExpression(std::string_view text, const Value& value, const Contains& contains)
      : text_(text), value_(value), contains_(contains) {
    next();
  }

  long evaluate() {
    const long result = binary(0);
    if (!token_.empty()) refuse("an operator before " + std::string(token_));
    return result;
  }

 private:
  static constexpr std::array<std::string_view, 5> levels{" or ", " and ", " < <= = >= > in ",
                                                          " + - ", " * / % "};

  [[noreturn]] void refuse(const std::string& expectation,
                           const std::string& value = "(no expression)") const {
    throw Refused{value, expectation};
  }

  void next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    const std::size_t begin = at_;
    const auto is_word = [&](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == begin && at_ < text_.size()) {
      const bool two = text_.substr(at_, 2) == "<=" || text_.substr(at_, 2) == ">=";
      at_ += two ? 2 : 1;
    }
    token_ = text_.substr(begin, at_ - begin);
  }

  long binary(std::size_t level) {
    if (level == levels.size()) return atom();
    if (level == 2 && token_ == "not") {
      next();
      return binary(level) == 0 ? 1 : 0;
    }
    long left = binary(level + 1);
    while (!token_.empty() &&
           levels[level].find(" " + std::string(token_) + " ") != std::string_view::npos) {
      const std::string operation(token_);
      next();
      if (operation == "in") {
        left = contains_(std::string(token_), left) ? 1 : 0;
        next();
      } else {
        left = apply(operation, left, binary(level + 1));
      }
    }
    return left;
  }

  long apply(const std::string& operation, std::int64_t a, std::int64_t b) const {
    if (operation == "or") return a != 0 || b != 0 ? 1 : 0;
    if (operation == "and") return a != 0 && b != 0 ? 1 : 0;
    if (operation == "<") return a < b ? 1 : 0;
    if (operation == "<=") return a <= b ? 1 : 0;
    if (operation == "=") return a == b ? 1 : 0;
    if (operation == ">=") return a >= b ? 1 : 0;
    if (operation == ">") return a > b ? 1 : 0;
    if (operation == "+") return in_range(a + b);
    if (operation == "-") return in_range(a - b);
    if (operation == "*") {
      if (b > 0 && a > architecture::largest_size / b)
        refuse("a size up to 2^30", std::to_string(a) + "*" + std::to_string(b));
      return in_range(a * b);
    }
    const std::string quotient = std::to_string(a) + operation + std::to_string(b);
    if (b <= 0) refuse("a positive divisor", quotient);
    if (operation == "%") return static_cast<long>(a % b);
    if (a % b != 0) refuse("a whole number", quotient);
    return static_cast<long>(a / b);
  }

  long in_range(std::int64_t size) const {
    if (size > architecture::largest_size || size < -architecture::largest_size)
      refuse("a size up to 2^30", std::to_string(size));
    return static_cast<long>(size);
  }

  long atom() {
    const std::string_view token = token_;
    next();
    if (token == "(") {
      const long inner = binary(0);
      if (token_ != ")") refuse("a closing parenthesis");
      next();
      return inner;
    }
    long number = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
    if (!token.empty() && error == std::errc{} && end == token.data() + token.size()) return number;
    if (token.empty()) refuse("a number or a name at its end");
    return value_(std::string(token));
  }

  std::string_view text_;
  const Value& value_;
  const Contains& contains_;
  std::size_t at_ = 0;
  std::string_view token_;
};

}  // namespace scalewise::detail
