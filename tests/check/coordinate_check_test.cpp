// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The verdict and its cause, on records that are made up with slopes that are known.

#include "scalewise/check/coordinate_check.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/made_up_records.hpp"

using namespace scalewise;
using namespace scalewise::test;

TEST_CASE("Records that follow the rule pass") {
  for (const char* rule : {"maximal-update", "complete-p", "depth-mup", "neural-tangent"}) {
    INFO(rule);
    const Report report = coordinate_check(follow(family_of(rule)), family_of(rule));
    CHECK(report.verdict == Verdict::pass);
    CHECK(report.cause == Cause::none);
    CHECK(report.diagnosis.empty());
    CHECK(report.missing.empty());
    CHECK(report.undecided.empty());
  }
}

TEST_CASE("Layers of one role are one quantity, whether they were pooled before or not") {
  const Records pooled = follow(family_of("maximal-update"));
  Records by_layer;
  pooled.for_each([&](const Quantity& quantity, long step, const Run& run, const Moments& moments) {
    const bool of_layer = quantity.name.find('.') != std::string::npos ||
                          quantity.name == "query" || quantity.name == "mlp_down";
    for (const char* layer : {"layer.0.", "layer.1."}) {
      by_layer.add({quantity.signal, (of_layer ? layer : "") + quantity.name}, step, run, moments);
    }
  });
  const Report a = coordinate_check(pooled, family_of("maximal-update"));
  const Report b = coordinate_check(by_layer, family_of("maximal-update"));
  REQUIRE(a.judgements.size() == b.judgements.size());
  for (std::size_t i = 0; i < a.judgements.size(); ++i) {
    CHECK(a.judgements[i].curve.quantity == b.judgements[i].curve.quantity);
    CHECK(a.judgements[i].verdict == b.judgements[i].verdict);
    if (!a.judgements[i].measured) continue;
    CHECK(std::abs(a.judgements[i].measured->slope - b.judgements[i].measured->slope) < 1e-12);
  }
}

namespace {

/// The verdict on a slope that is known well, judged against a band; `error` is that of the tails.
Verdict judged(Regime regime, double slope, double last, const Band& band, double error = 1e-4) {
  Judgement j;
  j.expected = Expectation{band, regime};
  j.curve.runs = 1;
  j.measured = Growth{slope, error / 2, error, error, last, 1000};
  judge(j, {}, {3, 4});
  return j.verdict;
}

}  // namespace

TEST_CASE("A slope may miss its limit by the margin of its regime") {
  const Band band{-0.5, -0.25};
  for (const Regime regime : {Regime::exact, Regime::first, Regime::later}) {
    const double margin = regime == Regime::exact ? 0.02 : regime == Regime::first ? 0.06 : 0.25;
    for (const double side : {-1.0, 1.0}) {
      const auto beyond = [&](double by) { return side < 0 ? -0.5 - by : -0.25 + by; };
      const auto verdict = [&](double by) { return judged(regime, beyond(by), beyond(by), band); };
      CHECK(verdict(margin - 1e-3) == Verdict::pass);
      CHECK(verdict(margin + 1e-3) == Verdict::fail);
    }
  }
}

TEST_CASE("A slope passes up to the threshold of doubt, and fails beyond that of failure") {
  // Errors of 0.1 beyond the margin of 0.06; the thresholds are 3 and 4.
  CHECK(judged(Regime::first, 0.35, 0.35, 0, 0.1) == Verdict::pass);
  CHECK(judged(Regime::first, 0.37, 0.37, 0, 0.1) == Verdict::inconclusive);
  CHECK(judged(Regime::first, 0.45, 0.45, 0, 0.1) == Verdict::inconclusive);
  CHECK(judged(Regime::first, 0.47, 0.47, 0, 0.1) == Verdict::fail);
}

TEST_CASE("Thresholds are the deviates that chance exceeds with the stated probabilities") {
  // Of one slope: 2.5 % above and as many below, and half a percent each.
  Criteria criteria;
  criteria.doubts = 0.05;
  criteria.error_rate = 0.01;
  const Thresholds one = thresholds_of(criteria, 1);
  CHECK(std::abs(one.doubt - 1.959963984540054) < 1e-9);
  CHECK(std::abs(one.failure - 2.575829303548901) < 1e-9);
  // Of a hundred: a hundredth of that.
  criteria.doubts = 5;
  CHECK(std::abs(thresholds_of(criteria, 100).doubt - 1.959963984540054) < 1e-9);
  CHECK(std::abs(thresholds_of(criteria, 0).failure - 2.575829303548901) < 1e-9);
}

