// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "scalewise/architecture/extra.hpp"
#include "scalewise/architecture/shape.hpp"

namespace scalewise {

/// A model that two of its sizes describe.
struct DescribedModel {
  Shape shape;  // Blocks::listed
  Shape base;
  std::vector<Extra> tensors;        // all of the target, with names of its own
  std::vector<std::string> reasons;  // one per tensor: why it has its group
  std::vector<std::string> sizes;    // "d_model 64 to 256: what most inputs and outputs grow with"
  std::vector<std::string> ties;     // "lm_head.weight is model.embed_tokens.weight"
  std::vector<std::string> notes = {};  // what may have to be said of it
};

}  // namespace scalewise
