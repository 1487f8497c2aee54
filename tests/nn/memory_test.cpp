// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/dense/memory.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <utility>

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

TEST_CASE("Memory is copied with its numbers and moved without") {
  for (const Eigen::Index size : {Eigen::Index{100}, Eigen::Index{1} << 20}) {
    Memory<float> first(size);
    fill(first);
    Memory<float> second = first;
    CHECK(second.data() != first.data());
    second.data()[size - 1] = 2;
    CHECK(first.data()[size - 1] == 1.5F);
    CHECK(second.row()(0, 0) == 1.5F);

    const float* const place = second.data();
    first = std::move(second);
    CHECK(first.data() == place);
    CHECK(first.data()[size - 1] == 2);
    first = Memory<float>(3);
    CHECK(all_zero(first));
  }
  const Memory<float> nothing(0);
  CHECK(nothing.size() == 0);
  CHECK(Memory<float>(nothing).row().size() == 0);
}

TEST_CASE("Memory that is not there is refused") {
  constexpr Eigen::Index most = std::numeric_limits<Eigen::Index>::max();
  for (const Eigen::Index size : {Eigen::Index{-1}, most, Eigen::Index{1} << 58}) {
    CHECK_THROWS_AS(Memory<double>(size), std::bad_alloc);
  }
}