TEST_CASE("A slope in doubt keeps a check from passing") {
  const std::vector<Member> family = family_of("maximal-update");
  const auto report_of = [&](double slope) {
    return coordinate_check(with(follow(family), {Signal::value, "mlp.output"}, 0, slope), family);
  };
  const Growth growth = *find(report_of(0), Signal::value, "mlp.output", 0).measured;
  const Thresholds thresholds = report_of(0).thresholds;
  // As if measured so many standard errors beyond the margin of 0.06.
  const auto beyond = [&](double deviates) {
    return report_of(0.06 + deviates * growth.tail_error - growth.slope);
  };
  CHECK(beyond(thresholds.doubt - 0.3).verdict == Verdict::pass);
  const Report doubtful = beyond((thresholds.doubt + thresholds.failure) / 2);
  CHECK(doubtful.verdict == Verdict::inconclusive);
  CHECK(doubtful.wants_larger_size);
  REQUIRE(doubtful.undecided.size() == 1);
  CHECK(doubtful.undecided.front().find("mlp.output (value) at step 0: deviates by ") == 0);
  CHECK(beyond(thresholds.failure + 2).verdict == Verdict::fail);
}

TEST_CASE("A slope that bends towards its limit does not fail, one that is exact does") {
  CHECK(judged(Regime::first, 0.5, 0.2, 0) == Verdict::fail);
  CHECK(judged(Regime::first, 0.5, 0, 0) == Verdict::inconclusive);
  CHECK(judged(Regime::later, 0.5, -0.1, 0) == Verdict::inconclusive);
  CHECK(judged(Regime::exact, 0.5, 0, 0) == Verdict::fail);
}

TEST_CASE("A diagnosis begins with the farthest failure of the earliest step") {
  const auto named = [](const std::vector<std::pair<std::string, double>>& slopes) {
    Records records;
    for (const auto& [name, slope] : slopes) add(records, Signal::value, name, 0, slope);
    add(records, Signal::value, "embedding", 1, 3);  // later, though farther
    const std::string text = coordinate_check(records, family_of("maximal-update")).diagnosis;
    return text.substr(0, text.find(' '));
  };
  // Expected: 0 of both outputs, -0.5 of logits. No mistake lets them grow so fast.
  CHECK(named({{"attention.output", 3}, {"mlp.output", 4}}) == "mlp.output");
  CHECK(named({{"attention.output", 4}, {"mlp.output", 3}}) == "attention.output");
  CHECK(named({{"attention.output", -4}, {"mlp.output", 3}}) == "attention.output");
  CHECK(named({{"attention.output", 3}, {"mlp.output", -4}}) == "mlp.output");
  CHECK(named({{"logits", 2.8}, {"mlp.output", 3}}) == "logits");
  CHECK(named({}) == "embedding");
}

TEST_CASE("Every mistake that moves slopes fails, with the right diagnosis") {
  const std::vector<Member> family = family_of("maximal-update");
  const Plan& first = family.front().plan;
  const double octaves = std::log(512.0 / 64);
  int tried = 0;
  for (const Fault& fault : possible_faults(scales_of(family), first.shape.blocks)) {
    INFO(to_string(fault));
    const double backward = std::log(scaled_gradient(family.back().plan, first, fault)) / octaves;
    const Report report = coordinate_check(follow(with_fault(family, fault), backward), family);
    CHECK(report.verdict == Verdict::fail);
    CHECK(report.cause == Cause::mistake);
    INFO(report.diagnosis);
    // Under Adam only hidden rates differ between widths, so one global rate is the same mistake.
    CHECK(report.diagnosis.find(to_string(fault)) != std::string::npos);
    ++tried;
  }
  CHECK(tried >= 9);
}

