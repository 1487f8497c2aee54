// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <ostream>
#include <string>

namespace scalewise::testing {

/// Base of matchers for CHECK_THAT and REQUIRE_THAT of Catch2 (2 and 3) and EXPECT_THAT and ASSERT_THAT of
/// GoogleTest. Neither is included: they ask a matcher for these members by name.
/// Requires: Derived::problem(value), a text that is empty where the value matches, and
///           Derived::expectation(), what a message calls the matcher.
template <class Derived>
class Matcher {
 public:
  using is_gtest_matcher = void;  // NOLINT(readability-identifier-naming): GoogleTest's names below

  // Catch2

  template <class Value>
  bool match(const Value& value) const {
    *found_ = self().problem(value);
    return found_->empty();
  }
  std::string toString() const {  // NOLINT(readability-identifier-naming)
    return self().expectation() + (found_->empty() ? "" : "\n" + *found_);
  }

  // GoogleTest

  template <class Value>
  bool MatchAndExplain(const Value& value, std::ostream* out) const {  // NOLINT
    const bool matches = match(value);
    if (!matches && out != nullptr) *out << *found_;
    return matches;
  }
  void DescribeTo(std::ostream* out) const { *out << self().expectation(); }  // NOLINT
  void DescribeNegationTo(std::ostream* out) const {                          // NOLINT
    *out << "not: " << self().expectation();
  }

 private:
  friend Derived;
  Matcher() = default;
  const Derived& self() const { return static_cast<const Derived&>(*this); }

  // Copies of a matcher that was asked can still say what was wrong.
  std::shared_ptr<std::string> found_ = std::make_shared<std::string>();
};

}  // namespace scalewise::testing
