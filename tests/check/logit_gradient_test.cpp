// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The gradient of the logits after the softmax, and that it does not matter where it was recorded.

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/made_up_records.hpp"
#include "support/rule_families.hpp"

using namespace scalewise;
using namespace scalewise::test;

TEST_CASE("A tied head whose own logit grows predicts that token: gradients have no limit") {
  // Own logits are √n under the neural tangent's scaling, of order one under maximal update.
  CHECK_FALSE(predict(tied("neural-tangent", adamw)).gradient(Group::query, 0).has_value());
  CHECK(predict(tied("maximal-update", adamw)).gradient(Group::query, 0).has_value());
  CHECK(predict(tied("neural-tangent", adamw)).has_limit());
  CHECK_FALSE(predict(tied("neural-tangent", sgd)).has_limit());  // its steps are gradients
}

TEST_CASE("Behind norms gradients fall with what all branches add together") {
  // L branches of 1/L add L (1/L)², of 1/√L they add 1: the root of it, at finite depths.
  Assumptions post;
  post.post_norm = true;
  const auto head = [](const std::vector<Member>& family, const Assumptions& a) {
    return *predict(family, a).gradient(Group::head, 0);
  };
  CHECK(head(depths("complete-p"), post) == Band(-0.5, 0));
  CHECK(head(depths("depth-mup"), post) == Band(0));
  CHECK(head(depths("complete-p"), {}) == Band(0));
  CHECK(head(widths("complete-p"), post) == head(widths("complete-p"), {}));
  CHECK(predict(depths("complete-p"), post).gradient(Group::token_embedding, 0)->low == -0.5);
}

TEST_CASE("Without norms gradients through a sharp softmax fall as its logits do") {
  Assumptions sharp;
  sharp.norms = false;
  Assumptions flat = sharp;
  sharp.sharp_softmax = true;
  const auto query = [](const char* rule, const Assumptions& a) {
    return *predict(widths(rule), a).gradient(Group::query, 0);
  };
  CHECK(query("maximal-update", flat) == Band(-1));
  CHECK(query("maximal-update", sharp) == Band(-1.5, -1));                 // logits start as n^-½
  CHECK(query("neural-tangent", sharp) == query("neural-tangent", flat));  // of order one
  sharp.norms = true;
  CHECK(query("maximal-update", sharp) == Band(-1));
}

TEST_CASE("Over the gradient of the logits it does not matter what a softmax leaves of it") {
  Assumptions usual;
  usual.per_logits = true;
  for (const Group group : {Group::query, Group::mlp_down, Group::token_embedding, Group::head}) {
    INFO(to_string(group));
    const auto gradient = [&](const std::vector<Member>& family, Assumptions a, bool per_logits) {
      a.per_logits = per_logits;
      return *predict(family, a).gradient(group, 0);
    };
    const std::vector<Member> mup = widths("maximal-update");
    CHECK(gradient(mup, {}, true) == gradient(mup, {}, false));
    Assumptions flat;
    flat.norms = false;
    Assumptions sharp = flat;
    sharp.sharp_softmax = true;
    CHECK(gradient(mup, sharp, true) == gradient(mup, flat, false));
  }
  Assumptions post = usual;
  post.post_norm = true;
  CHECK(*predict(depths("complete-p"), post).gradient(Group::head, 0) == Band(0));
  // The head: n^0 of the final norm, times the logit multiplier 1/√n of the neural tangent.
  CHECK(*predict(tied("neural-tangent", adamw), usual).gradient(Group::query, 0) ==
        *predict(widths("neural-tangent"), {}).gradient(Group::query, 0));
  Assumptions none = usual;
  none.norms = false;
  CHECK_FALSE(predict(tied("neural-tangent", adamw), none).gradient(Group::query, 0).has_value());
  // SGD's steps are gradients, not ratios of them.
  CHECK_FALSE(predict(tied("neural-tangent", sgd), usual).has_limit());
}

TEST_CASE("Gradients that fall as that of the logits does follow the rule") {
  const std::vector<Member> family = family_of("maximal-update");
  const auto slope_of = [&](Group group) {
    return Prediction(scales_of(family), family.front().plan.shape, {}).gradient(group, 0)->low;
  };
  Records falling = follow(family);
  for (const Group group : {Group::token_embedding, Group::query, Group::mlp_down, Group::head}) {
    const Quantity gradient{Signal::gradient, std::string(to_string(group))};
    falling = with(falling, gradient, 0, slope_of(group) - 0.3);
  }
  CHECK(coordinate_check(falling, family).verdict == Verdict::fail);
  add(falling, Signal::gradient, "logits", 0, -0.3);
  const Report report = coordinate_check(falling, family);
  CHECK(report.verdict == Verdict::pass);
  CHECK(report.unknown.empty());
  CHECK(find(report, Signal::gradient, "query", 0).expected->measure == Measure::per_logits);
  CHECK_FALSE(find(report, Signal::gradient, "logits", 0).expected);
  // Records of other runs, or of other steps, are not a divisor.
  Records other = follow(family);
  add(other, Signal::gradient, "logits", 1, -0.3);
  CHECK(find(coordinate_check(other, family), Signal::gradient, "query", 0).expected->measure ==
        Measure::rms);
}
