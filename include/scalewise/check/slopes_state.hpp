// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/group.hpp"
#include "scalewise/check/moving.hpp"

namespace scalewise::check {

/// Properties of the model that a prediction needs besides the rule's table.
struct Assumptions {
  Band alignment{0.5, 1};  // α and ν of a trained matrix: from none to full
  bool norms = true;       // false: the model has none, and gains and biases of norms do nothing
  bool post_norm = false;
  bool sharp_softmax = false;  // logits begin so large that those of larger sizes leave it flatter
  bool large_steps = false;  // the first step changes the final hidden state by more than its size
  bool per_logits = false;   // gradients are over that of the logits, which was recorded
  double backward = 0;       // power by which gradients below the head are off
};

/// A slope per group: of the entries of its tensors, or of what moves them.
using GroupSlopes = std::array<Band, architecture::group_count>;

/// Slopes of a model at one moment of training.
struct State {
  std::vector<std::pair<std::string_view, Moving>> activations;  // by place
  std::array<std::optional<Band>, architecture::group_count>
      gradients;  // none: nothing is predicted
  Band logit_gradient = 0;
  bool gradients_have_limit = true;  // false: they are not to be judged
  // Activations, by place, whose mean square over initializations is a power of the size at every size.
  std::vector<std::string_view> exact_starts;

  void set_gradient(Group group, const Band& band) {
    gradients[static_cast<std::size_t>(group)] = band;
  }
};

}  // namespace scalewise::check
