// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace scalewise::inline scaling {

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

/// How an axis is written, and what it means.
struct AxisName {
  Axis axis;
  std::string_view text;
  std::string_view latex;
  std::string_view ratio_text;  // target over base
  std::string_view ratio_latex;
  std::string_view meaning;
};

inline constexpr std::array<AxisName, 22> axis_table{{
    {Axis::number, "", "", "", "", "an integer"},
    {Axis::mlp_ratio, "M", "M", "m_M", "m_M", "d_ff / d_model"},
    {Axis::d_ff, "F", "F", "m_F", "m_F", "d_ff"},
    {Axis::d_model, "n", "n", "m_N", "m_N", "d_model"},
    {Axis::heads, "H", "H", "m_H", "m_H", "heads"},
    {Axis::kv_heads, "K", "K", "m_K", "m_K", "kv_heads"},
    {Axis::head_dim, "C", "C", "m_C", "m_C", "head_dim"},
    {Axis::depth, "L", "L", "m_L", "m_L", "depth"},
    {Axis::encoder_depth, "N_e", "N_e", "m_Ne", "m_{N_e}", "encoder_depth"},
    {Axis::decoder_depth, "N_d", "N_d", "m_Nd", "m_{N_d}", "decoder depth"},
    {Axis::vocab, "V", "V", "m_V", "m_V", "vocab"},
    {Axis::patch_dim, "n_patch", "n_{\\mathrm{patch}}", "m_patch", "m_{\\mathrm{patch}}",
     "patch_dim"},
    {Axis::classes, "n_out", "n_{\\mathrm{out}}", "m_out", "m_{\\mathrm{out}}",
     "classes, or vocab"},
    {Axis::context, "T", "T", "m_T", "m_T", "context"},
    {Axis::iterations, "D", "D", "m_D", "m_D", "iterations"},
    {Axis::fan_in, "fi", "f_i", "m_fi", "m_{f_i}", "fan-in of the matrix"},
    {Axis::fan_out, "fo", "f_o", "m_fo", "m_{f_o}", "fan-out of the matrix"},
    {Axis::fan_total, "(fi+fo)", "(f_i+f_o)", "m_fi+fo", "m_{f_i+f_o}",
     "fan-in plus fan-out of the matrix"},
    {Axis::layer, "l", "\\ell", "m_l", "m_\\ell", "layer, from 1"},
    {Axis::token_correlation, "r", "r", "m_r", "m_r",
     "token correlation at the layer's attention input"},
    {Axis::keep_probability, "(1-p)", "(1-p)", "m_1-p", "m_{1-p}", "1 - dropout"},
    {Axis::skip_power, "(1-β²)", "(1-\\beta^2)", "m_1-β²", "m_{1-\\beta^2}",
     "1 - (residual branch multiplier)²"},
}};

inline constexpr std::size_t axis_count = axis_table.size();

static_assert([] {
  for (std::size_t a = 0; a < axis_count; ++a) {
    if (axis_table[a].axis != static_cast<Axis>(a)) return false;
  }
  return true;
}());  // the table has the order of the enumeration

constexpr const AxisName& name_of(Axis axis) { return axis_table[static_cast<std::size_t>(axis)]; }

}  // namespace scalewise::inline scaling
