// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// signal_propagation: variance and token correlation, forward and backward, through the layers of
// untrained models under a rule.
//
//   signal_propagation --rule standard --sizes 256 --depth 12 --placement post --out results

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "check/network.hpp"
#include "lab/programs/check/program.hpp"
#include "scalewise/check/profile.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;
using Moments = check::MeasuredProfile::Estimates;

/// Models of one size that differ in their initial values.
struct Measured {
  check::MeasuredProfile forward;
  check::MeasuredProfile backward;
  bool finite = true;
};

/// The input of the first layer, the outputs of the blocks, and the stream after them.
bool shown(std::string_view name) {
  return name == "embedding" || name == "final_hidden" || name.ends_with(".output") ||
         name.ends_with(".stream");
}

/// Gradients are those of the sum of the losses of all tokens, so that the batch's size drops out.
void measure(Network& network, Measured& m) {
  network.observe(
      [&](std::string_view name, bool gradient, const Array& values) {
        if (!shown(name)) return;
        check::TokenMoments of = check::token_moments(values, network.sequences());
        const auto tokens = static_cast<double>(values.rows);
        if (gradient) of.mean *= tokens, of.variance *= tokens * tokens;
        m.finite = m.finite && std::isfinite(of.variance);
        (gradient ? m.backward : m.forward).add(std::string(name), of);
      },
      true);
}

/// The stream from the embedding to the last block.
std::vector<std::string> stream(const check::MeasuredProfile& profile) {
  std::vector<std::string> places;
  for (const std::string& place : profile.places()) {
    if (place == "embedding" || place.ends_with(".stream")) places.push_back(place);
  }
  return places;
}

/// Growth of the stream per layer, of every network, along the direction in which it goes.
check::Estimate growth(const check::MeasuredProfile& profile,
                       const std::vector<std::string>& along) {
  std::vector<double> factors;
  for (std::size_t seed = 0; seed < profile.variances(along[0]).size(); ++seed) {
    std::vector<double> variances;
    for (const std::string& place : along) {
      if (place == "embedding" || place.ends_with("mlp.stream")) {
        variances.push_back(profile.variances(place)[seed]);
      }
    }
    factors.push_back(check::growth_per_layer(variances));
  }
  return check::estimate(factors);
}

plot::Curve curve(const std::string& label, const check::MeasuredProfile& profile,
                  const std::vector<std::string>& along, check::Estimate Moments::*quantity) {
  plot::Curve c{label};
  for (std::size_t i = 0; i < along.size(); ++i) {
    add_point(c, static_cast<double>(i) / 2, profile.at(along[i]).*quantity);
  }
  return c;
}

/// A row per place, forward and backward side by side.
void add_places(const Cells& size, const Measured& m, Section& places) {
  for (const std::string& place : m.forward.places()) {
    const Moments forward = m.forward.at(place);
    const Moments backward = m.backward.at(place);
    Cells row = size;
    row.emplace_back("place", place);
    row.emplace_back("mean", forward.mean.mean);
    put(row, "variance", forward.variance);
    put(row, "correlation", forward.correlation);
    put(row, "gradient_variance", backward.variance);
    put(row, "gradient_correlation", backward.correlation);
    places.rows.push_back(row);
  }
}

Report report_of(const Experiment& e, const std::map<long, Measured>& measured) {
  Section places{"places", "Variance and token correlation, mean over seeds"};
  Section growths{"growth", "Growth of the stream's variance per layer"};
  plot::Panel variance{.title = "variance of the stream", .x_label = "layer", .log_y = true};
  plot::Panel gradient{.title = "variance of its gradient", .x_label = "layer", .log_y = true};
  plot::Panel correlation{.title = "correlation of tokens", .x_label = "layer"};
  bool finite = true;
  for (const auto& [size, m] : measured) {
    add_places({{axis_name(e), size}}, m, places);
    const std::vector<std::string> along = stream(m.forward);
    Cells row{{axis_name(e), size}};
    put(row, "forward", growth(m.forward, along));
    put(row, "backward", growth(m.backward, {along.rbegin(), along.rend()}));
    growths.rows.push_back(row);
    const std::string label = axis_name(e) + " " + std::to_string(size);
    variance.curves.push_back(curve(label, m.forward, along, &Moments::variance));
    gradient.curves.push_back(curve(label, m.backward, along, &Moments::variance));
    correlation.curves.push_back(curve(label, m.forward, along, &Moments::correlation));
    finite = finite && m.finite;
  }
  return {{places, growths},
          {"Signal propagation, " + e.model.rule, {variance, gradient, correlation}},
          finite ? check::Verdict::pass : check::Verdict::fail,
          finite ? "all variances are finite; what they should be is not judged"
                 : "a variance is not finite"};
}

Report run(const Experiment& e) {
  const auto networks = static_cast<long>(e.sizes.size()) * e.seeds;
  std::map<long, Measured> measured;
  long runs = 0;
  {
    frame::Progress progress("networks", networks);
    runs = for_each_run(e.sizes, e.seeds, [&](long size, long seed) {
      Network network(settings_at(e, size, seed));
      measure(network, measured[size]);
      progress.done();
    });
  }
  Report report = report_of(e, measured);
  if (runs < networks) stopped_early(report, runs, networks);
  return report;
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto e = std::make_shared<Experiment>();
  e->sizes = {64, 128, 256};
  e->model.depth = 6;
  Program program{"signal_propagation",
                  "Variance and token correlation through the layers of untrained models."};
  add_options(*program.options, *e, false);
  experiment_program(program, e, [e] { return ::run(*e); });
  return program;
}
