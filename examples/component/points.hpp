// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A transformer's components, each simulated at one random point of Table 22 of Kedia et al. 2024
// (arXiv:2403.09635) and compared with its formulas.
#pragma once

#include <vector>

#include "component/sample.hpp"
#include "scalewise/theory/reading.hpp"

namespace scalewise::component {

std::vector<Errors> linear_point(Stream& stream);
std::vector<Errors> relu_point(Stream& stream);
std::vector<Errors> gelu_point(Stream& stream);
/// Readings: paper_full and corrected.
std::vector<Errors> norm_point(Stream& stream);
std::vector<Errors> dropout_point(Stream& stream);
/// Softmax of columns, whose gradients have correlations up to `largest`.
std::vector<Errors> softmax_point(Stream& stream, double largest,
                                  const std::vector<theory::Reading>& readings);
/// One head, without values, of given d² sq sk and gradient correlation: paper_full and corrected.
std::vector<Errors> attention_point(Stream& stream, double scores, double correlation);

}  // namespace scalewise::component
