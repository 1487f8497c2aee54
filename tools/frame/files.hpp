// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The files of a program: data that ship with it, and whether results could be written, found out before the work.
#pragma once

#include <string>

namespace scalewise::frame {

/// The path of a file that ships with the programs: in ../share/scalewise/data next to an installed
/// program, or in the sources that it was built from.
std::string data_file(const std::string& name);

/// A name that no other process chooses, on any machine.
std::string own_name();

/// Makes a folder where there is none, and writes and removes a small file in it.
/// Throws:   InvalidInput, naming the option.
void try_folder(const std::string& option, const std::string& folder);

/// Tries a file that is to be written, in its folder, which has to exist. Other than regular files
/// (devices) are taken as they are.
void try_file(const std::string& option, const std::string& path);

}  // namespace scalewise::frame
