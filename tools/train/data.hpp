// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The task of a run: the next byte of a text, its bytes from a corrupted copy, or the class of an image.
#pragma once

#include <cmath>
#include <string>

#include "scalewise/data/digits.hpp"
#include "scalewise/data/text.hpp"
#include "train/settings.hpp"

namespace scalewise::train {

/// Data of either kind, in two parts.
struct Data {
  bool text = true;
  data::TokenSplit tokens;
  data::ImageSplit images;
  std::string description;

  /// The loss of a model that knows nothing, in nats.
  double guess() const { return std::log(text ? 256.0 : 10.0); }
};

inline constexpr long bytes = 256;

/// The text or the images of the settings.
/// Throws:   InvalidInput for a file that cannot be read, and for too few data.
Data read_data(const Settings& s);

/// The sizes of a model that the data decide.
Shape data_shape(const Settings& s, const Data& data);

}  // namespace scalewise::train
