// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Records judged by the plans that were trained: folded, started, of one rate. Those of nanoGPT were made with
// PyTorch on a GPU; see data/README.md.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "scalewise/check/family.hpp"
#include "scalewise/check/record_file.hpp"
#include "scalewise/check/recorder.hpp"
#include "scalewise/plan/fold.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/plan/single_rate.hpp"
#include "support/catch.hpp"
#include "support/made_up_records.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {

Records recorded(const std::string& name) {
  return read_records(std::string(SCALEWISE_TEST_DIR) + "/check/data/" + name + ".csv").records;
}

Shape nanogpt_shape(long width) {
  Shape s{.d_model = width, .depth = 4, .heads = width / 64, .context = 512, .vocab = 256};
  s.tied_head = true;
  s.biases = s.norm_bias = false;
  return s;
}

std::vector<PlanFile> nanogpt_plans(bool folded, const std::vector<Parameter>& constants = {}) {
  std::vector<PlanFile> files;
  for (const long width : {256L, 512L, 1024L, 2048L}) {
    const Plan plan = make_plan("maximal-update", {.model = nanogpt_shape(width),
                                                   .base = nanogpt_shape(256),
                                                   .constants = constants,
                                                   .start = "gpt2"});
    files.push_back({"plan_" + std::to_string(width) + ".json", folded ? fold(plan).plan : plan});
  }
  return files;
}

Report judged(const Records& records, const std::vector<PlanFile>& plans) {
  return coordinate_check(records, family_of(records, plans).members);
}

/// Families of the same training, written in three ways.
struct Rewritten {
  std::vector<Member> as_it_is, folded, one_rate;
};

Rewritten rewritten(const std::string& rule, const Optimizer& optimizer, bool depth, bool tied) {
  Rewritten all;
  for (const long size : depth ? std::vector{2L, 8L, 32L} : std::vector{64L, 256L, 1024L}) {
    Shape shape = shape_of(depth ? 64 : size);
    Shape base = shape_of(64);
    shape.heads = base.heads = 2;  // heads that grow
    // One prediction stands for the gradients of all biases, which a fold makes different.
    shape.biases = base.biases = optimizer != sgd;
    if (depth) shape.depth = size;
    shape.tied_head = base.tied_head = tied;
    const Plan plan = make_plan(rule, {.model = shape, .base = base, .optimizer = optimizer});
    all.as_it_is.push_back({size, plan});
    all.folded.push_back({size, fold(plan).plan});
    all.one_rate.push_back({size, single_rate(plan).plan});
  }
  return all;
}

Prediction predicted(const std::vector<Member>& family) {
  return {scales_of(family), family.front().plan.shape, {}};
}

bool equal_bands(const Band& a, const Band& b) {
  if (a.is_zero() || b.is_zero()) return a.is_zero() == b.is_zero();
  return std::abs(a.low - b.low) < 1e-8 && std::abs(a.high - b.high) < 1e-8;
}

}  // namespace

TEST_CASE("Records of nanoGPT are judged by the plans that it was trained by") {
  const Report folded = judged(recorded("nanogpt_folded"), nanogpt_plans(true));
  INFO(folded.diagnosis);
  CHECK(folded.verdict == Verdict::pass);
  CHECK(judged(recorded("nanogpt"), nanogpt_plans(false)).verdict == Verdict::pass);
  const Report one_rate = judged(recorded("nanogpt_one_rate"), nanogpt_plans(false));
  CHECK(one_rate.verdict == Verdict::fail);
  CHECK_THAT(one_rate.diagnosis, Catch::Matchers::ContainsSubstring("one global rate"));
}

