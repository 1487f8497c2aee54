// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// shallow_encoder: how wide a shallow encoder has to be before it trains as its limiting kernel
// says: distance of the kernel to its limit, smallest eigenvalues, training, drift of the kernel
// and movement of the weights, over widths.
//
//   shallow_encoder --rule shallow-ntk --tau0 0.5 --sizes 64,256,1024 --out results
//   shallow_encoder --input-file inputs.csv --features 16

#include "scalewise/kernels/shallow_encoder.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "frame/progress.hpp"
#include "lab/programs/check/run_report.hpp"
#include "lab/programs/kernel/shallow.hpp"
#include "scalewise/check/tangent_kernel.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/kernels/shallow_conditions.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/numeric/line.hpp"
#include "scalewise/policy/rule_id.hpp"
#include "scalewise/scaling/formula.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Settings {
  std::string rule = "shallow-lecun";
  double tau0 = 0.5;
  std::vector<long> sizes{64, 256, 1024, 4096};
  long seeds = 5;
  ShallowDataSettings data;
  long steps = 100;
  double rate = 1;
};

double relative(const MatrixXd& from, const MatrixXd& to) {
  return (to - from).norm() / from.norm();
}

using Quantities = std::map<std::string, double>;

/// One network.
struct Run {
  Quantities at_start;
  std::map<long, Quantities> in_training;  // by step
};

/// One width, over seeds.
struct Measured {
  explicit Measured(const std::vector<Run>& runs) {
    for (const Run& run : runs) {
      for (const auto& [name, value] : run.at_start) at_start[name].push_back(value);
      for (const auto& [step, quantities] : run.in_training) {
        for (const auto& [name, value] : quantities) in_training[step][name].push_back(value);
      }
    }
    at_end = in_training.rbegin()->second;
  }

  std::map<std::string, std::vector<double>> at_start, at_end;
  std::map<long, std::map<std::string, std::vector<double>>> in_training;  // by step
};

/// Steps at which the kernel is looked at: powers of two and the last.
bool looked_at(long step, long steps) { return (step & (step - 1)) == 0 || step == steps; }

Run measure(const Settings& s, long width, long seed) {
  const ShallowData data = draw_shallow_data(s.data);
  const kernels::ShallowScales scales = shallow_scales_of(s.rule, s.tau0, width, s.data);
  kernels::ShallowEncoder encoder(s.data.features, scales, static_cast<std::uint64_t>(seed));
  const auto kernel = [&] { return encoder.tangent_kernel(encoder.gradients(data.inputs)); };

  const kernels::ShallowKernel first = kernel();
  // With τ₀ = d_m^-1/2 the limit depends on the scores that the network has drawn.
  const MatrixXd scores =
      s.tau0 == 1 ? MatrixXd::Zero(s.data.features, s.data.features) : encoder.scores();
  const kernels::ShallowKernel limit = kernels::shallow_kernel(data.inputs, scales, scores);
  const double size = scales.tau_1 * scales.tau_1 * static_cast<double>(width);
  const MatrixXd total = first.total();
  Run run;
  run.at_start = {{"distance", relative(limit.output + limit.value, first.output + first.value)},
                  {"distance_scores", relative(limit.query + limit.key, first.query + first.key)},
                  {"eigenvalue_output", kernels::smallest_eigenvalue(first.output) / size},
                  {"limit_output", kernels::smallest_eigenvalue(limit.output) / size},
                  {"eigenvalue", kernels::smallest_eigenvalue(total) / size},
                  {"limit", kernels::smallest_eigenvalue(limit.total()) / size}};

  const double largest = -kernels::smallest_eigenvalue(-total);
  const VectorXd initial = encoder.parameters();
  for (long step = 1; step <= s.steps; ++step) {
    encoder.step(data.inputs, data.targets, s.rate / largest);
    if (!looked_at(step, s.steps)) continue;
    run.in_training[step] = {
        {"loss", (encoder.outputs(data.inputs) - data.targets).squaredNorm() / 2},
        {"drift", relative(total, kernel().total())},
        {"movement", (encoder.parameters() - initial).norm() / initial.norm()}};
  }
  return run;
}

