// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/record_csv.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "scalewise/check/record_file.hpp"
#include "scalewise/numeric/random.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/temporary_folder.hpp"

using namespace scalewise;
using namespace scalewise::check;

namespace {

const std::string header = "size,seed,step,signal,name,sum_abs,sum_squares,count\n";

/// The records of a file.
RecordFile read_csv(const std::string& text) {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "run.csv").string();
  files::write_file(path, text);
  return read_records(path);
}

std::string refusal(const std::string& text) {
  return test::error_message([&] { static_cast<void>(check::detail::RecordCsv("run.csv", text)); });
}

}  // namespace

TEST_CASE("Records with commas are those with braces, to the last bit") {
  Records expected;
  const Run small{64, 1};
  const Run large{128, 18446744073709551615U};
  expected.add({Signal::value, "logits"}, 0, small, {0.7, 1.0 / 3, 7});
  expected.add({Signal::update, "layer.0.mlp_up"}, 2, large, {1e-300, 0, 4096});
  expected.add({Signal::gradient, "a \"b\", c"}, 0, large, {HUGE_VAL, HUGE_VAL, 1});
  const RecordFile file =
      read_csv(header +
               "64,1,0,value,logits,0.7,0.33333333333333331,7\n"
               "128,18446744073709551615,2,update,layer.0.mlp_up,1e-300,0,4096\n"
               "128,18446744073709551615,0,gradient,\"a \"\"b\"\", c\",inf,nan,1\n");
  CHECK(file.records == expected);
  CHECK(file.runs == std::set<Run>{small, large});
  CHECK(file.inputs.empty());
  CHECK(file.damage.empty());

  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "run.jsonl").string();
  append_records(path, expected);
  CHECK(read_records(path).records == file.records);
}

TEST_CASE("Columns come in any order, and lines end as on any system") {
  const RecordFile file = read_csv(
      "\xEF\xBB\xBF"
      "count,name,signal,step,seed,size,sum_squares,sum_abs\r\n3,x,change,1,4,32,1.25,1.5\r\n");
  Records expected;
  expected.add({Signal::change, "x"}, 1, {32, 4}, {1.5, 1.25, 3});
  CHECK(file.records == expected);
}

TEST_CASE("Blank lines of a CSV file are passed over") {
  CHECK(read_csv(header + "64,1,0,value,x,1,1,1\n\n\r\n32,1,0,value,x,1,1,1\n\n").records ==
        read_csv(header + "64,1,0,value,x,1,1,1\n32,1,0,value,x,1,1,1\n").records);
}

TEST_CASE("A name of a record is UTF-8 without control characters") {
  const auto accepted = [](const std::string& name) {
    return refusal(header + "64,1,0,value," + name + ",1,1,1\n") == "no error";
  };
  CHECK(accepted("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"));
  CHECK(accepted("\xC2\xA0"));
  CHECK_FALSE(accepted("caf\xE9"));
  CHECK_FALSE(accepted("\xC3"));          // cut short
  CHECK_FALSE(accepted("\xC0\xAF"));      // too long for what it is
  CHECK_FALSE(accepted("\xED\xA0\x80"));  // half of a pair
  CHECK_FALSE(accepted("\x1B[2J"));       // clears a terminal
  CHECK_FALSE(accepted("\xC2\x9B["));     // the same, as one character
  CHECK_FALSE(accepted("\x7F"));
  CHECK_FALSE(accepted("a\tb"));
}

