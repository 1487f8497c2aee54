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
#include "scalewise/numeric/random.hpp"
#include "support/catch.hpp"

using namespace scalewise;
using namespace scalewise::check;

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
    if (j.curve.quantity == Quantity{signal, name} && j.curve.step == step) return j;
  }
  throw InvalidInput("quantity", name, "one of the report's");
}

/// What training under some plans would give at large sizes, from their own prediction: the middle
/// of each band.
Records follow(const std::vector<Member>& family, double backward = 0, double scatter = 0.02) {
  const Prediction p = prediction_of(family, {}, backward);
  Records records;
  const auto slope = [](const Band& band) {
    return band.is_zero() ? -HUGE_VAL : (band.low + band.high) / 2;
  };
  for (const char* role : {"embedding", "attention.output", "mlp.hidden", "mlp.output", "logits"}) {
    add(records, Signal::value, role, 0, slope(*p.value(role, 0)), scatter);
    add(records, Signal::value, role, 1, slope(*p.value(role, 1)), scatter);
    add(records, Signal::change, role, 1, slope(*p.change(role, 1)), scatter);
  }
  for (const Group group : {Group::token_embedding, Group::query, Group::mlp_down, Group::head}) {
    const std::string name(to_string(group));
    add(records, Signal::parameter, name, 0, slope(p.parameter(name, group)), scatter);
    add(records, Signal::gradient, name, 0, slope(*p.gradient(group, 0)), scatter);
    add(records, Signal::update, name, 1, slope(p.update(group, 1)), scatter);
  }
  return records;
}

/// The records with another slope of one quantity.
Records with(const Records& records, const Quantity& quantity, long step, double slope) {
  Records changed;
  for (const auto& [other, steps] : records.all()) {
    for (const auto& [at, runs] : steps) {
      if (other == quantity && at == step) continue;
      for (const auto& [run, moments] : runs) changed.add(other, at, run, moments);
    }
  }
  add(changed, quantity.signal, quantity.name, step, slope);
  return changed;
}

}  // namespace

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
  for (const auto& [quantity, steps] : pooled.all()) {
    const bool of_layer = quantity.name.find('.') != std::string::npos ||
                          quantity.name == "query" || quantity.name == "mlp_down";
    for (const auto& [step, runs] : steps) {
      for (const auto& [run, moments] : runs) {
        const Moments half{moments.sum_abs, moments.sum_squares, moments.count};
        for (const char* layer : {"layer.0.", "layer.1."}) {
          by_layer.add({quantity.signal, (of_layer ? layer : "") + quantity.name}, step, run, half);
        }
      }
    }
  }
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

/// The verdict on a slope that is known well, judged against a band.
Verdict judged(Regime regime, double slope, double last, const Band& band, double error = 1e-4) {
  Judgement j;
  j.expected = Expectation{band, regime};
  j.curve.runs = 1;
  j.measured = Growth{slope, error, error, last, 1000};
  judge(j, {}, 4);
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
  // An error of 0.1 is four of a deviate of 0.4 beyond the margin.
  CHECK(judged(Regime::first, 0.45, 0.45, 0, 0.1) == Verdict::pass);
  CHECK(judged(Regime::first, 0.47, 0.47, 0, 0.1) == Verdict::fail);
}

TEST_CASE("A slope that bends towards its limit does not fail, one that is exact does") {
  CHECK(judged(Regime::first, 0.5, 0.2, 0) == Verdict::fail);
  CHECK(judged(Regime::first, 0.5, 0, 0) == Verdict::inconclusive);
  CHECK(judged(Regime::later, 0.5, -0.1, 0) == Verdict::inconclusive);
  CHECK(judged(Regime::exact, 0.5, 0, 0) == Verdict::fail);
}

TEST_CASE("A slope needs three sizes, two octaves and two seeds") {
  const auto curve = [](const std::vector<long>& at) {
    Records::Runs runs;
    for (const long n : at) runs[{n, 1}] = {1, 1, 1};
    return curve_of({Signal::value, "mlp.output"}, 0, runs);
  };
  CHECK(check::detail::spans(curve({64, 128, 256})));
  CHECK(check::detail::spans(curve({3, 5, 12})));
  CHECK_FALSE(check::detail::spans(curve({64, 128, 255})));
  CHECK_FALSE(check::detail::spans(curve({64, 512})));
  // Four times the smallest is out of range.
  CHECK_FALSE(check::detail::spans(curve({1L << 61U, (1L << 61U) + 1, (1L << 62U) + 1})));
  CHECK_THROWS_WITH(curve({-64, 128, 512}), "size of mlp.output = -64: expected a positive size");

  const auto reason = [&](std::uint64_t seeds) {
    Records records;
    for (const long n : sizes) {
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        records.add({Signal::value, "mlp.output"}, 0, {n, seed}, {1, 1, 1});
      }
    }
    return coordinate_check(records, family_of("maximal-update")).judgements.front().reason;
  };
  CHECK(reason(1) == "needs 2 seeds of one size");
  CHECK(reason(2).empty());
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

