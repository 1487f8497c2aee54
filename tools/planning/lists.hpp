// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Lists of choices, and the roles that a described model's tensors were taken for.
#pragma once

#include <cstddef>
#include <string>

#include "scalewise/architecture/described_model.hpp"
#include "scalewise/io/table.hpp"

namespace scalewise::tools {

/// The rules, the presets, and the code bases that --names knows.
Table rule_list();
Table preset_list();
Table name_list();

/// A list in a format of plans; JSON has an object per row, and a table fits so many columns.
std::string write_list(const Table& table, const std::string& format, std::size_t columns);

/// The role of each tensor of a described model, and why. Those that differ in numbers of their names alone share a row.
Table roles_table(const DescribedModel& model);

/// The table of roles as text, with the tensors that are tied and the sizes.
std::string roles_text(const DescribedModel& model);

}  // namespace scalewise::tools
