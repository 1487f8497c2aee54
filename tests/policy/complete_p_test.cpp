// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/complete_p.hpp"

#include "support/catch.hpp"
#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {

static_assert(complete_p_table(CompleteP{}, 1));
static_assert(complete_p_model(CompleteP{}.model(), 1));
static_assert(complete_p_table(CompleteP{.alpha = 0.5}, {1, 2}));
static_assert(complete_p_model(CompleteP{.alpha = 0.5}.model(), {1, 2}));
static_assert(complete_p_table(CompleteP{.alpha = 0.75}, {3, 4}));
static_assert(complete_p_model(CompleteP{.alpha = 0.75}.model(), {3, 4}));
static_assert(complete_p_table(CompleteP{.alpha = 0.6}, {3, 5}));
static_assert(complete_p_table(CompleteP{.alpha = 0.7}, {7, 10}));
static_assert(complete_p_table(CompleteP{.alpha = 0.8}, {4, 5}));
static_assert(complete_p_table(CompleteP{.alpha = 0.9}, {9, 10}));

// At alpha = 1 no rate depends on depth.
static_assert(CompleteP{}.row(Group::query).rate(adamw).scaling.exponent_of(Axis::depth) ==
              Exponent(0));
static_assert(states(CompleteP{}, adamw) && !states(CompleteP{}, sgd));
static_assert(CompleteP::reference == Reference::base);

// Width part: maximal update, Table 8, with its decay written in the coupled form.
constexpr bool width_part(Group g) {
  using symbols::n;
  const Row mup = bound(MaximalUpdateTable8{}.row(g), n, n);
  const Row cp = bound(CompleteP{}.row(g), n, n);
  return mup.rate(adamw) == cp.rate(adamw) && mup.init_variance == cp.init_variance &&
         mup.multiplier == cp.multiplier;
}
static_assert(width_part(Group::query));
static_assert(width_part(Group::mlp_down));
static_assert(width_part(Group::head));

}  // namespace

TEST_CASE("CompleteP numbers") {
  const double alpha = GENERATE(1.0, 0.5, 0.8);
  const double N = 3;  // ratios of target to base
  const double L = 2.5;
  const double rate = std::pow(L, alpha - 1);
  const double epsilon = std::pow(L, -alpha) / N;
  Shape target = decoder();
  Shape base = decoder_base();
  const CompleteP policy{.alpha = alpha};
  const Plan plan = make_plan<CompleteP, adamw>(target, base, policy);
  for (const auto& [name, in, out] : hidden_of_decoder()) {
    const double size = std::pow(L, -alpha) / std::sqrt(out * N);  // of the gradient
    check(plan, "layer.3." + name,
          {.variance = 1 / in, .rate = rate / in, .decay = in, .epsilon = size});
  }
  check(plan, "token_embedding", {.variance = 1, .epsilon = 1 / N});
  check(plan, "position_embedding", {.variance = 1, .epsilon = 1 / N});
  check(plan, "head", {.variance = 1, .multiplier = 1 / N, .epsilon = 1 / N});
  check(plan, "layer.0.attention_norm_gain", {.rate = rate, .decay = 0, .epsilon = epsilon});
  check(plan, "layer.0.mlp_up_bias", {.rate = rate, .decay = 0, .epsilon = epsilon});
  check(plan, "final_norm_gain", {.decay = 0, .epsilon = 1 / N});
  REQUIRE(plan.model.residuals.size() == 5);
  for (const Residual& residual : plan.model.residuals) {
    CHECK(residual.skip.value == 1);
    CHECK(near(residual.branch.value, std::pow(L, -alpha)));
  }
  CHECK(near(plan.model.logit_multiplier.value, 1 / N));
  CHECK(near(plan.model.attention_scale.value, std::sqrt(8.0) / 24));

  // Shrink per step under an optimizer with the independent form.
  const Plan independent =
      make_plan<CompleteP, adamw>(target, base, policy, DecayForm::independent);
  CHECK(near(independent.at("layer.3.query").weight_decay.value, rate));
  CHECK(near(independent.at("head").weight_decay.value, 1));

  target.tied_head = base.tied_head = true;
  const Plan tied = make_plan<CompleteP, adamw>(target, base, policy);
  CHECK(near(tied.model.logit_multiplier.value, 1 / N));
}
