// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/recorded_layers.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/made_up_records.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {

/// The report on what training of a family gives, without the records of the largest size, or of its last run, that are to
/// be dropped.
template <class Dropped>
Report without(const std::vector<Member>& family, bool last_run, const Dropped& dropped) {
  const Records all = follow(family);
  Records kept;
  all.for_each([&](const Quantity& quantity, long step, const Run& run, const Moments& moments) {
    const bool there = run.size == 512 && (!last_run || run.seed == 3);
    if (!there || !dropped(quantity, step)) kept.add(quantity, step, run, moments);
  });
  return coordinate_check(kept, family);
}

}  // namespace

TEST_CASE("Layers whose output was not recorded are named") {
  const std::vector<Member> family = family_of("maximal-update");
  const auto left_out = [&](const std::vector<std::string>& names) {
    Records records;
    for (const std::string& name : names) add(records, Signal::value, name, 0, 0);
    return coordinate_check(records, family).left_out;
  };
  CHECK(left_out({"attention.output", "mlp.output"}).empty());
  CHECK(left_out({"layer.0.attention.output", "layer.1.attention.output", "mlp.output"}).empty());
  CHECK(left_out({"layer.0.mlp.output", "layer.1.attention.output"}) ==
        std::vector<std::string>{"layer.0.attention.output, not recorded",
                                 "layer.1.mlp.output, not recorded"});
  CHECK(left_out({"mlp.output"}) ==
        std::vector<std::string>{"layer.*.attention.output, not recorded"});

  const auto without_updates_of = [&](const std::set<std::string>& names) {
    Records records;
    for (const Entry& entry : family.front().plan.entries) {
      if (!names.contains(entry.name)) add(records, Signal::update, entry.name, 1, 1);
    }
    return coordinate_check(records, family).left_out.back();
  };
  CHECK(without_updates_of({}) == "layer.*.mlp.output, not recorded");
  CHECK(without_updates_of({"layer.1.key"}) == "layer.1.key (update), not recorded");
  CHECK(without_updates_of({"layer.0.mlp_up", "layer.1.mlp_up", "head"}) ==
        "layer.*.mlp_up (update), head (update), not recorded");
}

TEST_CASE("A layer that the plan does not have is not taken together with those that it has") {
  const std::vector<Member> family = family_of("maximal-update");  // two layers
  for (const Quantity& quantity : {Quantity{Signal::update, "layer.7.mlp_down"},
                                   Quantity{Signal::value, "layer.2.mlp.output"}}) {
    Records records = follow(family);
    add(records, quantity.signal, quantity.name, 1, 0);
    const Report report = coordinate_check(records, family);
    CHECK(report.verdict == Verdict::inconclusive);
    REQUIRE(report.missing.size() == 1);
    CHECK(report.missing.front() == "plans of the models that were recorded: " + quantity.name +
                                        " (" + std::string(word(signal_words, quantity.signal)) +
                                        ") at size 64, whose plan has no such layer");
  }
  CHECK(coordinate_check(follow(family), family).verdict == Verdict::pass);
}

TEST_CASE("Tensors of which a part was recorded are named") {
  const std::vector<Member> family = family_of("maximal-update");
  const auto left_out = [&](double part) {
    Records records;
    for (const Member& member : family) {
      for (const Entry& entry : member.plan.entries) {
        const double count = static_cast<double>(entry.rows * entry.columns) *
                             (entry.name == "layer.1.mlp_down" ? part : 1);
        records.add({Signal::gradient, entry.name}, 0, {member.size, 1},
                    {count, count, static_cast<std::uint64_t>(count)});
      }
    }
    return coordinate_check(records, family).left_out;
  };
  CHECK(left_out(0.5).back() == "layer.1.mlp_down (gradient): 50 % of its entries were recorded");
  CHECK(left_out(1).back() != left_out(0.5).back());
}

TEST_CASE("Layers are taken together where all runs have them, and steps move them all") {
  const std::vector<Member> family = family_of("maximal-update");
  const auto missing = [&](Signal signal, const std::string& name, double rms, long without) {
    Records records = follow(family);
    for (const Member& member : family) {
      for (const std::uint64_t seed : {1U, 2U, 3U}) {
        for (const int layer : {0, 1}) {
          if (layer == 1 && member.size == without) continue;
          const std::string at = "layer." + std::to_string(layer) + "." + name;
          const double x = layer == 0 ? 1 : rms;
          const auto n = static_cast<std::uint64_t>(member.size);
          records.add({signal, at}, 1, {member.size, seed}, {x, x * x, 4 * n * n});
        }
      }
    }
    return coordinate_check(records, family).missing;
  };
  CHECK(missing(Signal::change, "mlp.output", 1, 0).empty());
  CHECK(missing(Signal::change, "mlp.output", 1, 128) ==
        std::vector<std::string>{"layer.1.mlp.output (change) at step 1 of size 128, seed 1, as in "
                                 "other runs"});
  CHECK(missing(Signal::update, "mlp_up", 0, 0) ==
        std::vector<std::string>{"a step that moves layer.1.mlp_up at size 64: all its updates are "
                                 "exactly zero, and those of other layers are not"});
}

TEST_CASE("What all runs of a size lack leaves the verdict open, and what one lacks is listed") {
  const std::vector<Member> family = family_of("maximal-update");
  const auto value = [](const Quantity& quantity, long step) {
    return step == 1 && quantity == Quantity{Signal::value, "logits"};
  };
  const Report one = without(family, false, value);
  CHECK(one.verdict == Verdict::inconclusive);
  CHECK(one.missing ==
        std::vector<std::string>{"logits (value) at step 1 of size 512, as in other runs"});
  const Report all = without(family, false, [](const Quantity&, long step) { return step == 1; });
  CHECK(all.verdict == Verdict::inconclusive);
  CHECK(all.missing == std::vector<std::string>{
                           "attention.output (value) at step 1 of size 512, embedding (value) at "
                           "step 1 of size 512, logits (value) at step 1 of size 512 and 11 "
                           "more, as in other runs"});
  const Report run = without(family, true, value);
  CHECK(run.verdict == Verdict::pass);
  CHECK(run.missing.empty());
  CHECK(run.left_out.back() == "logits (value) at step 1 of size 512, seed 3, not recorded");
}

TEST_CASE("A size need not have records of a tensor that its model lacks") {
  std::vector<Member> family = family_of("maximal-update");
  Shape tied = shape_of(512);
  tied.tied_head = true;
  const auto head = [](const Quantity& quantity, long) { return quantity.name == "head"; };
  CHECK_FALSE(without(family, false, head).missing.empty());
  family.back().plan = make_plan("maximal-update", {.model = tied, .base = shape_of(64)});
  CHECK(without(family, false, head).missing.empty());
}
