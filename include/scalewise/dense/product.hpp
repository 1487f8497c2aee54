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
#ifdef EIGEN_USE_BLAS
#include <Eigen/src/misc/blas.h>
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

#ifdef EIGEN_USE_BLAS
/// A BLAS thinks in columns: cᵀ = bᵀ aᵀ.
template <class Scalar, class Gemm>
void blas_product(const Gemm& gemm, Into into, Scalar factor, const Operand<Scalar>& a,
                  const Operand<Scalar>& b, View<Scalar> c) {
  const int n = static_cast<int>(c.cols()), m = static_cast<int>(c.rows());
  const int k = static_cast<int>(a.cols());
  const int lda = static_cast<int>(a.stored().outerStride());
  const int ldb = static_cast<int>(b.stored().outerStride());
  const int ldc = static_cast<int>(c.outerStride());
  const Scalar keep = into == Into::sum ? 1 : 0;
  gemm(b.transposed() ? "T" : "N", a.transposed() ? "T" : "N", &n, &m, &k, &factor,
       b.stored().data(), &ldb, a.stored().data(), &lda, &keep, c.data(), &ldc);
}
#endif

}  // namespace detail

/// c = factor a b, or that added to c, in the calling thread.
/// By oneDNN where SCALEWISE_ONEDNN is defined and numbers are floats; otherwise, and for small products,
/// by the BLAS where EIGEN_USE_BLAS is defined, and by Eigen's own kernels where it is not.
/// Shapes:   a (N, K), b (K, M) -> c (N, M)
/// Accuracy: sums of K terms in the order of the kernels, which differs between libraries and
///           processors; the same bits for the same operands, after keep_to_one_thread() for
///           the BLAS, and where oneDNN is called from a task of parallel_for().
/// Throws:   std::bad_alloc.
template <class Scalar>
void product(Into into, Scalar factor, const Operand<Scalar>& a, const Operand<Scalar>& b,
             View<Scalar> c) {
  detail::eigen_product(into, factor, a, b, c);
}

#ifdef EIGEN_USE_BLAS
template <>
inline void product(Into into, double factor, const Operand<double>& a, const Operand<double>& b,
                    View<double> c) {
  detail::blas_product(dgemm_, into, factor, a, b, c);
}
#endif

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
#endif

#if defined(SCALEWISE_ONEDNN) || defined(EIGEN_USE_BLAS)

}  // namespace detail

template <>
inline void product(Into into, float factor, const Operand<float>& a, const Operand<float>& b,
                    View<float> c) {
#if defined(SCALEWISE_ONEDNN) && defined(EIGEN_USE_BLAS)
  // Where OpenBLAS is faster, by up to a half (lab/timing/README.md).
  constexpr Eigen::Index few = 64 * 64 * 64;
  if (c.size() * a.cols() <= few) return detail::blas_product(sgemm_, into, factor, a, b, c);
#endif
#if defined(SCALEWISE_ONEDNN)
  detail::onednn_product(into, factor, a, b, c);
#else
  detail::blas_product(sgemm_, into, factor, a, b, c);
#endif
}
#endif

}  // namespace scalewise::dense
