// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/kernels/network.hpp"
#include "scalewise/kernels/symmetric_eigen.hpp"

namespace scalewise::kernels {

/// Where the tokens of each input stand when all inputs are stacked.
class Tokens {
 public:
  /// Throws:   InvalidInput for no input or an input without tokens.
  explicit Tokens(std::vector<Index> lengths) : lengths_(std::move(lengths)) {
    if (lengths_.empty()) throw InvalidInput("lengths", "empty", "at least one input");
    for (const Index length : lengths_) {
      if (length <= 0) {
        throw InvalidInput("length of an input", std::to_string(length), "at least one token");
      }
      offsets_.push_back(total_);
      total_ += length;
    }
  }

  Index inputs() const { return static_cast<Index>(lengths_.size()); }
  Index length(Index input) const { return lengths_[static_cast<std::size_t>(input)]; }
  Index offset(Index input) const { return offsets_[static_cast<std::size_t>(input)]; }
  Index total() const { return total_; }

  /// Block (i, j) of a stacked matrix.
  template <class M>
  auto block(M& m, Index i, Index j) const {
    return m.block(offset(i), offset(j), length(i), length(j));
  }

 private:
  std::vector<Index> lengths_;
  std::vector<Index> offsets_;
  Index total_ = 0;
};

/// The kernels of a few inputs, all tokens stacked.
/// Source:   Hron et al. 2020 (arXiv:2006.10540), Section 2: one joint covariance of all inputs.
/// Shapes:   nngp, ntk (S, S), S the sum of lengths; block (i, j) is between inputs i and j
struct Kernel {
  Tokens tokens;
  Matrix<> nngp;
  Matrix<> ntk;
};

/// Refuses what is not a pair of kernels.
/// Accuracy: asymmetry and negative eigenvalues up to 1e-8 of the largest entry pass as rounding.
/// Throws:   InvalidInput for matrices of another size than the tokens', not finite or not symmetric,
///           or an indefinite NNGP kernel.
inline void check(const Kernel& kernel) {
  const Index size = kernel.tokens.total();
  for (const auto& [name, m] : {std::pair{"nngp", &kernel.nngp}, {"ntk", &kernel.ntk}}) {
    if (m->rows() != size || m->cols() != size) {
      throw InvalidInput(name, std::to_string(m->rows()) + " x " + std::to_string(m->cols()),
                         std::to_string(size) + " x " + std::to_string(size),
                         "a row and a column per token of every input");
    }
    detail::require_finite(*m, name);
    if ((*m - m->transpose()).cwiseAbs().maxCoeff() > 1e-8 * m->cwiseAbs().maxCoeff()) {
      throw InvalidInput(name, "not symmetric", "a symmetric matrix");
    }
  }
  const double smallest = detail::symmetric_eigenvalues(kernel.nngp)(0);
  if (smallest < -1e-8 * kernel.nngp.cwiseAbs().maxCoeff()) {
    throw InvalidInput("nngp", "an eigenvalue of " + numeric::number_text(smallest),
                       "a positive semidefinite matrix");
  }
}

/// The kernel of raw inputs, see input_kernel().
/// Source:   as input_kernel().
/// Shapes:   inputs (T_i, n₀) each
/// Throws:   InvalidInput as input_kernel().
inline Kernel stacked_input_kernel(const std::vector<Matrix<>>& inputs) {
  std::vector<Index> lengths;
  lengths.reserve(inputs.size());
  for (const Matrix<>& x : inputs) lengths.push_back(x.rows());
  Tokens tokens(std::move(lengths));
  const Index size = tokens.total();
  Kernel kernel{std::move(tokens), Matrix<>(size, size), Matrix<>(size, size)};
  PairKernel pair;
  for (Index i = 0; i < kernel.tokens.inputs(); ++i) {
    for (Index j = 0; j < kernel.tokens.inputs(); ++j) {
      input_kernel(inputs[static_cast<std::size_t>(i)], inputs[static_cast<std::size_t>(j)], pair);
      kernel.tokens.block(kernel.nngp, i, j) = pair.nngp.read();
      kernel.tokens.block(kernel.ntk, i, j) = pair.ntk.read();
    }
  }
  return kernel;
}

/// The kernels after a layer, pair by pair.
/// Source:   the layer's.
/// Throws:   InvalidInput as check() and the layer do.
inline Kernel propagate(const Layer& layer, const Kernel& kernel) {
  check(kernel);
  const Tokens& tokens = kernel.tokens;
  const auto load = [&](Index i, Index j) {
    PairKernel pair;
    pair.nngp.shape(tokens.length(i), tokens.length(j)) = tokens.block(kernel.nngp, i, j);
    pair.ntk.shape(tokens.length(i), tokens.length(j)) = tokens.block(kernel.ntk, i, j);
    return pair;
  };
  std::vector<detail::AnyOwn> own;
  for (Index i = 0; i < tokens.inputs(); ++i) own.push_back(detail::prepare(layer, load(i, i)));
  std::vector<PairKernel> pairs;  // (i, j), i <= j
  std::vector<Index> lengths;
  for (Index i = 0; i < tokens.inputs(); ++i) {
    for (Index j = i; j < tokens.inputs(); ++j) {
      pairs.push_back(load(i, j));
      detail::map(layer, pairs.back(), own[static_cast<std::size_t>(i)],
                  own[static_cast<std::size_t>(j)]);
      if (i == j) lengths.push_back(pairs.back().rows());
    }
  }
  Tokens after(std::move(lengths));
  const Index size = after.total();
  Kernel result{std::move(after), Matrix<>(size, size), Matrix<>(size, size)};
  auto pair = pairs.begin();
  for (Index i = 0; i < tokens.inputs(); ++i) {
    for (Index j = i; j < tokens.inputs(); ++j, ++pair) {
      for (auto [to, from] : {std::pair{&result.nngp, &pair->nngp}, {&result.ntk, &pair->ntk}}) {
        result.tokens.block(*to, i, j) = from->read();
        result.tokens.block(*to, j, i) = from->read().transpose();
      }
    }
  }
  return result;
}

/// Which tokens of padded inputs are real, input by input.
using Mask = std::vector<std::vector<bool>>;

namespace detail {

/// The stacked places of real tokens.
/// Throws:   InvalidInput for a mask of other inputs or lengths.
inline std::vector<Index> real_tokens(const Tokens& padded, const Mask& mask) {
  std::vector<Index> places;
  bool fits = static_cast<Index>(mask.size()) == padded.inputs();
  for (Index i = 0; fits && i < padded.inputs(); ++i) {
    const std::vector<bool>& real = mask[static_cast<std::size_t>(i)];
    fits = static_cast<Index>(real.size()) == padded.length(i);
    for (std::size_t a = 0; fits && a < real.size(); ++a) {
      if (real[a]) places.push_back(padded.offset(i) + static_cast<Index>(a));
    }
  }
  if (!fits) throw InvalidInput("mask", "of other lengths", "one entry per token of every input");
  return places;
}

inline std::vector<Index> real_lengths(const Mask& mask) {
  std::vector<Index> lengths;
  for (const std::vector<bool>& real : mask) {
    lengths.push_back(static_cast<Index>(std::count(real.begin(), real.end(), true)));
  }
  return lengths;
}

}  // namespace detail

/// The kernels of the real tokens alone, which is what layers work on: padding has no weight as a
/// key and no output as a query.
/// Throws:   InvalidInput for a mask that does not fit, or without a real token in some input.
inline Kernel without_padding(const Kernel& padded, const Mask& mask) {
  const std::vector<Index> places = detail::real_tokens(padded.tokens, mask);
  return {Tokens(detail::real_lengths(mask)), padded.nngp(places, places),
          padded.ntk(places, places)};
}

/// The kernels with zero rows and columns for the padding again; Flatten then counts the padding.
/// Throws:   InvalidInput for a mask that does not fit.
inline Kernel with_padding(const Kernel& kernel, const Mask& mask) {
  std::vector<Index> lengths;
  for (const std::vector<bool>& real : mask) lengths.push_back(static_cast<Index>(real.size()));
  Tokens tokens(std::move(lengths));
  const std::vector<Index> places = detail::real_tokens(tokens, mask);
  if (static_cast<Index>(places.size()) != kernel.tokens.total()) {
    throw InvalidInput("mask", std::to_string(places.size()) + " real tokens",
                       "as many as the kernel has, " + std::to_string(kernel.tokens.total()));
  }
  const Index size = tokens.total();
  Kernel padded{std::move(tokens), Matrix<>::Zero(size, size), Matrix<>::Zero(size, size)};
  padded.nngp(places, places) = kernel.nngp;
  padded.ntk(places, places) = kernel.ntk;
  return padded;
}

}  // namespace scalewise::kernels
