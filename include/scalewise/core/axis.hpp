// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace scalewise {

/// Everything that a rule may scale with. The first block are sizes of the model and the run, the
/// second are sizes of one matrix, the third vary by layer or belong to one rule's own parameters.
enum class Axis {
  number,  // an integer under a root, such as the 2 of (2L)^(1/4)

  mlp_ratio,  // M = d_ff / d_model
  d_ff,
  d_model,
  heads,
  kv_heads,
  head_dim,
  depth,  // layers of the stack that the tensor belongs to
  encoder_depth,
  decoder_depth,
  vocab,
  patch_dim,
  classes,
  context,
  iterations,

  fan_in,
  fan_out,
  fan_total,  // fan_in + fan_out

  layer,              // from 1
  token_correlation,  // at the attention input of the layer
  keep_probability,   // 1 - dropout
  skip_power,         // 1 - beta^2, beta the residual branch multiplier
};

inline constexpr std::size_t axis_count = static_cast<std::size_t>(Axis::skip_power) + 1;

/// How an axis is written, and what it means.
struct AxisName {
  std::string_view text;
  std::string_view latex;
  std::string_view ratio_text;  // target over base
  std::string_view ratio_latex;
  std::string_view meaning;
};

inline constexpr std::array<AxisName, axis_count> axis_names{{
    {"", "", "", "", "an integer"},
    {"M", "M", "m_M", "m_M", "d_ff / d_model"},
    {"F", "F", "m_F", "m_F", "d_ff"},
    {"n", "n", "m_N", "m_N", "d_model"},
    {"H", "H", "m_H", "m_H", "heads"},
    {"K", "K", "m_K", "m_K", "kv_heads"},
    {"C", "C", "m_C", "m_C", "head_dim"},
    {"L", "L", "m_L", "m_L", "depth"},
    {"N_e", "N_e", "m_Ne", "m_{N_e}", "encoder_depth"},
    {"N_d", "N_d", "m_Nd", "m_{N_d}", "decoder depth"},
    {"V", "V", "m_V", "m_V", "vocab"},
    {"n_patch", "n_{\\mathrm{patch}}", "m_patch", "m_{\\mathrm{patch}}", "patch_dim"},
    {"n_out", "n_{\\mathrm{out}}", "m_out", "m_{\\mathrm{out}}", "classes, or vocab"},
    {"T", "T", "m_T", "m_T", "context"},
    {"D", "D", "m_D", "m_D", "iterations"},
    {"fi", "f_i", "m_fi", "m_{f_i}", "fan-in of the matrix"},
    {"fo", "f_o", "m_fo", "m_{f_o}", "fan-out of the matrix"},
    {"(fi+fo)", "(f_i+f_o)", "m_fi+fo", "m_{f_i+f_o}", "fan-in plus fan-out of the matrix"},
    {"l", "\\ell", "m_l", "m_\\ell", "layer, from 1"},
    {"r", "r", "m_r", "m_r", "token correlation at the layer's attention input"},
    {"(1-p)", "(1-p)", "m_1-p", "m_{1-p}", "1 - dropout"},
    {"(1-β²)", "(1-\\beta^2)", "m_1-β²", "m_{1-\\beta^2}", "1 - (residual branch multiplier)²"},
}};

constexpr const AxisName& name_of(Axis axis) { return axis_names[static_cast<std::size_t>(axis)]; }

}  // namespace scalewise
