// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/scaling/read_formula.hpp"

#include <string>

#include "scalewise/scaling/formula.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

using namespace scalewise;
using namespace scalewise::symbols;

TEST_CASE("Formulas are read as the papers print them") {
  const scaling::FormulaSymbols symbols;
  const auto read = [&](const std::string& text) { return symbols.read("formula", text); };
  CHECK(read("0") == Scaling(0));
  CHECK(read("-0.5") == Scaling(-0.5));
  CHECK(read("1e-06") == Scaling(1e-6));
  CHECK(read("1/3") == Scaling(1.0 / 3));
  CHECK(read("1/(n√n)") == 1 / (n * sqrt(n)));
  CHECK(read("√(2/F)") == sqrt(2 / F));
  CHECK(read("m_N^(-3/4)") == pow(m_N, {-3, 4}));
  CHECK(read("n^(0.3141)") == pow(n, exponent(0.3141)));
  CHECK(read("(2L)^(1/4)") == pow(2 * L, {1, 4}));
  CHECK(read("2/((fi+fo)l)") == 2 / (fi_plus_fo * Scaling(layer)));
  CHECK(read("m_N·m_L/n_patch²") == m_N * m_L / (n_patch * n_patch));
  CHECK(read("m_fi+fo") == ratio(fi_plus_fo));
  const Scaling odd = 3 * pow(Scaling(2), {1, 4});  // not 32^(1/4)
  CHECK(to_text(odd) == "3·2^(1/4)");
  CHECK(read(to_text(odd)) == odd);
  const Scaling real = pow(n, exponent(0.1 + 0.2));  // 17 digits
  CHECK(read(to_text(real)) == real);
  // As older files have them.
  CHECK(read("(1/m_N)·(0.0004)") == 0.0004 / m_N);
  CHECK(read("(√n)·(m_N/2)⁻²") == 4 * sqrt(n) / (m_N * m_N));
  CHECK(read("√C·(1/C)") == 1 / sqrt(C));
}

TEST_CASE("A file's own symbols are read, and known ones stay themselves") {
  scaling::FormulaSymbols symbols;
  symbols.add("(1-p)", "(1-p)", "share that dropout keeps");
  symbols.add("n", "n", "something else");
  const Scaling own = symbols.read("formula", "√(1-p)/n");
  CHECK(to_text(own) == "√(1-p)/n");
  CHECK(own.exponent_of(d_model) == Exponent(-1));
  scaling::FormulaSymbols others;
  others.add("(1-p)", "1-p", "the same letter of another file");
  CHECK(others.read("formula", "√(1-p)/n") == own);
}

TEST_CASE("A text that is not a formula is refused by its field") {
  const scaling::FormulaSymbols symbols;
  const std::string deep(2000, '(');
  for (const std::string text :
       {"", "x", "n+1", "1/0", "0^(-1)", "n^(1/0)", "n^(1", "(n", "n)", "n/", "√", "0x10", "1e999",
        "n^(1e9)", "n·", "-", "inf", "B·M·F·n·H·K·C·L·V·T·D·N_e·N_d"}) {
    INFO(text);
    CHECK_THROWS_AS(symbols.read("formula", text), InvalidInput);
  }
  CHECK_THROWS_AS(symbols.read("formula", deep), InvalidInput);
  CHECK_NOTHROW(symbols.read("formula", "M·F·n·H·K·C·L·V·T·D·N_e·N_d"));  // a scaling holds no more
  CHECK(test::error_message([&] { symbols.read("plan.json.formula", "2x"); }) ==
        "plan.json.formula = 2x: expected a product of powers of the plan's symbols (hint: such as "
        "1/(n√n) or m_N^(-3/4))");
}
