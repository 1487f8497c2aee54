// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/scaling/formula.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/policy/deep_scale_lm.hpp"
#include "support/catch.hpp"

using namespace scalewise;
using namespace scalewise::symbols;

TEST_CASE("Scalings read as the papers print them", "[print]") {
  const Scaling keep = DeepScaleLM::keep_probability;
  const Scaling r = DeepScaleLM::token_correlation;
  CHECK(to_text(Scaling(1)) == "1");
  CHECK(to_text(Scaling(0)) == "0");
  CHECK(to_text(1 / (n * sqrt(n))) == "1/(n√n)");
  CHECK(to_text(1 / (n * sqrt(M * n))) == "1/(n√(Mn))");
  CHECK(to_text(1 / (n_patch * sqrt(n))) == "1/(n_patch√n)");
  CHECK(to_text(pow(n, 2)) == "n²");
  CHECK(to_text(1 / sqrt(n)) == "1/√n");
  CHECK(to_text(sqrt(n)) == "√n");
  CHECK(to_text(pow(m_N, {-3, 4}) * pow(m_D, {-1, 3})) == "m_N^(-3/4)·m_D^(-1/3)");
  CHECK(to_text(pow(n, exponent(0.123456789))) == "n^(0.123456789)");
  CHECK(to_text(pow(2 * L, {1, 4})) == "(2L)^(1/4)");
  CHECK(to_text(pow(8 * L, {-1, 4})) == "(8L)^(-1/4)");
  CHECK(to_text(sqrt(2 / L)) == "√(2/L)");
  CHECK(to_text(sqrt(keep / r) / n) == "√(1-p)/(n√r)");
  CHECK(to_text(r * keep * n) == "nr(1-p)");
  CHECK(to_text(sqrt(2 * keep / (F * n))) == "√(2(1-p)/(Fn))");
  CHECK(to_text(1 / (3 * fi)) == "1/(3fi)");
  CHECK(to_text(2 / fi_plus_fo) == "2/(fi+fo)");
  CHECK(to_text(1 / (2 * L * n)) == "1/(2nL)");
  CHECK(to_text(0.05 / m_L) == "0.05/m_L");
  CHECK(to_text(Scaling(0.05) / 0.03 / m_L) == "5/(3m_L)");
  CHECK(to_text(1 / (Scaling(heads) * C)) == "1/(HC)");
  CHECK(to_text(Scaling(0.0004) / (2 * L)) == "0.0002/L");
  CHECK(to_text(pow(n, 3)) == "n³");
  CHECK(to_text(1 / pow(n, 3)) == "1/n³");
  CHECK(to_text(pow(n, 4)) == "n^(4)");
}

TEST_CASE("A power of one half is a fraction down to 1/64", "[print]") {
  CHECK(to_text(Scaling(0.5)) == "1/2");
  CHECK(to_text(Scaling(0.25)) == "1/4");
  CHECK(to_text(Scaling(0.125)) == "1/8");
  CHECK(to_text(Scaling(0.0625)) == "1/16");
  CHECK(to_text(Scaling(0.03125)) == "1/32");
  CHECK(to_text(Scaling(0.015625)) == "1/64");
  CHECK(to_text(Scaling(0.0078125)) == "0.0078125");
  CHECK(to_text(n / 4) == "n/4");
  CHECK(to_text(1 / (16 * n)) == "1/(16n)");
  CHECK(to_latex(n / 8) == "\\frac{n}{8}");
}

TEST_CASE("Scalings have a LaTeX form", "[print]") {
  CHECK(to_latex(1 / (n * sqrt(n))) == "\\frac{1}{n\\sqrt{n}}");
  CHECK(to_latex(pow(m_N, {-3, 4})) == "m_N^{-3/4}");
  CHECK(to_latex(pow(n, 2)) == "n^{2}");
  CHECK(to_latex(pow(n, 3)) == "n^{3}");
  CHECK(to_latex(sqrt(2 / L)) == "\\sqrt{\\frac{2}{L}}");
  CHECK(to_latex(1 / n_patch) == "\\frac{1}{n_{\\mathrm{patch}}}");
}

