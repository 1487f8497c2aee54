// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "scalewise/io/plan_table.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/plot/norms_of_plan.hpp"

namespace scalewise::plot::detail {

/// "16" or, next to another base, "16 (base 8)".
inline std::string size_text(const Plan& plan, long Shape::*field) {
  std::string text = std::to_string(plan.shape.*field);
  if (plan.base && *plan.base.*field != plan.shape.*field) {
    text += " (base " + std::to_string(*plan.base.*field) + ")";
  }
  return text;
}

inline std::string plan_subtitle(const Plan& plan) {
  std::string text = std::string(plan.optimizer.name) + ", d_model " +
                     size_text(plan, &Shape::d_model) + ", depth " + size_text(plan, &Shape::depth);
  if (plan.shape.blocks == Blocks::normalized) return text + ", normalized";
  if (plan.shape.blocks == Blocks::shallow_encoder) return text;
  return text + ", " + std::string(word(architecture::norm_placement_words, norm_placement(plan))) +
         "-norm";
}

/// The letters of a plan's formulas, where it has any, and its source: lines below a picture.
inline std::vector<std::string> plan_sources(const Plan& plan) {
  std::vector<std::string> lines;
  std::string all;
  for (const std::string& symbol : legend({plan})) all += (all.empty() ? "" : ", ") + symbol;
  if (!all.empty()) lines.push_back("where " + all);
  lines.push_back("Source: " + citation(plan));
  return lines;
}

}  // namespace scalewise::plot::detail
