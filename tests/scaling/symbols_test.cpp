// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include <string>
#include <vector>

#include "scalewise/files/read_file.hpp"
#include "scalewise/policy/deep_scale_lm.hpp"
#include "scalewise/scaling/symbol.hpp"
#include "support/catch.hpp"

using namespace scalewise;

TEST_CASE("The glossary has every symbol, with its ratio and its meaning", "[symbol]") {
  const std::string page = files::read_file(SCALEWISE_TEST_DIR "/../docs/glossary.md", 1U << 20U);
  const auto begin = page.find("## Symbols");
  REQUIRE(begin != std::string::npos);
  std::vector<const Symbol*> all(scaling::known_symbols.begin(), scaling::known_symbols.end());
  for (const Symbol* own : {&DeepScaleLM::token_correlation, &DeepScaleLM::keep_probability,
                            &DeepScaleLM::skip_power, &DeepScaleLM::hidden_power}) {
    all.push_back(own);
  }
  std::size_t rows = 0;
  for (auto at = page.find("\n| `", begin); at != std::string::npos;
       at = page.find("\n| `", at + 1))
    ++rows;
  CHECK(rows == all.size());
  for (const Symbol* symbol : all) {
    const std::string row = "\n| `" + std::string(symbol->text) + "` | `" +
                            std::string(symbol->ratio_text) + "` | " +
                            std::string(symbol->meaning) + " |\n";
    INFO(row);
    CHECK(page.find(row, begin) != std::string::npos);
  }
}

TEST_CASE("Each symbol has a place of its own, before those of a single rule", "[symbol]") {
  int last = symbols::integer.place;
  for (const Symbol* symbol : scaling::known_symbols) {
    CHECK(symbol->place > last);
    last = symbol->place;
  }
  CHECK(Symbol{}.place > last);
}
