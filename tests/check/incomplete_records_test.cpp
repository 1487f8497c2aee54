// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The records that a verdict needs, and the report on those that are missing.

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "scalewise/check/record_file.hpp"
#include "support/catch.hpp"
#include "support/made_up_records.hpp"

using namespace scalewise;
using namespace scalewise::test;

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

TEST_CASE("Without training, logits or the outputs of blocks there is no verdict") {
  const std::vector<Member> family = family_of("maximal-update");
  const Records all = follow(family);
  const auto only = [&](const auto& wanted) {
    Records some;
    all.for_each([&](const Quantity& quantity, long step, const Run& run, const Moments& moments) {
      if (wanted(quantity, step)) some.add(quantity, step, run, moments);
    });
    return coordinate_check(some, family);
  };
  const Report start = only([](const Quantity&, long step) { return step == 0; });
  CHECK(start.verdict == Verdict::inconclusive);
  const Report later = only([](const Quantity&, long step) { return step > 0; });
  CHECK(later.verdict == Verdict::inconclusive);
  const std::vector<std::string> both{
      "logits, at step 0 and after a step",
      "layer.*.mlp.output or layer.*.attention.output, at step 0 and after a step"};
  CHECK(later.missing == both);
  const std::string change = " (as a change since step 0, on the same batch)";
  CHECK(start.missing == std::vector<std::string>{both[0] + change, both[1] + change});
  const Report embedding =
      only([](const Quantity& quantity, long) { return quantity.name == "embedding"; });
  CHECK(embedding.verdict == Verdict::inconclusive);
  CHECK(embedding.missing == both);
  const Report activations =
      only([](const Quantity& quantity, long) { return is_activation(quantity.signal); });
  CHECK(activations.verdict == Verdict::pass);
  // Under Adam the scale of the backward pass is in gradients only; biases move what hidden rates that
  // are too low do not. Scores were not recorded, and next to positions an embedding's multiplier shows
  // by half.
  CHECK(activations.unchecked ==
        std::vector<std::string>{"hidden rate missing", "hidden rate applied twice",
                                 "one global rate", "all rates applied twice",
                                 "backward scale missing", "backward scale applied twice",
                                 "exponents of rates that are off (updates would show them)",
                                 "exponent of the output multiplier off by -0.05 to +0.05",
                                 "exponent of the attention scale off by -0.20 to +0.20",
                                 "exponent of the embedding multiplier off by -0.10 to +0.10"});
  CHECK(activations.open_slips.size() == 2 + 6 + 4);
}

TEST_CASE("Where no mistake would show there is no verdict") {
  std::vector<Member> family;
  for (const long n : sizes) {
    Shape deep = shape_of(64), base = deep;
    deep.depth = n / 32;
    family.push_back({n, make_plan("complete-p", {.model = deep, .base = base})});
  }
  Records records = follow(family);
  const Report blind = coordinate_check(records, family);
  CHECK(blind.verdict == Verdict::inconclusive);
  CHECK(blind.missing.empty());
  CHECK(blind.undecided == std::vector<std::string>{"no mistake would show in these records"});
  CHECK(blind.unchecked.front() == "branch multiplier missing (layer.*.mlp.stream would show it)");
  for (const long step : {0, 1}) add(records, Signal::value, "mlp.stream", step, -0.45);
  add(records, Signal::change, "mlp.stream", 1, -0.4);
  CHECK(coordinate_check(records, family).verdict == Verdict::pass);
}

