// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// alignment: how strongly weight updates align with activations in training, by the exponents
// alpha, omega and nu of every kind of matrix.
//
//   alignment --rule maximal-update --sizes 64,128,256 --seeds 3 --steps 20 --out results

#include <fmt/core.h>

#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lab/programs/check/alignment_probe.hpp"
#include "lab/programs/check/experiment_report.hpp"
#include "scalewise/io/json_reader.hpp"
#include "train/options.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;

using Exponent = check::Estimate check::Alignment::*;
constexpr std::pair<const char*, Exponent> exponents[] = {{"alpha", &check::Alignment::alpha},
                                                          {"omega", &check::Alignment::omega},
                                                          {"nu", &check::Alignment::nu}};

/// A network in training, and what is measured of it.
class Training {
 public:
  explicit Training(const train::Settings& settings)
      : network_(settings), probe_(network_), alignments_(network_.loss()) {}

  /// Returns: the loss after it.
  double step() {
    network_.step();
    const double loss = network_.loss();
    alignments_.begin_step(loss);
    probe_.measure(network_, alignments_);
    return loss;
  }

  const Plan& plan() const { return network_.plan(); }
  const check::Alignments& alignments() const { return alignments_; }

 private:
  Network network_;
  AlignmentProbe probe_;
  check::Alignments alignments_;
};

check::Alignments make_run(const train::Settings& settings, frame::Progress& progress) {
  Training training(settings);
  for (long t = 0; t < settings.steps; ++t) {
    const double loss = training.step();
    progress.done(1, fmt::format("loss {:.4g}", loss));
  }
  return training.alignments();
}

/// Of the products of a step: training, the loss and what matrices read on the fixed batch, and three
/// products of every matrix with the rows that the probe keeps.
double operations_of(const train::Settings& s, const Plan& plan) {
  const auto rows =
      static_cast<double>(AlignmentProbe::rows_of(static_cast<std::size_t>(s.batch * s.seq)));
  return (1 + 2.0 / 3) * operations_of_step(s, plan) + 3 * 2 * rows * product_weights(plan);
}

std::vector<Repeated> begin_run(const train::Settings& settings) {
  const auto training = std::make_shared<Training>(settings);
  return {{settings.steps, operations_of(settings, training->plan()),
           [training] { training->step(); }}};
}

/// The contents of a run's file: means over rows, which is all that the report is of.
nlohmann::ordered_json result_json(const check::Alignments& run) {
  auto matrices = nlohmann::ordered_json::array();
  for (const std::string& name : run.matrices()) {
    nlohmann::ordered_json matrix{{"matrix", name}};
    for (const auto& [letter, exponent] : exponents) {
      auto& steps = matrix[letter] = nlohmann::ordered_json::array();
      for (std::size_t t = 1; t <= run.steps(); ++t) {
        auto& layers = steps.emplace_back(nlohmann::ordered_json::array());
        for (const check::Alignment& a : run.layers(name, t)) layers.push_back((a.*exponent).mean);
      }
    }
    matrices.push_back(matrix);
  }
  return {{"losses", run.losses()}, {"matrices", matrices}};
}

/// The other way round.
check::Alignments run_of_result(const io::JsonReader& result) {
  const std::vector<double> losses = numbers_or_nan(result.at("losses"));
  check::Alignments run(losses.at(0));
  for (std::size_t t = 1; t < losses.size(); ++t) {
    run.begin_step(losses[t]);
    for (const io::JsonReader& matrix : result.at("matrices").items()) {
      std::vector<check::Alignment> layers;
      for (const auto& [letter, exponent] : exponents) {
        const std::vector<double> means = numbers_or_nan(matrix.at(letter).items().at(t - 1));
        layers.resize(means.size());
        for (std::size_t l = 0; l < means.size(); ++l) (layers[l].*exponent).mean = means[l];
      }
      for (const check::Alignment& a : layers) run.add(matrix.at("matrix").string(), a);
    }
  }
  return run;
}

using Runs = std::vector<check::Alignments>;  // one per seed

/// Over seeds, of the mean over layers at one step.
check::Estimate at_step(const Runs& runs, const std::string& matrix, std::size_t step,
                        Exponent exponent) {
  std::vector<double> means;
  for (const auto& run : runs) means.push_back(run.over_layers(matrix, step, exponent).mean);
  return check::estimate(means);
}

/// Over seeds, of the mean over layers and, weighted by the decrease of the loss, over steps.
check::Estimate by_loss(const Runs& runs, const std::string& matrix, Exponent exponent) {
  std::vector<double> means;
  for (const auto& run : runs) {
    if (const auto mean = run.weighted(matrix, exponent)) means.push_back(*mean);
  }
  return check::estimate(means);
}

/// Over seeds, of the mean over steps of one layer.
check::Estimate of_layer(const Runs& runs, const std::string& matrix, std::size_t layer,
                         Exponent exponent) {
  std::vector<double> means;
  for (const auto& run : runs) means.push_back(run.by_layer(matrix, exponent)[layer]);
  return check::estimate(means);
}

