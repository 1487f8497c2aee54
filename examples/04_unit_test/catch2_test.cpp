// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Unit tests of the loop in 03_own_loop, as a user would write them with Catch2.

#include <cstdlib>
#include <random>
#include <scalewise/testing.hpp>
#include <vector>

#include "../03_own_loop/training.hpp"
#include "support/catch.hpp"

using namespace scalewise::testing;

// ONE_RATE=1 trains with one rate for all tensors, to show how the tests fail.
const bool one_rate = std::getenv("ONE_RATE") != nullptr;

TEST_CASE("Tensors start as planned") {
  std::mt19937 random(1);
  const scalewise::Plan plan = own::plan_of(64);
  const own::Model model = own::started(plan, random, one_rate);
  REQUIRE_THAT(numbers(model.up.w), StartsAs(plan.at("layer.0.mlp_up"), 0.25));
  REQUIRE_THAT(numbers(model.head.w), StartsAs(plan.at("head"), 0.25));
}

TEST_CASE("The optimizer follows the plan") {
  std::mt19937 random(1);
  scalewise::Plan plan = own::plan_of(64);
  std::erase_if(plan.entries, [](const scalewise::Entry& e) {  // what this small model has
    return e.name != "token_embedding" && e.name != "layer.0.mlp_up" &&
           e.name != "layer.0.mlp_down" && e.name != "head";
  });
  const own::Model m = own::started(plan, random, one_rate);
  const std::vector<scalewise::check::OptimizerSetting> live{
      {.name = "token_embedding", .rate = m.embedding.rate},
      {.name = "layer.0.mlp_up", .rate = m.up.rate},
      {.name = "layer.0.mlp_down", .rate = m.down.rate},
      {.name = "head", .rate = m.head.rate}};
  const scalewise::check::OptimizerSetting global{.name = "", .rate = 0.01};
  REQUIRE_THAT(live, FollowsPlan(plan, global));
}

TEST_CASE("Training follows the rule") {
  scalewise::check::Records records;
  std::vector<scalewise::check::Member> plans;
  for (const long width : {16, 32, 64, 128}) {
    plans.push_back({width, own::plan_of(width)});
    for (unsigned seed = 1; seed <= 3; ++seed) {
      records.merge(own::trained(plans.back().plan, seed, one_rate));
    }
  }
  REQUIRE_THAT(records, PassesCoordinateCheck(plans));
}
