// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/libtorch/planned_module.hpp"

namespace scalewise::libtorch::detail {

/// A matrix with one direction per row, inputs along the columns, as most code bases store it.
inline at::Tensor rows_by_inputs(const at::Tensor& part, bool transposed) {
  return transposed ? part : part.t();
}

/// The share of a matrix that is not along its largest row: 0 for a matrix of rank one.
inline double beyond_rank_one(const at::Tensor& matrix) {
  const at::Tensor rows = matrix.to(at::kDouble);
  const double all = rows.square().sum().item<double>();
  if (!(all > 0)) return 0;
  const at::Tensor largest = rows.select(0, rows.square().sum(1).argmax().item<std::int64_t>());
  const at::Tensor along = rows.matmul(largest) / largest.norm();
  return 1 - along.square().sum().item<double>() / all;
}

/// The findings about a layer.
struct AttentionLayout {
  std::vector<std::string> problems;
  std::vector<std::string> unchecked;  // what could not be found out, and why
};

/// One of query, key and value, with its gradients at the first and at the last token.
struct AttentionPart {
  std::string tensor;
  std::string entry;
  at::Tensor first, last;

  /// Of the largest number at the first token.
  double size() const { return (first.abs().max)().item<double>(); }
};

/// By role; those without a gradient are missing.
inline std::map<std::string_view, AttentionPart> attention_parts(const PlannedModule& planned,
                                                                 const std::string& layer,
                                                                 const at::Tensor& output) {
  std::map<std::string_view, AttentionPart> parts;
  const at::Tensor direction = at::linspace(1, 2, output.size(2), output.options());
  for (std::size_t i = 0; i < planned.parameters.size(); ++i) {
    const dialect::OwnerTensor& tensor = planned.tensor(i);
    for (const dialect::OwnedPart& part : tensor.parts) {
      for (const std::string_view role : {"query", "key", "value"}) {
        if (part.entry != layer + std::string(role) || !planned.parameters[i].requires_grad())
          continue;
        const auto gradient = [&](std::int64_t token) {
          const at::Tensor seen = (output[0][token] * direction).sum();
          const at::Tensor found =
              torch::autograd::grad({seen}, {planned.parameters[i]}, {}, true, false, true)[0];
          return found.defined() ? rows_by_inputs(part_of(found, part), tensor.transposed) : found;
        };
        AttentionPart found{tensor.name, part.entry, gradient(0), gradient(output.size(1) - 1)};
        if (found.first.defined() && found.last.defined()) parts[role] = std::move(found);
      }
    }
  }
  return parts;
}

/// Whether the matrices that the plan takes for query, key and value of a layer are used as such, in the
/// model's own forward pass.
/// Equation: let y be the attention's output at a token and r any vector. The gradient of r·y by the query's
///           matrix is an outer product with that token's input: it has rank one, and those of key and value
///           have not, as they hear from all tokens. At the first token of a causal model it is zero by query
///           and key, since one key's probability is 1 whatever they are.
/// Shapes:   output (batch, tokens, width); the first sequence is used
/// Accuracy: of the squares of a float matrix of rank one, rounding leaves 2e-15 of its largest row; of
///           those in a wrong order at least 1e-4 (1600 layers of 2 to 8 heads); 1e-10 is judged, more where
///           numbers are shorter than float.
/// Differs:  a single head's query and key cannot be distinguished, nor key and value where attention is
///           not causal.
inline AttentionLayout attention_layout(const PlannedModule& planned, const std::string& layer,
                                        const at::Tensor& output) {
  constexpr double negligible = 1e-3;  // of the largest gradient, which is zero otherwise
  AttentionLayout found;
  const auto skip = [&](const std::string& why) {
    found.unchecked.push_back(layer + "query, key, value: " + why);
    return found;
  };
  if (output.dim() != 3 || output.size(1) < 3) {
    return skip("the attention's output is " + messages::sizes_text(output.sizes().vec()) +
                ", not (batch, three or more tokens, width)");
  }
  if (planned.named.plan.shape.heads < 2)
    return skip("query and key of a single head cannot be distinguished");
  if (!output.requires_grad()) return skip("the forward pass keeps no gradients");
  auto parts = attention_parts(planned, layer, output);
  if (parts.size() < 3) return skip("the attention's output does not depend on all of them");
  const AttentionPart &query = parts["query"], &key = parts["key"], &value = parts["value"];
  const double most = (std::max)({query.size(), key.size(), value.size()});
  if (!(most > 0)) return skip("their gradients are zero");
  if ((query.last.abs().max)().item<double>() <= 1e-6 * most) {
    return skip(
        "the query has no gradient at the last token: is the output (batch, tokens, width)?");
  }
  const auto blame = [&](const AttentionPart& part, const std::string& text) {
    found.problems.push_back(part.tensor + ": its rows of " + part.entry + " " + text);
  };
  const double least = negligible * most;
  if (query.size() > least && key.size() > least && value.size() > least) {
    static_cast<void>(skip("not causal, so that key and value cannot be distinguished"));
  } else {
    for (const AttentionPart* part : {&query, &key}) {
      if (part->size() > least) blame(*part, "are used as values");
    }
    if (value.size() <= least) blame(value, "are not used as values");
  }
  const bool is_short = at::elementSize(output.scalar_type()) < 4;
  if (beyond_rank_one(query.last) > (is_short ? 0.01 : 1e-10)) {
    blame(query, "are not used as queries alone");
  }
  return found;
}

}  // namespace scalewise::libtorch::detail
