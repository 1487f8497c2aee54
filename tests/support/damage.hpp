// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>

#include "support/catch.hpp"
#include "support/sanitized.hpp"

namespace scalewise::test {

/// How many bits of each byte for_each_flip() flips, one at a time. Under a sanitizer a single one:
/// the first of the first byte, the second of the second and so on.
inline constexpr unsigned flips_per_byte = sanitized ? 1 : 8;

/// Calls f(bytes) with one bit of `good` flipped, flips_per_byte times for each byte.
template <class F>
void for_each_flip(const std::string& good, const F& f) {
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (unsigned flip = 0; flip < flips_per_byte; ++flip) {
      const auto bit = static_cast<unsigned>(at + flip) % 8;
      INFO("bit " << bit << " of byte " << at << " flipped");
      std::string bad = good;
      bad[at] = static_cast<char>(static_cast<unsigned char>(bad[at]) ^ (1U << bit));
      f(bad);
    }
  }
}

/// Calls f(bytes) with every beginning of `good` but the whole.
template <class F>
void for_each_cut(const std::string& good, const F& f) {
  for (std::size_t size = 0; size < good.size(); ++size) {
    INFO("cut to " << size << " bytes");
    f(good.substr(0, size));
  }
}

}  // namespace scalewise::test
