// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Batches of the data, and how well a model does on its validation part. A batch depends on seed and step only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "instances/transformer.hpp"
#include "scalewise/data/infilling.hpp"
#include "scalewise/data/masking.hpp"
#include "scalewise/data/windows.hpp"
#include "train/data.hpp"

namespace scalewise::train {

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
