// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The task of a run: the next byte of a text, its bytes from a corrupted copy, or the class of an image.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "instances/transformer.hpp"
#include "scalewise/data/digits.hpp"
#include "scalewise/data/infilling.hpp"
#include "scalewise/data/masking.hpp"
#include "scalewise/data/text.hpp"
#include "scalewise/data/windows.hpp"
#include "train/settings.hpp"

namespace scalewise::nn {
template <class Scalar>
class Transformer;  // defined where a model is measured
}

namespace scalewise::train {

/// Data of either kind, in two parts. A batch depends on seed and step only.
struct Data {
  bool text = true;
  data::TokenSplit tokens;
  data::ImageSplit images;
  std::string description;

  /// The loss of a model that knows nothing, in nats.
  double guess() const { return std::log(text ? 256.0 : 10.0); }
};

inline constexpr long bytes = 256;

/// The noise of --task denoising and of --task masked; their own tokens come after the bytes.
inline constexpr std::array<int, 3> sentence_ends{'.', '?', '!'};
inline data::Infilling noise_of(const Settings& s) {
  data::Infilling noise{.mask = bytes, .start = bytes + 1};
  if (permutes(s)) noise.sentence_ends = sentence_ends;
  return noise;
}
inline constexpr data::Masking masks{.mask = bytes, .tokens = bytes};

/// How well a model does on the validation part.
/// Units:    nats per prediction; score in bits per byte for text, the correct fraction for images
struct Score {
  double nats = 0;
  double score = 0;
};

inline Data read_text(const Settings& s) {
  Data data;
  const std::vector<int> tokens = data::read_byte_tokens(s.text);
  const auto size = static_cast<long>(tokens.size());
  if (size / 10 <= s.seq) {
    throw InvalidInput("--text", s.text + " of " + std::to_string(size) + " bytes",
                       "a tenth, to validate, that is longer than --seq = " + std::to_string(s.seq),
                       "a longer text or a smaller --seq");
  }
  data.tokens = data::split_tokens(tokens);
  data.description = std::to_string(data.tokens.train.size()) + " bytes to learn from, " +
                     std::to_string(data.tokens.validation.size()) + " to validate";
  return data;
}

inline Data read_images(const Settings& s) {
  Data data;
  data.text = false;
  const data::Images images = data::read_digits(s.digits);
  if (images.side % s.patch != 0) {
    throw InvalidInput("--patch", std::to_string(s.patch),
                       "a divisor of the images' side = " + std::to_string(images.side));
  }
  data.images = data::split_images(images, 0.2, s.seed);
  data.description = std::to_string(data.images.train.size()) + " images to learn from, " +
                     std::to_string(data.images.test.size()) + " to validate";
  return data;
}

inline Data read_data(const Settings& s) {
  return s.digits.empty() ? read_text(s) : read_images(s);
}

/// The sizes of a model that the data decide.
inline Shape data_shape(const Settings& s, const Data& data) {
  Shape shape;
  if (data.text) {
    shape.vocab = denoises(s) ? bytes + 2 : unmasks(s) ? bytes + 1 : bytes;
    shape.context = s.seq;
    shape.encoder_depth = denoises(s) ? s.depth : 0;
  } else {
    shape.input = Input::patch;
    shape.patch_dim = s.patch * s.patch;
    shape.context = (data.images.train.side / s.patch) * (data.images.train.side / s.patch);
    shape.classes = 10;
  }
  return shape;
}

template <class Scalar>
nn::Batch<Scalar> training_batch(const Settings& s, const Data& data, long step) {
  const auto number = static_cast<std::uint64_t>(step);
  if (data.text) {
    auto batch = data::random_windows<Scalar>(data.tokens.train, s.batch, s.seq, s.seed, number);
    const std::string name = std::to_string(step);
    if (unmasks(s)) return data::masking(std::move(batch), masks, {s.seed, "masking.", name});
    if (!denoises(s)) return batch;
    return data::infilling(std::move(batch), noise_of(s), {s.seed, "infilling.", name});
  }
  numeric::RandomStream stream(s.seed, "images." + std::to_string(step));
  const auto count = static_cast<std::uint64_t>(data.images.train.size());
  std::vector<Eigen::Index> which(static_cast<std::size_t>(s.batch));
  for (Eigen::Index& image : which) image = static_cast<Eigen::Index>(stream.bits() % count);
  return data::image_patches<Scalar>(data.images.train, which, s.patch);
}

/// Validation windows from number `first` on, corrupted in the same way in every run if the task does that.
template <class Scalar>
nn::Batch<Scalar> validation_batch(const Settings& s, const Data& data, Eigen::Index first) {
  auto batch = data::validation_windows<Scalar>(data.tokens.validation, s.batch, s.seq, first);
  const numeric::RandomStream stream(0, "validation.", std::to_string(first));
  if (unmasks(s)) return data::masking(std::move(batch), masks, stream);
  return denoises(s) ? data::infilling(std::move(batch), noise_of(s), stream) : batch;
}

/// How many tokens a batch of text asks for.
template <class Scalar>
double predictions(const nn::Batch<Scalar>& batch) {
  const auto none = std::count(batch.targets.begin(), batch.targets.end(), nn::no_target);
  return static_cast<double>(batch.targets.size()) - static_cast<double>(none);
}

template <class Scalar>
Score validate_text(const Settings& s, const Data& data, nn::Transformer<Scalar>& model) {
  const Eigen::Index windows = data::window_count(data.tokens.validation, s.seq);
  double nats = 0;
  double count = 0;
  for (Eigen::Index first = 0; first < windows; first += s.batch) {
    const auto batch = validation_batch<Scalar>(s, data, first);
    nats += model.loss(batch) * predictions(batch);
    count += predictions(batch);
  }
  nats /= count;
  return {nats, nats / std::log(2.0)};
}

template <class Scalar>
Score validate_images(const Settings& s, const Data& data, nn::Transformer<Scalar>& model) {
  const data::Images& images = data.images.test;
  std::vector<Eigen::Index> which;
  double nats = 0;
  Eigen::Index right = 0;
  for (Eigen::Index first = 0; first < images.size(); first += s.batch) {
    which.clear();
    for (Eigen::Index i = first; i < std::min(first + s.batch, images.size()); ++i) {
      which.push_back(i);
    }
    const auto batch = data::image_patches<Scalar>(images, which, s.patch);
    nats += model.loss(batch) * static_cast<double>(batch.size);
    for (Eigen::Index i = 0; i < batch.size; ++i) {
      Eigen::Index guess = 0;
      model.logits().row(i).maxCoeff(&guess);
      right += guess == batch.targets[static_cast<std::size_t>(i)] ? 1 : 0;
    }
  }
  const auto count = static_cast<double>(images.size());
  return {nats / count, static_cast<double>(right) / count};
}

/// The first batch of the validation part.
template <class Scalar>
nn::Batch<Scalar> first_validation_batch(const Settings& s, const Data& data) {
  if (data.text) return validation_batch<Scalar>(s, data, 0);
  std::vector<Eigen::Index> which;
  for (Eigen::Index i = 0; i < std::min<Eigen::Index>(s.batch, data.images.test.size()); ++i) {
    which.push_back(i);
  }
  return data::image_patches<Scalar>(data.images.test, which, s.patch);
}

template <class Scalar>
Score validate(const Settings& s, const Data& data, nn::Transformer<Scalar>& model) {
  return data.text ? validate_text(s, data, model) : validate_images(s, data, model);
}

}  // namespace scalewise::train
