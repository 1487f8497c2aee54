// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/nn/batch.hpp"
#include "scalewise/numeric/random.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::data {

/// Square grey images, each with its class.
/// Shapes:   pixels (images, side*side), a row of the image after the other; labels (images)
struct Images {
  Matrix<float> pixels;
  std::vector<int> labels;
  Eigen::Index side = 0;

  Eigen::Index size() const { return pixels.rows(); }
};

namespace detail {

/// Throws:   InvalidInput for images that are not square, and without a label each.
inline void require_whole(const Images& images) {
  if (images.side < 1 || images.pixels.cols() != images.side * images.side) {
    throw InvalidInput("images.side", std::to_string(images.side),
                       "the root of the pixels per image, " + std::to_string(images.pixels.cols()));
  }
  if (images.labels.size() != static_cast<std::size_t>(images.size())) {
    throw InvalidInput("images.labels", std::to_string(images.labels.size()) + " labels",
                       std::to_string(images.size()) + ", one for each image");
  }
}

/// The images of the given numbers.
inline Images select(const Images& images, std::span<const Eigen::Index> which) {
  Images result;
  result.side = images.side;
  result.pixels.resize(static_cast<Eigen::Index>(which.size()), images.pixels.cols());
  for (const Eigen::Index i : which) {
    result.pixels.row(static_cast<Eigen::Index>(result.labels.size())) = images.pixels.row(i);
    result.labels.push_back(images.labels[static_cast<std::size_t>(i)]);
  }
  return result;
}

}  // namespace detail

/// Images to train on and images to measure on.
struct ImageSplit {
  Images train;
  Images test;
};

/// Splits images in an order shuffled by the seed, the last ones for the test.
/// Equation: test = floor(`test` times the number of images)
/// Source:   the shuffle: Fisher and Yates, Durstenfeld 1964.
/// Accuracy: the same split on every platform.
/// Throws:   InvalidInput for a fraction outside (0, 1), when a part would be empty, for images that are not
///           square, and without a label each.
inline ImageSplit split_images(const Images& images, double test, std::uint64_t seed) {
  detail::require_whole(images);
  if (!(test > 0 && test < 1)) {
    throw InvalidInput("test", numeric::number_text(test), "a fraction between 0 and 1");
  }
  const auto count = static_cast<std::size_t>(images.size());
  const auto last = static_cast<std::size_t>(test * static_cast<double>(count));
  if (last == 0 || last == count) {
    throw InvalidInput("images", std::to_string(count), "enough for one in either part",
                       "test = " + numeric::number_text(test));
  }
  std::vector<Eigen::Index> order;
  for (Eigen::Index i = 0; i < images.size(); ++i) order.push_back(i);
  numeric::RandomStream stream(seed, "split_images");
  for (std::size_t i = count - 1; i > 0; --i) std::swap(order[i], order[stream.bits() % (i + 1)]);
  const std::span<const Eigen::Index> all(order);
  return {detail::select(images, all.first(count - last)), detail::select(images, all.last(last))};
}

/// A batch of images cut into square patches; targets are the labels.
/// Shapes:   which (B) -> patches (B*T, patch*patch) with T = (side/patch)², targets (B); patches go
///           row by row through the image, pixels row by row through the patch
/// Throws:   InvalidInput for a patch that does not divide the side, for no image or one that is
///           not there, for images that are not square, and without a label each.
template <class Scalar>
nn::Batch<Scalar> image_patches(const Images& images, std::span<const Eigen::Index> which,
                                Eigen::Index patch) {
  detail::require_whole(images);
  if (patch <= 0 || images.side % patch != 0) {
    throw InvalidInput("patch", std::to_string(patch),
                       "a divisor of side = " + std::to_string(images.side));
  }
  if (which.empty()) throw InvalidInput("which", "(empty)", "at least one image");
  const Eigen::Index across = images.side / patch;
  nn::Batch<Scalar> batch;
  batch.patches.resize(static_cast<Eigen::Index>(which.size()) * across * across, patch * patch);
  for (const Eigen::Index i : which) {
    if (i < 0 || i >= images.size()) {
      throw InvalidInput("which[" + std::to_string(batch.size) + "]", std::to_string(i),
                         "an image in [0, " + std::to_string(images.size()) + ")");
    }
    const ConstView<float> image(images.pixels.row(i).data(), images.side, images.side,
                                 Eigen::OuterStride<>(images.side));
    for (Eigen::Index t = 0; t < across * across; ++t) {
      auto row = batch.patches.row(batch.size * across * across + t);
      for (Eigen::Index y = 0; y < patch; ++y) {
        const Eigen::Index top = t / across * patch + y;
        row.segment(y * patch, patch) =
            image.row(top).segment(t % across * patch, patch).template cast<Scalar>();
      }
    }
    batch.targets.push_back(images.labels[static_cast<std::size_t>(i)]);
    ++batch.size;
  }
  return batch;
}

}  // namespace scalewise::data
