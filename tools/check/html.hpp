// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A page as one HTML file that needs no network.
#pragma once

#include <string>

#include "check/page.hpp"

namespace scalewise::experiment {

/// The page with its style, pictures and a script that sorts tables; without scripts all of it is there
/// as well. Texts are escaped.
std::string html(const Page& page);

}  // namespace scalewise::experiment
