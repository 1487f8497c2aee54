// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The one way to Catch2 in the tests; works with Catch2 2.13 and 3.
// Write matchers as Catch::Matchers::WithinRel and so on: that name exists in both.

#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>

#else

#include <catch2/catch.hpp>
#include <string>

namespace Catch::Matchers {
// The name that Catch2 3 has for Contains of a string.
inline auto ContainsSubstring(const std::string& part) { return Contains(part); }
}  // namespace Catch::Matchers

#endif
