// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Kernels of infinite width for our tests and programs: what takes long to compile of them is in
// library instances_kernels.
#pragma once

#include "scalewise/theory/kernels/softmax_moments.hpp"

namespace scalewise::kernels {

extern template std::vector<ScoreMoments> softmax_moments<void>(const ScoreKernels&,
                                                                const QuasiMonteCarlo&);

}  // namespace scalewise::kernels
