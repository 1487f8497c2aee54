// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>

#include "support/catch.hpp"

namespace scalewise::test {

/// Calls f(bytes) with each single bit of `good` flipped.
template <class F>
void for_each_flip(const std::string& good, const F& f) {
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
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
