// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The names of all options of all programs, and their meanings. The same name means the same
// everywhere; a program adds notes of its own.
#pragma once

#include <string>
#include <string_view>

namespace scalewise::frame {

/// The meaning of an option, in all programs.
/// Throws:   std::logic_error for a name that is not listed, which is a mistake in the program.
std::string option_text(std::string_view name);

}  // namespace scalewise::frame
