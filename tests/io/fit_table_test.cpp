// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/fit_table.hpp"

#include "support/catch.hpp"

using namespace scalewise;

namespace {

const Table wide{"Caption",
                 {"tensor", "rate", "source"},
                 {{"query, key", "0.5 = 1/√n", "Table 8, hidden"}, {"head", "1", "Table 3"}}};

}  // namespace

TEST_CASE("A table that fits, or has no terminal, stays as it is", "[table]") {
  const std::string whole = render(wide, TableFormat::text);
  CHECK(io::render_to_fit(wide, 0) == whole);
  CHECK(io::render_to_fit(wide, 10 + 2 + 10 + 2 + 15) == whole);
}

TEST_CASE("A table that is too wide is cut between columns", "[table]") {
  CHECK(io::render_to_fit(wide, 38) ==
        "Caption\n"
        "tensor      rate\n"
        "query, key  0.5 = 1/√n\n"
        "head        1\n"
        "\n"
        "tensor      source\n"
        "query, key  Table 8, hidden\n"
        "head        Table 3\n");
}

TEST_CASE("Cells wider than half of the terminal are wrapped at spaces", "[table]") {
  CHECK(io::render_to_fit(wide, 18) ==
        "Caption\n"
        "tensor  rate\n"
        "query,  0.5 =\n"
        "key     1/√n\n"
        "head    1\n"
        "\n"
        "tensor  source\n"
        "query,  Table 8,\n"
        "key     hidden\n"
        "head    Table 3\n");
}

TEST_CASE("Words that are wider than the terminal stay whole", "[table]") {
  const Table words{{}, {"name", "x"}, {{"transformer.h.0.attn.c_attn.weight", "1"}}};
  CHECK(io::render_to_fit(words, 10) == render(words, TableFormat::text));
  const Table one{{}, {"a long heading"}, {{"1"}}};
  CHECK(io::render_to_fit(one, 6) == "a\nlong\nheading\n1\n");
  CHECK(io::render_to_fit(Table{}, 5) == render(Table{}, TableFormat::text));
}
