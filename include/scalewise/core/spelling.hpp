// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/core/error.hpp"
#include "scalewise/core/nearest.hpp"
#include "scalewise/core/policy.hpp"
#include "scalewise/core/row.hpp"
#include "scalewise/core/shape.hpp"

namespace scalewise {

/// The words for the values of an enumeration, in files and on command lines.
template <class Enum, std::size_t size>
using Spelling = std::array<std::pair<Enum, std::string_view>, size>;

inline constexpr Spelling<Optimizer, 2> optimizer_words{
    {{Optimizer::sgd, "sgd"}, {Optimizer::adamw, "adamw"}}};
inline constexpr Spelling<DecayForm, 3> decay_words{{{DecayForm::coupled, "coupled"},
                                                     {DecayForm::independent, "independent"},
                                                     {DecayForm::l2, "l2"}}};
inline constexpr Spelling<Reference, 2> reference_words{
    {{Reference::absolute, "absolute"}, {Reference::base, "base"}}};
inline constexpr Spelling<Distribution, 4> distribution_words{
    {{Distribution::normal, "normal"},
     {Distribution::truncated_normal, "truncated_normal"},
     {Distribution::uniform, "uniform"},
     {Distribution::constant, "constant"}}};
inline constexpr Spelling<Stack, 4> stack_words{{{Stack::none, "none"},
                                                 {Stack::main, "main"},
                                                 {Stack::encoder, "encoder"},
                                                 {Stack::decoder, "decoder"}}};
inline constexpr Spelling<Input, 2> input_words{{{Input::token, "token"}, {Input::patch, "patch"}}};
inline constexpr Spelling<Blocks, 3> blocks_words{{{Blocks::residual, "residual"},
                                                   {Blocks::normalized, "normalized"},
                                                   {Blocks::shallow_encoder, "shallow_encoder"}}};
inline constexpr Spelling<ResidualGain, 3> residual_gain_words{{{ResidualGain::none, "none"},
                                                                {ResidualGain::channel, "channel"},
                                                                {ResidualGain::scalar, "scalar"}}};
inline constexpr Spelling<MlpActivation, 3> activation_words{
    {{MlpActivation::relu, "relu"}, {MlpActivation::gelu, "gelu"}, {MlpActivation::silu, "silu"}}};

/// The word of a value. Requires: every value of the enumeration is in the spelling.
template <class Enum, std::size_t size>
constexpr std::string_view word(const Spelling<Enum, size>& spelling, Enum value) {
  for (const auto& [known, text] : spelling) {
    if (known == value) return text;
  }
  return "";
}

/// The value of a word. Throws: InvalidInput naming the field and the closest word.
template <class Enum, std::size_t size>
Enum value_of(const Spelling<Enum, size>& spelling, const std::string& field,
              std::string_view text) {
  Nearest known(text);
  std::string list;
  for (std::size_t i = 0; i < size; ++i) {
    const auto& [value, name] = spelling[i];
    if (name == text) return value;
    known.offer(name);
    list += (i == 0 ? "" : i + 1 == size ? " or " : ", ") + std::string(name);
  }
  throw InvalidInput(field, printable(text), list, known.hint());
}

}  // namespace scalewise
