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

/// What the matrices that the plan takes for query, key and value of a layer are not, in the model's own
/// forward pass.
/// Equation: let y be the attention's output at a token and r any vector. The gradient of r·y by the query's
///           matrix is an outer product with that token's input: it has rank one, and those of key and value
///           have not, as they hear from all tokens. At the first token of a causal model it is zero by query
///           and key, since one key's probability is 1 whatever they are.
/// Shapes:   output (batch, tokens, width); the first sequence is used
/// Accuracy: of the squares of a float matrix of rank one, rounding leaves 2e-15 beside its largest row; of
///           those in a wrong order at least 1e-4 (1600 layers of 2 to 8 heads); 1e-10 is judged, more where
///           numbers are shorter than float.
/// Differs:  one head cannot be told from its key, and tensors that begin at zero cannot be told at all.
inline std::vector<std::string> layout_problems(const PlannedModule& planned,
                                                const std::string& layer,
                                                const at::Tensor& output) {
  constexpr double negligible = 1e-3;  // beside the largest gradient, which is zero else
  std::vector<std::string> problems;
  if (output.dim() != 3 || output.size(1) < 3 || !output.requires_grad()) return problems;
  struct AttentionPart {
    std::string name;  // of its tensor
    std::string entry;
    at::Tensor first, last;  // gradients, at the first and at the last token
  };
  std::map<std::string_view, AttentionPart> parts;
  const at::Tensor direction = at::linspace(1, 2, output.size(2), output.options());
  for (std::size_t i = 0; i < planned.parameters.size(); ++i) {
    const dialect::OwnerTensor& tensor = planned.tensor(i);
    for (const dialect::OwnedPart& part : tensor.parts) {
      for (const std::string_view role : {"query", "key", "value"}) {
        if (part.entry != layer + std::string(role)) continue;
        const auto gradient = [&](std::int64_t token) {
          const at::Tensor seen = (output[0][token] * direction).sum();
          const at::Tensor found =
              torch::autograd::grad({seen}, {planned.parameters[i]}, {}, true, false, true)[0];
          if (!found.defined()) return at::Tensor();
          return rows_by_inputs(part_of(found, part), tensor.transposed);
        };
        parts[role] = {tensor.name, part.entry, gradient(0), gradient(output.size(1) - 1)};
      }
    }
  }
  if (parts.size() < 3 || planned.named.plan.shape.heads < 2) return problems;
  for (const auto& [role, part] : parts) {
    if (!part.first.defined() || !part.last.defined()) return problems;
  }
  const auto size = [](const at::Tensor& t) { return t.abs().max().item<double>(); };
  const double most = (std::max)(
      {size(parts["query"].first), size(parts["key"].first), size(parts["value"].first)});
  const bool causal = (std::min)({size(parts["query"].first), size(parts["key"].first),
                                  size(parts["value"].first)}) <= negligible * most;
  const auto blame = [&](const AttentionPart& part, const std::string& text) {
    problems.push_back(part.name + ": its rows of " + part.entry + " " + text);
  };
  if (causal && most > 0) {
    for (const char* role : {"query", "key"}) {
      if (size(parts[role].first) > negligible * most) blame(parts[role], "are used as values");
    }
    if (size(parts["value"].first) <= negligible * most) {
      blame(parts["value"], "are not used as values");
    }
  }
  const bool is_short = at::elementSize(output.scalar_type()) < 4;
  if (beyond_rank_one(parts["query"].last) > (is_short ? 0.01 : 1e-10)) {
    blame(parts["query"], "are not used as queries alone");
  }
  return problems;
}

}  // namespace scalewise::libtorch::detail
