// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/network_plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "check/batch_statistics.hpp"
#include "frame/progress.hpp"
#include "planning/rule_options.hpp"
#include "planning/set_option.hpp"
#include "train/batches.hpp"
#include "train/model.hpp"

namespace scalewise::experiment {

namespace {

/// Of all images, or of up to 256 sequences of a text's validation part: the same for every seed.
propagation::Data statistics_of(const train::Settings& s, const train::Data& data) {
  if (data.text) {
    train::Settings many = s;
    many.batch = 256;
    return batch_statistics(train::validation_batch<float>(many, data, 0));
  }
  propagation::Data all{.patch_power = 0};
  for (const data::Images* part : {&data.images.train, &data.images.test}) {
    std::vector<Eigen::Index> which(static_cast<std::size_t>(part->size()));
    std::iota(which.begin(), which.end(), 0);
    const propagation::Data of =
        batch_statistics(data::image_patches<float>(*part, which, s.patch));
    const double power = of.patch_power * static_cast<double>(part->size());
    all.patch_power += power;
    all.patch_correlation += power * of.patch_correlation;
  }
  all.patch_correlation /= all.patch_power;
  all.patch_power /= static_cast<double>(data.images.train.size() + data.images.test.size());
  return all;
}

/// The token correlation of the input before dropout, to four decimals.
/// Equation: mean over tables of entries of equal variance: how often tokens, or segments, are the same, 0 of
///           positions; a table of patches counts as the mean square of their entries
double input_correlation(const Shape& shape, const propagation::Data& data) {
  const bool patches = shape.input == Input::patch;
  const double content = patches ? data.patch_power : 1;
  const double segments = shape.segments > 0 ? 1 : 0;
  const double shared =
      content * (patches ? data.patch_correlation : data.repeats) + segments * data.segment_repeats;
  const double all = content + segments + (shape.learned_positions ? 1 : 0);
  return std::round(1e4 * shared / all) / 1e4;
}

/// Says where --set plans a run with other numbers than it has; those of the data to a tenth.
void say_what_differs(const train::Settings& s, double correlation) {
  Shape unused;
  for (const Parameter& p : tools::set_target(s.set, unused)) {
    const bool of_data = p.name == "input_correlation";
    if (!of_data && p.name != "dropout") continue;
    const double own = of_data ? correlation : s.dropout;
    if (std::abs(p.value - own) <= (of_data ? 0.1 * own : 0)) continue;
    frame::say_once(fmt::format("note: planned with {}={:g}, but {} has {:g}", p.name, p.value,
                                of_data ? "the data" : "the run", own));
  }
}

}  // namespace

Plan network_plan(const train::Settings& settings, const train::Data& data, const Shape& shape) {
  if (!tools::has_parameter(settings.rule, "input_correlation")) {
    return train::plan_of(settings, shape);
  }
  const auto plan_at = [&](double correlation) {
    train::Settings told = settings;
    told.parameters = {{"dropout", settings.dropout}};
    if (correlation > 0) told.parameters.push_back({"input_correlation", correlation});
    told.parameters.insert(told.parameters.end(), settings.parameters.begin(),
                           settings.parameters.end());
    return train::plan_of(told, shape);
  };
  const double correlation = input_correlation(plan_at(1).shape, statistics_of(settings, data));
  say_what_differs(settings, correlation);
  return plan_at(correlation);
}

}  // namespace scalewise::experiment