nlohmann::ordered_json json_of(const Quantities& quantities) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [name, value] : quantities) list.push_back({{"name", name}, {"value", value}});
  return list;
}

Quantities quantities_of(const io::JsonReader& list) {
  Quantities quantities;
  for (const io::JsonReader& one : list.items()) {
    quantities[one.at("name").string()] = number_or_nan(one.at("value"));
  }
  return quantities;
}

/// The contents of a network's file.
nlohmann::ordered_json result_json(const Run& run) {
  auto training = nlohmann::ordered_json::array();
  for (const auto& [step, quantities] : run.in_training) {
    training.push_back({{"step", step}, {"quantities", json_of(quantities)}});
  }
  return {{"start", json_of(run.at_start)}, {"training", training}};
}

/// The other way round.
Run run_of_result(const io::JsonReader& result) {
  Run run{quantities_of(result.at("start")), {}};
  for (const io::JsonReader& step : result.at("training").items()) {
    run.in_training[step.at("step").integer()] = quantities_of(step.at("quantities"));
  }
  return run;
}

/// The slope of log values against log width, every network a point.
numeric::Line slope(const std::map<long, Measured>& measured, const std::string& name, bool end) {
  std::vector<double> x, y;
  for (const auto& [width, m] : measured) {
    for (const double value : (end ? m.at_end : m.at_start).at(name)) {
      if (!(value > 0) || !std::isfinite(value)) continue;
      x.push_back(std::log(static_cast<double>(width)));
      y.push_back(std::log(value));
    }
  }
  return measured.size() < 2 ? numeric::Line{NAN, NAN, NAN} : numeric::fit_line(x, y);
}

Cells start_row(long width, const Measured& m) {
  Cells row{{"width", width}};
  for (const auto& [name, values] : m.at_start) put(row, name, check::estimate(values));
  return row;
}

void add_training(long width, const Measured& m, Section& training) {
  for (const auto& [step, quantities] : m.in_training) {
    Cells row{{"width", width}, {"step", step}};
    for (const auto& [name, values] : quantities) put(row, name, check::estimate(values));
    training.rows.push_back(row);
  }
}

/// A quantity in training, one curve for each width.
plot::Panel over_steps(const std::map<long, Measured>& measured, const std::string& title,
                       const std::string& name) {
  plot::Panel panel{title, "step", "", true, true};
  for (const auto& [width, m] : measured) {
    plot::Curve curve{"width " + std::to_string(width)};
    for (const auto& [step, quantities] : m.in_training) {
      add_point(curve, static_cast<double>(step), check::estimate(quantities.at(name)), true);
    }
    panel.curves.push_back(curve);
  }
  return panel;
}

plot::Panel over_widths(const std::map<long, Measured>& measured) {
  plot::Curve distance{"distance to the limit"};
  plot::Curve drift{"drift after training"};
  plot::Curve movement{"movement after training"};
  for (const auto& [width, m] : measured) {
    const auto at = static_cast<double>(width);
    add_point(distance, at, check::estimate(m.at_start.at("distance")), true);
    add_point(drift, at, check::estimate(m.at_end.at("drift")), true);
    add_point(movement, at, check::estimate(m.at_end.at("movement")), true);
  }
  return {"over widths", "width", "", true, true, {distance, drift, movement}};
}

bool finite(const Measured& m) {
  for (const auto& [step, quantities] : m.in_training) {
    for (const auto& [name, values] : quantities) {
      for (const double x : values) {
        if (!std::isfinite(x)) return false;
      }
    }
  }
  return true;
}

struct Judged {
  check::Verdict verdict;
  std::string reason;
};

/// Whether kernels converge, by the slope of the distance: half as fast as
/// expected is enough.
Judged judge(const numeric::Line& distance) {
  if (!std::isfinite(distance.error)) {
    return {check::Verdict::inconclusive, "too few networks for a slope"};
  }
  if (distance.slope + distance.error < -0.25) {
    return {check::Verdict::pass,
            "kernels of head and values converge to their limit as the width grows"};
  }
  if (distance.slope - distance.error > -0.25) {
    return {check::Verdict::fail, "kernels of head and values do not converge"};
  }
  return {check::Verdict::inconclusive,
          "the slope of the distance is too uncertain: more --seeds or --sizes"};
}

