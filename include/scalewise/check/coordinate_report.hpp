// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "scalewise/check/fault.hpp"
#include "scalewise/check/judge.hpp"
#include "scalewise/check/verdict.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise::check {

/// Why a check failed.
enum class Cause {
  none,
  mistake,  // a part of the rule is missing, applied twice or off
  growth,   // what training adds grows with the size because the rule says so
  unknown,  // no single mistake explains what was measured
};
inline constexpr messages::Spelling<Cause, 4> cause_words{{{Cause::none, "none"},
                                                           {Cause::mistake, "mistake"},
                                                           {Cause::growth, "growth"},
                                                           {Cause::unknown, "unknown"}}};

/// The result of a coordinate check.
struct Report {
  Verdict verdict = Verdict::inconclusive;
  Cause cause = Cause::none;
  std::string diagnosis;  // of a failure: the evidence, and the most likely cause
  // The odds of the most likely cause over the next: a power of ten, at most 9.
  double log10_odds = 0;

  std::vector<Judgement> judgements;  // quantities in the order of Records, steps in time
  double error_rate = 0;              // of failing a correct set-up by chance, over all slopes
  Thresholds thresholds;              // of each slope

  // Names that are neither an observable's nor a tensor's, each with the nearest that is: not judged.
  std::vector<std::string> unknown;
  std::vector<std::string> missing;    // what has to be recorded for a verdict, and is not
  std::vector<std::string> left_out;   // steps that moved nothing, layers that were not recorded
  std::vector<std::string> unchecked;  // mistakes that these records cannot rule out
  std::vector<Fault> open_slips;       // of these, exponents of multipliers that are off
  std::vector<std::string> undecided;  // what keeps a verdict open, and what would decide it
  bool wants_larger_size = false;      // whether one of these would be decided by a larger size
};

}  // namespace scalewise::check
