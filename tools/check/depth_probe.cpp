// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/depth_probe.hpp"

#include <string_view>

#include "check/batch_statistics.hpp"
#include "check/network.hpp"
#include "check/network_plan.hpp"
#include "train/batches.hpp"

namespace scalewise::experiment {

Subject subject_of(const train::Settings& settings) {
  const train::Data data = train::read_data(settings);
  const nn::Batch<float> batch = train::first_validation_batch<float>(settings, data);
  const Eigen::Index rows = batch.patches.rows() > 0
                                ? batch.patches.rows()
                                : static_cast<Eigen::Index>(batch.tokens.size());
  return {network_plan(settings, data), batch_statistics(batch), sequence_pairs(batch),
          rows / batch.size};
}

std::string stream_place(long layer) {
  if (layer == 0) return "embedding";
  return to_string(
      architecture::TensorName{Stack::main, static_cast<int>(layer - 1), "mlp.stream"});
}

Measured measure_depth(train::Settings settings, long seeds,
                       const std::function<bool(double)>& done) {
  Measured m;
  for (long seed = 1; seed <= seeds; ++seed) {
    settings.seed = static_cast<std::uint64_t>(seed);
    Network network(settings);
    const auto losses = static_cast<double>(network.predictions());
    const double loss = network.observe(
        [&](std::string_view name, bool gradient, const Array& values) {
          if (name != "embedding" && !name.ends_with("mlp.stream")) return;
          check::TokenMoments moments = check::token_moments(values, network.sequences());
          if (gradient) moments.mean *= losses, moments.variance *= losses * losses;
          (gradient ? m.backward : m.forward).add(std::string(name), moments);
        },
        true);
    if (!done(loss)) break;
  }
  return m;
}

}  // namespace scalewise::experiment
