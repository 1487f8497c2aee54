// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/messages/words.hpp"

namespace scalewise::propagation {

/// How a formula of the source is read.
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), Tables 2 and 15 to 20.
enum class Reading {
  paper_simple,  // Table 2: long sequences, polynomials in the correlation
  paper_full,    // Tables 15 to 20, as printed
  corrected,     // with the paper's errors removed and what it leaves out added
};

inline constexpr messages::Spelling<Reading, 3> reading_words{
    {{Reading::paper_simple, "paper-simple"},
     {Reading::paper_full, "paper-full"},
     {Reading::corrected, "corrected"}}};

}  // namespace scalewise::propagation
