// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The judge, on records that are made up with slopes that are known.

#include "scalewise/check/coordinate_check.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "instances/registry.hpp"
#include "scalewise/check/optimizer_check.hpp"
#include "scalewise/check/recorder.hpp"
#include "scalewise/check/two_widths.hpp"
#include "scalewise/numeric/random.hpp"
#include "support/catch.hpp"
#include "support/coverage.hpp"

using namespace scalewise;
using namespace scalewise::check;
using scalewise::test::Coverage;

namespace {

Shape shape_of(long width) {
  Shape s;
  s.d_model = width;
  s.depth = 2;
  s.heads = width / 16;
  s.context = 32;
  s.vocab = 256;
  s.tied_head = false;
  return s;
}

constexpr long sizes[] = {64, 128, 256, 512};

std::vector<Member> family_of(const std::string& rule) {
  std::vector<Member> family;
  for (const long n : sizes) {
    family.push_back({n, make_plan(rule, adamw, shape_of(n), shape_of(64))});
  }
  return family;
}

/// Runs whose root mean squares are 3 n^slope with a scatter of so many percent.
void add(Records& records, Signal signal, const std::string& name, long step, double slope,
         double scatter = 0.02) {
  RandomStream stream(1, name + std::to_string(step));
  for (const long n : sizes) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const double rms = slope == -HUGE_VAL ? 0
                                            : 3 * std::pow(static_cast<double>(n), slope) *
                                                  std::exp(scatter * stream.normal());
      records.add({signal, name}, step, {n, seed}, {rms, rms * rms, 1});
    }
  }
}

const Judgement& find(const Report& report, Signal signal, const std::string& name, long step) {
  for (const Judgement& j : report.judgements) {
    if (j.quantity == Quantity{signal, name} && j.step == step) return j;
  }
  throw InvalidInput("quantity", name, "one of the report's");
}

/// What training under some plans would give at large sizes, from their own prediction: the middle
/// of each band.
Records follow(const std::vector<Member>& family, double backward = 0) {
  const Prediction p = check::detail::prediction_of(family, {}, backward);
  Records records;
  const auto slope = [](const Band& band) {
    return band.is_zero() ? -HUGE_VAL : (band.low + band.high) / 2;
  };
  for (const char* role : {"embedding", "attention.output", "mlp.hidden", "mlp.output", "logits"}) {
    add(records, Signal::value, role, 0, slope(*p.value(role, 0)));
    add(records, Signal::value, role, 1, slope(*p.value(role, 1)));
    add(records, Signal::change, role, 1, slope(*p.change(role, 1)));
  }
  for (const Group group : {Group::token_embedding, Group::query, Group::mlp_down, Group::head}) {
    const std::string name(to_string(group));
    add(records, Signal::gradient, name, 0, slope(*p.gradient(group, 0)));
    add(records, Signal::update, name, 1, slope(p.update(group, 1)));
  }
  return records;
}

}  // namespace

TEST_CASE("Records that follow the rule pass") {
  for (const char* rule : {"maximal-update", "complete-p", "depth-mup", "neural-tangent"}) {
    INFO(rule);
    const Report report = coordinate_check(follow(family_of(rule)), family_of(rule));
    CHECK(report.verdict == Verdict::pass);
    CHECK(report.diagnosis.empty());
  }
}

TEST_CASE("95 % intervals of slopes hold the slope in 95 of 100 draws") {
  // A line through normal numbers has exactly Student's interval, so that of 4000 independent draws
  // 3800 ± 14 hold it, and a right one leaves 3729 to 3864 in one run of a million. One that is 15 %
  // too narrow or too wide holds it in 3650 or 3887.
  int held = 0;
  for (std::uint64_t draw = 0; draw < 4000; ++draw) {
    RandomStream stream(draw, "interval");
    Records::Runs runs;
    for (const long n : sizes) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const double rms = 3 / std::sqrt(static_cast<double>(n)) * std::exp(stream.normal() / 10);
        runs[{n, seed}] = {rms, rms * rms, 1};
      }
    }
    const Judgement j = measure({Signal::value, "logits"}, 0, runs);
    if (std::abs(j.measured->slope + 0.5) <= j.measured->error) ++held;
  }
  INFO(held);
  CHECK(Coverage(4000, 0.95).accepts(held));
}