TEST_CASE("An exponent that is off by 0.05 fails, and is named") {
  const std::vector<Member> family = family_of("maximal-update");
  for (const Ingredient ingredient : {Ingredient::hidden_rate, Ingredient::head_rate,
                                      Ingredient::hidden_variance, Ingredient::input_variance}) {
    for (const double off : {0.05, -0.05, 0.1, 0.2}) {
      const Fault fault{ingredient, false, off};
      INFO(to_string(fault));
      // A scatter of 1e-3: what a rate or a variance is, is known nearly without noise.
      const Records records = follow(with_fault(family, fault), 0, 1e-3);
      const Report report = coordinate_check(records, family);
      CHECK(report.verdict == Verdict::fail);
      CHECK(report.diagnosis.find(to_string(fault)) != std::string::npos);
    }
  }
  CHECK(to_string({Ingredient::hidden_rate, false, -0.05}) ==
        "exponent of the hidden rate off by -0.05");
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

TEST_CASE("Without norms gradients through a sharp softmax are judged as later steps are") {
  // Sharp: exp(s²)/256 above a fifth, s above 1.984.
  const std::vector<Member> family = family_of("maximal-update");
  const auto regime = [&](double smallest, bool norms) {
    Records records;
    add(records, Signal::gradient, "query", 0, -1);
    add(records, Signal::change, "mlp.output", 1, 0);
    for (const long n : sizes) {
      const double rms = smallest * std::sqrt(64 / static_cast<double>(n));
      records.add({Signal::value, "logits"}, 0, {n, 1}, {50 * rms, 100 * rms * rms, 100});
    }
    const Report report = coordinate_check(records, family, Assumptions{.norms = norms});
    const Regime gradient = find(report, Signal::gradient, "query", 0).expected->regime;
    // A step has the direction of the gradients.
    CHECK(find(report, Signal::change, "mlp.output", 1).expected->regime == gradient);
    return gradient;
  };
  CHECK(regime(1.9, false) == Regime::first);
  CHECK(regime(2.1, false) == Regime::later);
  CHECK(regime(2.1, true) == Regime::first);
}

TEST_CASE("Changes are judged as later ones where more and more heads share keys") {
  const auto regime = [](bool shared, Signal signal, const std::string& name, long step) {
    std::vector<Member> family;
    for (const long n : sizes) {
      Shape shape = shape_of(n);
      Shape base = shape_of(64);
      if (shared) shape.kv_heads = base.kv_heads = 1;
      family.push_back({n, make_plan("maximal-update", {.model = shape, .base = base})});
    }
    Records records;
    add(records, signal, name, step, 0);
    return find(coordinate_check(records, family), signal, name, step).expected->regime;
  };
  CHECK(regime(false, Signal::change, "mlp.output", 1) == Regime::first);
  CHECK(regime(true, Signal::change, "mlp.output", 1) == Regime::later);
  CHECK(regime(true, Signal::value, "mlp.output", 0) == Regime::first);
  CHECK(regime(true, Signal::gradient, "query", 0) == Regime::first);
}

TEST_CASE("Steps that are large are alike at all sizes where there are norms") {
  // Predicted is -1/2; two unit vectors differ by √2 at most where they are unrelated.
  const std::vector<Member> family = family_of("neural-tangent");
  const auto band = [&](double change, bool norms) {
    Records records;
    for (const long n : sizes) {
      for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        records.add({Signal::value, "final_hidden"}, 0, {n, seed}, {100, 100, 100});
        records.add({Signal::change, "final_hidden"}, 1, {n, seed},
                    {100 * change, 100 * change * change, 100});
      }
    }
    const Report report = coordinate_check(records, family, Assumptions{.norms = norms});
    return find(report, Signal::change, "final_hidden", 1).expected->band;
  };
  CHECK(band(0.9, true) == Band(-0.5));
  CHECK(band(1.1, true) == Band(-0.5, 0));
  CHECK(band(1.1, false) == Band(-0.5));
}

TEST_CASE("A mistake that explains records better than the rule keeps the verdict open") {
  std::vector<Member> family;
  for (const long n : sizes) {
    Shape s = shape_of(64);
    s.depth = n / 32;
    Shape base = s;
    base.depth = 2;
    family.push_back({n, make_plan("depth-mup", {.model = s, .base = base})});
  }
  // With the branch multiplier twice the stream shrinks with the depth, by a half at most.
  const auto report_of = [&](double slope) {
    return coordinate_check(with(follow(family), {Signal::value, "mlp.stream"}, 0, slope), family);
  };
  const double error = find(report_of(0), Signal::value, "mlp.stream", 0).measured->tail_error;
  // Beyond the margin of 0.06, in standard errors: odds of a hundred are a deviation of 3.04.
  const auto explains = [](const Report& report) {
    return std::any_of(report.undecided.begin(), report.undecided.end(),
                       [](const std::string& why) {
                         return why.find("branch multiplier applied twice: it explains") == 0;
                       });
  };
  const Report less = report_of(-0.06 - 2 * error);
  CHECK(less.verdict == Verdict::pass);
  CHECK_FALSE(explains(less));
  const Report more = report_of(-0.06 - 3.5 * error);
  const Judgement& stream = find(more, Signal::value, "mlp.stream", 0);
  REQUIRE((stream.deviation > 3.04 && stream.deviation < more.thresholds.failure));
  CHECK(more.verdict == Verdict::inconclusive);
  CHECK(more.wants_larger_size);
  CHECK(explains(more));
}

