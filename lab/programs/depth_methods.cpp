// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// depth_methods: how moments and sensitivity of deep transformers grow with depth, method by method,
// from the recursion of signal propagation.
//
//   depth_methods --sizes 192,384,768 --out results

#include <fmt/core.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/report.hpp"
#include "frame/program.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/io/fit_table.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/plot/figure.hpp"
#include "scalewise/propagation/growth.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::propagation;

struct Settings {
  std::vector<long> depths{192, 384, 768};
  long width = 1024;
  long seq = 256;
  double gradient_correlation = 0.8;
  Reading reading = Reading::corrected;
  frame::Format format = frame::Format::table;
  std::string out;
  DepthModel model;
};

std::string digits(double x) { return fmt::format("{:.3g}", x); }

/// A method with norms at one place: exponents of N, and the numbers of the deepest model.
struct Row {
  std::string method;
  std::string norm;
  GrowthOrders orders;
  DepthPoint deepest;

  bool exponential() const { return std::abs(orders.gradient) > 3; }  // no power of N
};

Row row(DepthMethod method, const Settings& o, Reading reading) {
  std::vector<DepthPoint> points;
  for (const long depth : o.depths) {
    points.push_back(
        depth_point(propagate(depth_layers(method, o.model, depth),
                              correlated(1, o.model.input_correlation * (1 - o.model.dropout)),
                              correlated(1, o.gradient_correlation), reading)));
  }
  return {std::string(word(depth_method_words, method)),
          std::string(word(architecture::norm_placement_words, o.model.placement)),
          growth_orders(points), points.back()};
}

std::vector<std::string> cells(const Row& row) {
  const GrowthOrders& g = row.orders;
  const DepthPoint& last = row.deepest;
  return {
      row.method,
      row.norm,
      "N^" + digits(g.forward),
      row.exponential() ? "e^(" + digits(g.gradient_per_layer) + " N)" : "N^" + digits(g.gradient),
      last.mean_sensitivity > 0 ? "N^" + digits(g.mean_sensitivity) : "0",
      last.median_sensitivity > 0 ? "N^" + digits(g.median_sensitivity) : "0",
      digits(last.forward),
      digits(last.gradient),
      digits(last.mean_sensitivity),
      digits(last.median_sensitivity)};
}

/// Orders are exponents of N. A gradient that grows exponentially has its growth per layer instead; the
/// other of the two is null.
nlohmann::ordered_json to_json(const Row& row) {
  using Json = nlohmann::ordered_json;
  const GrowthOrders& g = row.orders;
  const DepthPoint& last = row.deepest;
  const bool exponential = row.exponential();
  return {{"method", row.method},
          {"norm", row.norm},
          {"orders",
           {{"forward", g.forward},
            {"gradient", exponential ? Json(nullptr) : Json(g.gradient)},
            {"gradient_per_layer", exponential ? Json(g.gradient_per_layer) : Json(nullptr)},
            {"mean_sensitivity", last.mean_sensitivity > 0 ? g.mean_sensitivity : 0},
            {"median_sensitivity", last.median_sensitivity > 0 ? g.median_sensitivity : 0}}},
          {"deepest",
           {{"forward", last.forward},
            {"gradient", last.gradient},
            {"mean_sensitivity", last.mean_sensitivity},
            {"median_sensitivity", last.median_sensitivity}}}};
}

/// The correlation of tokens after an MLP against that before it, with dropout and without.
plot::Panel mlp_panel(double dropout) {
  plot::Panel panel{"MLP: correlation after", "correlation before", "", false, false, {}};
  for (const double p : {0.0, dropout}) {
    plot::Curve curve;
    curve.label = "MLP, dropout " + digits(p);
    curve.points = false;
    for (int i = 0; i <= 50; ++i) {
      const double r = i / 50.0;
      curve.x.push_back(r);
      curve.y.push_back((1 - p) * relu_product(r));
    }
    panel.curves.push_back(curve);
  }
  return panel;
}

/// Rank collapse without dropout, and none with it.
plot::Panel correlation_panel(DepthModel m, long depth) {
  plot::Panel panel{"correlation of tokens", "layer", "", false, false, {}};
  const double dropout = m.dropout;
  for (const NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
    for (const double p : {0.0, dropout}) {
      m.placement = placement;
      m.dropout = p;
      const Profile profile = propagate_forward(depth_layers(DepthMethod::vanilla, m, depth),
                                                correlated(1, m.input_correlation * (1 - p)));
      plot::Curve curve;
      curve.label = "vanilla " + std::string(word(architecture::norm_placement_words, placement)) +
                    ", dropout " + digits(p);
      curve.points = false;
      for (std::size_t l = 0; l <= profile.depth(); ++l) {
        curve.x.push_back(static_cast<double>(l));
        curve.y.push_back(profile.forward_at(l).correlation());
      }
      panel.curves.push_back(curve);
    }
  }
  return panel;
}