TEST_CASE("Numbers are the shortest that read back", "[print]") {
  CHECK(numeric::number_text(0.1) == "0.1");
  CHECK(numeric::number_text(0.02) == "0.02");
  CHECK(numeric::number_text(1.0 / 3) == "0.3333333333333333");
  CHECK(numeric::number_text(1.0 / 7) == "0.1428571428571428");
  CHECK(numeric::number_text(100.0 / 3) == "33.33333333333334");
  CHECK(numeric::number_text(0) == "0");
  CHECK(numeric::number_text(1) == "1");
  CHECK(numeric::number_text(1024) == "1024");
  CHECK(numeric::number_text(1000000) == "1000000");
  CHECK(numeric::number_text(0.00001) == "0.00001");
  CHECK(numeric::number_text(1e-6) == "1e-06");
  CHECK(numeric::number_text(2.5e-7) == "2.5e-07");
  CHECK(numeric::number_text(1e7) == "1e+07");
  CHECK(numeric::number_text(-12) == "-12");
  CHECK(numeric::number_text(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(numeric::number_text(std::numeric_limits<double>::quiet_NaN()) == "nan");
}

TEST_CASE("Decimals of up to 16 digits read back", "[print]") {
  std::uint64_t state = 20261120;
  for (int i = 0; i < 20000; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::string typed = std::to_string(state >> 11U) + "e-" + std::to_string(i % 20);
    const double x = std::strtod(typed.c_str(), nullptr);  // up to 16 digits
    REQUIRE(std::strtod(numeric::number_text(x).c_str(), nullptr) == x);
  }
}

TEST_CASE("The nearest word is that of the fewest edits, or what a word begins", "[nearest]") {
  const std::array<std::string_view, 4> words{"coupled", "independent", "l2", "xavier"};
  CHECK(messages::did_you_mean("copled", words) ==
        "did you mean coupled?");  // one letter is missing
  CHECK(messages::did_you_mean("xaviar", words) == "did you mean xavier?");  // another
  CHECK(messages::did_you_mean("lr2", words) == "did you mean l2?");         // one too many
  CHECK(messages::did_you_mean("indep", words) ==
        "did you mean independent?");  // 6 edits, but its beginning
  // kitten and sitting are three edits apart: two letters changed and one added.
  const auto among = [](std::string_view word, std::string_view one, std::string_view other) {
    return messages::did_you_mean(word, std::array{one, other});
  };
  CHECK(among("kitten-heels", "fitter-weals", "sitting-heels") == "did you mean sitting-heels?");
  CHECK(among("kitten-heels", "sitting-heels", "kitter-weels") == "did you mean kitter-weels?");
  CHECK(messages::did_you_mean("x", std::array<std::string_view, 0>{}).empty());
}

TEST_CASE("Words that are not near are not offered", "[nearest]") {
  const auto offered = [](std::string_view word, std::string_view candidate) {
    return !messages::did_you_mean(word, std::array{candidate}).empty();
  };
  // One edit for words of up to three letters, two from four, three from eight on.
  CHECK(offered("abc", "abx"));
  CHECK_FALSE(offered("abc", "axx"));
  CHECK(offered("abcd", "abxx"));
  CHECK_FALSE(offered("abcd", "axxx"));
  CHECK_FALSE(offered("abcdefg", "abcdxxx"));
  CHECK(offered("abcdefgh", "abcdexxx"));
  CHECK_FALSE(offered("abcdefgh", "abcdxxxx"));
  CHECK_FALSE(offered("x", "k"));  // no letter is the same
  CHECK_FALSE(offered("", "k"));
  CHECK(offered("AdamW", "adamw"));
  CHECK(offered("ADA", "adamw"));
  CHECK(offered("XAVIAR", "xavier"));
  CHECK_FALSE(offered("@", "`"));  // 32 apart, as letters of two cases are
}

TEST_CASE("A message is one line without control characters, and keeps every letter") {
  const InvalidInput error("a\nb", "\x1b[2J\t\x7f\r", "µ √2", std::string("\0", 1));
  CHECK(error.what() == std::string("a b = ?[2J ? : expected µ √2 (hint: ?)"));
}
