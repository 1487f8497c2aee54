// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <span>

#include "scalewise/kernels/pair_kernel.hpp"

namespace scalewise::experiment {

/// Windows of (stride + 2)² pixels, `stride` apart and one pixel beyond the border, where it is zero:
/// what the first layer of a convolution sees. Pixels are shifted and scaled to mean zero and
/// variance one, image by image.
/// Source:   the normalization: Hron et al. 2020 (arXiv:2006.10540), appendix A.1.
inline Matrix<> windows(std::span<const float> image, kernels::Index side, kernels::Index stride) {
  const auto count = static_cast<double>(image.size());
  double mean = 0;
  for (const float p : image) mean += static_cast<double>(p) / count;
  double variance = 0;
  for (const float p : image) {
    variance += (static_cast<double>(p) - mean) * (static_cast<double>(p) - mean) / count;
  }
  const double scale = 1 / (std::sqrt(variance) + 1e-15);
  const kernels::Index across = side / stride;
  const kernels::Index window = stride + 2;
  Matrix<> tokens = Matrix<>::Zero(across * across, window * window);
  for (kernels::Index t = 0; t < tokens.rows(); ++t) {
    for (kernels::Index w = 0; w < tokens.cols(); ++w) {
      const kernels::Index y = t / across * stride + w / window - 1;
      const kernels::Index x = t % across * stride + w % window - 1;
      if (y < 0 || y >= side || x < 0 || x >= side) continue;
      tokens(t, w) =
          (static_cast<double>(image[static_cast<std::size_t>(y * side + x)]) - mean) * scale;
    }
  }
  return tokens;
}

}  // namespace scalewise::experiment
