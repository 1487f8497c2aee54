// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// component_errors: how far the formulas for the moments of a transformer's components are from
// simulations at random parameters, as Tables 21 and 22 of Kedia et al. 2024 (arXiv:2403.09635).
//
//   component_errors --points 100 --seed 1

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "check/report.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "lab/programs/component/points.hpp"
#include "lab/timing/summary.hpp"
#include "scalewise/dense/product.hpp"
#include "scalewise/numeric/parallel.hpp"
#include "scalewise/numeric/random.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;
using namespace scalewise::component;
using benchmark::quantile;
using propagation::Reading;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

using Percentiles = std::array<std::array<double, 3>, 5>;  // 50, 90, 99 % by quantity

/// Points of one component, whose results are lines of the table.
struct Component {
  const char* name;
  std::vector<const char*> readings;
  std::function<std::vector<Errors>(numeric::RandomStream&)> point;
  const Percentiles* published = nullptr;  // Table 21
  bool costly = false;                     // a third of the points
};

constexpr std::array<double, 3> none{unknown, unknown, unknown};
constexpr Percentiles published_linear{
    {{0, 0.4, 1.3}, {0.4, 1.4, 2.8}, {0.2, 1, 2.2}, {0.4, 1.4, 2.8}, {0.2, 1, 2.2}}};
constexpr Percentiles published_relu{
    {{0.3, 1.3, 2.3}, {0.5, 1.9, 3.4}, {0.6, 1.5, 2.6}, {0.3, 1.6, 3.1}, {0.2, 1.1, 2.3}}};
constexpr Percentiles published_gelu{
    {{0.1, 1, 2.4}, {0.2, 0.6, 1.3}, {0.2, 0.6, 1.1}, {0.1, 0.5, 1.2}, {0.1, 0.4, 0.9}}};
constexpr Percentiles published_norm{
    {{0, 0, 0}, {0, 0, 0}, {0.4, 1.5, 3.2}, {0.1, 0.5, 1}, {0.2, 0.9, 2.2}}};
constexpr Percentiles published_dropout{
    {{0, 0.1, 0.5}, {0.1, 0.5, 1.5}, {0.1, 0.7, 1.5}, {0, 0.4, 1.3}, {0.1, 0.5, 1.2}}};
constexpr Percentiles published_softmax{{{0, 0, 0}, {0.2, 0.9, 4}, {0.1, 0.6, 4.5}, none, none}};
constexpr Percentiles published_attention{
    {{0.2, 1, 2.5}, {1.4, 4.1, 7.8}, {2.2, 13.3, 44.5}, {1.3, 3.9, 7.4}, {1.6, 4.5, 8.2}}};

std::vector<Component> components() {
  return {
      {"linear", {"exact"}, linear_point, &published_linear},
      {"ReLU", {"exact"}, relu_point, &published_relu},
      {"GELU", {"exact"}, gelu_point, &published_gelu},
      {"LayerNorm", {"paper-full", "corrected"}, norm_point, &published_norm},
      {"dropout", {"exact"}, dropout_point, &published_dropout},
      {"softmax",
       {"paper-full", "paper-simple", "corrected"},
       [](numeric::RandomStream& stream) {
         return softmax_point(stream, 0,
                              {Reading::paper_full, Reading::paper_simple, Reading::corrected});
       },
       &published_softmax},
      {"softmax, correlated gradient",
       {"paper-full", "corrected"},
       [](numeric::RandomStream& stream) {
         return softmax_point(stream, 0.95, {Reading::paper_full, Reading::corrected});
       }},
      {"attention, published scores",
       {"paper-full", "corrected"},
       [](numeric::RandomStream& stream) {
         // The paper's code draws √(d sq) and √(d sk) from 0.1 to 0.6.
         const double q = uniform(stream, 0.1, 0.6);
         const double k = uniform(stream, 0.1, 0.6);
         const auto third = static_cast<double>(stream.bits() % 3);
         return attention_point(stream, q * q * k * k, third / 3);
       },
       &published_attention,
       true},
      {"attention, scores of DeepScaleLM",
       {"paper-full", "corrected"},
       [](numeric::RandomStream& stream) { return attention_point(stream, 1, stream.uniform()); },
       nullptr,
       true}};
}

