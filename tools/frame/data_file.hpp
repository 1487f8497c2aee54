// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace scalewise::frame {

/// The path of a file that ships with the programs: in ../share/scalewise/data next to an installed
/// program, or in the sources that it was built from.
std::string data_file(const std::string& name);

}  // namespace scalewise::frame