TEST_CASE("Zero is told from small") {
  std::vector<Member> family;
  for (const long n : sizes) {
    family.push_back({n, make_plan("maximal-update", {.model = shape_of(n),
                                                      .base = shape_of(64),
                                                      .parameters = {{"zero_head", 1}}})});
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
  add(nothing, Signal::update, "key", 1, -1);
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
  CHECK(missing(2, 1) == std::vector<std::string>{
                             "plans of the models that were recorded: query has 16384 entries "
                             "at size 64, the plan 8192; 65536 at size 128, the plan 32768, and "
                             "others at 2 more sizes"});
  // Where the smallest model is as planned, the sizes that are not are named.
  CHECK(missing(1, 0.25) ==
        std::vector<std::string>{"plans of the models that were recorded: query has 131072 entries "
                                 "at size 512, the plan 524288; as planned at size 64, 128, 256"});
}

TEST_CASE("Tensors of another architecture leave the verdict open") {
  // As a pre-norm model judged by a plan of the normalized transformer, which has no gains of norms.
  const std::vector<Member> family = family_of("maximal-update");
  Records records = follow(family);
  REQUIRE(coordinate_check(records, family).verdict == Verdict::pass);
  for (const Member& member : family) {
    records.add({Signal::parameter, "layer.0.step_of_another_model"}, 0, {member.size, 1},
                {1, 1, 1});
  }
  const Report report = coordinate_check(records, family);
  CHECK(report.verdict == Verdict::inconclusive);
  REQUIRE(report.missing.size() == 1);
  CHECK_THAT(report.missing.front(), Catch::Matchers::ContainsSubstring("a tensor of the plan; "));
}

TEST_CASE("Records of other models do not fail by the plans' slopes") {
  const std::vector<Member> family = family_of("maximal-update");
  Records wrong = with(follow(family), {Signal::value, "mlp.output"}, 0, 1);
  REQUIRE(coordinate_check(wrong, family).verdict == Verdict::fail);
  wrong.add({Signal::parameter, "layer.0.mlp_up"}, 0, {64, 1}, {1, 1, 1000000});
  const Report report = coordinate_check(wrong, family);
  CHECK(report.verdict == Verdict::inconclusive);
  CHECK(report.cause == Cause::none);
  CHECK(report.diagnosis.empty());
  CHECK(report.missing.size() == 1);
}

TEST_CASE("Seeds that decide are more than there are") {
  const std::vector<Member> family = family_of("maximal-update");
  std::size_t seen = 0;
  for (const double scatter : {0.5, 0.6, 0.8}) {
    for (const std::string& line : coordinate_check(follow(family, 0, scatter), family).undecided) {
      const std::size_t found = line.find("decides with ");
      if (found == std::string::npos || line.find("seeds instead of") == std::string::npos)
        continue;
      INFO(line);
      ++seen;
      CHECK(std::stol(line.substr(found + 13)) > 3);  // made up for each size
      CHECK_THAT(line,
                 Catch::Matchers::ContainsSubstring("seeds instead of 3 at the smallest size"));
    }
  }
  CHECK(seen > 0);
}

TEST_CASE("Zero in one run is open, and in all runs of a size fails") {
  for (const std::uint64_t zeros : {1U, 2U}) {  // of the two seeds of the largest size
    Records records;
    for (const long size : {64, 128, 256, 512}) {
      for (const std::uint64_t seed : {1U, 2U}) {
        const bool zero = size == 512 && seed <= zeros;
        records.add({Signal::value, "mlp.output"}, 0, {size, seed},
                    zero ? Moments{0, 0, 1} : Moments{1, 1, 1});
      }
    }
    const Report report = coordinate_check(records, family_of("maximal-update"));
    CHECK(find(report, Signal::value, "mlp.output", 0).reason == "zero in some runs only");
    CHECK(report.verdict == (zeros == 1 ? Verdict::inconclusive : Verdict::fail));
  }
}

namespace {

/// Made-up records with one step before them that moves nothing, as a rate of zero does.
Records after_idle_step(const Records& records) {
  Records late;
  records.for_each(
      [&](const Quantity& quantity, long step, const Run& run, const Moments& moments) {
        late.add(quantity, step == 0 ? 0 : step + 1, run, moments);
        const bool start = quantity.signal == Signal::value && step == 0;
        if (start) late.add(quantity, 1, run, moments);
        if (quantity.signal == Signal::change || quantity.signal == Signal::update) {
          late.add(quantity, 1, run, {0, 0, moments.count});
        }
      });
  return late;
}

}  // namespace

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
        "mlp.output (change) at step 1: not finite; try a lower learning rate");

  // So are gradients that are not judged: those of later steps, and of steps that move nothing.
  for (const bool idle : {false, true}) {
    Records overflow = idle ? after_idle_step(follow(family)) : follow(family);
    add(overflow, Signal::gradient, "query", 1, HUGE_VAL);
    const Report open_gradient = coordinate_check(overflow, family);
    CHECK(open_gradient.verdict == Verdict::inconclusive);
    CHECK(open_gradient.undecided ==
          std::vector<std::string>{
              "query (gradient) at step 1: not finite; try a lower learning rate"});
  }

  Records unknown;
  add(unknown, Signal::value, "router", 0, 3);
  CHECK(coordinate_check(unknown, family).verdict == Verdict::inconclusive);
  CHECK_THROWS_AS(coordinate_check(Records{}, family), InvalidInput);
  CHECK_THROWS_AS(coordinate_check(noisy, {family.front()}), InvalidInput);
}

TEST_CASE("A step with a rate of zero is left out, and the others count from there") {
  const std::vector<Member> family = family_of("maximal-update");
  const Records records = follow(family);
  const Report plain = coordinate_check(records, family);
  const Report late = coordinate_check(after_idle_step(records), family);
  CHECK(plain.verdict == Verdict::pass);
  CHECK(late.verdict == Verdict::pass);
  CHECK(late.judgements.size() == plain.judgements.size());
  CHECK(late.unchecked == plain.unchecked);
  REQUIRE(late.left_out.size() == plain.left_out.size() + 1);
  CHECK(late.left_out.front() ==
        "step 1, whose updates are all exactly zero at every size, as with a learning rate of 0");
  // A mistake is seen behind it as well.
  const Fault fault{Ingredient::hidden_rate, false};
  const Report wrong = coordinate_check(after_idle_step(follow(with_fault(family, fault))), family);
  CHECK(wrong.verdict == Verdict::fail);
  CHECK_THAT(wrong.diagnosis, Catch::Matchers::ContainsSubstring("at step 2"));
  CHECK(wrong.cause == Cause::mistake);
}