/// Whether the theorem's assumptions hold for the inputs of a file, and its eigenvalue of them. Scores are those of one
/// draw at the largest width.
void add_conditions(const Settings& s, const ShallowData& data, Report& report) {
  const kernels::ShallowAssumptions a = kernels::shallow_assumptions(data.inputs);
  const auto text = [](const char* about, double value, bool holds) -> Cells {
    return {{"about", about}, {"value", value}, {"holds", holds ? "yes" : "no"}};
  };
  report.sections.push_back(
      {"assumptions",
       "Assumptions of the theorem on these inputs",
       {text("largest size of an input, |X|/root of its tokens: C_x", a.bound, true),
        text("inputs whose tokens are linearly dependent", static_cast<double>(a.dependent),
             a.dependent == 0),
        text("least exponent of the tail of similarities", a.tail.least, a.tail.exist()),
        text("largest exponent of the tail of similarities", a.tail.most, a.tail.exist())}});
  const kernels::ShallowScales scales = shallow_scales_of(s.rule, s.tau0, s.sizes.back(), s.data);
  const MatrixXd scores = s.tau0 == 1 ? MatrixXd::Zero(s.data.features, s.data.features).eval()
                                      : kernels::draw_scores(scales, s.data.features, 1);
  const kernels::ShallowEigenvalue e = kernels::shallow_eigenvalue(data.inputs, scales, scores);
  report.sections.push_back({"eigenvalue",
                             "The theorem's smallest eigenvalue, and its bounds",
                             {{{"lower", e.lower},
                               {"lambda_0", e.lambda_0},
                               {"upper", e.upper},
                               {"least_attention", e.least_attention},
                               {"alpha2_of_largest_width", e.alpha_squared(scales)}}}});
  if (a.hold()) return;
  report.verdict = check::Verdict::inconclusive;
  report.reason += "; the theorem does not apply, since its assumptions do not hold";
}

/// The width from which on every network keeps a quarter of its limit's smallest eigenvalue, the first
/// condition of the proof.
void judge_width(const Settings& s, const std::map<long, Measured>& measured, std::size_t inputs,
                 Report& report) {
  long enough = 0;
  for (auto m = measured.rbegin(); m != measured.rend(); ++m) {
    const std::vector<double>& own = m->second.at_start.at("eigenvalue_output");
    const std::vector<double>& limit = m->second.at_start.at("limit_output");
    bool kept = true;
    for (std::size_t i = 0; i < own.size(); ++i) kept = kept && own[i] >= limit[i] / 4;
    if (!kept) break;
    enough = m->first;
  }
  report.verdict = enough > 0 ? check::Verdict::pass : check::Verdict::fail;
  report.reason = enough > 0 ? "width " + std::to_string(enough) + " is enough"
                             : "width " + std::to_string(s.sizes.back()) + " is not enough";
  report.reason += " for a quarter of the limit's smallest eigenvalue at initialization";
  const std::optional<int> power = kernels::width_power(s.rule == ShallowNtk::id, s.tau0);
  if (!power) return;
  report.reason += "; the theorem asks for the order of n" +
                   (*power > 1 ? "^" + std::to_string(*power) : std::string()) +
                   ", n = " + std::to_string(inputs) +
                   ", and for steps of the order of n^-1/2, without constants";
}

