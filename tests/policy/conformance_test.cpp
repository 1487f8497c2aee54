// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Properties of every rule, on every kind of model.

#include <cmath>
#include <optional>
#include <string>

#include "support/catch.hpp"
#include "support/entry_problem.hpp"
#include "support/models.hpp"

using namespace scalewise;
using namespace scalewise::test;

TEST_CASE("numbers are finite, variances not negative, rates positive") {
  for (const Rule& rule : forms()) {
    for (const Variant& variant : variants()) {
      const std::optional<Plan> plan = planned(variant.shape, rule);
      if (!plan) continue;
      INFO(rule.id << ", " << variant.name);
      for (const Entry& entry : plan->entries) {
        const std::string wrong = problem(entry);
        INFO(entry.name);
        if (!wrong.empty()) CHECK(wrong == "");
      }
      const Model& model = plan->model;
      CHECK((std::isfinite(model.attention_scale.value) && model.attention_scale.value > 0));
      CHECK((std::isfinite(model.logit_multiplier.value) && model.logit_multiplier.value > 0));
      CHECK((std::isfinite(model.embedding_multiplier.value) &&
             model.embedding_multiplier.value > 0));
      const Shape& shape = plan->shape;
      CHECK(model.residuals.size() == static_cast<std::size_t>(shape.depth + shape.encoder_depth));
      for (const Residual& residual : model.residuals) {
        CHECK((residual.skip.value > 0 && residual.skip.value < 100));
        CHECK((residual.branch.value > 0 && residual.branch.value <= 1));
      }
    }
  }
}

TEST_CASE("entries say where they sit") {
  for (const Rule& rule : forms()) {
    Shape shape = tokens();
    shape.encoder_depth = 4;
    const std::optional<Plan> plan = planned(shape, rule);
    if (!plan) continue;
    INFO(rule.id);
    for (const Entry& entry : plan->entries) {
      INFO(entry.name);
      const bool encoder = entry.name.starts_with("encoder.");
      const bool decoder = entry.name.starts_with("decoder.");
      const bool outside = entry.stack == Stack::none;
      CHECK((encoder || decoder || outside));
      if (!outside) CHECK((entry.stack == Stack::encoder) == encoder);
      if (entry.layer >= 0) CHECK(entry.layer < (encoder ? 4 : 3));
      if (role_of(entry.group) == Role::hidden) CHECK(entry.layer >= 0);
    }
  }
}
