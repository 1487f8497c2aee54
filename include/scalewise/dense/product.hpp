// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/dense/matrix.hpp"

#ifdef SCALEWISE_ONEDNN
#ifndef _OPENMP
#error \
    "SCALEWISE_ONEDNN needs OpenMP: oneDNN keeps to one thread where it is called from a parallel region"
#endif
#include <dnnl.h>

#include <new>
#endif

namespace scalewise::dense {

/// A matrix as a product reads it: as it lies in memory, or transposed.
/// Shapes:   of the operand: that of what is stored, with rows and columns exchanged where it is
///           transposed
template <class Scalar>
class Operand {
 public:
  Operand(const ConstView<Scalar>& stored, bool transposed = false)
      : stored_(stored), transposed_(transposed) {}

  const ConstView<Scalar>& stored() const { return stored_; }
  bool transposed() const { return transposed_; }
  Eigen::Index cols() const { return transposed_ ? stored_.rows() : stored_.cols(); }

  Operand middle_rows(Eigen::Index begin, Eigen::Index count) const {
    if (transposed_) return {block(stored_, 0, begin, stored_.rows(), count), true};
    return block(stored_, begin, 0, count, stored_.cols());
  }
  Operand middle_cols(Eigen::Index begin, Eigen::Index count) const {
    if (transposed_) return {block(stored_, begin, 0, count, stored_.cols()), true};
    return block(stored_, 0, begin, stored_.rows(), count);
  }

 private:
  ConstView<Scalar> stored_;
  bool transposed_;
};

/// The transpose of a matrix, without a copy.
/// Shapes:   m (r, c) -> (c, r)
template <class Scalar>
Operand<Scalar> transposed(const ConstView<Scalar>& m) {
  return {m, true};
}

/// Whether a product overwrites what is there or is added to it.
enum class Into { fresh, sum };

namespace detail {

/// By Eigen's own kernels, whatever Eigen calls them.
template <class Scalar>
void eigen_product(Into into, Scalar factor, const Operand<Scalar>& a, const Operand<Scalar>& b,
                   View<Scalar> c) {
  const auto assign = [&](const auto& product) {
    if (into == Into::fresh) {
      c.noalias() = factor * product;
    } else {
      c.noalias() += factor * product;
    }
  };
  if (a.transposed() && b.transposed())
    return assign(a.stored().transpose() * b.stored().transpose());
  if (a.transposed()) return assign(a.stored().transpose() * b.stored());
  if (b.transposed()) return assign(a.stored() * b.stored().transpose());
  assign(a.stored() * b.stored());
}

}  // namespace detail

/// Keeps each product by Eigen to the calling thread, in the whole program: products are already
/// cut into tiles, and threads of their own would make results depend on how many there are. Threads
/// may call it at the same time. Where EIGEN_USE_BLAS is defined, set the threads of the BLAS to one
/// by its own means.
inline void keep_to_one_thread() {
  static const bool once = (Eigen::setNbThreads(1), true);
  static_cast<void>(once);
}

/// c = factor a b, or that added to c, in the calling thread.
/// By oneDNN where SCALEWISE_ONEDNN is defined and numbers are floats, otherwise by Eigen.
/// Shapes:   a (N, K), b (K, M) -> c (N, M)
/// Accuracy: sums of K terms in the order of the kernels, which differs between libraries and
///           processors; the same bits for the same operands, after keep_to_one_thread(), and where
///           oneDNN is called from a task of parallel_for().
/// Throws:   std::bad_alloc.
template <class Scalar>
void product(Into into, Scalar factor, const Operand<Scalar>& a, const Operand<Scalar>& b,
             View<Scalar> c) {
  detail::eigen_product(into, factor, a, b, c);
}

#ifdef SCALEWISE_ONEDNN
namespace detail {

inline void onednn_product(Into into, float factor, const Operand<float>& a,
                           const Operand<float>& b, View<float> c) {
  const auto status = dnnl_sgemm(
      a.transposed() ? 'T' : 'N', b.transposed() ? 'T' : 'N', c.rows(), c.cols(), a.cols(), factor,
      a.stored().data(), a.stored().outerStride(), b.stored().data(), b.stored().outerStride(),
      into == Into::sum ? 1.0F : 0.0F, c.data(), c.outerStride());
  if (status != dnnl_success) throw std::bad_alloc();
}

}  // namespace detail

template <>
inline void product(Into into, float factor, const Operand<float>& a, const Operand<float>& b,
                    View<float> c) {
  detail::onednn_product(into, factor, a, b, c);
}
#endif

}  // namespace scalewise::dense