/// A row with the three exponents; average(exponent) says how they are averaged.
template <class Average>
Cells row_of(Cells row, const Average& average) {
  for (const auto& [name, exponent] : exponents) put(row, name, average(exponent));
  return row;
}

plot::Panel panel(const char* name, const Runs& runs, Exponent exponent) {
  plot::Panel panel;
  panel.title = panel.y_label = name;
  panel.x_label = "step";
  for (const std::string& matrix : runs[0].matrices()) {
    plot::Curve curve;
    curve.label = matrix;
    for (std::size_t t = 1; t <= runs[0].steps(); ++t) {
      curve.x.push_back(static_cast<double>(t));
      curve.y.push_back(at_step(runs, matrix, t, exponent).mean);
    }
    curve.points = false;
    panel.curves.push_back(curve);
  }
  return panel;
}

/// The sections of the report.
struct Sections {
  Section averages{"averages", "Alignment exponents, mean over layers and seeds"};
  Section layers{.name = "layers", .caption = "", .in_text = false};
  Section steps{.name = "steps", .caption = "", .in_text = false};
  Section losses{.name = "losses", .caption = "", .in_text = false};
};

void add_matrix(const Cells& begin, const Runs& runs, const std::string& matrix,
                Sections& sections) {
  const auto at = [&](std::size_t step) {
    return [&, step](Exponent x) { return at_step(runs, matrix, step, x); };
  };
  const auto row = [&](const char* name, const Value& value) {
    Cells first = begin;
    first.emplace_back("matrix", matrix);
    first.emplace_back(name, value);
    return first;
  };
  const std::size_t steps = runs[0].steps();
  std::vector<Cells>& averages = sections.averages.rows;
  averages.push_back(row_of(row("average", "first step"), at(1)));
  averages.push_back(row_of(row("average", "last step"), at(steps)));
  averages.push_back(
      row_of(row("average", "by loss"), [&](Exponent x) { return by_loss(runs, matrix, x); }));
  const std::size_t layers = runs[0].by_layer(matrix, &check::Alignment::alpha).size();
  for (std::size_t l = 0; l < layers && matrix != AlignmentProbe::all_hidden; ++l) {
    sections.layers.rows.push_back(row_of(row("layer", static_cast<long>(l)), [&](Exponent x) {
      return of_layer(runs, matrix, l, x);
    }));
  }
  for (std::size_t t = 1; t <= steps; ++t) {
    sections.steps.rows.push_back(row_of(row("step", static_cast<long>(t)), at(t)));
  }
}

/// Returns: whether all losses are finite.
bool add_losses(const Cells& begin, const Runs& runs, Sections& sections) {
  bool finite = true;
  for (std::size_t t = 0; t <= runs[0].steps(); ++t) {
    std::vector<double> of_seeds;
    for (const auto& run : runs) {
      of_seeds.push_back(run.losses()[t]);
      finite = finite && std::isfinite(of_seeds.back());
    }
    Cells row = begin;
    row.emplace_back("step", static_cast<long>(t));
    put(row, "loss", check::estimate(of_seeds));
    sections.losses.rows.push_back(row);
  }
  return finite;
}

Report report_of(const Experiment& e, const std::map<long, Runs>& runs) {
  Report report;
  report.reason = "all losses are finite; what exponents should be is not judged";
  Sections sections;
  for (const auto& [size, of_size] : runs) {
    const Cells begin{{axis_name(e), size}};
    for (const std::string& matrix : of_size[0].matrices()) {
      add_matrix(begin, of_size, matrix, sections);
    }
    if (add_losses(begin, of_size, sections)) continue;
    report.verdict = check::Verdict::fail;
    report.reason = "a loss is not finite";
  }
  report.sections = {sections.averages, sections.layers, sections.steps, sections.losses};
  const long largest = e.sizes.back();
  report.figure.title = "How strongly updates align with activations: " + e.model.rule + ", " +
                        axis_name(e) + " " + std::to_string(largest);
  for (const auto& [name, exponent] : exponents) {
    report.figure.panels.push_back(panel(name, runs.at(largest), exponent));
  }
  return report;
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto e = std::make_shared<Experiment>();
  e->model.rule = "maximal-update";
  e->sizes = {64, 128, 256};
  e->seeds = 3;
  e->model.steps = 20;
  Program program{"alignment",
                  "Alignment exponents alpha, omega and nu of every kind of matrix in training."};
  add_options(*program.options, *e);
  e->model.warmup = 0;
  e->model.schedule = nn::Decline::constant;
  train::add_schedule_options(*program.options, e->model);
  program.check = [e] {
    if (e->model.warmup < 0) e->model.warmup = e->model.steps / 20;
  };
  const auto make = [e](long size, long seed, frame::Progress& progress) {
    return make_run(settings_at(*e, size, seed), progress);
  };
  experiment_program<check::Alignments>(
      program, e,
      {.make = make,
       .write = result_json,
       .read = run_of_result,
       .report = [e](const std::map<long, Runs>& runs) { return report_of(*e, runs); }},
      begin_run);
  return program;
}
