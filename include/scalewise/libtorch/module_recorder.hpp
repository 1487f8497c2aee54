// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/check/recorder.hpp"
#include "scalewise/libtorch/attention_layout.hpp"
#include "scalewise/libtorch/planned_module.hpp"

namespace scalewise::libtorch {

/// Records a training run for the coordinate check: forward passes give it activations, and step() takes
/// the optimizer's step. Train on the same batch in every step. Of the passes between two steps the first that
/// keeps gradients counts; it ends with the logits.
/// Units:    the size of a run is the width, or what the check compares
class ModuleRecorder {
 public:
  ModuleRecorder(PlannedModule planned, check::Run run)
      : planned_(std::move(planned)), recorder_(run, planned_.named.plan) {}

  // Hooks of the logits know where it is.
  ModuleRecorder(const ModuleRecorder&) = delete;
  ModuleRecorder& operator=(const ModuleRecorder&) = delete;

  /// An activation, by the name of an observable: "embedding", "layer.0.attention.output",
  /// "layer.0.mlp.output", "layer.0.mlp.stream", "final_hidden", "logits".
  /// Shapes:   of an attention's output (batch, tokens, width)
  /// Throws:   std::invalid_argument, before the first step, where the attention uses query, key and value
  ///           otherwise than the plan says.
  void activation(const std::string& name, const at::Tensor& value) {
    if (done_ || !torch::GradMode::is_enabled()) return;  // an evaluation
    if (step_ == 0 && name.ends_with("attention.output")) check_layout(name, value);
    const at::Tensor values = flat(value);
    recorder_.record(name, values.data_ptr<double>(), static_cast<std::size_t>(values.numel()),
                     step_);
    if (name != "logits") return;
    done_ = true;
    if (!value.requires_grad()) return;
    value.register_hook([this, step = step_](const at::Tensor& gradient) {
      const at::Tensor entries = flat(gradient);
      recorder_.record_gradient("logits", entries.data_ptr<double>(),
                                static_cast<std::size_t>(entries.numel()), step);
    });
  }

  /// Records gradients, takes the optimizer's step, and records what it has added; the first time initial values as well.
  void step(torch::optim::Optimizer& optimizer) {
    if (step_ == 0) record_initial();
    list_changed();
    for_each_part([&](const std::string& entry, std::size_t i, const dialect::OwnedPart& part) {
      const at::Tensor& gradient = planned_.parameters[i].grad();
      if (!gradient.defined()) return;
      const at::Tensor values = flat(detail::part_of(gradient, part));
      recorder_.record_gradient(entry, values.data_ptr<double>(),
                                static_cast<std::size_t>(values.numel()), step_);
    });
    optimizer.step();
    ++step_;
    done_ = false;
    for_each_part([&](const std::string& entry, std::size_t i, const dialect::OwnedPart& part) {
      if (rounds_updates(i)) return;
      const at::Tensor added = planned_.parameters[i].detach() - values_[i];
      const at::Tensor values = flat(detail::part_of(added, part));
      recorder_.record_update(entry, values.data_ptr<double>(),
                              static_cast<std::size_t>(values.numel()), step_);
    });
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i].copy_(planned_.parameters[i].detach());
    }
  }

  const check::Records& records() const { return recorder_.records(); }

  /// Layers whose order of query, key and value could not be checked, with the reason, and tensors that something else
  /// than step() has changed between two steps, as an average, clamping or another optimizer, or whose updates are left
  /// out since 16 bits round them.
  const std::vector<std::string>& unchecked() const { return unchecked_; }

 private:
  static at::Tensor flat(const at::Tensor& tensor) {
    return tensor.detach().to(at::kCPU, at::kDouble).contiguous().view({-1});
  }

  /// Compares values with those that the last step left, and keeps them.
  void list_changed() {
    for (std::size_t i = 0; i < planned_.parameters.size(); ++i) {
      const at::Tensor now = planned_.parameters[i].detach();
      if (values_.size() == i) values_.push_back(now.clone());
      at::Tensor& kept = values_[i];
      kept = kept.to(now.options());  // a module may move between devices
      const at::Tensor none = kept.ne(kept).logical_and(now.ne(now));  // not a number
      if (kept.eq(now).logical_or(none).all().item<bool>()) continue;
      kept.copy_(now);
      const std::string line =
          planned_.tensor(i).name + ": changed between steps, which updates do not show";
      if (std::find(unchecked_.begin(), unchecked_.end(), line) == unchecked_.end()) {
        unchecked_.push_back(line);
      }
    }
  }

  template <class Visitor>
  void for_each_part(Visitor&& visit) const {
    for (std::size_t i = 0; i < planned_.parameters.size(); ++i) {
      for (const dialect::OwnedPart& part : planned_.tensor(i).parts) visit(part.entry, i, part);
    }
  }

  /// Numbers of 16 bits are as far apart as a step is long.
  bool rounds_updates(std::size_t i) const {
    const at::ScalarType type = planned_.parameters[i].scalar_type();
    return type == at::kHalf || type == at::kBFloat16;
  }

  void record_initial() {
    for (std::size_t i = 0; i < planned_.parameters.size(); ++i) {
      if (!rounds_updates(i)) continue;
      unchecked_.push_back(planned_.tensor(i).name +
                           ": updates are not recorded, as 16 bits round them");
    }
    for_each_part([&](const std::string& entry, std::size_t i, const dialect::OwnedPart& part) {
      const at::Tensor values = flat(detail::part_of(planned_.parameters[i], part));
      recorder_.record_parameter(entry, values.data_ptr<double>(),
                                 static_cast<std::size_t>(values.numel()), 0);
    });
  }

  void check_layout(const std::string& name, const at::Tensor& output) {
    const std::string layer = name.substr(0, name.rfind("attention.output"));
    const detail::AttentionLayout found = detail::attention_layout(planned_, layer, output);
    unchecked_.insert(unchecked_.end(), found.unchecked.begin(), found.unchecked.end());
    messages::require_none("the attention is not laid out as the plan says:", found.problems);
  }

  PlannedModule planned_;
  check::Recorder recorder_;
  std::vector<std::string> unchecked_;
  std::vector<at::Tensor> values_;  // before the step under way, or after the last one
  long step_ = 0;
  bool done_ = false;
};

}  // namespace scalewise::libtorch
