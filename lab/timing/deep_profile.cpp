// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// deep_profile: time of predicting the moments of a very deep model, both ways.
//
//   deep_profile --depth 10000 --rounds 51

#include <CLI/CLI.hpp>
#include <chrono>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "machine.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/propagation/depth_methods.hpp"
#include "summary.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::propagation;

struct Subject {
  DepthMethod method;
  NormPlacement placement;
  Layers layers;
  std::vector<double> milliseconds = {};
};

double milliseconds(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

nlohmann::ordered_json run(long depth, long rounds) {
  if (rounds < 1) throw InvalidInput("--rounds", std::to_string(rounds), "a positive number");
  const double load = benchmark::load_average();
  std::vector<Subject> subjects;
  for (const DepthMethod method : {DepthMethod::vanilla, DepthMethod::deep_scale_lm}) {
    for (const NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
      DepthModel m;
      m.placement = placement;
      subjects.push_back({method, placement, depth_layers(method, m, depth)});
    }
  }
  const SignalMoments input = correlated(1, 0.2);
  const SignalMoments gradient = correlated(1, 0.5);
  double sum = 0;  // so that no profile can be left out
  for (long round = 0; round <= rounds; ++round) {
    for (Subject& s : subjects) {
      const double time = milliseconds(
          [&] { sum += propagate(s.layers, input, gradient).forward.back().correlation(); });
      if (round > 0) s.milliseconds.push_back(time);  // the first warms up
    }
  }
  nlohmann::ordered_json report{{"schema", "scalewise.deep_profile/1"},
                                {"processor", benchmark::cpu_model()},
                                {"load_average", load},
                                {"depth", depth},
                                {"rounds", rounds},
                                {"sum_of_correlations", sum}};
  for (const Subject& s : subjects) {
    report["profiles"].push_back(
        {{"method", word(depth_method_words, s.method)},
         {"placement", word(architecture::norm_placement_words, s.placement)},
         {"milliseconds", benchmark::summary(s.milliseconds)}});
  }
  return report;
}

}  // namespace

int main(int argc, char** argv) {
  long depth = 10'000;
  long rounds = 51;
  CLI::App app{"Time of predicting the moments of a deep model, both ways.", "deep_profile"};
  app.add_option("--depth", depth, "layers")->capture_default_str();
  app.add_option("--rounds", rounds, "profiles of each model, in turn")->capture_default_str();
  try {
    app.parse(argc, argv);
    std::cout << run(depth, rounds).dump(1) << '\n';
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << "deep_profile: " << error.what() << '\n';
    return 2;
  }
}
