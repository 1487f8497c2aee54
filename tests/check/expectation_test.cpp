// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Which quantities are exact, which hold to first order, and which are not judged.

#include "scalewise/check/expectation.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/made_up_records.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {

std::vector<Member> two_members(const std::string& rule, Optimizer optimizer = adamw,
                                const std::vector<Parameter>& parameters = {}) {
  std::vector<Member> family;
  for (const long n : {64L, 256L}) {
    family.push_back({n, make_plan(rule, {.model = shape_of(n),
                                          .base = shape_of(64),
                                          .optimizer = optimizer,
                                          .parameters = parameters})});
  }
  return family;
}

std::vector<Member> two_tied_members(Optimizer optimizer) {
  std::vector<Member> family;
  for (const long n : {64L, 256L}) {
    Shape shape = shape_of(n);
    Shape base = shape_of(64);
    shape.tied_head = base.tied_head = true;
    family.push_back(
        {n, make_plan("neural-tangent", {.model = shape, .base = base, .optimizer = optimizer})});
  }
  return family;
}

/// Regime and measure as words; "none" for what is not judged.
std::string said(const std::vector<Member>& family, Signal signal, const std::string& name,
                 long step, const Assumptions& assumptions = {}) {
  const Plan& plan = family.front().plan;
  const Prediction prediction(scales_of(family), plan.shape, assumptions);
  const auto e = expected(prediction, subject_of(plan, {signal, name}), signal, step);
  if (!e) return "none";
  const char* measure = e->measure == Measure::entry          ? " entry"
                        : e->measure == Measure::per_gradient ? " per gradient"
                        : e->measure == Measure::per_logits   ? " per logits"
                                                              : "";
  return std::string(word(regime_words, e->regime)) + measure;
}

}  // namespace

TEST_CASE("Parameters and first updates are exact, later steps are not") {
  const std::vector<Member> mup = two_members("maximal-update");
  CHECK(said(mup, Signal::parameter, "layer.0.query", 0) == "exact");
  CHECK(said(mup, Signal::parameter, "query", 1) == "none");
  CHECK(said(mup, Signal::update, "query", 1) == "exact entry");
  CHECK(said(mup, Signal::update, "query", 2) == "later");
  CHECK(said(mup, Signal::value, "layer.1.mlp.output", 0) == "first");
  CHECK(said(mup, Signal::value, "mlp.output", 1) == "later");
  CHECK(said(mup, Signal::change, "mlp.output", 1) == "first");
  CHECK(said(mup, Signal::change, "mlp.output", 2) == "later");
  CHECK(said(mup, Signal::change, "mlp.output", 0) == "none");
  CHECK(said(mup, Signal::gradient, "query", 0) == "first");
  CHECK(said(mup, Signal::gradient, "query", 1) == "none");
  CHECK(said(mup, Signal::gradient, "final_norm_gain", 0) == "later");
  CHECK(said(mup, Signal::gradient, "key_bias", 0) == "none");
  CHECK(said(mup, Signal::parameter, "key_bias", 0) == "exact");
  CHECK(said(mup, Signal::value, "router", 0) == "none");
  CHECK(said(mup, Signal::update, "router", 1) == "none");
}

TEST_CASE("The gradient of the last gain may be that of the logits that the gain makes") {
  // σ_w √T by unaligned terms and σ_w² T by those of W in the logits, both times the output multiplier: under maximal
  // update n^-1 and n^-2, under standard scaling n^(-1/2) and n^-1. Measured at widths 16 to 128 of maximal update with a base
  // of 128 (coordinate_check --sizes 16,32,64,128 --base 128 --norm rms --set gated_mlp=true): -1.66 ± 0.06.
  const auto band = [](const std::string& rule) {
    const std::vector<Member> family = two_members(rule);
    const Prediction prediction(scales_of(family), family.front().plan.shape, {});
    const Quantity gain{Signal::gradient, "final_norm_gain"};
    return expected(prediction, subject_of(family.front().plan, gain), Signal::gradient, 0)->band;
  };
  CHECK(band("maximal-update") == Band(-2, -1));
  CHECK(band("standard") == Band(-1, -0.5));
}

TEST_CASE("Products of normalized vectors with fresh matrices are exact on average") {
  const std::vector<Member> mup = two_members("maximal-update");
  check::Assumptions post;
  post.post_norm = true;
  check::Assumptions none;
  none.norms = false;
  for (const char* role : {"embedding", "attention.scores", "logits"}) {
    CHECK(said(mup, Signal::value, role, 0) == "mean");
    CHECK(said(mup, Signal::value, role, 1) == "later");
    const bool embedding = role == std::string("embedding");
    CHECK(said(mup, Signal::value, role, 0, post) == (embedding ? "mean" : "first"));
    CHECK(said(mup, Signal::value, role, 0, none) == (embedding ? "mean" : "first"));
  }
  const std::vector<Member> tied = two_tied_members(adamw);
  CHECK(said(tied, Signal::value, "attention.scores", 0) == "mean");
  CHECK(said(tied, Signal::value, "logits", 0) == "first");
  // Two terms that grow otherwise are not a power of the size.
  std::vector<Member> two_terms = mup;
  two_terms.back().plan.model.embedding_multiplier.value = 2;
  CHECK(said(two_terms, Signal::value, "embedding", 0) == "first");
}

