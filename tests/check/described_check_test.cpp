// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The coordinate check of models that are known by their tensors alone.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/check.hpp"
#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/described_network.hpp"

namespace {

using namespace scalewise;
using Catch::Matchers::ContainsSubstring;
using check::Band;
using check::Signal;
using namespace test::described_network;

check::Prediction prediction_of(const std::vector<check::Member>& family) {
  return {check::scales_of(family), family.front().plan.shape, {}};
}

/// The band that is expected of a quantity; none: it is not judged.
std::optional<Band> band(const std::vector<check::Member>& family, Signal signal,
                         const std::string& name, long step) {
  const auto found = check::expected(
      prediction_of(family), check::subject_of(family.front().plan, {signal, name}), signal, step);
  return found ? std::optional(found->band) : std::nullopt;
}

}  // namespace

TEST_CASE("Quantities of a described model are expected by the roles of its tensors") {
  const auto adam = family_of(adamw);
  const Slopes planned = as_planned();
  for (const auto& [quantity, steps] : planned) {
    const auto& [signal, name] = quantity;
    const bool router = name == "decoder.0.router";
    for (const auto& [step, slope] : steps) {
      INFO(word(check::signal_words, signal) << ' ' << name << " at step " << step);
      const auto expected = band(adam, signal, name, step);
      const bool judged =
          (signal != Signal::value || (step == 0 && !router)) &&
          (signal != Signal::gradient || (name != "logits" && name != "head_bias" && !router));
      CHECK(expected.has_value() == judged);
      if (!expected) continue;
      CHECK(expected->low <= slope + 1e-9);
      CHECK(expected->high >= slope - 1e-9);
      const bool gain = signal == Signal::gradient && name == "decoder.0.norm.weight";
      CHECK(expected->high - expected->low <= (gain ? 1 : 0.5));  // of outputs alone: at most
    }
  }
  CHECK(band(adam, Signal::change, "logits", 1) == Band(-0.5, 0));
  CHECK(band(adam, Signal::change, "decoder.0.up", 1) == Band(0));

  // Where the multiplier is in the forward pass, the head module gives logits without it.
  const auto forward = family_of(adamw, {}, false);
  CHECK(band(forward, Signal::value, "logits", 0) == Band(-0.5));
  CHECK_FALSE(band(forward, Signal::change, "head", 1));
  CHECK(band(forward, Signal::gradient, "head", 0) == Band(-1));
  CHECK(band(forward, Signal::gradient, "decoder.0.up", 0) == Band(-1));

  // Under SGD updates are those of gradients: Table 8 has the rates n, 1 and, folded, n over n squared.
  const auto plain = family_of(sgd);
  CHECK(band(plain, Signal::update, "embed", 3) == Band(1));
  CHECK(band(plain, Signal::update, "decoder.0.up", 3) == Band(0));
  CHECK(band(plain, Signal::update, "head", 3) == Band(-1));
  CHECK(band(plain, Signal::change, "decoder.0.up", 2) == Band(0));
  CHECK(band(plain, Signal::change, "logits", 2) == Band(-0.5, 0));
}

TEST_CASE("A described model that trains as planned passes, and mistakes fail with their names") {
  const auto family = family_of(adamw);
  const check::Report good = report(as_planned(), family);
  INFO(good.diagnosis);
  CHECK(good.verdict == check::Verdict::pass);
  CHECK(good.missing.empty());
  CHECK(good.unknown.empty());

  Slopes one_rate = as_planned();
  for (const char* name : {"decoder.0.up", "decoder.0.down", "decoder.0.router", "head"}) {
    one_rate[{Signal::update, name}] = {{1, 0}, {2, 0}};
  }
  for (const char* name : {"decoder.0.up", "logits"})
    one_rate[{Signal::change, name}] = {{1, 1}, {2, 1}};
  const check::Report rates = report(one_rate, family);
  CHECK(rates.verdict == check::Verdict::fail);
  CHECK_THAT(rates.diagnosis, ContainsSubstring("one global rate"));

  // A plan that takes a hidden matrix for an input, and training that follows it.
  const auto other_roles = family_of(adamw, {{"*.up", GivenRole::input}});
  Slopes grows = as_planned();
  grows[{Signal::parameter, "decoder.0.up"}][0] = 0;  // an input's variance is the base's
  grows[{Signal::update, "decoder.0.up"}] = {{1, 0}, {2, 0}};
  grows[{Signal::change, "decoder.0.up"}] = {{1, 0.9}, {2, 0.9}};
  const check::Report role = report(grows, other_roles);
  CHECK(role.verdict == check::Verdict::fail);
  CHECK_THAT(role.diagnosis, ContainsSubstring("decoder.0.up (change) +0.9") &&
                                 ContainsSubstring("as where a tensor has another's role"));

  // Where it is not seen to grow, the plan's own numbers keep the verdict open.
  Slopes slower = grows;
  slower[{Signal::change, "decoder.0.up"}] = {{1, 0.3}, {2, 0.3}};
  CHECK(report(slower, other_roles).verdict != check::Verdict::pass);

  Slopes smaller = as_planned();  // as where it was taken for an output
  smaller[{Signal::value, "decoder.0.up"}] = {{0, -0.5}};
  CHECK(report(smaller, family).verdict == check::Verdict::fail);

  // Where the plan has taken it for one, its updates are as those of a hidden matrix, and smaller initial values are planned.
  const auto output = family_of(adamw, {{"*.up", GivenRole::output}});
  smaller[{Signal::parameter, "decoder.0.up"}][0] = -1;
  const check::Report taken = report(smaller, output);
  CHECK(taken.verdict == check::Verdict::fail);
  CHECK(taken.cause == check::Cause::mistake);
  CHECK_THAT(taken.diagnosis,
             ContainsSubstring("decoder.0.up (value) -0.") &&
                 ContainsSubstring("its tensor has an output's role, though its outputs grow"));
  // Where that is not seen, as there are other terms, the plan's own numbers keep the verdict open.
  smaller[{Signal::value, "decoder.0.up"}] = {{0, 0}};
  const check::Report unseen = report(smaller, output);
  CHECK(unseen.verdict == check::Verdict::inconclusive);
  CHECK(unseen.undecided == std::vector<std::string>{
                                "decoder.0.up: its tensor has an output's role, though its outputs "
                                "grow; by the plan they begin as -0.50 of the width"});

  Slopes lost = as_planned();
  lost[{Signal::change, "decoder.0.up"}] = {{1, -0.8}, {2, -0.8}};
  CHECK(report(lost, family).verdict == check::Verdict::fail);
}

