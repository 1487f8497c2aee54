// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/dense/memory.hpp"

#include <algorithm>
#include <cstdint>

#include "support/catch.hpp"

using scalewise::dense::Memory;

namespace {

bool all_zero(const Memory<float>& memory) {
  return std::all_of(memory.data(), memory.data() + memory.size(), [](float x) { return x == 0; });
}

void fill(Memory<float>& memory) { std::fill(memory.data(), memory.data() + memory.size(), 1.5F); }

}  // namespace

TEST_CASE("Memory is aligned and zero, also where somebody else has written before") {
  constexpr Eigen::Index huge = (1 << 21) / sizeof(float);
  for (const Eigen::Index size : {Eigen::Index{1}, Eigen::Index{17}, Eigen::Index{1000}, huge - 1,
                                  huge, huge + 1, 3 * huge, 3 * huge + 1025}) {
    for (int round = 0; round < 3; ++round) {
      Memory<float> memory(size);
      REQUIRE(memory.size() == size);
      CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % 64 == 0);
      CHECK(all_zero(memory));
      fill(memory);  // to its last number
    }
  }
}
