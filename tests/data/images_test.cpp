// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/data/images.hpp"

#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"

namespace {

using namespace scalewise::data;
using namespace scalewise::test;
using Eigen::Index;

/// Images whose every pixel says where it is: 100 i + place; the label of image i is i.
Images numbered(Index count, Index side) {
  Images images;
  images.side = side;
  images.pixels.resize(count, side * side);
  for (Index i = 0; i < count; ++i) {
    for (Index place = 0; place < side * side; ++place) {
      images.pixels(i, place) = static_cast<float>(100 * i + place);
    }
    images.labels.push_back(static_cast<int>(i));
  }
  return images;
}

std::string split_refusal(Index count, double test) {
  return error_message([&] { split_images(numbered(count, 1), test, 1); });
}

}  // namespace

TEST_CASE("A split of images is that of an independent computation", "[data]") {
  const ImageSplit split = split_images(numbered(10, 2), 0.3, 3);
  // SplitMix64, FNV-1a and the shuffle written again in Python.
  CHECK(split.train.labels == std::vector<int>{8, 0, 2, 5, 1, 4, 3});
  CHECK(split.test.labels == std::vector<int>{9, 6, 7});
  for (const Images& part : {split.train, split.test}) {
    CHECK(part.side == 2);
    REQUIRE(part.size() == static_cast<Index>(part.labels.size()));
    for (Index i = 0; i < part.size(); ++i) {
      CHECK(part.pixels(i, 3) ==
            static_cast<float>(100 * part.labels[static_cast<std::size_t>(i)] + 3));
    }
  }
  CHECK(split_images(numbered(10, 2), 0.3, 4).test.labels != split.test.labels);
}

TEST_CASE("A split of images with an empty part is refused", "[data]") {
  CHECK(split_refusal(9, 0.1) ==
        "images = 9: expected enough for one in either part (hint: test = 0.1)");
  CHECK(split_refusal(10, 0.1) == "no error");
  CHECK(split_refusal(1, 0.5) != "no error");
  CHECK(split_refusal(0, 0.5) != "no error");
  for (const double fraction : {0.0, 1.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(split_refusal(10, fraction) != "no error");
  }
}

TEST_CASE("Patches go row by row through the image, pixels row by row through the patch",
          "[data]") {
  const Images images = numbered(3, 4);
  const std::vector<Index> which{2, 0};
  const auto batch = image_patches<double>(images, which, 2);
  scalewise::Matrix<double> expected(8, 4);
  expected << 200, 201, 204, 205, 202, 203, 206, 207, 208, 209, 212, 213, 210, 211, 214, 215,  //
      0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15;
  CHECK(batch.patches == expected);
  CHECK(batch.targets == std::vector<int>{2, 0});
  CHECK(batch.size == 2);
  CHECK(batch.tokens.empty());
  const auto pixels = image_patches<float>(images, which, 1);
  CHECK(pixels.patches.rows() == 32);
  CHECK(pixels.patches(17, 0) == 1);
  const auto whole = image_patches<float>(images, which, 4);
  CHECK(whole.patches.row(1) == images.pixels.row(0));
}

TEST_CASE("Images without a label each, and images that are not square, are refused", "[data]") {
  Images few = numbered(4, 4);
  few.labels.pop_back();
  Images narrow = numbered(4, 4);
  narrow.side = 5;
  const std::vector<Index> which{0};
  const std::string labels = "images.labels = 3 labels: expected 4, one for each image";
  const std::string side = "images.side = 5: expected the root of the pixels per image, 16";
  CHECK(error_message([&] { split_images(few, 0.5, 1); }) == labels);
  CHECK(error_message([&] { image_patches<float>(few, which, 2); }) == labels);
  CHECK(error_message([&] { split_images(narrow, 0.5, 1); }) == side);
  CHECK(error_message([&] { image_patches<float>(narrow, which, 5); }) == side);
}

TEST_CASE("Patches that are not there are refused", "[data]") {
  const auto refusal = [](const std::vector<Index>& which, Index patch) {
    return error_message([&] { image_patches<float>(numbered(3, 4), which, patch); });
  };
  CHECK(refusal({0, 2}, 4) == "no error");
  CHECK(refusal({0}, 3) == "patch = 3: expected a divisor of side = 4");
  CHECK(refusal({0}, 0) == "patch = 0: expected a divisor of side = 4");
  CHECK(refusal({0}, 8) == "patch = 8: expected a divisor of side = 4");
  CHECK(refusal({}, 2) == "which (empty): expected at least one image");
  CHECK(refusal({0, 3}, 2) == "which[1] = 3: expected an image in [0, 3)");
  CHECK(refusal({-1}, 2) == "which[0] = -1: expected an image in [0, 3)");
}