namespace {

/// A slope at a step, judged against a band by the default tolerances.
Judgement judged(Signal signal, const std::string& name, long step, double slope, double error,
                 const Band& expected) {
  Judgement j;
  j.quantity = {signal, name};
  j.step = step;
  j.sizes = {64, 128, 256, 512};
  j.measured = Line{.slope = slope, .error = error};
  judge(j, expected, {});
  return j;
}

}  // namespace

TEST_CASE("Activations may bend by what updates add up to, gradients and updates may not") {
  // Ten updates over three octaves: ½ ln 10 / ln 8 = 0.554 beside the tolerance of 0.1, or of 0.2
  // for logits.
  const auto verdict = [](Signal signal, const std::string& name, long step, double slope) {
    return judged(signal, name, step, slope, 0.01, {-0.5, -0.25}).verdict;
  };
  for (const double side : {-1.0, 1.0}) {
    const auto beyond = [&](double by) { return side < 0 ? -0.5 - by : -0.25 + by; };
    CHECK(verdict(Signal::value, "mlp.output", 10, beyond(0.65)) == Verdict::pass);
    CHECK(verdict(Signal::value, "mlp.output", 10, beyond(0.68)) == Verdict::fail);
    CHECK(verdict(Signal::value, "logits", 10, beyond(0.75)) == Verdict::pass);
    CHECK(verdict(Signal::value, "logits", 10, beyond(0.78)) == Verdict::fail);
    for (const long step : {0L, 1L}) {
      CHECK(verdict(Signal::value, "mlp.output", step, beyond(0.1)) == Verdict::pass);
      CHECK(verdict(Signal::value, "mlp.output", step, beyond(0.13)) == Verdict::fail);
    }
    CHECK(verdict(Signal::gradient, "query", 10, beyond(0.2)) == Verdict::pass);
    CHECK(verdict(Signal::gradient, "query", 10, beyond(0.23)) == Verdict::fail);
    CHECK(verdict(Signal::update, "query", 10, beyond(0.1)) == Verdict::pass);
    CHECK(verdict(Signal::update, "query", 10, beyond(0.13)) == Verdict::fail);
  }
  CHECK(verdict(Signal::change, "mlp.output", 10, -1.15) == Verdict::pass);
}

TEST_CASE("What training adds fails where it surely grows, whatever was expected") {
  const auto judge_at = [](Signal signal, double slope, double error) {
    return judged(signal, "mlp.output", 1, slope, error, {0.5, 0.5});
  };
  const Judgement grows = judge_at(Signal::change, 0.5, 0.2);
  CHECK(grows.verdict == Verdict::fail);
  CHECK(grows.reason == "grows with the size");
  CHECK(judge_at(Signal::change, 0.5, 0.25).verdict == Verdict::pass);  // 0.25 is not excluded
  CHECK(judge_at(Signal::change, 0.5, 0.26).verdict == Verdict::inconclusive);
  CHECK(judge_at(Signal::value, 0.5, 0.2).verdict == Verdict::pass);
  CHECK(judge_at(Signal::update, 0.5, 0.2).verdict == Verdict::pass);
}

TEST_CASE("A slope needs three sizes, three octaves and two seeds") {
  const auto measured = [](const std::vector<long>& at, std::uint64_t seeds) {
    Records::Runs runs;
    for (const long n : at) {
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) runs[{n, seed}] = {1, 1, 1};
    }
    const Judgement j = measure({Signal::value, "mlp.output"}, 0, runs);
    CHECK(j.measured.has_value() == j.reason.empty());
    CHECK(j.verdict == Verdict::inconclusive);
    return j.measured.has_value();
  };
  CHECK(measured({64, 128, 512}, 2));
  CHECK(measured({3, 5, 24}, 2));
  CHECK_FALSE(measured({64, 128, 511}, 2));
  CHECK_FALSE(measured({64, 128, 256}, 3));
  CHECK_FALSE(measured({64, 512}, 3));
  CHECK_FALSE(measured({64, 128, 512}, 1));
  CHECK_FALSE(measured({1L << 60U, (1L << 60U) + 1, 1L << 62U}, 2));  // eight times is out of range
  CHECK_THROWS_WITH(measured({-64, 128, 512}, 2),
                    "size of mlp.output = -64: expected a positive size");
}

