// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The size and colors of the terminal, where standard output is one. Pipes and files always get whole
// tables and no colors.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace scalewise::frame {

/// Columns of the terminal; 0: standard output is none, and lines are as long as they are.
std::size_t terminal_columns();

/// A verdict in its color: pass, fail or inconclusive. Without color where standard output is no
/// terminal, where the terminal has none, and where NO_COLOR is set (https://no-color.org).
std::string painted(std::string_view verdict);

/// Cuts lines at spaces so that they have `columns` at most, where words allow. What continues a line
/// is indented by `indent`. With 0 columns the text stays as it is.
std::string wrapped(const std::string& text, std::size_t columns, std::size_t indent);

}  // namespace scalewise::frame
