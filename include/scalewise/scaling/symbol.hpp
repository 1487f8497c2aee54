// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>

namespace scalewise {

/// A letter of a formula, and what it stands for. A rule with a letter of its own defines it as a
/// constant and gives its values in own_values():
///
///     static constexpr Symbol tokens_per_step{.text = "B", .latex = "B",
///                                             .ratio_text = "m_B", .ratio_latex = "m_B",
///                                             .meaning = "tokens per step"};
///
/// Formulas refer to it. Each text is of one symbol alone: a rule's own has none of the texts of known_symbols.
struct Symbol {
  const char* text;
  const char* latex;
  const char* ratio_text;  // target over base
  const char* ratio_latex;
  const char* meaning;
  int place = 100;      // in a product, from the left; those of one place go by their text
  bool varies = false;  // its value differs from one entry of a plan to the next
};

/// The symbols of all rules. Those of one rule alone stand with that rule. Scalings by the papers' letters, such as `n`
/// and `m_N`, are at the end of scaling.hpp.

namespace symbols {

/// Under a root, such as the 2 of (2L)^(1/4); a factor has its value.
inline constexpr Symbol integer{"", "", "", "", "an integer", 0};

// Sizes of the model and the run.
inline constexpr Symbol mlp_ratio{"M", "M", "m_M", "m_M", "d_ff / d_model", 1};
inline constexpr Symbol d_ff{"F", "F", "m_F", "m_F", "d_ff", 2};
inline constexpr Symbol expert_ff{"F_e", "F_e", "m_Fe", "m_{F_e}", "expert_ff", 3};
inline constexpr Symbol d_model{"n", "n", "m_N", "m_N", "d_model", 4};
inline constexpr Symbol heads{"H", "H", "m_H", "m_H", "heads", 5};
inline constexpr Symbol kv_heads{"K", "K", "m_K", "m_K", "kv_heads", 6};
inline constexpr Symbol experts{"E", "E", "m_E", "m_E", "experts", 7};
inline constexpr Symbol head_dim{"C", "C", "m_C", "m_C", "head_dim", 8};
/// Layers of the stack that the tensor belongs to.
inline constexpr Symbol depth{"L", "L", "m_L", "m_L", "depth", 9};
inline constexpr Symbol encoder_depth{"N_e", "N_e", "m_Ne", "m_{N_e}", "encoder_depth", 10};
inline constexpr Symbol decoder_depth{"N_d", "N_d", "m_Nd", "m_{N_d}", "decoder depth", 11};
inline constexpr Symbol vocab{"V", "V", "m_V", "m_V", "vocab", 12};
inline constexpr Symbol patch_dim{
    "n_patch", "n_{\\mathrm{patch}}", "m_patch", "m_{\\mathrm{patch}}", "patch_dim", 13};
inline constexpr Symbol classes{
    "n_out", "n_{\\mathrm{out}}", "m_out", "m_{\\mathrm{out}}", "classes, or vocab", 14};
inline constexpr Symbol context{"T", "T", "m_T", "m_T", "context", 15};
inline constexpr Symbol iterations{"D", "D", "m_D", "m_D", "iterations", 16};

// Sizes of one matrix, and its layer.
inline constexpr Symbol fan_in{"fi", "f_i", "m_fi", "m_{f_i}", "fan-in of the matrix", 17};
inline constexpr Symbol fan_out{"fo", "f_o", "m_fo", "m_{f_o}", "fan-out of the matrix", 18};
inline constexpr Symbol fan_total{.text = "(fi+fo)",
                                  .latex = "(f_i+f_o)",
                                  .ratio_text = "m_fi+fo",
                                  .ratio_latex = "m_{f_i+f_o}",
                                  .meaning = "fan-in plus fan-out of the matrix",
                                  .place = 19,
                                  .varies = true};
inline constexpr Symbol layer{.text = "l",
                              .latex = "\\ell",
                              .ratio_text = "m_l",
                              .ratio_latex = "m_\\ell",
                              .meaning = "layer, from 1",
                              .place = 20,
                              .varies = true};

}  // namespace symbols

namespace scaling {

/// The symbols of all rules, in the order of their places.
inline constexpr std::array known_symbols{
    &symbols::mlp_ratio, &symbols::d_ff,          &symbols::expert_ff,     &symbols::d_model,
    &symbols::heads,     &symbols::kv_heads,      &symbols::experts,       &symbols::head_dim,
    &symbols::depth,     &symbols::encoder_depth, &symbols::decoder_depth, &symbols::vocab,
    &symbols::patch_dim, &symbols::classes,       &symbols::context,       &symbols::iterations,
    &symbols::fan_in,    &symbols::fan_out,       &symbols::fan_total,     &symbols::layer};

}  // namespace scaling

}  // namespace scalewise
