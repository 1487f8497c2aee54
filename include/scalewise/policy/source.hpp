// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace scalewise {

/// Where a rule is published.
struct Source {
  std::string_view title;
  std::string_view authors;
  std::string_view year;
  std::string_view id;     // arXiv number with its version where one is pinned, or venue
  std::string_view where;  // table, equation or section
};

}  // namespace scalewise