TEST_CASE("A diagnosis begins with the farthest failure of the earliest step") {
  const auto named = [](const std::vector<std::pair<std::string, double>>& slopes) {
    Records records;
    for (const auto& [name, slope] : slopes) add(records, Signal::value, name, 0, slope);
    add(records, Signal::value, "embedding", 1, 3);  // later, though farther
    const std::string text = coordinate_check(records, family_of("maximal-update")).diagnosis;
    return text.substr(0, text.find(' '));
  };
  // Expected: 0 of both outputs, -0.5 of logits.
  CHECK(named({{"attention.output", 1}, {"mlp.output", 2}}) == "mlp.output");
  CHECK(named({{"attention.output", 2}, {"mlp.output", 1}}) == "attention.output");
  CHECK(named({{"attention.output", -2}, {"mlp.output", 1}}) == "attention.output");
  CHECK(named({{"attention.output", 1}, {"mlp.output", -2}}) == "mlp.output");
  CHECK(named({{"logits", 0.8}, {"mlp.output", 1}}) == "logits");
  CHECK(named({}) == "embedding");
}

TEST_CASE("Every mistake that moves slopes fails, with the right diagnosis") {
  const std::vector<Member> family = family_of("maximal-update");
  const Plan& first = family.front().plan;
  const double octaves = std::log(512.0 / 64);
  int tried = 0;
  for (const Fault& fault : possible_faults(family)) {
    if (fault.ingredient == Ingredient::epsilon || fault.ingredient == Ingredient::weight_decay) {
      continue;  // seen by check_optimizer() only
    }
    INFO(to_string(fault));
    std::vector<Member> wrong = family;
    for (Member& member : wrong) member.plan = with_fault(member.plan, first, fault);
    const double backward = std::log(scaled_gradient(family.back().plan, first, fault)) / octaves;
    const Report report = coordinate_check(follow(wrong, backward), family);
    CHECK(report.verdict == Verdict::fail);
    INFO(report.diagnosis);
    // Under Adam only hidden rates differ between widths, so one global rate is the same mistake.
    CHECK(report.diagnosis.find(to_string(fault)) != std::string::npos);
    ++tried;
  }
  CHECK(tried >= 9);
}

TEST_CASE("A backward pass without the output multiplier, or with it twice, scales gradients") {
  // The multiplier is 64/512 of the first's: left out, gradients are 8 times too large; else 1/8.
  const std::vector<Member> family = family_of("maximal-update");
  const auto scaled = [&](Ingredient ingredient, bool doubled) {
    return scaled_gradient(family.back().plan, family.front().plan, {ingredient, doubled});
  };
  CHECK(scaled(Ingredient::backward_scale, false) == 8);
  CHECK(scaled(Ingredient::backward_scale, true) == 0.125);
  CHECK(scaled(Ingredient::output_multiplier, false) == 1);
}

TEST_CASE("What the rule itself lets grow fails") {
  const Report report = coordinate_check(follow(family_of("standard")), family_of("standard"));
  CHECK(report.verdict == Verdict::fail);
  CHECK(report.diagnosis.find("the rule itself lets it grow") != std::string::npos);
  CHECK(find(report, Signal::value, "mlp.output", 0).verdict == Verdict::pass);
}

TEST_CASE("Zero is told from small") {
  std::vector<Member> family;
  for (const long n : sizes) {
    family.push_back(
        {n, make_plan("maximal-update", adamw, shape_of(n), shape_of(64), {{"zero_head", 1}})});
  }
  Records records;
  add(records, Signal::value, "logits", 0, -HUGE_VAL);
  CHECK(coordinate_check(records, family).verdict == Verdict::pass);
  Records small;
  add(small, Signal::value, "logits", 0, -3);
  CHECK(coordinate_check(small, family).verdict == Verdict::fail);
  Records nothing;
  add(nothing, Signal::update, "query", 1, -HUGE_VAL);
  CHECK(coordinate_check(nothing, family_of("maximal-update")).verdict == Verdict::fail);
}

TEST_CASE("A name that stands for nothing is reported with the nearest that does") {
  Records records;
  add(records, Signal::value, "mlp.output", 0, 0);
  add(records, Signal::value, "mlp.ouput", 0, 0);
  add(records, Signal::change, "mlp.ouput", 1, 0);  // the same name once more
  add(records, Signal::gradient, "layer.0.qerry", 0, 0);
  add(records, Signal::update, "layer.0.query", 1, 0);
  const Report report = coordinate_check(records, family_of("maximal-update"));
  CHECK(report.unknown ==
        std::vector<std::string>{"mlp.ouput: no observable; did you mean mlp.output?",
                                 "layer.0.qerry: no tensor of the plan; did you mean query?"});
}

