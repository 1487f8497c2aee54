// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A product against its sums, in both precisions, since floats may have a library behind them.

#include "scalewise/dense/product.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace scalewise;
using Eigen::Index;

/// Entries that no two positions share, and that are not integers.
template <class Scalar>
Matrix<Scalar> numbers(Index rows, Index columns) {
  Matrix<Scalar> m(rows, columns);
  for (Index i = 0; i < m.size(); ++i)
    m.data()[i] = static_cast<Scalar>(std::sin(1.0 + 0.7 * double(i)));
  return m;
}

template <class Scalar>
void every_entry_is_its_sum(Index n, Index k, Index m, bool ta, bool tb, dense::Into into) {
  // Parts of larger matrices, so that rows do not follow each other in memory.
  const Matrix<Scalar> a = numbers<Scalar>((ta ? k : n) + 1, (ta ? n : k) + 3);
  const Matrix<Scalar> b = numbers<Scalar>((tb ? m : k) + 1, (tb ? k : m) + 2);
  const Matrix<Scalar> before = numbers<Scalar>(n + 1, m + 5);
  Matrix<Scalar> c = before;
  const ConstView<Scalar> a_part = dense::block(dense::read(a), 1, 2, ta ? k : n, ta ? n : k);
  const ConstView<Scalar> b_part = dense::block(dense::read(b), 1, 1, tb ? m : k, tb ? k : m);
  dense::product<Scalar>(into, Scalar(0.3), {a_part, ta}, {b_part, tb},
                         dense::block(dense::view(c), 0, 4, n, m));
  // A sum of k products, each at most 1, and its rounding.
  const double tolerance = 2.0 * double(k + 2) * double(std::numeric_limits<Scalar>::epsilon());
  for (Index i = 0; i < c.rows(); ++i) {
    for (Index j = 0; j < c.cols(); ++j) {
      CAPTURE(n, k, m, ta, tb, i, j);
      if (i >= n || j < 4 || j >= m + 4) {
        REQUIRE(c(i, j) == before(i, j));
        continue;
      }
      double sum = 0;
      for (Index t = 0; t < k; ++t) {
        sum += double(ta ? a_part(t, i) : a_part(i, t)) *
               double(tb ? b_part(j - 4, t) : b_part(t, j - 4));
      }
      const double expected =
          (into == dense::Into::sum ? double(before(i, j)) : 0) + double(Scalar(0.3)) * sum;
      REQUIRE(std::fabs(double(c(i, j)) - expected) <= tolerance);
    }
  }
}

}  // namespace

TEST_CASE(
    "A product is the sum that it stands for, transposed or not, over or onto what was there") {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const dense::Into into : {dense::Into::fresh, dense::Into::sum}) {
        for (const Index n : {1, 7, 33}) {
          every_entry_is_its_sum<float>(n, 19, 6, ta, tb, into);
          every_entry_is_its_sum<double>(n, 19, 6, ta, tb, into);
        }
        every_entry_is_its_sum<float>(5, 1, 70, ta, tb, into);
        every_entry_is_its_sum<double>(5, 1, 70, ta, tb, into);
        if (test::sanitized && ta != tb) continue;
        every_entry_is_its_sum<float>(40, 600, 37, ta, tb, into);
        every_entry_is_its_sum<double>(40, 600, 37, ta, tb, into);
      }
    }
  }
}

TEST_CASE("A product overwrites what is not a number, and passes on what is not finite") {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  for (const Index n : {4, 80}) {
    const Matrix<float> a = numbers<float>(n, n);
    Matrix<float> c = Matrix<float>::Constant(n, n, nan);
    dense::product<float>(dense::Into::fresh, 1, dense::read(a), dense::read(a), dense::view(c));
    CHECK(c.allFinite());
    Matrix<float> b = a;
    b(2, 1) = nan;
    dense::product<float>(dense::Into::fresh, 1, dense::read(a), dense::read(b), dense::view(c));
    for (Index i = 0; i < n; ++i) CHECK(std::isnan(c(i, 1)));
  }
}
