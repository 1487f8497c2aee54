// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Set-ups of a coordinate check, drawn at random from a stated space, so that error rates are those
// of a population and not of a list.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/experiment.hpp"
#include "scalewise/check/fault.hpp"
#include "train/data.hpp"

namespace scalewise::verdicts {

/// The mistake in a set-up.
enum class Mistake {
  none,
  gross,  // an ingredient of the rule is missing or applied twice, or another rule was trained
  slight,  // one exponent is off by 0.05, 0.1 or 0.2: of a rate, a standard deviation or a multiplier
  one_tensor,  // the rate or standard deviation of one tensor is off by 1/2 or 1
};

/// Which models are drawn.
enum class Space { all, muon, experts };

inline constexpr messages::Spelling<Space, 3> space_words{
    {{Space::all, "all"}, {Space::muon, "muon"}, {Space::experts, "experts"}}};

/// Whether an ingredient is a multiplier, whose exponent a pass rules out or lists.
bool is_multiplier(check::Ingredient ingredient);

/// A tensor of one layer whose rate or standard deviation goes by another power of the size.
struct TensorMistake {
  std::string tensor;
  bool of_rate = true;
  double power = 0;  // times (size / smallest size)^power
};

/// One set-up: what is judged, and what was trained.
struct Setup {
  std::string name;  // all that was drawn
  experiment::Experiment experiment;
  std::optional<check::Fault> fault;
  std::string trained_as;
  std::optional<TensorMistake> one_tensor = {};
};

/// A set-up by its number. The same number is the same set-up on every machine.
/// The space: rules that claim to transfer over width (or, in a fifth, over depth), with their
/// parameters; the optimizers they state; norm, placement, activation, gate, biases, tied head,
/// grouped queries, rotary positions; heads that grow in number or in size; base the smallest or
/// another; depth 1 to 4; sequences, batches and steps; a rate within a factor of 2 of the usual.
/// Without norms only along the width, since along the depth such models are not judged, and only
/// without gates, which square signals in each layer until they overflow, and without shared keys,
/// whose changes then grow with the width. In the space `muon` maximal update
/// under a Muon, in `experts` a mixture of experts under the tables of MSSP and of Jiang et al., along the width, and the
/// rest alike.
Setup draw(Mistake mistake, std::uint64_t number, Space space = Space::all);

/// The correct set-ups that tests/cli/coordinate_cli.py runs with one group of seeds.
std::vector<Setup> tested();

/// The plans of all sizes as the rule has them.
std::vector<check::Member> planned(const Setup& setup, const train::Data& data);

/// The plans that are trained.
std::vector<check::Member> trained(const Setup& setup, const train::Data& data);

}  // namespace scalewise::verdicts
