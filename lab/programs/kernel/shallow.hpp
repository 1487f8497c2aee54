// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The shallow encoder for programs: its rules by name, and inputs that are drawn or read.
#pragma once

#include <Eigen/Core>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "planning/set_option.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/csv_cells.hpp"
#include "scalewise/kernels/shallow_scales.hpp"
#include "scalewise/numeric/random.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/shallow_encoder.hpp"

namespace scalewise::experiment {

struct ShallowDataSettings {
  long inputs = 16;
  long tokens = 4;
  long features = 8;
  std::string file = {};  // of inputs; empty: they are drawn
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

/// An input per line of a CSV file, its tokens one after the other.
/// Throws:   InvalidInput for fewer than two inputs, and a line that is not whole tokens of finite numbers.
inline std::vector<Eigen::MatrixXd> read_shallow_inputs(const ShallowDataSettings& s) {
  std::vector<Eigen::MatrixXd> inputs;
  std::istringstream lines(files::read_file(s.file, std::size_t{1} << 30U));
  long number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string place = s.file + ", line " + std::to_string(++number);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const std::vector<std::string> cells = io::csv_cells(line, place);
    const auto count = static_cast<Eigen::Index>(cells.size());
    if (count % s.features != 0) {
      throw InvalidInput(place, std::to_string(count) + " numbers",
                         "whole tokens of --features = " + std::to_string(s.features));
    }
    Eigen::MatrixXd x(count / s.features, s.features);
    for (Eigen::Index i = 0; i < count; ++i) {
      const std::string& cell = cells[static_cast<std::size_t>(i)];
      x(i / s.features, i % s.features) = tools::number_of(place, cell);
    }
    inputs.push_back(std::move(x));
  }
  if (inputs.size() < 2) {
    throw InvalidInput(s.file, std::to_string(inputs.size()) + " inputs",
                       "at least 2, a line each");
  }
  return inputs;
}

/// Tokens of length one in random directions, or those of the file; normal targets.
inline ShallowData draw_shallow_data(const ShallowDataSettings& s) {
  ShallowData data;
  numeric::RandomStream stream(1, "shallow_encoder data");
  if (!s.file.empty()) data.inputs = read_shallow_inputs(s);
  for (long i = 0; i < s.inputs && s.file.empty(); ++i) {
    Eigen::MatrixXd x(s.tokens, s.features);
    for (double& entry : x.reshaped()) entry = stream.normal();
    data.inputs.emplace_back(x.rowwise().normalized());
  }
  data.targets.resize(static_cast<Eigen::Index>(data.inputs.size()));
  for (double& y : data.targets) y = stream.normal();
  return data;
}

}  // namespace scalewise::experiment
