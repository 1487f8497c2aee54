// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/depth_mup.hpp"

#include "scalewise/policy/formulation.hpp"
#include "support/catch.hpp"
#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::test;

// CompleteP's table at alpha = 1/2, where the rates of the blocks fall with the root of the depth.
static_assert([] {
  constexpr CompleteP half{.alpha = 0.5};  // its table is retyped in complete_p_test.cpp
  for (const architecture::GroupInfo& info : architecture::group_table) {
    if (!equivalent(DepthMup{}.row(info.group), half.row(info.group), adamw)) return false;
  }
  return DepthMup{}.model().residual_branch == half.model().residual_branch &&
         DepthMup{}.model().attention_scale == half.model().attention_scale;
}());
static_assert(DepthMup{}.row(Group::query).rate(adamw).scaling.exponent_of(symbols::depth) ==
              Exponent(-1, 2));
static_assert(policy::states(DepthMup{}, adamw) && !policy::states(DepthMup{}, sgd));
static_assert(DepthMup::reference == Reference::base);

TEST_CASE("Depth-muP is CompleteP at alpha = 1/2") {
  Shape target = decoder();
  Shape base = decoder_base();
  target.tied_head = base.tied_head = true;
  const Plan tied = make_plan(CompleteP{.alpha = 0.5}, {.model = target, .base = base});
  const Plan depth = make_plan(DepthMup{}, {.model = target, .base = base});
  CHECK(depth.entries == tied.entries);
  CHECK(depth.model.residuals == tied.model.residuals);
}
