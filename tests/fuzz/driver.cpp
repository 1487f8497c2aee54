// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Between libFuzzer and a target: a third of the inputs are the target's own edits, and now and then
// one of its seeds comes back. The program's name says which target: fuzz_plan is the target plan.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>

#include "fuzz/fuzz.hpp"
#include "scalewise/messages/error.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace fuzz = scalewise::fuzz;

namespace {

const fuzz::Target* tested = nullptr;

const std::vector<std::string>& all_seeds() {
  static const std::vector<std::string> seeds = tested->seeds();
  return seeds;
}

}  // namespace

/// Finds the target, and makes the seeds before any input's time is taken.
extern "C" int LLVMFuzzerInitialize(int*, char*** arguments) {
  const std::string_view path = **arguments;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const fuzz::Target& one : fuzz::targets()) {
    const bool only = fuzz::targets().size() == 1;
    if (only || name == "fuzz_" + std::string(one.name)) tested = &one;
  }
  if (tested == nullptr) {
    std::cerr << name << ": expected the name of a target, such as fuzz_plan\n";
    std::exit(2);
  }
  if (all_seeds().empty()) std::exit(2);
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  const std::vector<std::string>& seeds = all_seeds();
  fuzz::Random random(seed);
  random.discard(2);
  std::string next;
  if (size < 2 || fuzz::below(64, random) == 0) {
    next = seeds[fuzz::below(seeds.size(), random)];
  } else if (fuzz::below(3, random) == 0) {
    next = tested->edited(std::string(data, data + size), random);
  } else {
    return LLVMFuzzerMutate(data, size, most);
  }
  const std::size_t taken = std::min(next.size(), most);
  std::copy_n(next.data(), taken, data);
  return taken;
}

/// Inputs have at most 4 KiB, and none may cost more than this, with sanitizers. Memory has a limit of libFuzzer's.
constexpr double most_seconds = 10;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::clock_t start = std::clock();
  try {
    tested->run(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const scalewise::InvalidInput& error) {
    for (const char* c = error.what(); *c != '\0'; ++c) {
      if (static_cast<unsigned char>(*c) >= ' ' && *c != '\x7f') continue;
      std::cerr << "a control character in the message: " << error.what() << '\n';
      std::abort();
    }
  }
  const auto seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (seconds > most_seconds) {
    std::cerr << size << " bytes took " << seconds << " s of the processor\n";
    std::abort();
  }
  return 0;
}
