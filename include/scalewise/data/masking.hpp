// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "scalewise/messages/error.hpp"
#include "scalewise/nn/batch.hpp"
#include "scalewise/numeric/random.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::data {

/// The noise of masked language modelling: some tokens are chosen, hidden or changed, and to be predicted.
/// Source:   Devlin et al. 2019 (arXiv:1810.04805), section 3.1, Task 1.
/// Units:    `fraction` of the tokens is chosen; of these, `masked` becomes the mask and `random` any other token;
///           the rest stays as it is
struct Masking {
  int mask = 0;    // id of the token that stands for a hidden one
  int tokens = 0;  // ids of text: [0, tokens)
  double fraction = 0.15;
  double masked = 0.8;
  double random = 0.1;
};

/// Makes a task of windows: to predict the chosen tokens from all others, on both sides.
/// Equation: targets_t = tokens_t where chosen, nn::no_target elsewhere
/// Shapes:   tokens and targets (B*T)
/// Accuracy: each token is chosen independently; where that chooses none, one that is drawn. Random tokens are equally
///           likely up to tokens / 2^64, and may be the same as before.
/// Throws:   InvalidInput for fractions out of range, windows without a token, and no ids of text.
template <class Scalar>
nn::Batch<Scalar> masking(nn::Batch<Scalar> windows, const Masking& noise,
                          numeric::RandomStream stream) {
  if (!(noise.fraction > 0 && noise.fraction < 1)) {
    throw InvalidInput("fraction", numeric::number_text(noise.fraction),
                       "a fraction between 0 and 1");
  }
  if (!(noise.masked >= 0 && noise.random >= 0 && noise.masked + noise.random <= 1)) {
    throw InvalidInput("masked + random", numeric::number_text(noise.masked + noise.random),
                       "fractions that add up to at most 1");
  }
  if (noise.tokens < 1) {
    throw InvalidInput("tokens", std::to_string(noise.tokens), "a positive number of ids");
  }
  if (windows.tokens.empty()) throw InvalidInput("windows", "none", "a token to mask");
  windows.targets.assign(windows.tokens.size(), nn::no_target);
  const auto choose = [&](std::size_t t) {
    windows.targets[t] = windows.tokens[t];
    const double what = stream.uniform();
    if (what < noise.masked) {
      windows.tokens[t] = noise.mask;
    } else if (what < noise.masked + noise.random) {
      const std::uint64_t id = stream.bits() % static_cast<std::uint64_t>(noise.tokens);
      windows.tokens[t] = static_cast<int>(id);
    }
  };
  bool any = false;
  for (std::size_t t = 0; t < windows.tokens.size(); ++t) {
    if (stream.uniform() >= noise.fraction) continue;
    choose(t);
    any = true;
  }
  if (!any) choose(stream.bits() % windows.tokens.size());
  return windows;
}

}  // namespace scalewise::data
