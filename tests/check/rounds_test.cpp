// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/rounds.hpp"

#include <vector>

#include "support/catch.hpp"

using namespace scalewise::check;

TEST_CASE("Narrow models get more seeds, and every round twice as many") {
  using Seeds = std::vector<long>;
  // 2^(3/2) = 2.83, 4^(3/2) = 8, 8^(3/2) = 22.6, of which 16 are taken.
  CHECK(seeds_per_size({32, 64, 128, 256}, 0, false) == Seeds{16, 8, 3, 1});
  CHECK(seeds_per_size({32, 64, 128, 256}, 2, false) == Seeds{64, 32, 12, 4});
  // 2 √2 = 2.83, 2 √4 = 4, 2 √8 = 5.66.
  CHECK(seeds_per_size({4, 8, 16, 32}, 0, true) == Seeds{6, 4, 3, 2});
  CHECK(seeds_per_size({4, 64, 256}, 1, true) == Seeds{16, 8, 4});
  double spent = 0;
  for (int round = 0; round < 50; ++round) spent += error_share(round);
  CHECK(spent <= 1);
  CHECK(error_share(0) == 0.5);
}

TEST_CASE("A size twice as large is added where a verdict lacks one") {
  using Seeds = std::vector<long>;
  Rounds rounds({32, 64, 128, 256}, false);
  CHECK(rounds.sizes() == Seeds{32, 64, 128, 256, 512});
  CHECK(rounds.seeds() == Seeds{16, 8, 3, 1, 0});
  CHECK(rounds.share_of_errors() == 0.5);
  rounds.next(false);
  CHECK(rounds.seeds() == Seeds{32, 16, 6, 2, 0});
  rounds.next(true);  // 2^(3/2) = 2.83, of the fourth times
  CHECK(rounds.seeds() == Seeds{64, 64, 32, 12, 4});
  CHECK(rounds.share_of_errors() == 0.125);
  rounds.next(false);
  CHECK(rounds.seeds().back() == 8);
}
