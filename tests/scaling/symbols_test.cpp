// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include <string>

#include "scalewise/files/read_file.hpp"
#include "scalewise/scaling/axis.hpp"
#include "support/catch.hpp"

TEST_CASE("The glossary has every symbol, with its ratio and its meaning", "[axis]") {
  const std::string page =
      scalewise::read_file(SCALEWISE_TEST_DIR "/../docs/glossary.md", 1U << 20U);
  const auto begin = page.find("## Symbols");
  REQUIRE(begin != std::string::npos);
  std::size_t rows = 0;
  for (auto at = page.find("\n| `", begin); at != std::string::npos;
       at = page.find("\n| `", at + 1))
    ++rows;
  CHECK(rows == scalewise::axis_count - 1);  // a plain number has no symbol
  for (std::size_t i = 1; i < scalewise::axis_count; ++i) {
    const scalewise::AxisName& name = scalewise::axis_table[i];
    const std::string row = "\n| `" + std::string(name.text) + "` | `" +
                            std::string(name.ratio_text) + "` | " + std::string(name.meaning) +
                            " |\n";
    INFO(row);
    CHECK(page.find(row, begin) != std::string::npos);
  }
}