TEST_CASE("Constants of the base, which are the same at all sizes, change no verdict") {
  const std::vector<Parameter> constants{
      {"rate", 0.003},  {"embedding.rate", 2.31}, {"hidden.std", 1.3}, {"query.multiplier", 0.7},
      {"logits", 1.79}, {"scores", 1.2},          {"branches", 0.8}};
  for (const char* name : {"nanogpt", "nanogpt_folded", "nanogpt_one_rate"}) {
    for (const bool folded : {false, true}) {
      INFO(name << (folded ? ", folded" : ""));
      const Report plain = judged(recorded(name), nanogpt_plans(folded));
      const Report tuned = judged(recorded(name), nanogpt_plans(folded, constants));
      CHECK(tuned.verdict == plain.verdict);
      CHECK(tuned.diagnosis == plain.diagnosis);
      REQUIRE(tuned.judgements.size() == plain.judgements.size());
      for (std::size_t i = 0; i < plain.judgements.size(); ++i) {
        const Judgement &a = tuned.judgements[i], &b = plain.judgements[i];
        CHECK(a.verdict == b.verdict);
        CHECK(a.expected.has_value() == b.expected.has_value());
        CHECK(std::abs(a.deviation - b.deviation) <= 1e-6 * (1 + std::abs(b.deviation)));
      }
    }
  }
}

TEST_CASE("A constant of the base that one of the plans lacks is seen") {
  std::vector<PlanFile> plans = nanogpt_plans(false, {{"logits", 4}});
  CHECK(judged(recorded("nanogpt"), plans).verdict == Verdict::pass);
  plans.back() = nanogpt_plans(false).back();
  CHECK(judged(recorded("nanogpt"), plans).verdict == Verdict::fail);
}

TEST_CASE("Records of a folded model fail by the plans of one that is not") {
  CHECK(judged(recorded("nanogpt_folded"), nanogpt_plans(false)).verdict == Verdict::fail);
  CHECK(judged(recorded("nanogpt"), nanogpt_plans(true)).verdict == Verdict::fail);
}

