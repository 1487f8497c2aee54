// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace scalewise::io {

/// A type of entries in GGUF: `block` neighbouring entries take `bytes` together.
struct GgmlType {
  std::uint32_t id = 0;
  std::string_view name;
  std::int64_t block = 1;
  std::int64_t bytes = 0;
};

/// Source:   ggml, enum ggml_type in include/ggml.h and the blocks in src/ggml-common.h. 4, 5, 31 to
///           33 and 36 to 38 were removed.
/// Differs:  Q8_1 is as in ggml-common.h; gguf-py says 40 bytes, which it had before 2024.
inline constexpr std::array<GgmlType, 35> ggml_types{{
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},
}};

/// The type with a number; null where there is none.
constexpr const GgmlType* ggml_type(std::uint32_t id) {
  for (const GgmlType& type : ggml_types) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

}  // namespace scalewise::io
