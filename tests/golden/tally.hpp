// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <iostream>
#include <string>

#include "scalewise/io/json_reader.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::golden {

/// Counts what was compared and says what differs.
class Tally {
 public:
  /// Agreement within relative * |expected| + absolute; a zero is compared absolutely.
  void compare(const io::JsonReader& expected, double actual, double relative = 1e-12,
               double absolute = 0, const std::string& of = "") {
    const double value = expected.number();
    const double bound = relative * (value == 0 ? 1 : std::abs(value)) + absolute;
    ++checked_;
    if (std::abs(actual - value) <= bound) return;
    differs(expected, numeric::number_text(value), numeric::number_text(actual), of);
  }
  void same(const io::JsonReader& expected, const std::string& actual, const std::string& of) {
    ++checked_;
    if (expected.string() != actual) differs(expected, expected.string(), actual, of);
  }
  /// A distance that may be at most `bound`.
  void within(const std::string& path, double distance, double bound) {
    ++checked_;
    if (distance <= bound) return;
    complain(path, "off by " + numeric::number_text(distance) + ", at most " +
                       numeric::number_text(bound));
  }
  void complain(const std::string& path, const std::string& what) {
    ++failed_;
    std::cout << path << ": " << what << '\n';
  }
  long checked() const { return checked_; }
  long failed() const { return failed_; }

 private:
  void differs(const io::JsonReader& expected, const std::string& value, const std::string& actual,
               const std::string& of) {
    complain(expected.path(),
             (of.empty() ? of : of + ": ") + "expected " + value + ", got " + actual);
  }

  long checked_ = 0;
  long failed_ = 0;
};

}  // namespace scalewise::golden