TEST_CASE("Growth fails alone where it is sure, and is the cause of a failure where it is likely") {
  const std::vector<Member> family = family_of("ngpt");
  const Quantity branch{Signal::change, "mlp.output"};  // expected between -1/2 and 1
  const auto report_of = [&](double slope, bool failed) {
    Records records = with(follow(family), branch, 1, slope);
    if (failed) records = with(records, {Signal::change, "final_hidden"}, 1, 0.5);
    return coordinate_check(records, family);
  };
  const Report plain = report_of(0.25, false);
  const Growth growth = *find(plain, branch.signal, branch.name, 1).measured;
  // Growth of an open band counts from 1/4.
  const auto beyond = [&](double deviates, bool failed) {
    return report_of(0.25 + deviates * growth.tail_error - (growth.slope - 0.25), failed);
  };
  const double likely = (plain.thresholds.doubt + plain.thresholds.failure) / 2;
  CHECK(beyond(likely, false).verdict != Verdict::fail);
  CHECK(beyond(plain.thresholds.failure + 0.3, false).cause == Cause::growth);
  CHECK(beyond(plain.thresholds.doubt - 0.3, true).verdict == Verdict::fail);
  CHECK(beyond(plain.thresholds.doubt - 0.3, true).cause != Cause::growth);
  CHECK(beyond(likely, true).cause == Cause::growth);
}

TEST_CASE("Evidence that is not precise at all excludes no mistake") {
  const std::vector<Member> family = family_of("maximal-update");
  const Scales scales = scales_of(family);
  const Shape& shape = family.front().plan.shape;
  const Fault fault{Ingredient::output_multiplier};
  const Hypothesis mistake = hypothesis_of(scales, shape, fault, {});
  Judgement logits;
  logits.curve.quantity = {Signal::value, "logits"};
  logits.curve.runs = 1;
  logits.subject = subject_of(family.front().plan, logits.curve.quantity);
  logits.expected = expected(Prediction(scales, shape, {}), logits.subject, Signal::value, 0);
  const auto standing = [&](double error) {
    logits.measured = Growth{-0.5, error, error, error, -0.5, 10};
    return standing_of(mistake, {logits}, {}, 4);
  };
  CHECK(standing(0.1).excludable);
  CHECK(standing(0.1).witness != nullptr);
  for (const double error : {HUGE_VAL, std::nan("")}) {
    CHECK_FALSE(standing(error).excludable);
    CHECK(standing(error).witness == nullptr);
  }
}

TEST_CASE("What the rule itself lets grow fails, and is told from a mistake") {
  const std::vector<Member> family = family_of("standard");
  const Report report = coordinate_check(follow(family), family);
  CHECK(report.verdict == Verdict::fail);
  CHECK(report.cause == Cause::growth);
  CHECK(report.diagnosis.find("the rule itself lets it grow") != std::string::npos);
  CHECK(find(report, Signal::value, "mlp.output", 0).verdict == Verdict::pass);
  // Only what is exact can show a mistake beside it.
  const Records wrong = with(follow(family), {Signal::parameter, "query"}, 0, 1);
  CHECK(coordinate_check(wrong, family).cause == Cause::unknown);
  const Records bent = with(follow(family), {Signal::value, "mlp.output"}, 0, 1);
  CHECK(coordinate_check(bent, family).cause == Cause::growth);
}

TEST_CASE("Along the depth, models without norms are not judged") {
  std::vector<Member> family;
  Shape base = shape_of(32);
  for (const long depth : sizes) {
    Shape shape = shape_of(32);
    shape.depth = depth / 8;  // slopes are those of ratios
    family.push_back({depth, make_plan("complete-p", {.model = shape, .base = base})});
  }
  Records records;
  add(records, Signal::gradient, "token_embedding", 0, -3);
  CHECK(coordinate_check(records, family).verdict == Verdict::fail);
  const Report without = coordinate_check(records, family, {.norms = false});
  CHECK(without.verdict == Verdict::inconclusive);
  REQUIRE(without.missing.size() == 1);
  CHECK(without.missing.front() == "a limit: along the depth a model without norms is not judged");
}

TEST_CASE("Along the width, deep models without norms are not judged") {
  for (const long depth : {4, 5}) {
    std::vector<Member> family;
    for (const long n : sizes) {
      Shape shape = shape_of(n), base = shape_of(64);
      shape.depth = base.depth = depth;
      family.push_back({n, make_plan("maximal-update", {.model = shape, .base = base})});
    }
    Records records;
    add(records, Signal::change, "mlp.output", 1, 3);
    INFO(depth);
    CHECK(coordinate_check(records, family).verdict == Verdict::fail);
    CHECK(coordinate_check(records, family, {.norms = false}).verdict ==
          (depth == 4 ? Verdict::fail : Verdict::inconclusive));
  }
}

TEST_CASE("Without norms only what the first step changes is judged") {
  const std::vector<Member> family = family_of("maximal-update");
  Records records = follow(family);
  add(records, Signal::change, "mlp.output", 2, 3);
  add(records, Signal::value, "mlp.output", 2, 3);
  CHECK(coordinate_check(records, family).verdict == Verdict::fail);
  CHECK(coordinate_check(records, family, {.norms = false}).verdict == Verdict::pass);
  const Records first = with(records, {Signal::change, "mlp.output"}, 1, 3);
  CHECK(coordinate_check(first, family, {.norms = false}).verdict == Verdict::fail);
}
