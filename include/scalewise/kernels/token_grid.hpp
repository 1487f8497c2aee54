// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <string>
#include <vector>

#include "scalewise/kernels/pair_kernel.hpp"

namespace scalewise::kernels {

/// The tokens of an input on a grid of any number of axes, row by row: {height, width} of an image, {frames,
/// height, width} of a video. Without sides, a string of any length.
/// Source:   Hron et al. 2020 (arXiv:2006.10540), sections 4.2.2 and 5.2
using GridSides = std::vector<Index>;

namespace detail {

/// Throws:   InvalidInput for sides below 1, or that hold another number of tokens.
inline void check_sides(const GridSides& sides, Index tokens) {
  Index all = 1;
  std::string product;
  for (const Index side : sides) {
    all *= (side < 0 ? 0 : side);
    product += (product.empty() ? "" : " * ") + std::to_string(side);
  }
  if (!sides.empty() && (all == 0 || all != tokens)) {
    throw InvalidInput("tokens of a grid", std::to_string(tokens), product);
  }
}

/// The tokens of a grid that a window sees around each token.
/// Shapes:   (tokens after, filter^axes), places of tokens before; -1 beyond the border
using Windows = Eigen::Matrix<Index, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The windows of `filter` tokens a side: around each token with padding, otherwise only those inside.
/// Throws:   InvalidInput as check_sides(), for a filter that is even or below 1, and where no window fits.
inline Windows windows(const GridSides& sides, Index tokens, Index filter, bool padded) {
  check_sides(sides, tokens);
  if (filter < 1 || filter % 2 == 0) {
    throw InvalidInput("filter", std::to_string(filter), "an odd number of tokens");
  }
  const GridSides before = sides.empty() ? GridSides{tokens} : sides;
  GridSides after = before;
  Index rows = 1;
  Index columns = 1;
  for (Index& side : after) {
    if (!padded) side -= filter - 1;
    if (side < 1) {
      throw InvalidInput("filter", std::to_string(filter), "no more tokens than a side has");
    }
    rows *= side;
    columns *= filter;
  }
  Windows all(rows, columns);
  for (Index row = 0; row < rows; ++row) {
    for (Index column = 0; column < columns; ++column) {
      Index place = 0;
      Index stride = 1;
      Index token = row;
      Index of_window = column;
      for (std::size_t axis = before.size(); axis-- > 0;) {
        const Index at = token % after[axis] + of_window % filter - (padded ? filter / 2 : 0);
        token /= after[axis];
        of_window /= filter;
        if (at < 0 || at >= before[axis]) place = -1;
        if (place >= 0) place += at * stride;
        stride *= before[axis];
      }
      all(row, column) = place;
    }
  }
  return all;
}

}  // namespace detail

}  // namespace scalewise::kernels
