// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A transformer's components, each simulated at one random point of Table 22 of Kedia et al. 2024
// (arXiv:2403.09635) and compared with its formulas.
#pragma once

#include <vector>

#include "lab/programs/component/sample.hpp"
#include "scalewise/propagation/reading.hpp"

namespace scalewise::component {

std::vector<Errors> linear_point(numeric::RandomStream& stream);
std::vector<Errors> relu_point(numeric::RandomStream& stream);
std::vector<Errors> gelu_point(numeric::RandomStream& stream);
/// Readings: paper_full and corrected.
std::vector<Errors> norm_point(numeric::RandomStream& stream);
std::vector<Errors> dropout_point(numeric::RandomStream& stream);
/// Softmax of columns, whose gradients have correlations up to `largest`.
std::vector<Errors> softmax_point(numeric::RandomStream& stream, double largest,
                                  const std::vector<propagation::Reading>& readings);
/// One head, without values, of given d² sq sk and gradient correlation: paper_full and corrected.
std::vector<Errors> attention_point(numeric::RandomStream& stream, double scores,
                                    double correlation);

}  // namespace scalewise::component
