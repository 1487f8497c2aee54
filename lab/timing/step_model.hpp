// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#pragma once

#include <cstdint>
#include <vector>

#include "scalewise/nn/initialize.hpp"
#include "scalewise/nn/train_step.hpp"
#include "scalewise/scalewise.hpp"
#include "step_settings.hpp"

namespace scalewise::benchmark {

/// Deviation of the initial weights, of both models.
inline constexpr double init_std = 0.02;

inline Shape step_shape(const StepSettings& s, long width) {
  Shape shape{.d_model = width, .depth = s.depth, .heads = s.heads_at(width), .context = s.seq};
  shape.vocab = s.vocab;
  shape.tied_head = false;
  return shape;
}

/// Our side of the benchmark: a pre-norm GPT in single precision, AdamW and random tokens.
class StepModel {
 public:
  StepModel(const StepSettings& s, long width)
      : plan_(make_plan(Gpt2{}, {.model = step_shape(s, width)})),
        model_(plan_, nn::Config{}, nn::Gradients::block_by_block),
        optimizer_(plan_, {.rate = 1e-4, .weight_decay = 0.1}) {
    nn::initialize(model_.parameters(), plan_, 1);
    numeric::RandomStream stream(1, "tokens");
    const auto id = [&] {
      return static_cast<int>(stream.bits() % static_cast<std::uint64_t>(s.vocab));
    };
    for (nn::Batch<float>& batch : batches_) {
      batch.size = s.batch;
      for (long i = 0; i < s.batch * s.seq; ++i) {
        batch.tokens.push_back(id());
        batch.targets.push_back(id());
      }
    }
  }

  std::int64_t parameters() const { return plan_.parameter_count(); }

  /// Forward, backward and update. Returns the loss before the update, in nats.
  double step() {
    const double loss = nn::train_step(model_, optimizer_, batches_[next_]);
    next_ = (next_ + 1) % batches_.size();
    return loss;
  }

 private:
  Plan plan_;
  nn::Transformer<float> model_;
  nn::PlannedOptimizer<float> optimizer_;
  std::vector<nn::Batch<float>> batches_ = std::vector<nn::Batch<float>>(4);
  std::size_t next_ = 0;
};

}  // namespace scalewise::benchmark
