// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "instances/transformer.hpp"

namespace scalewise::nn {

template class Transformer<double>;
template class PlannedOptimizer<double>;
template double gradient_norm<double>(const Parameters<double>&);
template void normalize_matrices<double>(Parameters<double>&, const Plan&);
template void initialize<double>(Parameters<double>&, const Plan&, std::uint64_t,
                                 const std::optional<BaseDeviation>&);

}  // namespace scalewise::nn
