// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#undef SCALEWISE_KERNELS_ELSEWHERE
#include "scalewise/kernels/softmax_moments.hpp"
#include "scalewise/kernels/symmetric_eigen.hpp"

namespace scalewise::kernels {

template std::vector<ScoreMoments> softmax_moments<void>(const ScoreKernels&,
                                                         const QuasiMonteCarlo&);
namespace detail {

template SymmetricEigen symmetric_eigen<void>(const Eigen::MatrixXd&);
template Eigen::VectorXd symmetric_eigenvalues<void>(const Eigen::MatrixXd&);

}  // namespace detail

}  // namespace scalewise::kernels
