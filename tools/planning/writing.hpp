// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Plans as text: tables with what a reader needs around them, and what the tensors of a code base take.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planning/plans.hpp"
#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::tools {

/// The formats of a list of tensors: those of any table, then those of the tensors of a code base.
std::vector<std::string> plan_formats();

/// True for what only write_named() writes.
bool is_named_format(const std::string& format);

/// Throws:   InvalidInput for names, and for a format, that a list of tensors is not written in.
void require_of_list(const std::string& names, const std::string& format);

/// Of "json" and named formats: text.
TableFormat table_format(const std::string& format);

/// Which rule, from where, and for how many parameters. `columns`: of the terminal; 0: none.
std::string heading(const Plan& plan, std::size_t columns = 0);

/// The fields of the base that are not the target's, as --set takes them.
/// Requires: a plan with a base.
std::string base_text(const Plan& plan);

/// The legend of the letters in the tables.
std::string footing(const std::vector<Plan>& plans);

/// Plans in any format that is not of a code base. `layers`: a row per tensor. `columns`: of the terminal that
/// tables of text have to fit; 0: none.
/// Throws:   InvalidInput for a named format.
std::string write_plans(const std::vector<Plan>& plans, bool compare, const std::string& format,
                        bool layers, std::size_t columns = 0);

/// A plan by the tensors of a code base, in any format. `layers`: a row per tensor. `say` gets a note of
/// multipliers that the format leaves out.
/// Throws:   std::invalid_argument with all problems of the assignment, InvalidInput for "svg".
std::string write_named(const dialect::NamedPlan& named, const std::string& format, bool layers,
                        std::size_t columns, const Say& say);

}  // namespace scalewise::tools
