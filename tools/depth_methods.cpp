// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// depth_methods: how moments and sensitivity of deep transformers grow with depth, method by method,
// from the recursion of signal propagation.
//
//   depth_methods --depths 192,384,768 --out results

#include <fmt/core.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "frame/program.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/plot/figure.hpp"
#include "scalewise/propagation/growth.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::propagation;

struct Settings {
  std::vector<long> depths{192, 384, 768};
  double gradient_correlation = 0.8;
  std::string reading = "corrected";
  std::string format = "table";
  std::string out;
  DepthModel model;
};

std::string digits(double x) { return fmt::format("{:.3g}", x); }

/// Exponents of N, and the numbers of the deepest model.
std::vector<std::string> row(DepthMethod method, const Settings& o, Reading reading) {
  std::vector<DepthPoint> points;
  for (const long depth : o.depths) {
    points.push_back(
        depth_point(propagate(depth_layers(method, o.model, depth),
                              correlated(1, o.model.input_correlation * (1 - o.model.dropout)),
                              correlated(1, o.gradient_correlation), reading)));
  }
  const GrowthOrders g = growth_orders(points);
  const DepthPoint& last = points.back();
  const bool exponential = std::abs(g.gradient) > 3;  // no power of N
  return {std::string(word(depth_method_words, method)),
          std::string(word(norm_placement_words, o.model.placement)),
          "N^" + digits(g.forward),
          exponential ? "e^(" + digits(g.gradient_per_layer) + " N)" : "N^" + digits(g.gradient),
          last.mean_sensitivity > 0 ? "N^" + digits(g.mean_sensitivity) : "0",
          last.median_sensitivity > 0 ? "N^" + digits(g.median_sensitivity) : "0",
          digits(last.forward),
          digits(last.gradient),
          digits(last.mean_sensitivity),
          digits(last.median_sensitivity)};
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
      curve.label = "vanilla " + std::string(word(norm_placement_words, placement)) + ", dropout " +
                    digits(p);
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
                    std::string(word(norm_placement_words, placement));
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

void draw(const Settings& o, Reading reading) {
  const plot::Figure figure{
      "Depth, by the recursion of signal propagation",
      {mlp_panel(o.model.dropout), correlation_panel(o.model, 24), gradient_panel(o, reading)}};
  std::cout << plot::write_figure(figure, (std::filesystem::path(o.out) / "depth_methods").string())
            << '\n';
}

int print(Settings o) {
  const Reading reading = value_of(reading_words, "--reading", o.reading);
  const std::string deepest = std::to_string(o.depths.back());
  Table table{"Growth with the depth N, and the values at N = " + deepest,
              {"method", "norm", "forward", "gradient", "mean sensitivity", "median sensitivity",
               "forward " + deepest, "gradient " + deepest, "mean " + deepest, "median " + deepest},
              {}};
  for (const auto& [method, name] : depth_method_words) {
    for (const NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
      o.model.placement = placement;
      const bool of_post = method == DepthMethod::deep_norm || method == DepthMethod::admin;
      if (of_post && placement == NormPlacement::pre) continue;
      table.rows.push_back(row(method, o, reading));
    }
  }
  std::cout << render(table, o.format == "csv" ? TableFormat::csv : TableFormat::text)
            << std::flush;
  if (!o.out.empty()) draw(o, reading);
  return 0;
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  DepthModel& m = s->model;
  Program program{"depth_methods",
                  "How moments and sensitivity grow with depth, method by method."};
  Options& o = *program.options;
  o.add("--depths", s->depths, "numbers of layers that the orders are fitted over")
      .from(1)
      .to(100'000)
      .increasing()
      .at_least(2);
  o.add("--width", m.width, "features of a token").from(1).to(1e9);
  o.add("--seq", m.length, "tokens per sequence").from(1).to(1e9);
  o.add("--dropout", m.dropout, "probability of a dropped entry").from(0).below(1);
  o.add("--input-correlation", m.input_correlation, "of tokens, before dropout").from(0).to(1);
  o.add("--gradient-correlation", s->gradient_correlation, "of the loss' gradient").from(0).to(1);
  o.add("--k", m.k, "of DeepScaleLM: beta^2 = k/N").above(0).below(8);
  o.add("--reading", s->reading, "of the formulas").words(reading_words);
  o.group("Output");
  o.add("--format", s->format, "").words({"table", "csv"}).not_an_input();
  o.add("--out", s->out, "folder for a picture and its numbers").writes_folder();
  program.run = [s](const std::vector<std::string>&) { return print(*s); };
  return program;
}
