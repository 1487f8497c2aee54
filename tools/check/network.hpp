// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The reference transformer with an interface that is quick to compile: library check_reference.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "scalewise/check/matrix_view.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/propagation/data.hpp"
#include "train/settings.hpp"

namespace scalewise::experiment {

using Array = check::MatrixView<float>;

/// One model in single precision that learns a text or digits, and a fixed batch of the validation
/// part to look at it.
class Network {
 public:
  /// Reads the data, makes the plan, and draws the initial values of the settings' seed.
  explicit Network(const train::Settings& settings);
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  const Plan& plan() const;

  /// All parameters in the order of the plan, and one tensor of them.
  std::span<const float> values() const;
  Array tensor(std::size_t entry) const;

  /// One step of training. Returns: the loss before it.
  double step();

  /// The fixed batch: its sequences, how many losses are averaged, and what its data are like.
  std::size_t sequences() const;
  std::size_t predictions() const;
  propagation::Data statistics() const;
  double loss();

  /// Called with what nn::Observer sees on the fixed batch; the views hold until the call returns.
  using Observer = std::function<void(std::string_view name, bool gradient, const Array& values)>;
  /// Forward, and backward where gradients are wanted. Returns: the loss.
  double observe(const Observer& observer, bool gradients);

  /// The tokens that the text continues with most often.
  std::vector<int> frequent_tokens(std::size_t count) const;

  /// The gradient of the logit of `token` after sequence number `sequence` of the fixed batch.
  /// Shapes:   as values()
  void logit_gradient(std::size_t sequence, int token, std::span<float> gradient);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace scalewise::experiment
