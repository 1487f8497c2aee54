// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/architecture/tensor.hpp"
#include "scalewise/dialect/pattern.hpp"

namespace scalewise::dialect {

/// The name of an entry with {} for the number of the layer, however a dialect writes it.
inline std::string without_layer(std::string_view entry) {
  const architecture::TensorName name = architecture::tensor_name(detail::filled(entry, 0));
  if (name.layer < 0) return std::string(entry);
  return scalewise::detail::layer_name(name.stack, "{}.") + name.part;
}

/// Names of the entries that a plan of some shape has, with {} for the number of the layer.
inline const std::set<std::string, std::less<>>& known_entries() {
  static const std::set<std::string, std::less<>> known = [] {
    Shape most;
    most.d_model = most.heads = most.vocab = most.context = most.patch_dim = most.classes = 1;
    most.depth = most.segments = most.relative_buckets = 1;
    most.gated_mlp = most.embedding_norm = most.class_token = true;
    most.tied_head = false;
    most.head_bias = true;
    most.qk_norm = QkNorm::head;
    most.residual_gain = ResidualGain::channel;
    std::set<std::string, std::less<>> names;
    for (const Input input : {Input::token, Input::patch}) {
      for (const long encoder_depth : {0, 1}) {
        for (const Blocks blocks : {Blocks::residual, Blocks::normalized}) {
          Shape shape = most;
          shape.input = input;
          shape.encoder_depth = encoder_depth;
          shape.blocks = blocks;
          shape = resolved(shape);
          architecture::for_each_tensor(shape, shape, [&](const Tensor& tensor) {
            names.insert(without_layer(tensor.name));
          });
        }
      }
    }
    return names;
  }();
  return known;
}

}  // namespace scalewise::dialect