TEST_CASE("Where no step moves anything there is no verdict") {
  const std::vector<Member> family = family_of("maximal-update");
  const Records late = after_idle_step(follow(family));
  Records still;
  late.for_each([&](const Quantity& quantity, long step, const Run& run, const Moments& moments) {
    if (step <= 1) still.add(quantity, step, run, moments);
  });
  const Report report = coordinate_check(still, family);
  CHECK(report.verdict == Verdict::inconclusive);
  CHECK(report.missing.front() ==
        "a step that moves something: all updates are exactly zero, as with a learning rate of 0");
  // Of one size only, it is a mistake.
  Records one = follow(family);
  for (const char* name : {"query", "mlp_down", "head", "token_embedding"}) {
    Records without;
    one.for_each([&](const Quantity& quantity, long step, const Run& run, const Moments& moments) {
      const bool zero =
          quantity.name == name && quantity.signal == Signal::update && run.size == 512;
      without.add(quantity, step, run, zero ? Moments{0, 0, 1} : moments);
    });
    one = without;
  }
  CHECK(coordinate_check(one, family).verdict == Verdict::fail);
}

TEST_CASE("A rate that begins at zero is not a mistake") {
  // Records of PyTorch; see data/README.md.
  std::vector<Member> family;
  const auto shape = [](long width) {
    Shape s = shape_of(width);
    s.heads = width / 16;
    return s;
  };
  for (const long n : {32L, 64L, 128L}) {
    family.push_back({n, make_plan("maximal-update", {.model = shape(n), .base = shape(32)})});
  }
  const Report report = coordinate_check(
      read_records(std::string(SCALEWISE_TEST_DIR) + "/check/data/warm_up_from_zero.csv").records,
      family);
  INFO(report.diagnosis);
  CHECK(report.verdict == Verdict::pass);
  CHECK(report.left_out.size() == 1);
}

TEST_CASE("One model under the names of several sizes gets no verdict") {
  const std::vector<Member> family = family_of("maximal-update");
  const Records all = follow(family);
  Records alike;
  all.for_each([&](const Quantity& quantity, long step, const Run& run, const Moments& moments) {
    if (run.size != 64) return;
    const double rms = moments.rms();
    for (const long size : sizes) {
      alike.add(quantity, step, {size, run.seed}, {100 * rms, 100 * rms * rms, 100});
    }
  });
  Records same;  // without tensors, whose counts give it away
  Records other_seeds;
  alike.for_each([&](const Quantity& quantity, long step, const Run& run, const Moments& moments) {
    if (!is_activation(quantity.signal)) return;
    same.add(quantity, step, run, moments);
    const double other = 1 + 0.01 * static_cast<double>(run.size + static_cast<long>(run.seed));
    other_seeds.add(quantity, step, run,
                    {moments.sum_abs * other, moments.sum_squares * other * other, 100});
  });
  const Report report = coordinate_check(same, family);
  CHECK(report.verdict == Verdict::inconclusive);
  REQUIRE(report.missing.size() == 1);
  CHECK(report.missing.front() ==
        "models of different sizes: size 128 (seed 1) begins with the numbers of size 64 (seed 1)");
  const Report counts = coordinate_check(other_seeds, family);
  CHECK(counts.verdict == Verdict::inconclusive);
  CHECK(counts.missing.front() ==
        "models of different sizes: attention.output has 100 entries at size 64 and at size 512");
}

TEST_CASE("Plans of one width and depth get no verdict, though their heads differ") {
  std::vector<Member> family;
  for (const long n : sizes) {
    Shape shape = shape_of(64);
    shape.heads = n / 16;
    family.push_back({n, make_plan("maximal-update", {.model = shape, .base = shape_of(64)})});
  }
  const Report report = coordinate_check(follow(family), family);
  CHECK(report.verdict == Verdict::inconclusive);
  CHECK(report.missing ==
        std::vector<std::string>{"models of different sizes: the plans of size 64 and 128 have the "
                                 "same width, depth and experts"});
}

TEST_CASE("A pass that counts twice, or another batch, leaves the verdict open") {
  const std::vector<Member> family = family_of("maximal-update");
  Records records = follow(family);
  REQUIRE(coordinate_check(records, family).verdict == Verdict::pass);
  const Moments one = records.find({Signal::value, "mlp.output"}, 1)->at({512, 3});
  records.add({Signal::value, "mlp.output"}, 1, {512, 3}, one);
  const Report report = coordinate_check(records, family);
  CHECK(report.verdict == Verdict::inconclusive);
  CHECK(report.missing.front() ==
        "one pass over the same batch at each step: mlp.output has 2 "
        "entries at step 1 and 1 at step 0");
}

TEST_CASE("Updates count from 1, and moments of no numbers are not recorded") {
  const std::vector<Member> family = family_of("maximal-update");
  Records records = follow(family);
  records.add({Signal::update, "query"}, 0, {64, 1}, {1, 1, 1});
  CHECK_THROWS_WITH(coordinate_check(records, family),
                    "step of the update of query = 0: expected 1 for what the first step adds "
                    "(hint: updates count from 1)");
  records.add({Signal::value, "final_hidden"}, 0, {64, 1}, {});
  CHECK_FALSE(records.has({Signal::value, "final_hidden"}, 0, {64, 1}));
}
