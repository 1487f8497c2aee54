// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "instances/transformer.hpp"

namespace scalewise::nn {

template class Transformer<float>;
template class PlannedOptimizer<float>;
template double gradient_norm<float>(const Parameters<float>&);
template void normalize_matrices<float>(Parameters<float>&, const Plan&);
template void initialize<float>(Parameters<float>&, const Plan&, std::uint64_t,
                                const std::optional<BaseDeviation>&);

}  // namespace scalewise::nn
