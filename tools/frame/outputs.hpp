// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Whether results could be written, found out before the work.
#pragma once

#include <string>

namespace scalewise::frame {

/// Makes a folder where there is none, and writes and removes a small file in it.
/// Throws:   InvalidInput, naming the option.
void try_folder(const std::string& option, const std::string& folder);

/// The same for a file that is to be written: in its folder, which has to exist. What is no regular
/// file (a device) is opened only.
void try_file(const std::string& option, const std::string& path);

}  // namespace scalewise::frame