Report report_of(const Settings& s, const std::map<long, Measured>& measured) {
  Section start{"start",
                "At the start: distances to the limit, smallest eigenvalues/(tau_1^2 d_m)"};
  Section training{"training", "In training: loss, drift of the kernel, movement of the weights"};
  Section slopes{"slopes", "Slope of log quantity against log width, with its 95 % interval"};
  bool all_finite = true;
  for (const auto& [width, m] : measured) {
    start.rows.push_back(start_row(width, m));
    add_training(width, m, training);
    all_finite = all_finite && finite(m);
  }
  const auto add_slope = [&](const char* name, bool end) {
    const numeric::Line line = slope(measured, name, end);
    slopes.rows.push_back({{"quantity", name}, {"slope", line.slope}, {"interval", line.error}});
    return line;
  };
  const numeric::Line distance = add_slope("distance", false);
  add_slope("distance_scores", false);
  add_slope("drift", true);
  add_slope("movement", true);
  const auto [verdict, reason] =
      all_finite ? judge(distance) : Judged{check::Verdict::fail, "training diverges"};
  const std::vector<plot::Panel> panels{
      over_steps(measured, "loss", "loss"), over_steps(measured, "weight movement", "movement"),
      over_steps(measured, "drift of the kernel", "drift"), over_widths(measured)};
  Report report{{start, training, slopes},
                {"Training next to the limit of infinite width: " + s.rule + ", tau_0 = d_m^-" +
                     numeric::number_text(s.tau0),
                 panels},
                verdict,
                reason};
  if (s.data.file.empty()) return report;
  const ShallowData data = draw_shallow_data(s.data);
  judge_width(s, measured, data.inputs.size(), report);
  add_conditions(s, data, report);
  return report;
}

Report report_of(const Settings& s, const std::map<long, std::vector<Run>>& runs) {
  std::map<long, Measured> measured;
  for (const auto& [width, of_width] : runs) measured.emplace(width, of_width);
  return report_of(s, measured);
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  Program program{"shallow_encoder",
                  "How wide a shallow encoder has to be to train as its limiting kernel says."};
  const std::vector<std::string> rules{"shallow-lecun", "shallow-he", "shallow-ntk"};
  const auto rule_of = [rules](const std::string& name, const std::string& option) {
    std::string id = policy::rule_id(name, option);
    if (std::find(rules.begin(), rules.end(), id) != rules.end()) return id;
    throw InvalidInput(option, messages::printable(name), messages::listed(rules));
  };
  Options& o = *program.options;
  o.add("--rule", s->rule,
        "name of a rule, see plan --list-rules (" + messages::listed(rules) + ")")
      .names(rule_of);
  o.add("--tau0", s->tau0, "0.5 or 1: scores are times width^-tau0").from(0.5).to(1);
  o.add("--sizes", s->sizes, "sizes to compare (widths)").from(1).to(1'000'000).increasing();
  o.add("--seeds", s->seeds, "runs of each model, with a seed each").from(1).to(1000);
  o.add("--inputs", s->data.inputs, "inputs of the kernel (of training)").from(2).to(1000);
  o.add("--seq", s->data.tokens, "tokens per sequence; of a text, bytes").from(1).to(1000);
  o.add("--features", s->data.features, "features of an input token").from(1).to(1000);
  o.add("--input-file", s->data.file,
        "inputs of your own, a line of a CSV file each, its tokens one after the other (is a width "
        "enough for them?)")
      .reads()
      .excludes("--inputs")
      .excludes("--seq");
  o.add("--steps", s->steps, "optimizer steps (of gradient descent)").from(1).to(1'000'000);
  o.add("--rate", s->rate,
        "learning rate (in units of 1/largest eigenvalue of the kernel at initialization; from 2 "
        "on it diverges)")
      .above(0)
      .below(2);
  const auto cost = [](long width) { return static_cast<double>(width); };
  const RunsOf networks{{s, &s->sizes}, {s, &s->seeds}, [] { return "width"; }};
  make_report<Run>(program, networks,
                   {.make =
                        [s, cost](long width, long seed, frame::Progress& progress) {
                          Run run = measure(*s, width, seed);
                          progress.done(cost(width));
                          return run;
                        },
                    .write = result_json,
                    .read = run_of_result,
                    .report = [s](const auto& runs) { return report_of(*s, runs); },
                    .work =
                        [cost](long width) {
                          return Work{1, cost(width)};
                        },
                    .require = [s] { shallow_scales_of(s->rule, s->tau0, s->sizes[0], s->data); }});
  return program;
}