Percentiles percentiles(const std::vector<Errors>& list) {
  Percentiles p;
  for (std::size_t quantity = 0; quantity < p.size(); ++quantity) {
    std::vector<double> values;
    for (const Errors& e : list) values.push_back(e[quantity]);
    p[quantity] = none;
    if (std::isnan(values[0])) continue;
    std::sort(values.begin(), values.end());
    p[quantity] = {quantile(values, 0.5), quantile(values, 0.9), quantile(values, 0.99)};
  }
  return p;
}

std::string three(const std::array<double, 3>& p) {
  if (std::isnan(p[0])) return "-";
  return fmt::format("{:.2f} {:.2f} {:.2f}", p[0], p[1], p[2]);
}

struct Settings {
  long points = 100;
  std::uint64_t seed = 1;
};

long points_of(const Component& c, long points) { return c.costly ? (points + 2) / 3 : points; }

/// The same percentiles for people, a row per reading, and for programs, a row per quantity.
struct Sections {
  Section text{.name = "text",
               .caption = "Errors in percent, of 50, 90 and 99 % of the points",
               .in_file = false};
  Section numbers{.name = "errors", .caption = "", .in_text = false};

  void add(const char* component, const char* reading, const Percentiles& p) {
    Cells row{{"component", component}, {"reading", reading}};
    for (std::size_t i = 0; i < p.size(); ++i) {
      row.emplace_back(quantity_names[i], three(p[i]));
      if (std::isnan(p[i][0])) continue;
      numbers.rows.push_back({{"component", component},
                              {"reading", reading},
                              {"quantity", quantity_names[i]},
                              {"p50", p[i][0]},
                              {"p90", p[i][1]},
                              {"p99", p[i][2]}});
    }
    text.rows.push_back(row);
  }
};

/// The errors of all readings at every point, or of some points after a request to stop.
std::vector<std::vector<Errors>> measure(const Component& c, const Settings& s,
                                         frame::Progress& progress) {
  const long points = points_of(c, s.points);
  std::vector<std::vector<Errors>> found(static_cast<std::size_t>(points));
  numeric::parallel_for(points, [&](Eigen::Index i) {
    if (frame::stop_requested() != 0) return;
    numeric::RandomStream stream(s.seed, c.name, std::to_string(i));
    found[static_cast<std::size_t>(i)] = c.point(stream);
    progress.done(1, c.name);
  });
  return found;
}

Report run(const Settings& s) {
  dense::keep_to_one_thread();
  const std::vector<Component> all = components();
  long count = 0;
  for (const Component& c : all) count += points_of(c, s.points);
  frame::Progress progress("points", count);
  Sections sections;
  std::size_t finished = 0;
  for (const Component& c : all) {
    const std::vector<std::vector<Errors>> found = measure(c, s, progress);
    if (frame::stop_requested() != 0) break;
    ++finished;
    for (std::size_t reading = 0; reading < c.readings.size(); ++reading) {
      std::vector<Errors> list;
      for (const std::vector<Errors>& point : found) list.push_back(point[reading]);
      sections.add(c.name, c.readings[reading], percentiles(list));
    }
    if (c.published != nullptr) sections.add(c.name, "Table 21", *c.published);
  }
  if (finished == 0) throw frame::Interrupted{};
  Report report;
  report.sections = {sections.text, sections.numbers};
  report.reason = "errors are listed, not judged";
  if (finished < all.size()) {
    stopped_early(report, static_cast<long>(finished), static_cast<long>(all.size()), "components");
  }
  return report;
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  Program program{"component_errors", "Errors of the moments of components against simulation."};
  program.options
      ->add("--points", s->points,
            "random parameters per component (a third of them for attention)")
      .from(1);
  program.options->add("--seed", s->seed, "random seed");
  make_report(program, [s] { return ::run(*s); });
  return program;
}
