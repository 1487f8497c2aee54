// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "scalewise/messages/error.hpp"
#include "scalewise/nn/parameters.hpp"
#include "scalewise/numeric/parallel.hpp"

namespace scalewise::nn {

/// Whether a matrix of the normalized transformer has d_model along its rows.
/// Throws:   InvalidInput for a matrix that this transformer lacks.
inline bool unit_rows(const Entry& entry) {
  switch (entry.group) {
    case Group::token_embedding:
    case Group::attention_output:
    case Group::mlp_down:
      return true;
    case Group::query:
    case Group::key:
    case Group::value:
    case Group::mlp_up:
    case Group::mlp_gate:
    case Group::head:
      return false;
    default:
      throw InvalidInput(entry.name, std::string(to_string(entry.group)), "no such matrix",
                         "the normalized transformer has none");
  }
}

namespace detail {

/// Scales every row to unit length.
template <class Scalar>
void normalize_rows(View<Scalar> w) {
  numeric::parallel_rows(w.rows(), [&](Eigen::Index r) { w.row(r).normalize(); });
}

/// Scales every column to unit length; one of zeros stays.
template <class Scalar>
void normalize_columns(View<Scalar> w) {
  numeric::parallel_tiles(w.cols(), 64, [&](Eigen::Index begin, Eigen::Index count) {
    Eigen::Array<Scalar, 1, 64> square;
    square.head(count).setZero();
    for (Eigen::Index r = 0; r < w.rows(); ++r) {
      square.head(count) += w.row(r).segment(begin, count).array().square();
    }
    square.head(count) = (square.head(count) > 0).select(1 / square.head(count).sqrt(), Scalar(1));
    for (Eigen::Index r = 0; r < w.rows(); ++r) {
      w.row(r).segment(begin, count).array() *= square.head(count);
    }
  });
}

}  // namespace detail

/// Scales the matrices of a normalized transformer to unit length along d_model: rows of the
/// embedding, of attention output and of MLP down, columns of the others. Before every step.
/// Source:   Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2), section 2.
/// Throws:   InvalidInput for a plan of other tensors than the parameters', or with a matrix that
///           this transformer lacks.
template <class Scalar>
void normalize_matrices(Parameters<Scalar>& parameters, const Plan& plan) {
  if (plan.shape.blocks != Blocks::normalized) return;
  parameters.require_plan(plan);
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    if (!architecture::is_matrix(plan.entries[i].group)) continue;
    if (unit_rows(plan.entries[i])) {
      detail::normalize_rows<Scalar>(parameters.value(i));
    } else {
      detail::normalize_columns<Scalar>(parameters.value(i));
    }
  }
}

}  // namespace scalewise::nn