TEST_CASE("Under Muon a key that begins square gives no exact prediction") {
  const auto shared = [](long smallest) {
    std::vector<Member> family;
    for (const long n : {smallest, 8 * smallest}) {
      Shape shape = shape_of(n);
      Shape base = shape_of(smallest);
      shape.heads = n / 8;
      base.heads = smallest / 8;
      shape.kv_heads = base.kv_heads = 1;
      family.push_back({n, make_plan("maximal-update",
                                     {.model = shape, .base = base, .optimizer = muon_fan_ratio})});
    }
    return family;
  };
  // Keys have 8 outputs at all widths, queries as many as inputs.
  CHECK(said(shared(8), Signal::update, "key", 1) == "first");
  CHECK(said(shared(8), Signal::update, "value", 1) == "first");
  CHECK(said(shared(16), Signal::update, "key", 1) == "exact");
  CHECK(said(shared(8), Signal::update, "query", 1) == "exact");
  CHECK(said(shared(8), Signal::update, "mlp_up", 1) == "exact");
}

TEST_CASE("Without a limit what is exact is judged all the same") {
  // Under the neural tangent's scaling a tied head's own logits grow, and SGD's steps are gradients.
  const std::vector<Member> tied = two_tied_members(sgd);
  CHECK(said(tied, Signal::parameter, "query", 0) == "exact");
  CHECK(said(tied, Signal::update, "query", 1) == "exact per gradient");
  CHECK(said(tied, Signal::gradient, "query", 0) == "none");
  CHECK(said(tied, Signal::value, "mlp.output", 0) == "none");
  CHECK(said(tied, Signal::change, "mlp.output", 1) == "none");
}

TEST_CASE("Gradients are over that of the logits where that was recorded") {
  Assumptions recorded;
  recorded.per_logits = true;
  const std::vector<Member> mup = two_members("maximal-update");
  CHECK(said(mup, Signal::gradient, "query", 0, recorded) == "first per logits");
  CHECK(said(mup, Signal::gradient, "final_norm_gain", 0, recorded) == "later per logits");
  CHECK(said(mup, Signal::update, "query", 1, recorded) == "exact entry");
  CHECK(said(two_members("maximal-update", sgd), Signal::update, "query", 1, recorded) ==
        "exact per gradient");
  // Where the head's own logits grow, the gradient of the logits is not known.
  const std::vector<Member> tied = two_tied_members(adamw);
  CHECK(said(tied, Signal::gradient, "query", 0) == "none");
  CHECK(said(tied, Signal::gradient, "query", 0, recorded) == "first per logits");
}

TEST_CASE("What a zero head holds back begins a step later") {
  const std::vector<Member> zero = two_members("maximal-update", adamw, {{"zero_head", 1}});
  CHECK(said(zero, Signal::gradient, "query", 0) == "first");  // exactly zero
  CHECK(said(zero, Signal::gradient, "query", 1) == "first");
  CHECK(said(zero, Signal::gradient, "query", 2) == "none");
  CHECK(said(zero, Signal::update, "query", 1) == "exact");  // exactly zero
  CHECK(said(zero, Signal::update, "query", 2) == "first entry");
  CHECK(said(zero, Signal::update, "query", 3) == "later");
  CHECK(said(zero, Signal::change, "mlp.output", 2) == "first");
  CHECK(said(zero, Signal::change, "mlp.output", 3) == "later");
}

TEST_CASE(
    "SGD's updates are judged by their gradients, the first exactly, and its later changes are not "
    "judged") {
  const std::vector<Member> sgd_family = two_members("maximal-update", sgd);
  CHECK(said(sgd_family, Signal::update, "query", 1) == "exact per gradient");
  CHECK(said(sgd_family, Signal::update, "query", 3) == "later per gradient");
  CHECK(said(sgd_family, Signal::change, "mlp.output", 1) == "first");
  CHECK(said(sgd_family, Signal::change, "mlp.output", 2) == "none");
  CHECK(said(sgd_family, Signal::value, "mlp.output", 2) == "none");
}

TEST_CASE("Without norms only the first step is judged") {
  const std::vector<Member> mup = two_members("maximal-update");
  Assumptions none;
  none.norms = false;
  CHECK(said(mup, Signal::change, "mlp.output", 1, none) == "first");
  CHECK(said(mup, Signal::change, "mlp.output", 2, none) == "none");
  CHECK(said(mup, Signal::value, "mlp.output", 1, none) == "none");
  CHECK(said(mup, Signal::update, "query", 1, none) == "exact entry");
  CHECK(said(mup, Signal::update, "query", 2, none) == "none");
}

TEST_CASE(
    "Of tensors that the shape does not say the start and the first step are judged, and others do "
    "not "
    "see them") {
  std::vector<Member> plain;
  std::vector<Member> more;
  const std::vector<Extra> extras{{"layer.*.adapter", Group::mlp_up, "d_model", "64"},
                                  {"layer.*.gain", Group::norm_gain, "head_dim"}};
  for (const long n : {64L, 256L}) {
    plain.push_back({n, make_plan("maximal-update", {.model = shape_of(n), .base = shape_of(64)})});
    more.push_back({n, make_plan("maximal-update",
                                 {.model = shape_of(n), .base = shape_of(64), .extras = extras})});
  }
  CHECK(said(more, Signal::parameter, "layer.0.adapter", 0) == "exact");
  CHECK(said(more, Signal::parameter, "gain", 0) == "exact");
  for (const char* name : {"layer.0.adapter", "adapter", "gain"}) {
    CHECK(said(more, Signal::gradient, name, 0) == "none");
    CHECK(said(more, Signal::update, name, 1) == "exact entry");  // of the size of the rate
    CHECK(said(more, Signal::update, name, 2) == "none");
  }
  CHECK(scales_of(more).groups == scales_of(plain).groups);
}
