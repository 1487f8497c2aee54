// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/sweep_table.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/synthetic_sweep.hpp"

namespace {

using namespace scalewise::check;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;

std::string table_refused(const std::string& text, const SweepColumns& columns = {}) {
  return error_message([&] { parse_sweep_table(text, "t", columns); });
}

}  // namespace

TEST_CASE(
    "A table in CSV: columns by usual names, quotes, blank lines, spaces, diverged and missing") {
  const SweepTable table = parse_sweep_table(
      "\xEF\xBB\xBFname, width ,lr,seed,val_loss\r\n"
      "\"a, \"\"b\"\"\",64,1e-3,0,2.5\r\n"
      "\r\n"
      "c,64.0,.002,0,NaN\n"
      "d,64,+4e-3,0,-Infinity\n"
      "e,64,8e-3,0,Diverged\n"
      "f,64,1e-3,1,\n"
      "g,128,1.,-1,3",
      "t");
  CHECK(table.columns.size == "width");
  CHECK(table.columns.rate == "lr");
  CHECK(table.columns.seed == "seed");
  CHECK(table.columns.loss == "val_loss");
  CHECK(table.all == 6);
  CHECK(table.missing == std::vector<std::size_t>{7});
  REQUIRE(table.rows.size() == 5);
  CHECK(table.rows[0].loss == 2.5);
  CHECK(table.rows[1].size == 64);
  CHECK(table.rows[1].rate == 0.002);
  for (std::size_t i = 1; i < 4; ++i) CHECK(std::isinf(table.rows[i].loss));
  CHECK(table.rows[4].seed == -1);
  CHECK(table.rows[4].rate == 1);
}

TEST_CASE("A size without any loss is not judged, and a sweep with it does not pass") {
  std::string text = "width,lr,seed,loss\n";
  for (const int width : {64, 128, 256}) {
    for (int octave = -13; octave <= -6; ++octave) {
      for (const int seed : {1, 2}) {
        const double loss = bowl(octave, -9, 0.004) + 0.03 * seed;
        text += std::to_string(width) + "," + std::to_string(std::ldexp(1, octave)) + "," +
                std::to_string(seed) + "," + (width == 256 ? "" : std::to_string(loss)) + "\n";
      }
    }
  }
  const TransferVerdict none = judge_sweep_table(parse_sweep_table(text, "t")).judged;
  CHECK(none.verdict == Verdict::inconclusive);
  CHECK_THAT(none.reason, ContainsSubstring("at width 256 no run has a loss; without it, the"));
  CHECK(none.not_judged == std::vector<std::string>{"at width 256 no run has a loss"});
  const std::string shorter = text.substr(0, text.find("256,"));
  CHECK(judge_sweep_table(parse_sweep_table(shorter + "128,0.5,1,\n", "t")).judged.verdict ==
        Verdict::pass);
}

TEST_CASE("A table with other separators than commas is told so") {
  for (const std::string cell : {";", "\t"}) {
    CHECK_THAT(
        table_refused("rate" + cell + "loss" + cell + "width\n1" + cell + "2" + cell + "8\n"),
        Catch::Matchers::ContainsSubstring("(hint: cells are separated by commas)"));
  }
}

TEST_CASE("A table in JSON lines, with the numbers that Python writes") {
  const std::string text =
      "{\"arm\": \"NaN\", \"depth\": 2, \"width\": 8, \"lr\": 0.1, \"loss\": NaN}\n"
      "{\"arm\": \"b\", \"depth\": 2, \"width\": 8, \"lr\": 0.1, \"loss\": 2, \"x\": {\"y\": "
      "[1]}}\n"
      "{\"arm\": \"b\", \"depth\": 4, \"width\": 8, \"lr\": 0.1, \"loss\": null}\n";
  const SweepTable table = parse_sweep_table(text, "t", {.where = {"arm=b"}});
  CHECK(table.columns.size == "depth");  // the one that differs
  CHECK(table.columns.seed.empty());
  REQUIRE(table.rows.size() == 2);
  CHECK(table.all == 3);
  CHECK(std::isinf(table.rows[1].loss));
  CHECK(parse_sweep_table(text, "t", {.where = {"arm=NaN"}}).rows.size() == 1);
  CHECK(parse_sweep_table(text, "t", {.where = {"depth=4.0", "arm=b"}}).rows.size() == 1);
  CHECK(parse_sweep_table(text, "t", {.size = "width", .where = {"depth=4"}}).rows[0].size == 8);
}

TEST_CASE("Bad tables are refused with the line") {
  const std::string header = "width,lr,seed,loss\n";
  const std::vector<std::pair<std::string, std::string>> bad{
      {"", "t (empty): expected a table of runs"},
      {header, "t (no rows)"},
      {header + "8,0.1,0\n", "t line 2 = 3 cells: expected 4 of them"},
      {header + "8,0.1,0,2,3\n", "t line 2 = 5 cells"},
      {header + "8,0.1,0,2\n\nx,0.1,0,2\n",
       "t line 4, width = x: expected a whole number from 1 to 1e15"},
      {header + "8.5,0.1,0,2\n", "t line 2, width = 8.5"},
      {header + "0,0.1,0,2\n", "t line 2, width = 0"},
      {header + "1e99,0.1,0,2\n", "t line 2, width = 1e99"},
      {header + "8,0,0,2\n", "t line 2, lr = 0: expected a number above 1e-300 and below 1e300"},
      {header + "8,nan,0,2\n", "t line 2, lr = nan"},
      {header + "8,,0,2\n", "t line 2, lr (empty)"},
      {header + "8,0.1,one,2\n", "t line 2, seed = one: expected a whole number"},
      {header + "8,0.1,0,-2\n", "t line 2, loss = -2: expected a number above 0"},
      {header + "8,0.1,0,low\n", "t line 2, loss = low"},
      {header + "8,0.1,0,\n", "t (no loss)"},
      {header + "8,0.1,0,2\n8,0.10,0,2\n", "t line 3 (the run of line 2): expected another size"},
      {header + "8,\"0.1,0,2\n", "t line 2 (a quote that does not end)"},
      {"width,lr,lr,loss\n8,1,1,1\n", "t line 1 = lr (given twice)"},
      {"width,rat,loss\n8,1,1\n", "t (no column rate): expected one of its columns: loss, rat"},
      {"width,depth,lr,loss\n8,1,1,1\n16,2,1,1\n", "t (both width and depth differ)"},
      {"[{\"width\": 8}]\n", "t line 1 (an array): expected an object"},
      {"{\"width\": 8, \"lr\": 1, \"loss\": 1}\n{\"width\": 8\n", "t line 2"},
      {"{\"width\": 8, \"lr\": 1, \"loss\": 1}\n{\"width\": 8, \"lr\": 2}\n", "t line 2 (no loss)"},
      {"{\"width\": [8], \"lr\": 1, \"loss\": 1}\n", "t line 1, width = [8]"},
  };
  for (const auto& [text, message] : bad) {
    CAPTURE(text);
    CHECK_THAT(table_refused(text), ContainsSubstring(message));
  }
  const std::string good = header + "8,0.1,0,2\n";
  CHECK_THAT(table_refused(good, {.where = {"widht=8"}}), ContainsSubstring("did you mean width?"));
  CHECK_THAT(table_refused(good, {.where = {"width=9"}}),
             ContainsSubstring("a value of width in t"));
  CHECK_THAT(table_refused(good, {.where = {"width"}}), ContainsSubstring("expected column=value"));
  CHECK_THAT(table_refused(good, {.loss = "val"}), ContainsSubstring("no column val"));
}
