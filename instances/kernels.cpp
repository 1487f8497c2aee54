// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#undef SCALEWISE_SOFTMAX_ELSEWHERE
#include "scalewise/theory/kernels/softmax_moments.hpp"

namespace scalewise::kernels {

template std::vector<ScoreMoments> softmax_moments<void>(const ScoreKernels&,
                                                         const QuasiMonteCarlo&);

}  // namespace scalewise::kernels
