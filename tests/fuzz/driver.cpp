// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Between libFuzzer and a target: a third of the inputs are the target's own edits, and now and then
// one of its seeds comes back.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "fuzz/fuzz.hpp"
#include "scalewise/messages/error.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace fuzz = scalewise::fuzz;

namespace {

const std::vector<std::string>& all_seeds() {
  static const std::vector<std::string> seeds = fuzz::seeds();
  return seeds;
}

}  // namespace

/// Makes the seeds before any input's time is taken.
extern "C" int LLVMFuzzerInitialize(int*, char***) { return all_seeds().empty() ? 1 : 0; }

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  const std::vector<std::string>& seeds = all_seeds();
  fuzz::Random random(seed);
  random.discard(2);
  std::string next;
  if (size < 2 || fuzz::below(64, random) == 0) {
    next = seeds[fuzz::below(seeds.size(), random)];
  } else if (fuzz::below(3, random) == 0) {
    next = fuzz::edited(std::string(data, data + size), random);
  } else {
    return LLVMFuzzerMutate(data, size, most);
  }
  const std::size_t taken = std::min(next.size(), most);
  std::copy_n(next.data(), taken, data);
  return taken;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    fuzz::run(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const scalewise::InvalidInput& error) {
    for (const char* c = error.what(); *c != '\0'; ++c) {
      if (static_cast<unsigned char>(*c) >= ' ' && *c != '\x7f') continue;
      std::cerr << "a control character in the message: " << error.what() << '\n';
      std::abort();
    }
  }
  return 0;
}
