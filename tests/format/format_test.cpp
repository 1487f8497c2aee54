// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/format.hpp"

#include <algorithm>
#include <string>

#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"

using namespace scalewise;

namespace {

std::string formatted(const char* format, const auto& value) {
  return fmt::format(fmt::runtime(format), value);
}

Plan standard_plan() {
  Shape shape{.d_model = 16, .depth = 1, .heads = 2, .context = 3, .vocab = 5};
  return make_plan(Standard{}, {.model = shape});
}

}  // namespace

TEST_CASE("A scaling is printed as papers do, in LaTeX and in ASCII", "[format]") {
  const Scaling x = 3 / (symbols::n * sqrt(symbols::n));
  CHECK(fmt::format("{}", x) == "3/(n√n)");
  CHECK(fmt::format("{:latex}", x) == "\\frac{3}{n\\sqrt{n}}");
  CHECK(fmt::format("{:ascii}", x) == "3/(n*sqrt(n))");
  CHECK(fmt::format("{:ascii}", sqrt(symbols::m_N / symbols::L)) == "sqrt(m_N/L)");
  CHECK(fmt::format("{:ascii}", symbols::n * symbols::n / sqrt(symbols::m_N)) == "n^2/sqrt(m_N)");
  CHECK(fmt::format("{:ascii}", symbols::m_N * symbols::n) == "n*m_N");
  CHECK(fmt::format("[{:>10}]", 1 / symbols::n) == "[       1/n]");
  CHECK(fmt::format("[{:*<6text}]", 1 / symbols::n) == "[1/n***]");
}

TEST_CASE("A number has its formula, where that says more, and as many digits as asked for",
          "[format]") {
  const Number<Kind::rate> third{1.0 / 3, 1 / symbols::m_N};
  CHECK(fmt::format("{}", third) == "0.3333 = 1/m_N");
  CHECK(fmt::format("{:.2}", third) == "0.33 = 1/m_N");
  CHECK(fmt::format("{:.6latex}", third) == "0.333333 = \\frac{1}{m_N}");
  CHECK(fmt::format("{}", Number<Kind::decay>{0.05, 0.05}) == "0.05");
}

TEST_CASE("Entries, plans, slopes and verdicts are printed", "[format]") {
  const Plan plan = standard_plan();
  CHECK(fmt::format("{}", plan.at("head")) ==
        "head: init_variance 0.0625 = 1/n, init_mean 0, multiplier 1, learning_rate 1, "
        "weight_decay 1, epsilon 1");
  const std::string all = fmt::format("{}", plan);
  CHECK_THAT(all, Catch::Matchers::StartsWith("standard for adamw, "));
  CHECK(std::count(all.begin(), all.end(), '\n') == static_cast<long>(plan.entries.size()));
  CHECK(fmt::format("{}", numeric::Line{-0.504, 0, 0.021}) == "-0.50 ± 0.02");
  CHECK(fmt::format("{:.3}", numeric::Line{-0.504, 0, 0.021}) == "-0.504 ± 0.021");
  CHECK(fmt::format("{:>6}", check::Verdict::pass) == "  pass");
}

TEST_CASE("A format that means nothing is refused", "[format]") {
  const Scaling x = 1 / symbols::n;
  for (const char* wrong : {"{:.two}", "{:html}", "{:10d}"}) {
    CHECK_THROWS_AS(formatted(wrong, x), fmt::format_error);
  }
}