TEST_CASE("What a verdict on a described model lacks is listed") {
  const auto family = family_of(adamw);
  Slopes some = as_planned();
  for (const char* name : {"embed", "decoder.0.norm.weight", "decoder.0.up", "decoder.0.router"}) {
    some.erase({Signal::change, name});
  }
  const check::Report without = report(some, family);
  CHECK(without.verdict == check::Verdict::inconclusive);
  REQUIRE(without.missing.size() == 1);
  CHECK_THAT(without.missing[0], ContainsSubstring("the output of a module"));
  some = as_planned();
  some.erase({Signal::change, "logits"});
  CHECK(report(some, family).missing ==
        std::vector<std::string>{
            "logits, at step 0 and after a step (as a change since step 0, on the same batch)"});
  some = as_planned();
  some[{Signal::value, "decoder.0.upp"}][0] = 0;
  some[{Signal::value, "attention.scores"}][0] = 0;
  const check::Report unknown = report(some, family);
  REQUIRE(unknown.unknown.size() == 2);
  CHECK_THAT(unknown.unknown[0], ContainsSubstring("attention.scores: not judged of a list"));
  CHECK_THAT(unknown.unknown[1], ContainsSubstring("decoder.0.upp"));
  // The router's factor stands after the module that has its matrix; the head's is seen in the logits.
  Slopes outside = as_planned();
  for (const char* name : {"head", "decoder.0.router"}) {
    outside[{Signal::parameter, name}][0] = 0;
    outside[{Signal::update, name}] = {{1, 0}, {2, 0}};
    outside[{Signal::gradient, name}][0] = -1;
  }
  const check::Report forward = report(outside, family_of(adamw, {}, false));
  INFO(forward.diagnosis);
  CHECK(std::count(forward.unchecked.begin(), forward.unchecked.end(),
                   "multiplier missing after decoder.0.router") == 1);
  // A hidden matrix alone may have any rate within what the rank of its gradient leaves open.
  const auto by_muon = family_of(muon_match_adamw);
  Slopes single = as_planned();
  for (const char* name : {"decoder.0.up", "decoder.0.down"})
    single[{Signal::update, name}] = {{1, -0.75}, {2, -0.75}};
  const check::Report of_muon = report(single, by_muon);
  INFO(of_muon.diagnosis);
  CHECK(of_muon.verdict == check::Verdict::pass);
  const auto rate = "the rate of one matrix under Muon (check_optimizer() compares it)";
  CHECK(std::count(of_muon.unchecked.begin(), of_muon.unchecked.end(), rate) == 1);
  CHECK(std::count(forward.unchecked.begin(), forward.unchecked.end(), rate) == 0);
}

TEST_CASE("Tensors of a list that were not recorded are named") {
  const auto family = family_of(adamw);
  CHECK(report(as_planned(), family).left_out.empty());
  Slopes some = as_planned();
  for (const Signal signal : {Signal::parameter, Signal::gradient, Signal::update})
    some.erase({signal, "decoder.0.up"});
  some.erase({Signal::update, "head_bias"});
  const check::Report without = report(some, family);
  CHECK(without.verdict == check::Verdict::pass);
  CHECK(without.left_out ==
        std::vector<std::string>{"decoder.0.up (parameter), decoder.0.up (gradient), decoder.0.up "
                                 "(update) and 1 more, not recorded"});
}

