// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "scalewise/plan/plan.hpp"
#include "scalewise/scaling/read_formula.hpp"

namespace scalewise::test {

/// The problem with the formula of a number, from the listed values of its symbols alone: a symbol that no list
/// has, another value, or a text that reads back to another scaling. Empty if nothing is. Adds the symbols to those known.
template <Kind kind>
std::string formula_problem(const Plan& plan, const std::vector<plan::SymbolValue>& where,
                            const Number<kind>& number, scaling::FormulaSymbols& symbols) {
  double value = number.scaling.number();
  for (const scaling::Factor& factor : number.scaling.factors()) {
    double size = factor.integer;
    if (!factor.is_integer()) {
      const std::string text = factor.ratio ? factor.symbol->ratio_text : factor.symbol->text;
      const plan::SymbolValue* found = nullptr;
      for (const auto* list : {&where, &plan.symbols}) {
        for (const plan::SymbolValue& listed : *list) {
          if (found == nullptr && listed.text == text) found = &listed;
        }
      }
      if (found == nullptr) return number.formula() + ": " + text + " is not listed";
      symbols.add(found->text, found->latex, found->meaning);
      size = found->value;
    }
    value *= std::pow(size, factor.exponent.value());
  }
  if (std::abs(value - number.value) > 1e-12 * std::abs(value)) {
    return number.formula() + " is " + std::to_string(value) + ", not " +
           std::to_string(number.value);
  }
  if (symbols.read("formula", number.formula()) != number.scaling) {
    return number.formula() + " reads back as " +
           to_text(symbols.read("formula", number.formula()));
  }
  return {};
}

/// The first problem of a plan's formulas, with the name of its tensor; empty without one.
inline std::string formula_problem(const Plan& plan) {
  std::string problem;
  scaling::FormulaSymbols symbols;
  const auto look = [&](const std::string& name, const std::vector<plan::SymbolValue>& where,
                        const auto& number) {
    if (problem.empty()) problem = formula_problem(plan, where, number, symbols);
    if (!problem.empty() && problem.find(" of ") == std::string::npos) problem += " of " + name;
  };
  for (const Entry& entry : plan.entries) {
    plan::for_each_number(entry, [&](const char* what, const auto& number) {
      look(std::string(what) + " of " + entry.name, entry.where, number);
    });
  }
  for (const Residual& residual : plan.model.residuals) {
    look("skip", residual.where, residual.skip);
    look("branch", residual.where, residual.branch);
  }
  look("attention_scale", {}, plan.model.attention_scale);
  look("embedding_multiplier", {}, plan.model.embedding_multiplier);
  look("logit_multiplier", {}, plan.model.logit_multiplier);
  return problem;
}

}  // namespace scalewise::test