TEST_CASE("A model that is written in another way has the same scores, logits and embedding") {
  for (const char* rule : {"maximal-update", "complete-p", "depth-mup", "neural-tangent"}) {
    for (const Optimizer& optimizer : {adamw, sgd}) {
      for (const bool depth : {false, true}) {
        for (const bool tied : {false, true}) {
          Rewritten family;
          try {
            family = rewritten(rule, optimizer, depth, tied);
          } catch (const InvalidInput&) {
            continue;  // a rule that does not state the optimizer
          }
          INFO(rule << " " << optimizer.name << (depth ? " depth" : "") << (tied ? " tied" : ""));
          const Prediction plain = predicted(family.as_it_is);
          for (const auto* other : {&family.folded, &family.one_rate}) {
            const Prediction rewritten = predicted(*other);
            for (const char* role : {"embedding", "attention.scores", "mlp.stream", "logits"}) {
              for (const long step : {0L, 1L, 3L}) {
                INFO(role << " at step " << step);
                const Band change = *rewritten.change(role, step);
                CHECK(equal_bands(*plain.value(role, step), *rewritten.value(role, step)));
                INFO(band_text(*plain.change(role, step)) << " and " << band_text(change));
                CHECK(equal_bands(*plain.change(role, step), change));
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("The final norm of a folded model is as large as its plan says") {
  const Prediction p = predicted(rewritten("maximal-update", adamw, false, true).folded);
  // The gain is 1/m_N: its output and steps are, and logits are what they were.
  CHECK(*p.value("final_hidden", 0) == Band(-1));
  CHECK(p.parameter("final_norm_gain", Group::final_norm_gain) == Band(-1));
  CHECK(p.update(Group::final_norm_gain, 1) == Band(-1));
  CHECK(p.update(Group::query, 1) == Band(-1.5));  // 1/m_N, and 1/√m_C of the scores
  CHECK(p.update(Group::key, 1) == Band(-1));
}

TEST_CASE("Behind the norm a change grows like the stream's for as long as it is small") {
  std::vector<Member> family;
  for (const long n : sizes) {
    Shape shape = shape_of(n);
    shape.tied_head = true;
    family.push_back({n, fold(make_plan("standard", {.model = shape})).plan});
  }
  const Prediction p = predicted(family);
  // The fold has put 1/√n into the gain. At one rate the steps of mlp_up change what it gives by n, those of
  // mlp_down the stream by n²; behind the norm no change is larger than the vector in the end.
  CHECK(*p.value("final_hidden", 0) == Band(-0.5));
  CHECK(*p.change("final_hidden", 1) == Band(-0.5, 1.5));
}

TEST_CASE("A multiplier that a fold has put into weights can be forgotten there, or doubled") {
  for (const auto& [ingredient, tied] :
       {std::pair{Ingredient::output_multiplier, true}, {Ingredient::attention_scale, false}}) {
    for (const Fault& fault :
         {Fault{ingredient, false}, Fault{ingredient, true}, Fault{ingredient, false, 0.2}}) {
      const std::vector<Member> family = rewritten("maximal-update", adamw, false, tied).folded;
      INFO(to_string(fault));
      REQUIRE(changes(family, fault));
      const Prediction numbers = predicted(with_fault(family, fault));
      const Prediction powers(with_fault(scales_of(family), fault), family.front().plan.shape, {});
      for (const char* role : {"attention.scores", "final_hidden", "logits"}) {
        CHECK(equal_bands(*numbers.value(role, 0), *powers.value(role, 0)));
        CHECK(equal_bands(*numbers.change(role, 1), *powers.change(role, 1)));
      }
      // The model is as one whose multiplier is forgotten in the forward pass.
      if (ingredient != Ingredient::output_multiplier) continue;
      const auto plain = rewritten("maximal-update", adamw, false, tied).as_it_is;
      const Prediction same = predicted(with_fault(plain, fault));
      CHECK(equal_bands(*numbers.value("logits", 0), *same.value("logits", 0)));
    }
  }
}

TEST_CASE("A folded model whose final gain is left at 1 is told so") {
  std::vector<Member> family;
  for (const long n : sizes) {
    Shape shape = shape_of(n), base = shape_of(64);
    shape.tied_head = base.tied_head = true;
    family.push_back({n, fold(make_plan("maximal-update", {.model = shape, .base = base})).plan});
  }
  const Fault fault{Ingredient::output_multiplier, false};
  const std::vector<Member> forgotten = with_fault(family, fault);
  const Prediction wrong = predicted(forgotten);
  Records records;
  for (const char* role : {"mlp.output", "final_hidden", "logits"}) {
    add(records, Signal::value, role, 0, wrong.value(role, 0)->low);
    add(records, Signal::change, role, 1, wrong.change(role, 1)->low);
  }
  const std::string gain = "final_norm_gain";
  add(records, Signal::parameter, gain, 0, wrong.parameter(gain, Group::final_norm_gain).low);
  add(records, Signal::update, gain, 1, wrong.update(Group::final_norm_gain, 1).low);
  const Report report = coordinate_check(records, family);
  CHECK(report.verdict == Verdict::fail);
  CHECK_THAT(report.diagnosis, Catch::Matchers::EndsWith("output multiplier missing"));
}

TEST_CASE(
    "A plan is that of the size whose records have its fingerprint, or else of its own width or "
    "depth") {
  Records records = recorded("nanogpt_folded");
  std::vector<PlanFile> plans = nanogpt_plans(true);
  std::swap(plans[0], plans[3]);
  const Family by_width = family_of(records, plans);
  CHECK(by_width.axis == "d_model");
  REQUIRE(by_width.members.size() == 4);
  for (const Member& member : by_width.members) {
    CHECK(member.plan.shape.d_model == member.size);
    CHECK(member.name == "plan_" + std::to_string(member.size) + ".json");
  }

  // Two plans of one size: the records decide, where they can.
  for (const PlanFile& file : nanogpt_plans(false)) {
    plans.push_back({"plain " + file.name, file.plan});
  }
  CHECK_THROWS_WITH(family_of(records, plans),
                    Catch::Matchers::ContainsSubstring("expected one plan of d_model 256"));
  for (const PlanFile& file : nanogpt_plans(true)) {
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
      const Run run{file.plan.shape.d_model, seed};
      records.set_plan(run, plan::plan_fingerprint(file.plan));
    }
  }
  const Family by_fingerprint = family_of(records, plans);
  CHECK(by_fingerprint.unused.size() == 4);
  CHECK(coordinate_check(records, by_fingerprint.members).verdict == Verdict::pass);

  std::vector<PlanFile> depths;
  for (const long depth : {2L, 8L, 32L}) {
    Shape shape = shape_of(64);
    shape.depth = depth;
    depths.push_back({"", make_plan("complete-p", {.model = shape, .base = shape_of(64)})});
  }
  Records deep;
  for (const long depth : {2L, 8L, 32L}) {
    deep.add({Signal::value, "logits"}, 0, {depth, 1}, {1, 1, 1});
  }
  CHECK(family_of(deep, depths).axis == "depth");
  deep.add({Signal::value, "logits"}, 0, {7, 1}, {1, 1, 1});
  deep.add({Signal::value, "logits"}, 0, {9, 1}, {1, 1, 1});
  CHECK_THROWS_WITH(family_of(deep, depths),
                    "size of the records = 7, 9: expected the width or the depth of one of the "
                    "plans (hint: there are plans of d_model 64 and depth 2, 8, 32)");
  CHECK_THROWS_WITH(family_of(deep, {}), Catch::Matchers::StartsWith("plans = none"));

  // Where MLPs are as wide as the stream, the size is the width.
  std::vector<PlanFile> square;
  Records narrow;
  for (const long width : {64L, 128L}) {
    Shape shape = shape_of(width);
    shape.d_ff = width;
    square.push_back({"", make_plan("standard", {.model = shape})});
    narrow.add({Signal::value, "logits"}, 0, {width, 1}, {1, 1, 1});
  }
  CHECK(family_of(narrow, square).axis == "d_model");
}

TEST_CASE("Records that were made under another plan say so") {
  Records records = recorded("nanogpt_folded");
  for (const PlanFile& file : nanogpt_plans(true)) {
    if (file.plan.shape.d_model > 1024) break;  // the base's is the same in both
    records.set_plan({file.plan.shape.d_model, 0}, plan::plan_fingerprint(file.plan));
  }
  CHECK(judged(records, nanogpt_plans(true)).verdict == Verdict::pass);
  const Report other = judged(records, nanogpt_plans(false));
  CHECK(other.verdict == Verdict::inconclusive);
  CHECK(other.diagnosis.empty());
  REQUIRE(other.missing.size() == 1);
  CHECK(
      other.missing.front() ==
      "plans of the models that were recorded: records of size 512, 1024 are of another plan than "
      "plan_512.json");
}

TEST_CASE("A recorder with a plan writes its fingerprint, which files keep") {
  const Plan plan = nanogpt_plans(true).front().plan;
  Recorder recorder({256, 3}, plan);
  recorder.record_moments(Signal::value, "logits", {1, 1, 1}, 0);
  CHECK_THROWS_WITH(recorder.record_moments(Signal::value, "x", {-1, 1, 5}, 0),
                    Catch::Matchers::ContainsSubstring(
                        "record_moments(), value of x = sum_abs -1, sum_squares 1, "
                        "count 5: expected sum_squares <= sum_abs^2"));
  CHECK(recorder.records().plans().at({256, 3}) == plan::plan_fingerprint(plan));
  // Python's struct and FNV-1a over the JSON of that plan.
  CHECK(plan::plan_fingerprint(nanogpt_plans(true)[1].plan) == "1de8269bd675b5c5");
  CHECK(pooled_layers(recorder.records(), plan.shape).plans() == recorder.records().plans());
  Records merged;
  merged.merge(recorder.records());
  CHECK(merged == recorder.records());
  merged.forget_plans();
  CHECK_FALSE(merged == recorder.records());
}
