// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A page as one HTML file that needs no network.
#pragma once

#include <string>

#include "frame/page.hpp"

namespace scalewise::frame {

/// The page with its style, pictures and a script that sorts tables; without scripts all of it is there
/// as well. Texts are escaped.
std::string html(const Page& page);

}  // namespace scalewise::frame