TEST_CASE("Zero in some runs only fails") {
  Records records;
  add(records, Signal::value, "mlp.output", 0, 0);
  records.add({Signal::value, "mlp.output"}, 0, {512, 4}, {0, 0, 1});
  const Report report = coordinate_check(records, family_of("maximal-update"));
  CHECK(find(report, Signal::value, "mlp.output", 0).reason == "zero in some runs only");
  CHECK(report.verdict == Verdict::fail);
}

TEST_CASE("Along the depth gradients count at initialization only") {
  std::vector<Member> family;
  Shape base = shape_of(32);
  for (const long depth : sizes) {
    Shape shape = shape_of(32);
    shape.depth = depth / 8;  // slopes are those of ratios
    family.push_back({depth, make_plan("complete-p", adamw, shape, base)});
  }
  Records later;
  add(later, Signal::value, "mlp.stream", 0, -0.25);
  add(later, Signal::gradient, "token_embedding", 1, -3);
  CHECK(coordinate_check(later, family).verdict == Verdict::pass);
  Records first;
  add(first, Signal::gradient, "token_embedding", 0, -3);
  CHECK(coordinate_check(first, family).verdict == Verdict::fail);
}

TEST_CASE("Too little, too noisy or not finite is not a pass") {
  const std::vector<Member> family = family_of("maximal-update");
  Records noisy;
  add(noisy, Signal::value, "mlp.output", 0, 0, 1.5);
  CHECK(coordinate_check(noisy, family).verdict == Verdict::inconclusive);

  Records one_seed;
  Records two_sizes;
  for (const long n : sizes) {
    one_seed.add({Signal::value, "mlp.output"}, 0, {n, 1}, {1, 1, 1});
    for (const std::uint64_t seed : {1U, 2U}) {
      if (n == 64 || n == 512) {
        two_sizes.add({Signal::value, "mlp.output"}, 0, {n, seed}, {1, 1, 1});
      }
    }
  }
  CHECK(coordinate_check(one_seed, family).verdict == Verdict::inconclusive);
  CHECK(coordinate_check(two_sizes, family).verdict == Verdict::inconclusive);

  Records infinite;
  add(infinite, Signal::value, "mlp.output", 0, 0);
  infinite.add({Signal::value, "mlp.output"}, 0, {512, 3}, {HUGE_VAL, HUGE_VAL, 1});
  CHECK(coordinate_check(infinite, family).verdict == Verdict::fail);

  Records unknown;
  add(unknown, Signal::value, "router", 0, 3);
  CHECK(coordinate_check(unknown, family).verdict == Verdict::inconclusive);
  CHECK_THROWS_AS(coordinate_check(Records{}, family), InvalidInput);
  CHECK_THROWS_AS(coordinate_check(noisy, {family.front()}), InvalidInput);
}

TEST_CASE("A recorder measures sizes, and changes from step 0") {
  Recorder recorder({64, 7});
  const std::vector<double> first{3, -4};
  const std::vector<double> later{3, -1};
  recorder.record("h", first.data(), 2, 0);
  recorder.record("h", later.data(), 2, 1);
  recorder.record_gradient("w", first.data(), 2, 0);
  recorder.record_update("w", later.data(), 2, 1);
  const auto& all = recorder.records().all();
  const Run run{64, 7};
  CHECK(all.at({Signal::value, "h"}).at(0).at(run) == Moments{7, 25, 2});
  CHECK(all.at({Signal::value, "h"}).at(1).at(run) == Moments{4, 10, 2});
  CHECK(all.at({Signal::change, "h"}).at(1).at(run) == Moments{3, 9, 2});
  CHECK_FALSE(all.at({Signal::change, "h"}).contains(0));
  CHECK(all.at({Signal::gradient, "w"}).at(0).at(run) == Moments{7, 25, 2});
  CHECK(all.at({Signal::update, "w"}).at(1).at(run) == Moments{4, 10, 2});
}

