// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "frame/processor_level.hpp"

namespace scalewise::frame {

/// OpenBLAS's name for kernels with the widest vectors that the processor has: it takes one that is newer than
/// itself for an old one. Empty where they are no wider than all x86-64 processors have.
inline std::string widest_openblas_kernels() {
  switch (processor_level()) {
    case 4:
      return "SkylakeX";
    case 3:
      return "Haswell";
    default:
      return {};
  }
}

}  // namespace scalewise::frame