/// The gradient after the first layer over that after the last.
plot::Panel gradient_panel(const Settings& o, Reading reading) {
  plot::Panel panel{"gradient, first over last layer", "layers", "", true, true, {}};
  for (const DepthMethod method :
       {DepthMethod::vanilla, DepthMethod::deep_norm, DepthMethod::deep_scale_lm}) {
    for (const NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
      if (method == DepthMethod::deep_norm && placement == NormPlacement::pre) continue;
      DepthModel m = o.model;
      m.placement = placement;
      plot::Curve curve;
      curve.label = std::string(word(depth_method_words, method)) + " " +
                    std::string(word(architecture::norm_placement_words, placement));
      for (long depth = 8; depth <= o.depths.back(); depth *= 2) {
        const SignalMoments input = correlated(1, m.input_correlation * (1 - m.dropout));
        const SignalMoments gradient = correlated(1, o.gradient_correlation);
        curve.x.push_back(static_cast<double>(depth));
        curve.y.push_back(
            depth_point(propagate(depth_layers(method, m, depth), input, gradient, reading))
                .gradient);
      }
      panel.curves.push_back(curve);
    }
  }
  return panel;
}

/// Says where the picture is only next to a table, and why there is none always.
void draw(const Settings& o, Reading reading) {
  const plot::Figure figure{
      "Depth, by the recursion of signal propagation",
      {mlp_panel(o.model.dropout), correlation_panel(o.model, 24), gradient_panel(o, reading)}};
  const plot::Drawing drawing = plot::draw_figure(figure);
  const std::string stem = (std::filesystem::path(o.out) / "depth_methods").string();
  const std::string told = plot::write_figure(figure, stem, drawing);
  if (o.format == frame::Format::table) {
    std::cout << told << '\n';
  } else if (!drawing.problem.empty()) {
    std::cerr << told << '\n';
  }
}

int print(Settings o, const frame::Options& options) {
  const Reading reading = o.reading;
  const std::string deepest = std::to_string(o.depths.back());
  Table table{"Growth with the depth N, and the values at N = " + deepest,
              {"method", "norm", "forward", "gradient", "mean sensitivity", "median sensitivity",
               "forward " + deepest, "gradient " + deepest, "mean " + deepest, "median " + deepest},
              {}};
  nlohmann::ordered_json json = experiment::begin_report("depth_methods", 1, options);
  for (const auto& [method, name] : depth_method_words) {
    for (const NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
      o.model.placement = placement;
      const bool of_post = method == DepthMethod::deep_norm || method == DepthMethod::admin;
      if (of_post && placement == NormPlacement::pre) continue;
      const Row line = row(method, o, reading);
      table.rows.push_back(cells(line));
      json["methods"].push_back(to_json(line));
    }
  }
  std::cout << (o.format == frame::Format::json ? json.dump(1) + "\n"
                : o.format == frame::Format::csv
                    ? render(table, TableFormat::csv)
                    : io::render_to_fit(table, frame::terminal_columns()))
            << std::flush;
  if (o.out.empty()) return 0;
  files::write_file((std::filesystem::path(o.out) / "depth_methods.json").string(),
                    json.dump(1) + "\n");
  draw(o, reading);
  return 0;
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  DepthModel& m = s->model;
  Program program{"depth_methods",
                  "How moments and sensitivity grow with depth, method by method."};
  Options& o = *program.options;
  o.add("--sizes", s->depths, "sizes to compare (numbers of layers)")
      .from(1)
      .to(100'000)
      .increasing(2);
  o.add("--width", s->width, "features of a token, d_model").from(1).to(1e9);
  o.add("--seq", s->seq, "tokens per sequence; of a text, bytes").from(1).to(1e9);
  o.add("--dropout", m.dropout, "dropout probability").from(0).below(1);
  o.add("--input-correlation", m.input_correlation, "token correlation of the input before dropout")
      .from(0)
      .to(1);
  o.add("--gradient-correlation", s->gradient_correlation,
        "token correlation of the loss's gradient")
      .from(0)
      .to(1);
  o.add("--k", m.k, "of DeepScaleLM: beta^2 = k/N").above(0).below(8);
  o.add("--reading", s->reading, reading_words, "reading of the formulas");
  o.group("Output");
  frame::add_format(o, s->format);
  experiment::add_out_option(o, s->out, program.name);
  program.check = [s] {
    s->model.width = static_cast<double>(s->width);
    s->model.length = static_cast<double>(s->seq);
  };
  program.run = [s, options = program.options](const std::vector<std::string>&) {
    return print(*s, *options);
  };
  return program;
}
