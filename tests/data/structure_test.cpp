// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/data/structure.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "scalewise/data/text.hpp"
#include "scalewise/numeric/random.hpp"
#include "support/catch.hpp"

using namespace scalewise;
using data::structure_of;
using data::without_structure;

namespace {

/// A chain of bytes that repeats the last one with a probability, and else takes one of `kinds`.
std::vector<int> chain(std::size_t length, double repeat, std::uint64_t kinds) {
  numeric::RandomStream stream(1, "chain");
  std::vector<int> bytes{0};
  while (bytes.size() < length) {
    const bool again = stream.uniform() < repeat;
    bytes.push_back(again ? bytes.back() : static_cast<int>(stream.bits() % kinds));
  }
  return bytes;
}

}  // namespace

TEST_CASE("Entropy and information of a chain are those of its transition matrix") {
  // Stationary: 1/4 each, H = 2 bits. To the same byte 0.5 + 0.5/4, to each other one 0.5/4:
  // H(next | last) = -0.625 log2 0.625 - 3 · 0.125 log2 0.125 = 1.5488 bits.
  const data::Structure s = structure_of(chain(400000, 0.5, 4));
  CHECK(std::abs(s.entropy - 2) < 0.002);
  CHECK(std::abs(s.information - (2 - 1.548795)) < 0.005);
}

TEST_CASE("Random bytes, one byte and too few are not text; a novel is") {
  // 10,000 random bytes are too few for the entropy of pairs, which is 16 bits and not log2 10,000;
  // that this cancels is the point.
  for (const std::size_t length : {10000U, 100000U}) {
    const data::Structure random = structure_of(chain(length, 0, 256));
    CHECK(std::abs(random.information) < 0.08);
    CHECK(without_structure(random).starts_with("bytes do not depend"));
  }
  CHECK(without_structure(structure_of(std::vector<int>(1000, 97))).starts_with("one byte"));
  CHECK(without_structure(structure_of(std::vector<int>{1})) == "fewer than 2 bytes");
  const data::Structure novel = structure_of(data::read_byte_tokens(
      std::string(SCALEWISE_TEST_DIR) + "/../tools/data/austen_persuasion.txt"));
  CHECK(novel.information > 0.9);
  CHECK(without_structure(novel).empty());
}