TEST_CASE("Sums that no numbers have are refused") {
  const auto of = [](double sum_abs, double sum_squares, std::uint64_t count) {
    return refusal(header + fmt::format("64,1,0,value,x,{},{},{}\n", sum_abs, sum_squares, count));
  };
  // Of 4096 standard normal numbers: means, and the root of the sum of squares.
  CHECK(
      of(0.798, 1, 4096) ==
      "run.csv line 2, value of x = sum_abs 0.798, sum_squares 1, count 4096: expected sum_squares "
      "<= sum_abs^2 <= count * sum_squares, as for any numbers (hint: sum_abs and sum_squares are "
      "sums over all entries, not means or roots)");
  CHECK_THAT(of(3268, 64, 4096), Catch::Matchers::ContainsSubstring("sum_abs 3268"));
  CHECK_THAT(of(3268, 4096, 0),
             Catch::Matchers::ContainsSubstring(
                 "count 0: expected a count of at least 1, unless both sums are 0"));
  CHECK_THAT(of(0, 1, 2), Catch::Matchers::ContainsSubstring("not means"));
  CHECK_THAT(of(1, 0, 2), Catch::Matchers::ContainsSubstring("not means"));
  CHECK(of(3268, 4096, 4096) == "no error");
  CHECK(of(0, 0, 0) == "no error");
  CHECK(of(0, 0, 7) == "no error");
  CHECK(of(HUGE_VAL, 1, 7) == "no error");
  CHECK(of(1, HUGE_VAL, 7) == "no error");
  CHECK(of(1e200, HUGE_VAL, 7) == "no error");
  CHECK(of(1e160, 1e307, 1000000000000000) == "no error");
  // Equality, of one number that is not zero and of numbers of one size, and 1 % of the squares beyond.
  CHECK(of(1, 1.009, 100) == "no error");
  CHECK_FALSE(of(1, 1.011, 100) == "no error");
  CHECK(of(100, 100 / 1.009, 100) == "no error");
  CHECK_FALSE(of(100, 100 / 1.011, 100) == "no error");
}

TEST_CASE("Sums in float32 or rounded to bfloat16 are possible") {
  const auto to_bfloat16 = [](float x) {  // its upper 16 bits, to nearest
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof(bits));
    bits = (bits + 0x7FFFU + (bits >> 16U & 1U)) & 0xFFFF0000U;
    std::memcpy(&x, &bits, sizeof(bits));
    return x;
  };
  numeric::RandomStream stream(1, "numbers");
  std::string text = header;
  long step = 0;
  const auto add = [&](float sum_abs, float sum_squares, std::size_t count) {
    text += fmt::format("64,1,{},value,x,{},{},{}\n", step++, sum_abs, sum_squares, count);
  };
  // Steps of Adam are of one size; nothing else is as close to the limit, nor rounded in one direction.
  for (const bool of_one_size : {true, false}) {
    for (int draw = 0; draw < (of_one_size ? 10 : 1); ++draw) {
      const auto size = static_cast<float>(1 + stream.uniform());
      float sum_abs = 0, sum_squares = 0, rounded_squares = 0;
      for (std::size_t n = 1; n <= std::size_t{1} << 20U; ++n) {
        const float x = of_one_size ? size : static_cast<float>(stream.normal());
        sum_abs += std::abs(x);
        sum_squares += x * x;
        rounded_squares += to_bfloat16(x * x);
        if ((n & (n - 1)) != 0) continue;
        add(sum_abs, sum_squares, n);
        if (n <= 1U << 12U) add(to_bfloat16(sum_abs), to_bfloat16(rounded_squares), n);
      }
    }
  }
  add(1e6F * 1e-25F, 0, 1000000);  // whose squares underflow
  CHECK(refusal(text) == "no error");
}

TEST_CASE("A run in two files counts once, and must be the same") {
  const test::TemporaryFolder folder;
  const auto in = [&](const char* name, const std::string& text) {
    const std::string path = (folder.path() / name).string();
    files::write_file(path, header + text);
    return path;
  };
  const std::string a = in("a.csv", "64,1,0,value,x,1,1,1\n");
  const std::string same = in("same.csv", "64,1,0,value,x,1.0,1e0,1\n");
  const std::string other = in("other.csv", "32,1,0,value,x,1,1,1\n64,1,0,value,x,2,4,1\n");
  CHECK(read_records(std::vector{a, same}).records == read_records(a).records);
  CHECK_THAT(test::error_message([&] {
               static_cast<void>(read_records(std::vector{a, other}));
             }),
             Catch::Matchers::ContainsSubstring("other.csv line 3 (other records of size 64, seed "
                                                "1): expected those of " +
                                                a + " line 2"));
}

