// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/data/digits.hpp"

#include <array>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/temporary_file.hpp"

namespace {

using namespace scalewise::data;
using namespace scalewise::test;

/// The message about a text, which names the file as "F".
std::string refusal(const std::string& content) {
  const TemporaryFile file(content);
  const std::string text = error_message([&] { read_digits(file.path()); });
  if (text == "no error") return text;
  REQUIRE(text.rfind(file.path(), 0) == 0);
  return "F" + text.substr(file.path().size());
}

}  // namespace

TEST_CASE("Digits are pixels over 16 and a label", "[data]") {
  for (const std::string content :
       {"0,16,8,1,9\n4,3,2,1,0\n", "0,16,8,1,9\r\n4,3,2,1,0\r\n", "\n0,16,8,1,9\n\n4,3,2,1,0"}) {
    const TemporaryFile file(content);
    const Images images = read_digits(file.path());
    REQUIRE(images.size() == 2);
    CHECK(images.side == 2);
    CHECK(images.labels == std::vector<int>{9, 0});
    scalewise::Matrix<float> expected(2, 4);
    expected << 0.0F, 1.0F, 0.5F, 0.0625F, 0.25F, 0.1875F, 0.125F, 0.0625F;
    CHECK(images.pixels == expected);
  }
}

TEST_CASE("The shipped digits are whole", "[data]") {
  const Images images = read_digits(std::string(SCALEWISE_TEST_DIR) + "/../tools/data/digits.csv");
  REQUIRE(images.size() == 1797);
  CHECK(images.side == 8);
  std::array<int, 10> counts{};
  for (const int label : images.labels) ++counts.at(static_cast<std::size_t>(label));
  // The counts that the data's own description gives.
  CHECK(counts == std::array<int, 10>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180});
  CHECK(images.pixels.minCoeff() == 0);
  CHECK(images.pixels.maxCoeff() == 1);
}

TEST_CASE("Digits that are none are refused by line and column", "[data]") {
  const std::string good = "1,2,3,4,5\n";
  const std::string pixel = ": expected a whole number from 0 to 16";
  CHECK(refusal(good + "1,2,nan,4,5\n") == "F, line 2, column 3 = nan" + pixel);
  CHECK(refusal(good + "\n1,inf,3,4,5\n") == "F, line 3, column 2 = inf" + pixel);
  CHECK(refusal(good + "1,2,3,17,5\n") == "F, line 2, column 4 = 17" + pixel);
  CHECK(refusal("-1,2,3,4,5") == "F, line 1, column 1 = -1" + pixel);
  CHECK(refusal("1,2,3x,4,5") == "F, line 1, column 3 = 3x" + pixel);
  CHECK(refusal("1,2,0.5,4,5") == "F, line 1, column 3 = 0.5" + pixel);
  CHECK(refusal("1,,3,4,5") == "F, line 1, column 2 (empty)" + pixel);
  CHECK(refusal("1, 2,3,4,5") == "F, line 1, column 2 =  2" + pixel);
  CHECK(refusal("1,2,99999999999999999999,4,5") ==
        "F, line 1, column 3 = 99999999999999999999" + pixel);
  CHECK(refusal("1,2,3,4,10") == "F, line 1, column 5 = 10: expected a whole number from 0 to 9");
  CHECK(refusal(good + "1,2,3,4\n") == "F, line 2 = 4 values: expected 4 pixels and a label");
  CHECK(refusal(good + "1,2,3,4,5,\n") == "F, line 2 = 6 values: expected 4 pixels and a label");
  CHECK(refusal("1,2,3,4,5,6\n") ==
        "F, line 1 = 6 values: expected the pixels of a square image and a label");
  CHECK(refusal("7\n") != "no error");
  CHECK(refusal("") == "F (empty): expected a line per image");
  CHECK(refusal("\n\r\n") == "F (empty): expected a line per image");
  CHECK(error_message([] { read_digits("/no/such.csv"); }) ==
        "cannot open /no/such.csv: no such file");
}
