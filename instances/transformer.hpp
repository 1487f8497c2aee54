// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The reference transformer for our tests and programs: it is compiled once, in library
// instances_models, or instances_models_serial where it is to run without OpenMP.
#pragma once

#include "scalewise/nn/initialize.hpp"
#include "scalewise/nn/normalize_matrices.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "scalewise/nn/transformer.hpp"

namespace scalewise::nn {

extern template class Transformer<float>;
extern template class PlannedOptimizer<float>;
extern template double gradient_norm<float>(const Parameters<float>&);
extern template void normalize_matrices<float>(Parameters<float>&, const Plan&);
extern template void initialize<float>(Parameters<float>&, const Plan&, std::uint64_t,
                                       const std::optional<BaseDeviation>&);

extern template class Transformer<double>;
extern template class PlannedOptimizer<double>;
extern template double gradient_norm<double>(const Parameters<double>&);
extern template void normalize_matrices<double>(Parameters<double>&, const Plan&);
extern template void initialize<double>(Parameters<double>&, const Plan&, std::uint64_t,
                                        const std::optional<BaseDeviation>&);

}  // namespace scalewise::nn