TEST_CASE("Tensors of a list that do not move, or by rounding alone, are not judged, and named") {
  const auto family = family_of(adamw);
  const std::string gain = "decoder.0.norm.weight";
  Slopes still = as_planned();
  still[{Signal::update, gain}] = {{1, -HUGE_VAL}, {2, -HUGE_VAL}};
  const check::Report frozen = report(still, family);
  CHECK(frozen.verdict == check::Verdict::pass);
  REQUIRE(frozen.left_out.size() == 1);
  CHECK_THAT(frozen.left_out[0], ContainsSubstring(gain + ": no step moves them"));

  // 32^-5 is 1e-6 of 32^-1, the gradients of the others, and 32^-2.5 is 0.6 % of it.
  Slopes rounding = as_planned();
  rounding[{Signal::gradient, gain}][0] = -5;
  rounding[{Signal::update, gain}] = {{1, -0.6}, {2, -0.6}};
  const check::Report passes = report(rounding, family);
  CHECK(passes.verdict == check::Verdict::pass);
  REQUIRE(passes.left_out.size() == 1);
  CHECK_THAT(passes.left_out[0], ContainsSubstring(gain + ": their gradients are rounding"));
  rounding[{Signal::gradient, gain}][0] = -2.5;
  CHECK(report(rounding, family).verdict == check::Verdict::fail);
}

TEST_CASE("What weights that begin at zero leave zero is not judged on a list, and named") {
  const auto family = family_of(adamw);
  Slopes behind = as_planned();
  for (const Signal signal : {Signal::value, Signal::gradient})
    behind[{signal, "decoder.0.up"}][0] = -HUGE_VAL;
  behind[{Signal::change, "decoder.0.up"}][1] = -HUGE_VAL;
  const check::Report report_of_zeros = report(behind, family);
  CHECK(report_of_zeros.verdict == check::Verdict::pass);
  REQUIRE(report_of_zeros.left_out.size() == 1);
  CHECK_THAT(report_of_zeros.left_out[0], ContainsSubstring("decoder.0.up: where exactly zero"));
  behind[{Signal::parameter, "decoder.0.up"}][0] = -HUGE_VAL;  // where the plan has other numbers
  const check::Report of_weights = report(behind, family);
  CHECK(of_weights.verdict == check::Verdict::fail);
  CHECK_THAT(of_weights.diagnosis,
             ContainsSubstring("decoder.0.up (parameter) zero at step 0") &&
                 ContainsSubstring("on purpose, leave it out of the records"));
}

TEST_CASE("What is not finite, and batches of several sizes, leave no verdict on a list") {
  const auto family = family_of(adamw);
  check::Records records = records_of(as_planned(), family);
  records.add({Signal::value, "decoder.0.up"}, 1, {128, 0}, {std::nan(""), 1, 1});
  const check::Report broken = check::coordinate_check(records, family);
  CHECK(broken.verdict == check::Verdict::inconclusive);
  CHECK(broken.undecided == std::vector<std::string>{"decoder.0.up (value) at step 1: not finite; "
                                                     "try a lower learning rate"});

  records = records_of(as_planned(), family);
  for (const check::Member& member : family) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const auto count = static_cast<std::uint64_t>(10 * member.size);
      records.add({Signal::value, "logits"}, 0, {member.size, seed}, {0, 0, count - 1});
    }
  }
  const check::Report batches = check::coordinate_check(records, family);
  CHECK(batches.verdict == check::Verdict::inconclusive);
  REQUIRE_FALSE(batches.missing.empty());
  CHECK(batches.missing[0] ==
        "one batch at all sizes: logits has 320 entries at size 32 and 1280 at size 128");
}

TEST_CASE("Names of layers that only larger models of a list have are known") {
  const auto deep = [](long width, long layers) {
    ModelDescription model = network(width);
    for (long layer = 1; layer < layers; ++layer) {
      for (DescribedTensor tensor : network(width).tensors) {
        if (!tensor.name.starts_with("decoder.0.")) continue;
        tensor.name.replace(8, 1, std::to_string(layer));
        model.tensors.push_back(tensor);
      }
    }
    return model;
  };
  std::vector<check::Member> family;
  for (const long width : {32L, 64L, 128L}) {
    const DescribedModel model = from_descriptions(deep(width, width / 32), deep(16, 1));
    family.push_back(
        {width, make_plan(MaximalUpdate{},
                          {.model = model.shape, .base = model.base, .extras = model.tensors})});
  }
  check::Records records = records_of(as_planned(), family);
  records.add({Signal::update, "decoder.1.router"}, 1, {128, 0}, {1, 1, 1});
  CHECK(check::coordinate_check(records, family).unknown.empty());
}