TEST_CASE("Without norms, gradients behind a sharp softmax are judged as later steps are") {
  // Sharp: exp(s²)/256 above a fifth, s above 1.984.
  const std::vector<Member> family = family_of("maximal-update");
  const auto regime = [&](double smallest, bool norms) {
    Records records;
    add(records, Signal::gradient, "query", 0, -1);
    for (const long n : sizes) {
      const double rms = smallest * std::sqrt(64 / static_cast<double>(n));
      records.add({Signal::value, "logits"}, 0, {n, 1}, {50 * rms, 100 * rms * rms, 100});
    }
    const Report report = coordinate_check(records, family, Assumptions{.norms = norms});
    return find(report, Signal::gradient, "query", 0).expected->regime;
  };
  CHECK(regime(1.9, false) == Regime::first);
  CHECK(regime(2.1, false) == Regime::later);
  CHECK(regime(2.1, true) == Regime::first);
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
    family.push_back({n, make_plan("depth-mup", adamw, s, base)});
  }
  // With the branch multiplier twice the stream shrinks with the depth, by a half at most.
  const auto report_of = [&](double slope) {
    return coordinate_check(with(follow(family), {Signal::value, "mlp.stream"}, 0, slope), family);
  };
  const double error = find(report_of(0), Signal::value, "mlp.stream", 0).measured->error;
  // Beyond the margin of 0.06, in standard errors: odds of a hundred are a deviation of 3.04.
  const Report less = report_of(-0.06 - 2.5 * error);
  CHECK(less.verdict == Verdict::pass);
  const Report more = report_of(-0.06 - 3.5 * error);
  const Judgement& stream = find(more, Signal::value, "mlp.stream", 0);
  REQUIRE((stream.deviation > 3.04 && stream.deviation < more.threshold));
  CHECK(more.verdict == Verdict::inconclusive);
  CHECK(more.wants_larger_size);
  REQUIRE_FALSE(more.undecided.empty());
  CHECK(more.undecided.front().find("branch multiplier applied twice: it explains") == 0);
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

TEST_CASE("Without training, logits or the outputs of blocks there is no verdict") {
  const std::vector<Member> family = family_of("maximal-update");
  const Records all = follow(family);
  const auto only = [&](const auto& wanted) {
    Records some;
    for (const auto& [quantity, steps] : all.all()) {
      for (const auto& [step, runs] : steps) {
        if (!wanted(quantity, step)) continue;
        for (const auto& [run, moments] : runs) some.add(quantity, step, run, moments);
      }
    }
    return coordinate_check(some, family);
  };
  const Report start = only([](const Quantity&, long step) { return step == 0; });
  CHECK(start.verdict == Verdict::inconclusive);
  CHECK(start.missing ==
        std::vector<std::string>{
            "logits, at step 0 and after a step",
            "layer.*.mlp.output or layer.*.attention.output, at step 0 and after a step"});
  const Report embedding =
      only([](const Quantity& quantity, long) { return quantity.name == "embedding"; });
  CHECK(embedding.verdict == Verdict::inconclusive);
  CHECK(embedding.missing == start.missing);
  const Report activations =
      only([](const Quantity& quantity, long) { return is_activation(quantity.signal); });
  CHECK(activations.verdict == Verdict::pass);
  // Under Adam the scale of the backward pass is in gradients only; biases move what hidden rates that
  // are too low do not.
  CHECK(activations.unchecked ==
        std::vector<std::string>{"hidden rate missing", "hidden rate applied twice",
                                 "one global rate", "all rates applied twice",
                                 "backward scale missing", "backward scale applied twice"});
}

