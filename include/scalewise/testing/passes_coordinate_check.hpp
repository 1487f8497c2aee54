// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scalewise/check/coordinate_check.hpp"
#include "scalewise/testing/matcher.hpp"

namespace scalewise::testing {

/// Matches records of training runs that pass check::coordinate_check(). An inconclusive verdict is not a match:
/// the message says what would decide it.
/// Accuracy: how often it is wrong is measured in docs/checks/coordinate_check.md; with fixed seeds a test is
///           always right or always wrong
class PassesCoordinateCheck : public Matcher<PassesCoordinateCheck> {
 public:
  explicit PassesCoordinateCheck(std::vector<check::Member> plans) : plans_(std::move(plans)) {}

  /// The report of a check that does not pass; empty when it passes.
  /// Throws:   InvalidInput as check::coordinate_check().
  std::string problem(const check::Records& records) const {
    const check::Report report = check::coordinate_check(records, plans_);
    if (report.verdict == check::Verdict::pass) return "";
    std::string text = "verdict: " + std::string(to_string(report.verdict));
    if (!report.diagnosis.empty()) text += "\n" + report.diagnosis;
    const auto add = [&](const char* what, const std::vector<std::string>& lines) {
      for (const std::string& line : lines) text += "\n" + (what + line);
    };
    add("missing: ", report.missing);
    add("unknown name: ", report.unknown);
    add("undecided: ", report.undecided);
    return text;
  }

  std::string expectation() const { return "passes the coordinate check"; }

 private:
  std::vector<check::Member> plans_;
};

}  // namespace scalewise::testing
