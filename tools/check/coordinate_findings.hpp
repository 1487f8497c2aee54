// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The findings of a coordinate check, and the part of them that text, JSON and page show.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scalewise/check/coordinate_check.hpp"
#include "scalewise/files/inputs.hpp"
#include "scalewise/io/table.hpp"

namespace scalewise::experiment {

struct Findings {
  check::Records records;
  check::Report report;
  std::string mistake;                 // that was made to see the check fail
  std::vector<std::string> optimizer;  // what the read-back of rates, decay and epsilon found
  std::size_t runs = 0;
  files::Inputs judged;                  // of files of records that were judged
  std::vector<std::string> other_model;  // options of the model that differ from these inputs
};

/// The same as numbers and lines, which text, JSON and the page have in common.
struct Shown {
  Table slopes;            // of activations
  std::string counts;      // how many quantities passed
  std::string two_widths;  // by another criterion; empty without activations
  std::string runs;
  nlohmann::ordered_json json;
};

inline std::string signed_text(double x) { return fmt::format("{:+.2f}", x == 0 ? 0 : x); }

inline std::string measured_text(const check::Judgement& j) {
  if (!j.curve.finite) return "not finite";
  if (!j.measured) return j.curve.is_zero() ? "zero" : "-";
  return fmt::format("{} ± {:.2f}", signed_text(j.measured->slope), 2 * j.measured->error);
}

/// The judgement of a quantity at a step, or null.
inline const check::Judgement* find(const check::Report& report, check::Signal signal,
                                    const std::string& name, long step) {
  for (const check::Judgement& j : report.judgements) {
    if (j.curve.quantity == check::Quantity{signal, name} && j.curve.step == step) return &j;
  }
  return nullptr;
}

inline std::string optimizer_text(const Findings& found) {
  return fmt::format("the optimizer is not set as the plan says, in {} places",
                     found.optimizer.size());
}

inline std::string unchecked_text(const check::Report& report) {
  return fmt::format("these records cannot rule out: {}", fmt::join(report.unchecked, ", "));
}

}  // namespace scalewise::experiment
