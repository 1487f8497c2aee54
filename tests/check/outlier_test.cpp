// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/outlier.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "scalewise/numeric/random.hpp"
#include "support/catch.hpp"
#include "support/made_up_records.hpp"

using namespace scalewise;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

/// The records with one quantity of a size multiplied.
Records times(const Records& records, const Quantity& quantity, long size, double factor) {
  Records changed;
  for (const auto& [other, steps] : records.all()) {
    for (const auto& [step, runs] : steps) {
      for (const auto& [run, m] : runs) {
        const double by = other == quantity && run.size == size ? factor : 1;
        changed.add(other, step, run, {by * m.sum_abs, by * by * m.sum_squares, m.count});
      }
    }
  }
  return changed;
}

/// Eight layers, whose parameters and first updates are as the plans say, with a scatter of 2 %.
Records of_layers(const std::vector<Member>& family, const std::string& part, Signal signal) {
  Records records;
  numeric::RandomStream stream(2, part);
  for (const Member& member : family) {
    for (const Entry& entry : member.plan.entries) {
      if (place_of(entry.name) != part) continue;
      const double planned = signal == Signal::update ? entry.learning_rate.value
                                                      : std::sqrt(entry.init_variance.value);
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const double x = planned * std::exp(0.02 * stream.normal());
        const auto n =
            static_cast<std::uint64_t>(entry.rows) * static_cast<std::uint64_t>(entry.columns);
        records.add({signal, entry.name}, signal == Signal::update ? 1 : 0, {member.size, seed},
                    {static_cast<double>(n) * x, static_cast<double>(n) * x * x, n});
      }
    }
  }
  return records;
}

std::vector<Member> deep_family(const std::string& rule) {
  std::vector<Member> family;
  for (const long n : sizes) {
    Shape target = shape_of(n), base = shape_of(64);
    target.depth = base.depth = 8;
    family.push_back({n, make_plan(rule, {.model = target, .base = base})});
  }
  return family;
}

}  // namespace

TEST_CASE("A size that is not as the others fails, though the slope over all sizes does not") {
  const std::vector<Member> family = family_of("maximal-update");
  const Records right = follow(family);
  for (const Quantity& quantity :
       {Quantity{Signal::parameter, "mlp_down"}, Quantity{Signal::update, "query"}}) {
    for (const long size : sizes) {
      for (const double factor : {0.5, 1.5, 4.0}) {
        INFO(quantity.name << " at " << size << " times " << factor);
        const Report report = coordinate_check(times(right, quantity, size, factor), family);
        CHECK(report.verdict == Verdict::fail);
        // An end of the line that is far off turns the line.
        if (size == 64 || size == 512) continue;
        CHECK(report.cause == Cause::unknown);
        CHECK_THAT(report.diagnosis, StartsWith(quantity.name + " ("));
        CHECK_THAT(report.diagnosis, EndsWith(" at size " + std::to_string(size) +
                                              ": the plan is not followed there"));
      }
      // Within a tenth is within the margin; and what is not exact is judged by its slope alone.
      CHECK(coordinate_check(times(right, quantity, size, 1.05), family).verdict == Verdict::pass);
    }
  }
  const Records bent = times(right, {Signal::value, "mlp.hidden"}, 128, 1.15);
  CHECK(coordinate_check(bent, family).verdict == Verdict::pass);
}

TEST_CASE("A layer that is not as the others fails by its name") {
  const std::vector<Member> family = deep_family("maximal-update");
  for (const Signal signal : {Signal::update, Signal::parameter}) {
    const Records right = of_layers(family, "mlp_down", signal);
    CHECK(coordinate_check(right, family).diagnosis.empty());
    const Report wrong =
        coordinate_check(times(right, {signal, "layer.5.mlp_down"}, 256, 2), family);
    CHECK(wrong.verdict == Verdict::fail);
    CHECK_THAT(wrong.diagnosis,
               ContainsSubstring(" times the others' in layer.5.mlp_down of size 256: the plan"));
  }
  // Layers may differ where the plan says so.
  const std::vector<Member> by_layer = deep_family("ds-init");
  const Plan& first = by_layer.front().plan;
  REQUIRE(entry_of(first, "layer.0.mlp_down")->init_variance.value !=
          entry_of(first, "layer.7.mlp_down")->init_variance.value);
  CHECK(coordinate_check(of_layers(by_layer, "mlp_down", Signal::parameter), by_layer)
            .diagnosis.empty());
}

TEST_CASE("Correct sizes are outliers more seldom than the threshold says") {
  // 10 000 curves of four sizes and three seeds with scatters up to 5 %, all within the margin but for chance.
  int beyond = 0;
  numeric::RandomStream stream(3, "curves");
  for (int i = 0; i < 10000; ++i) {
    SizeCurve curve;
    for (const long n : sizes) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed)
        curve.logs.push_back({n, seed, 0.05 * stream.normal() * 64 / static_cast<double>(n)});
    }
    const auto found = outlying_size(curve, 0, Band(0), 0.1);
    beyond +=
        found && found->deviation > 2.575829 ? 1 : 0;  // 1 % of the curves if the margin were zero
  }
  CHECK(beyond < 10);
}
