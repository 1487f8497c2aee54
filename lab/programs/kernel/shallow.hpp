// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The shallow encoder for programs: its rules by name, and synthetic data.
#pragma once

#include <Eigen/Core>
#include <string>
#include <vector>

#include "scalewise/kernels/shallow_scales.hpp"
#include "scalewise/numeric/random.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/shallow_encoder.hpp"

namespace scalewise::experiment {

struct ShallowDataSettings {
  long inputs = 16;
  long tokens = 4;
  long features = 8;
};

/// Scales of an encoder under shallow-lecun, shallow-he or shallow-ntk.
inline kernels::ShallowScales shallow_scales_of(const std::string& rule, double tau0, long width,
                                                const ShallowDataSettings& data) {
  Shape shape{.input = Input::patch, .d_model = width, .patch_dim = data.features};
  shape.depth = shape.heads = shape.classes = 1;
  shape.context = data.tokens;
  const auto with = [&]<class P>(P policy) {
    policy.tau0 = tau0;
    return kernels::shallow_scales(make_plan(policy, {.model = shape, .optimizer = sgd}));
  };
  if (rule == ShallowLeCun::id) return with(ShallowLeCun{});
  if (rule == ShallowHe::id) return with(ShallowHe{});
  return with(ShallowNtk{});
}

struct ShallowData {
  std::vector<Eigen::MatrixXd> inputs;
  Eigen::VectorXd targets;
};

/// Tokens of length one in random directions, normal targets.
inline ShallowData draw_shallow_data(const ShallowDataSettings& s) {
  ShallowData data;
  numeric::RandomStream stream(1, "shallow_encoder data");
  for (long i = 0; i < s.inputs; ++i) {
    Eigen::MatrixXd x(s.tokens, s.features);
    for (double& entry : x.reshaped()) entry = stream.normal();
    data.inputs.emplace_back(x.rowwise().normalized());
  }
  data.targets.resize(s.inputs);
  for (double& y : data.targets) y = stream.normal();
  return data;
}

}  // namespace scalewise::experiment