TEST_CASE("Layers of one role are pooled, whatever their number") {
  CHECK(role_name("layer.3.mlp.output") == "mlp.output");
  CHECK(role_name("encoder.12.attention.output") == "attention.output");
  CHECK(role_name("decoder.0.query") == "query");
  CHECK(role_name("logits") == "logits");
  CHECK(role_name("layer.x.query") == "layer.x.query");
  CHECK(role_name("layer.") == "layer.");
  Records records;
  records.add({Signal::value, "layer.0.mlp.output"}, 0, {8, 1}, {1, 1, 1});
  records.add({Signal::value, "layer.1.mlp.output"}, 0, {8, 1}, {2, 4, 1});
  CHECK(pooled_layers(records).all().at({Signal::value, "mlp.output"}).at(0).at({8, 1}) ==
        Moments{3, 5, 2});
}

TEST_CASE("Of two widths the usual criterion asks for a factor of 1.2") {
  Records records;
  const auto one = [&](const char* name, long n, double mean) {
    records.add({Signal::value, name}, 1, {n, 1}, {mean, mean * mean, 1});
  };
  one("even", 64, 1);
  one("even", 1024, 1.19);
  one("odd", 64, 1);
  one("odd", 1024, 0.5);
  const TwoWidths t = two_widths(records);
  CHECK(t.modules == 2);
  CHECK(t.met == 1);
  CHECK(t.worst == "odd");
  CHECK(t.worst_ratio == 0.5);
  // Means over two seeds; the width between them does not count.
  const auto met = [](double ratio) {
    Records pair;
    for (const std::uint64_t seed : {1U, 2U}) {
      const double by = seed == 1 ? 0.5 : 1.5;
      for (const auto& [n, mean] : {std::pair{64L, by}, {256L, 99.0}, {1024L, by * ratio}}) {
        pair.add({Signal::value, "h"}, 1, {n, seed}, {mean, mean * mean, 1});
      }
    }
    return two_widths(pair).met;
  };
  CHECK(met(1.199) == 1);
  CHECK(met(1.201) == 0);
  CHECK(met(1 / 1.199) == 1);
  CHECK(met(1 / 1.201) == 0);
}

TEST_CASE("An optimizer is read back against the plan") {
  const Plan plan = make_plan("maximal-update", adamw, shape_of(256), shape_of(64));
  const OptimizerSetting global{"", 0.01, 0.1, 1e-8};
  std::vector<OptimizerSetting> live;
  for (const Entry& entry : plan.entries) {
    // Table 8 retyped: hidden matrices have the rate over the ratio of fan-ins, here 4, and their
    // coupled decay times it; epsilon is over the ratio of widths for all.
    const bool hidden = role_of(entry.group) == Role::hidden;
    live.push_back({entry.name, hidden ? 0.0025 : 0.01, hidden ? 0.4 : 0.1, 0.25e-8});
  }
  // What the rule says of decay of vectors is the plan's matter, not the table's.
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (role_of(plan.entries[i].group) == Role::hidden) continue;
    live[i].weight_decay = 0.1 * plan.entries[i].weight_decay.value;
  }
  CHECK(check_optimizer(plan, global, live).empty());

  const auto broken = [&](auto&& change) {
    std::vector<OptimizerSetting> copy = live;
    change(copy);
    return check_optimizer(plan, global, copy);
  };
  const std::string& name = live[3].name;
  using Live = std::vector<OptimizerSetting>;
  CHECK(broken([](Live& l) { l[3].rate *= 4; }).size() == 1);
  CHECK(broken([](Live& l) { l[3].epsilon *= 4; }).front().starts_with(name + ": epsilon"));
  CHECK(
      broken([](Live& l) { l[3].weight_decay += 1; }).front().starts_with(name + ": weight_decay"));
  // A relative 1e-5 is what rounding to float may do, and NaN is no rounding.
  for (double OptimizerSetting::*what :
       {&OptimizerSetting::rate, &OptimizerSetting::weight_decay, &OptimizerSetting::epsilon}) {
    REQUIRE(live[3].*what > 0);
    CHECK(broken([&](Live& l) { l[3].*what *= 1 + 0.9e-5; }).empty());
    CHECK(broken([&](Live& l) { l[3].*what *= 1 + 1.1e-5; }).size() == 1);
    CHECK(broken([&](Live& l) { l[3].*what *= 1 - 1.1e-5; }).size() == 1);
    CHECK(broken([&](Live& l) { l[3].*what = std::nan(""); }).size() == 1);
  }
  CHECK(broken([](Live& l) { l.pop_back(); }).front().ends_with("not in the optimizer"));
  CHECK(broken([](Live& l) { l[3].name = "w"; }).size() == 2);
  CHECK(broken([](Live& l) { l.push_back(l[3]); }).front() == name + ": given twice");
}
