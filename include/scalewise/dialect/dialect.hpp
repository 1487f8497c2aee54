// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string_view>

#include "scalewise/plan/code_factors.hpp"

namespace scalewise::dialect {

/// The order of a matrix's axes; torch's Linear has outputs first.
/// Embeddings, position tables and heads have one row per token, position or class everywhere.
enum class MatrixLayout { out_in, in_out };

/// How the entries of one tensor lie in it, along the axis of outputs.
enum class Packing {
  blocks,       // one after the other
  key_groups,   // for each key head: its query heads, the key, the value
  alternating,  // a row of each in turn
  heads,        // key_groups where every query has a key of its own, blocks where several share one
  after_two,    // after two rows that no token uses
  alias,        // another name of a tensor: absent, or the same storage
  image,        // whole, with axes of batches, or of colours and sides of a patch
};

/// A line of a dialect: what a code base calls a tensor, and the entries of a plan in it.
/// {} stands for the layer, from 0, {1} for the layer, from 1, and so on. A name without it whose entries
/// have it is a slab of all layers along axis 0. In a name whose entries do not have it, the number is that of a
/// layer after the last one.
/// Entries are separated by spaces. Those that a shape does not have take no place, so that "mlp_gate
/// mlp_up" serves gated and other MLPs; a line is void for a shape that has an entry after "!". A line
/// without entries is a buffer, and "-" a tensor that no plan has.
struct TensorPattern {
  std::string_view name;
  std::string_view entries;
  Packing packing = Packing::blocks;
};

/// How a code base names and stores the tensors of a transformer. Where several lines give the same
/// entry, a model has the tensor of one of them, and the first is the usual one.
/// `prefix` is one that names may lack, such as "transformer." where a model has no head. `code` is what the
/// code multiplies as long as no configuration changes it; `note` says what it computes that no plan contains.
struct Dialect {
  std::string_view id;
  std::string_view title;
  std::string_view prefix;
  MatrixLayout layout = MatrixLayout::out_in;
  std::span<const TensorPattern> patterns;
  std::string_view note = {};
  plan::CodeFactors code = {};
};

}  // namespace scalewise::dialect
