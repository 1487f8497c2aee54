// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Tells early when training goes nowhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "scalewise/nn/parameters.hpp"
#include "train/settings.hpp"

namespace scalewise::train {

/// Training that will not recover.
class Diverged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Looks at every step's loss and gradient before the step is made.
class DivergenceWatch {
 public:
  /// Requires: `guess`, the loss of a model that knows nothing: log(classes).
  DivergenceWatch(const Settings& settings, double guess) : settings_(settings), guess_(guess) {}

  /// Throws:   Diverged when loss or gradient is not finite, or when the loss has been far above
  ///           where it started for long.
  template <class Scalar>
  void check(long step, double loss, double gradient_norm,
             const nn::Parameters<Scalar>& parameters) {
    if (!std::isfinite(loss)) {
      fail(step, "the loss is not finite, and " + first_not_finite(parameters));
    }
    if (!std::isfinite(gradient_norm)) {
      fail(step,
           "the loss is " + numeric::exact_text(loss) + ", but " + first_not_finite(parameters));
    }
    if (step == 1) first_ = loss;
    high_ = good(loss) ? 0 : high_ + 1;
    if (high_ >= patience) {
      fail(step, "the loss has been above " + numeric::exact_text(limit()) + " for " +
                     std::to_string(patience) + " steps, and it started at " +
                     numeric::exact_text(first_));
    }
  }

  /// The same for the loss of validation.
  void check_validation(long step, double nats) const {
    if (!std::isfinite(nats)) fail(step, "the validation loss is not finite");
  }

  /// The same for the loss of the parameters that a run ends with.
  void check_end(long step, double loss) const {
    if (good(loss)) return;
    fail(step, "the loss at the end is " + numeric::exact_text(loss) + ", above " +
                   numeric::exact_text(limit()) + ", and it started at " +
                   numeric::exact_text(first_));
  }

  /// Whether parameters of this loss are worth keeping: finite, and not far above the start.
  bool good(double loss) const { return std::isfinite(loss) && loss <= limit(); }

  std::vector<files::Setting> notes() const {
    return {{"first loss", numeric::exact_text(first_)},
            {"steps far above", std::to_string(high_)}};
  }

  /// Throws:   InvalidInput for a note that notes() does not write.
  void recall(const std::vector<files::Setting>& notes) {
    for (const auto& [name, value] : notes) {
      if (name == "first loss") {
        first_ = number_of<double>(name, value, 0, std::numeric_limits<double>::max(),
                                   "a finite loss, as every checkpoint has");
      } else if (name == "steps far above") {
        high_ = number_of<long>(name, value, 0, patience, "a number of steps below the limit");
      }
    }
  }

 private:
  double limit() const { return far * std::max(first_, guess_); }

  static constexpr double far = 1.5;
  static constexpr long patience = 50;

  /// Numbers go bad where they are made and spread toward the input, so the search is backward.
  template <class Scalar>
  static std::string first_not_finite(const nn::Parameters<Scalar>& parameters) {
    for (std::size_t i = parameters.size(); i-- > 0;) {
      if (!parameters.gradient(i).allFinite()) {
        return "the gradient of " + parameters.name(i) +
               " is the first, from the loss back, that is not finite";
      }
    }
    return "every gradient by itself is finite";
  }

  [[noreturn]] void fail(long step, const std::string& why) const {
    throw Diverged("training diverged at step " + std::to_string(step) + ": " + why +
                   "; try a lower --rate than " + numeric::exact_text(settings_.rate) +
                   ", a longer --warmup than " + std::to_string(settings_.warmup) +
                   (settings_.clip > 0 ? ", or a lower --clip" : ", or --clip 1"));
  }

  const Settings& settings_;
  double guess_;
  double first_ = 0;
  long high_ = 0;
};

}  // namespace scalewise::train