TEST_CASE("Zero is told from small") {
  std::vector<Member> family;
  for (const long n : sizes) {
    family.push_back(
        {n, make_plan("maximal-update", adamw, shape_of(n), shape_of(64), {{"zero_head", 1}})});
  }
  Records records;
  add(records, Signal::value, "logits", 0, -HUGE_VAL);
  CHECK(find(coordinate_check(records, family), Signal::value, "logits", 0).verdict ==
        Verdict::pass);
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
  add(records, Signal::update, "layer.0.query", 1, -1);
  const Report report = coordinate_check(records, family_of("maximal-update"));
  CHECK(report.unknown ==
        std::vector<std::string>{"mlp.ouput: no observable; did you mean mlp.output?",
                                 "qerry: no tensor of the plan; did you mean query?"});
  CHECK(report.verdict == Verdict::inconclusive);
  // mlp.output and the updates of query are there, its gradients are not.
  CHECK(report.missing.front() == "query, if qerry is it");
}

TEST_CASE("Records of other sizes, widths or depths than the plans' are named") {
  const std::vector<Member> family = family_of("maximal-update");
  Records other = follow(family);
  other.add({Signal::value, "mlp.output"}, 0, {48, 1}, {1, 1, 1});
  CHECK_THROWS_WITH(coordinate_check(other, family),
                    "size of mlp.output = 48: expected one that has a plan: 64, 128, 256 or 512");
  // Entries of all layers' queries: 2 n², or those of a model twice as deep or half as wide.
  const auto missing = [&](double times, double at_512) {
    Records records = follow(family);
    for (const Member& member : family) {
      const double n = static_cast<double>(member.size);
      const double count = times * 2 * n * n * (member.size == 512 ? at_512 : 1);
      for (const std::uint64_t seed : {1U, 2U, 3U}) {
        const double square = count / n;  // of weights with the variance 1/n
        records.add({Signal::parameter, "layer.0.query"}, 0, {member.size, seed},
                    {count / std::sqrt(n), square, static_cast<std::uint64_t>(count) - 1});
      }
    }
    return coordinate_check(records, family).missing;
  };
  CHECK(missing(1, 1).empty());
  CHECK(missing(0.5, 1).empty());  // one of two layers
  CHECK(missing(2, 1) ==
        std::vector<std::string>{"plans of the models that were recorded: query has 16384 entries "
                                 "at size 64, the plan 8192"});
  CHECK(missing(1, 0.25).size() == 1);
}

TEST_CASE("Zero in some runs only fails") {
  Records records;
  add(records, Signal::value, "mlp.output", 0, 0);
  records.add({Signal::value, "mlp.output"}, 0, {512, 4}, {0, 0, 1});
  const Report report = coordinate_check(records, family_of("maximal-update"));
  CHECK(find(report, Signal::value, "mlp.output", 0).reason == "zero in some runs only");
  CHECK(report.verdict == Verdict::fail);
}

TEST_CASE("Along the depth, models without norms are not judged") {
  std::vector<Member> family;
  Shape base = shape_of(32);
  for (const long depth : sizes) {
    Shape shape = shape_of(32);
    shape.depth = depth / 8;  // slopes are those of ratios
    family.push_back({depth, make_plan("complete-p", adamw, shape, base)});
  }
  Records records;
  add(records, Signal::gradient, "token_embedding", 0, -3);
  CHECK(coordinate_check(records, family).verdict == Verdict::fail);
  const Report without = coordinate_check(records, family, {.norms = false});
  CHECK(without.verdict == Verdict::inconclusive);
  REQUIRE(without.missing.size() == 1);
  CHECK(without.missing.front().starts_with("a limit: "));
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

TEST_CASE("Too little, too noisy or not finite is not a pass") {
  const std::vector<Member> family = family_of("maximal-update");
  Records noisy = follow(family, 0, 1.5);
  const Report open = coordinate_check(noisy, family);
  CHECK(open.verdict == Verdict::inconclusive);
  CHECK_FALSE(open.undecided.empty());

  Records infinite = follow(family);
  infinite.add({Signal::value, "mlp.output"}, 0, {512, 3}, {HUGE_VAL, HUGE_VAL, 1});
  CHECK(coordinate_check(infinite, family).verdict == Verdict::fail);
  Records diverged = follow(family);
  diverged.add({Signal::change, "mlp.output"}, 1, {512, 3}, {HUGE_VAL, HUGE_VAL, 1});
  const Report too_fast = coordinate_check(diverged, family);
  CHECK(too_fast.verdict == Verdict::inconclusive);
  CHECK(too_fast.undecided.front() ==
        "mlp.output (change) at step 1: not finite; a lower rate would tell");

  Records unknown;
  add(unknown, Signal::value, "router", 0, 3);
  CHECK(coordinate_check(unknown, family).verdict == Verdict::inconclusive);
  CHECK_THROWS_AS(coordinate_check(Records{}, family), InvalidInput);
  CHECK_THROWS_AS(coordinate_check(noisy, {family.front()}), InvalidInput);
}