TEST_CASE("What is wrong in records with commas is named with line and column") {
  const std::string line = "64,1,0,value,x,2,2,3\n";
  const std::string all =
      " (hint: the columns are size,seed,step,signal,name,sum_abs,sum_squares,count, in "
      "any order)";
  struct Case {
    std::string text;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"", "run.csv line 1 (empty): expected a line with the names of the columns" + all},
      {"size,seed\n", "run.csv line 1 (no step): expected a column of this name" + all},
      {"size,width\n", "run.csv line 1 = width: expected the name of a column" + all},
      {"size,size\n", "run.csv line 1 = size (given twice): expected each column once"},
      {header + "64,1,0,value,x,1,2",
       "run.csv line 2 (no newline at its end): expected whole lines (hint: was the program "
       "stopped "
       "while it wrote?)"},
      {header + line + "64,1\n",
       "run.csv line 3 = 2 cells: expected 8 of them, one of each column"},
      {header + line + "\n64\n", "run.csv line 4 = 1 cell: expected 8 of them, one of each column"},
      {header + "64,1,0,value,\"x,1,2,3\n",
       "run.csv line 2 (a quote that does not end): expected a quote at the end of the cell"},
      {header + line + line,
       "run.csv line 3 (given twice): expected one record of each quantity, step, size and seed "
       "(hint: add up the parts that several ranks have)"},
      {header + "64,1,0,value,x,-1,2,3\n",
       "run.csv line 2, sum_abs = -1: expected a sum of absolute values"},
      {header + "64,1,0,value,x,1,,3\n", "run.csv line 2, sum_squares (empty): expected a number"},
      {header + "64,1,0,value,x,1,[2],3\n", "run.csv line 2, sum_squares = [2]: expected a number"},
      {header + "64,1,0,value,x,1,1e999,3\n",
       "run.csv line 2, sum_squares = 1e999: expected a number"},
      {header + line + "64,1,0,value,caf\xE9,2,2,3\n",
       "run.csv line 3, name = caf?: expected a name in UTF-8 without control characters"},
  };
  for (const Case& c : cases) CHECK(refusal(c.text) == c.message);
  CHECK(refusal("\n\r\n" + header + "\n" + line) == "no error");
  CHECK_THAT(refusal("\n\n"), Catch::Matchers::ContainsSubstring("line with the names of"));
  for (const char* sum : {"inf", "nan", "-nan", "NaN", "-nan(ind)", "Infinity", "-inf"}) {
    INFO(sum);  // of printf with glibc and MSVC, of std::cout, Java and Python
    CHECK(refusal(header + "64,1,0,value,x," + sum + "," + sum + ",3\n") == "no error");
  }
  CHECK_THAT(refusal(header + "64,1,0,value,x,nanometre,1,3\n"),
             Catch::Matchers::ContainsSubstring("expected a number"));

  // Those that JSON has as well, in its words.
  using Catch::Matchers::StartsWith;
  CHECK_THAT(refusal(header + "0,1,0,value,x,1,2,3\n"),
             StartsWith("run.csv line 2, size = 0: expected"));
  CHECK_THAT(refusal(header + "64,-1,0,value,x,1,2,3\n"),
             StartsWith("run.csv line 2, seed = -1: expected"));
  CHECK_THAT(refusal(header + "64,1,0.5,value,x,1,2,3\n"),
             StartsWith("run.csv line 2, step = 0.5: expected"));
  CHECK_THAT(refusal(header + "64,1,0,values,x,1,2,3\n"),
             StartsWith("run.csv line 2, signal = values: expected"));
  CHECK_THAT(refusal(header + "64,1,0,value,x,1,2,1.5\n"),
             StartsWith("run.csv line 2, count = 1.5: expected"));
}
