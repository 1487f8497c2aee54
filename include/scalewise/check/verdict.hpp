// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace scalewise::check {

/// The outcome of a check. Inconclusive: the measurement is too coarse, or too little was measured, to
/// decide.
enum class Verdict { pass, inconclusive, fail };

constexpr std::string_view to_string(Verdict verdict) {
  return verdict == Verdict::pass ? "pass" : verdict == Verdict::fail ? "fail" : "inconclusive";
}

/// The worse of two verdicts: fail, then inconclusive, then pass.
constexpr Verdict worse(Verdict a, Verdict b) { return a < b ? b : a; }

/// The exit code of a program that checks; 2 is for bad input.
constexpr int exit_code(Verdict verdict) {
  return verdict == Verdict::pass ? 0 : verdict == Verdict::fail ? 1 : 3;
}

}  // namespace scalewise::check
