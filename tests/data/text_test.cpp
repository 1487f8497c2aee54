// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/data/text.hpp"

#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/temporary_file.hpp"

namespace {

using namespace scalewise::data;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;

std::vector<int> counting(int size) {
  std::vector<int> tokens(static_cast<std::size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

std::string refusal(int size, double validation) {
  return error_message([&] { split_tokens(counting(size), validation); });
}

}  // namespace

TEST_CASE("Every byte of a file is a token", "[data]") {
  std::string content;
  for (int byte = 0; byte < 256; ++byte) content += static_cast<char>(byte);
  const TemporaryFile file(content + "\r\n");
  std::vector<int> expected = counting(256);
  expected.push_back(13);
  expected.push_back(10);
  CHECK(read_byte_tokens(file.path()) == expected);
}

TEST_CASE("The shipped text is whole", "[data]") {
  const std::vector<int> tokens =
      read_byte_tokens(std::string(SCALEWISE_TEST_DIR) + "/../tools/data/austen_persuasion.txt");
  REQUIRE(tokens.size() == 466'854);
  CHECK(std::string(tokens.begin(), tokens.begin() + 11) == "Persuasion\n");
  CHECK(std::string(tokens.end() - 6, tokens.end()) == "Finis\n");
}

TEST_CASE("A file that gives no token is refused by its name", "[data]") {
  const auto refused = [](const std::string& path) {
    return error_message([&] { read_byte_tokens(path); });
  };
  const TemporaryFile empty("");
  CHECK(refused(empty.path()) == empty.path() + " (empty): expected a file of at least one byte");
  CHECK(refused("/no/such.txt") == "cannot open /no/such.txt: no such file");
  CHECK(refused("") == "file name (empty): expected a file");
  const std::string folder = std::filesystem::temp_directory_path().string();
  CHECK(refused(folder) == "cannot open " + folder + ": it is a directory");
}

TEST_CASE("A split keeps every token in order, the last ones for validation", "[data]") {
  const TokenSplit split = split_tokens(counting(39));
  CHECK(split.train == counting(36));
  CHECK(split.validation == std::vector<int>{36, 37, 38});
  CHECK(split_tokens(counting(4), 0.5).validation == std::vector<int>{2, 3});
}

TEST_CASE("A split with a part too small for one prediction is refused", "[data]") {
  CHECK(refusal(19, 0.1) ==
        "tokens = 19: expected enough for two tokens in either part (hint: validation = 0.1)");
  CHECK(refusal(20, 0.1) == "no error");
  CHECK(refusal(20, 0.95) != "no error");
  CHECK(refusal(0, 0.5) != "no error");
  for (const double fraction : {0.0, 1.0, -0.1, 2.0, std::numeric_limits<double>::quiet_NaN(),
                                std::numeric_limits<double>::infinity()}) {
    CHECK_THAT(refusal(1000, fraction), ContainsSubstring("a fraction between 0 and 1"));
  }
}
