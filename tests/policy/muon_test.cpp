// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Muon under maximal update: the rate of hidden matrices, what the optimizer multiplies by itself, and the
// AdamW of all other tensors.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "scalewise/policy/muon_names.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/models.hpp"
#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {

// arXiv:2512.05620: the rate of a hidden matrix under Muon is √(fo/fi), whatever the table.
template <class P>
constexpr bool has_muon_rate(const P& policy) {
  return hidden_matrices([&](Group g, const Scaling& in, const Scaling& out) {
    const Row row = bound(policy.row(g), in, out);
    return row.rate(muon) == Rate(sqrt(ratio(out) / ratio(in))) &&
           row.rate(muon_original) == row.rate(muon);
  });
}
static_assert(has_muon_rate(MaximalUpdateTable3{}));
static_assert(has_muon_rate(MaximalUpdateTable8{}));
static_assert(has_muon_rate(MaximalUpdateTable9{}));

const std::array variants_of_muon{muon, muon_fan_ratio, muon_original, muon_spectral,
                                  muon_match_adamw};

Shape uneven(long scale) {
  Shape s = tokens();
  s.d_model = 24 * scale;
  s.head_dim = 8 * scale;
  s.heads = 6;
  s.kv_heads = 2;
  s.d_ff = 60 * scale * scale;
  s.gated_mlp = true;
  return s;
}

/// As uneven(3), but that MLPs narrow the stream, which those of the base widen.
Shape turned() {
  Shape s = uneven(3);
  s.d_ff = 50;
  return s;
}

/// As the pages of the five optimizers say, of a matrix with so many inputs and outputs.
double own(const Optimizer& optimizer, double in, double out) {
  if (optimizer == muon_fan_ratio) return std::sqrt(out / in);
  if (optimizer == muon_original) return std::sqrt(std::max(1.0, out / in));
  if (optimizer == muon_spectral) return std::sqrt(std::max(in, out));
  if (optimizer == muon_match_adamw) return 0.2 * std::sqrt(std::max(in, out));
  return 1;
}

Plan plan_for(const Optimizer& optimizer, DecayForm decay = DecayForm::coupled) {
  return make_plan("maximal-update",
                   {.model = uneven(3), .base = uneven(1), .optimizer = optimizer, .decay = decay});
}

}  // namespace

TEST_CASE(
    "Whatever a Muon multiplies by itself, its steps grow as the root of fan-out over fan-in") {
  const Plan base =
      make_plan("maximal-update", {.model = uneven(1), .base = uneven(1), .optimizer = muon});
  for (const Optimizer& optimizer : variants_of_muon) {
    for (const Shape& shape : {uneven(3), turned()}) {
      const Plan plan =
          make_plan("maximal-update", {.model = shape, .base = uneven(1), .optimizer = optimizer});
      CHECK(plan.optimizer == optimizer);
      for (std::size_t i = 0; i < plan.entries.size(); ++i) {
        const Entry& entry = plan.entries[i];
        const Entry& small = base.entries[i];
        if (role_of(entry.group) != Role::hidden) continue;
        INFO(optimizer.name << ", " << entry.name << ", " << entry.learning_rate.formula());
        const double step = entry.learning_rate.value *
                            own(optimizer, entry.fan_in, entry.fan_out) /
                            own(optimizer, small.fan_in, small.fan_out);
        const double wanted =
            std::sqrt(entry.fan_out / entry.fan_in) / std::sqrt(small.fan_out / small.fan_in);
        CHECK(std::abs(step - wanted) <= 1e-14 * wanted);
        CHECK(entry.optimizer == optimizer);
        CHECK(entry.epsilon.value == 1);
      }
    }
  }
}

TEST_CASE("All but hidden matrices have AdamW's numbers under Muon") {
  for (const DecayForm decay : {DecayForm::coupled, DecayForm::independent}) {
    const Plan by_adamw = plan_for(adamw, decay);
    for (const Optimizer& optimizer : variants_of_muon) {
      const Plan plan = plan_for(optimizer, decay);
      REQUIRE(plan.entries.size() == by_adamw.entries.size());
      for (std::size_t i = 0; i < plan.entries.size(); ++i) {
        const Entry& entry = plan.entries[i];
        INFO(optimizer.name << ", " << entry.name);
        if (role_of(entry.group) != Role::hidden) {
          CHECK(entry == by_adamw.entries[i]);
          continue;
        }
        CHECK(entry.init_variance == by_adamw.entries[i].init_variance);
        // The shrink per step does not depend on the width.
        const double shrink = entry.weight_decay.value *
                              (decay == DecayForm::coupled ? entry.learning_rate.value : 1);
        CHECK(std::abs(shrink - 1) <= 1e-14);
      }
      CHECK(plan.model == by_adamw.model);
    }
  }
}

TEST_CASE(
    "Every implementation's own factor times the planned rate grows as the spectral condition") {
  // The functions that multiply a step, typed from their sources, of a PyTorch linear layer (rows, columns).
  struct Implementation {
    std::string code, name;
    double (*factor)(double rows, double columns);
  };
  const auto shape_ratio = [](double r, double c) { return std::sqrt(std::max(1.0, r / c)); };
  const auto adamw_rms = [](double r, double c) { return 0.2 * std::sqrt(std::max(r, c)); };
  const auto ratio = [](double r, double c) { return std::sqrt(r / c); };
  const auto larger = [](double r, double c) { return std::sqrt(std::max(r, c)); };
  const std::vector<Implementation> implementations{
      // torch/optim/_muon.py, _adjust_lr (PyTorch 098e03f; the third since pull request 187402)
      {"PyTorch", "original", shape_ratio},
      {"PyTorch", "match_rms_adamw", adamw_rms},
      {"PyTorch", "spectral_unclamped", ratio},
      // torchtitan/components/muon_adapter.py 0096a05 hands the word on to the function above
      {"torchtitan", "original", shape_ratio},
      {"torchtitan", "match_rms_adamw", adamw_rms},
      {"torchtitan", "spectral_unclamped", ratio},
      // emerging_optimizers/orthogonalized_optimizers/muon.py 033065f, get_muon_scale_factor
      {"Emerging-Optimizers", "shape_scaling",
       [](double r, double c) { return std::pow(std::max(1.0, r / c), 0.5); }},
      {"Emerging-Optimizers", "spectral",
       [](double r, double c) { return std::pow(std::max(r, c), 0.5); }},
      {"Emerging-Optimizers", "unit_rms_norm",
       [](double r, double c) { return std::pow(r / c, 0.5); }},
      // megatron/core/optimizer/emerging_optimizers.py 000a717 calls the same function
      {"Megatron-LM", "shape_scaling", shape_ratio},
      {"Megatron-LM", "spectral", larger},
      {"Megatron-LM", "unit_rms_norm", ratio},
      // dion/megabatch_base.py 3c15037, adjust_lr_spectral_norm and adjust_lr_rms_norm
      {"dion", "spectral_norm", ratio},
      {"dion", "rms_norm", adamw_rms},
      // optax/contrib/_muon.py 039ec0c, of a kernel (inputs, outputs), and consistent_rms of 2edbcbe, 0.3 here
      {"optax without consistent_rms", "optax", shape_ratio},
      {"optax", "consistent_rms",
       [](double r, double c) { return 0.3 * std::sqrt(std::max(r, c)); }},
      // examples/toy_train.py abaa96e, adjust_lr_for_muon
      {"Moonlight", "moonlight", adamw_rms},
      // scion.py a86f93e, Spectral(max=False, normalized=True), times a radius, 50 here
      {"scion", "scion", [](double r, double c) { return 50 * std::sqrt(r / c); }},
      {"scion", "Spectral", [](double r, double c) { return 50 * std::sqrt(r / c); }},
      // nanochat/optim.py 0e4b3fa, _step_muon; train_gpt.py of modded-nanogpt has the same
      {"nanochat", "nanochat", shape_ratio},
      {"modded-nanogpt", "modded-nanogpt", shape_ratio},
      // crates/burn-optim/src/optim/muon.rs 050c750, adjustment_ratio
      {"burn", "Original", shape_ratio},
      {"burn", "MatchRmsAdamW", adamw_rms},
  };
  CHECK(implementations.size() == policy::muon_names.size());
  const Plan base =
      make_plan("maximal-update", {.model = uneven(1), .base = uneven(1), .optimizer = muon});
  for (const Implementation& known : implementations) {
    INFO(known.code << ", " << known.name);
    const auto codes = policy::muons_named(known.name);
    CHECK(std::count(codes.begin(), codes.end(), known.code) == 1);
    const Optimizer optimizer =
        policy::optimizer_named("optimizer", policy::optimizer_id(known.name));
    for (const Shape& shape : {uneven(3), turned()}) {
      const Plan plan =
          make_plan("maximal-update", {.model = shape, .base = uneven(1), .optimizer = optimizer});
      for (std::size_t i = 0; i < plan.entries.size(); ++i) {
        const Entry& entry = plan.entries[i];
        if (role_of(entry.group) != Role::hidden) continue;
        const Entry& small = base.entries[i];
        const auto columns = [](const Entry& e) { return static_cast<double>(e.rows); };  // inputs
        const auto rows = [](const Entry& e) { return static_cast<double>(e.columns); };
        const double step = entry.learning_rate.value * known.factor(rows(entry), columns(entry)) /
                            known.factor(rows(small), columns(small));
        const double wanted =
            std::sqrt(rows(entry) / columns(entry)) / std::sqrt(rows(small) / columns(small));
        INFO(entry.name);
        CHECK(std::abs(step - wanted) <= 1e-14 * wanted);
      }
    }
  }
}

TEST_CASE("An optimizer is known by its id and by the words of code bases, as they are written") {
  CHECK(policy::optimizer_id("adamw") == "adamw");
  CHECK(policy::optimizer_id("spectral") == "muon-spectral");
  CHECK(policy::optimizer_id("Spectral") == "muon-fan-ratio");  // scion's
  CHECK(policy::optimizer_id("spectral_norm") == "muon-fan-ratio");
  CHECK(policy::muons_named("spectral") ==
        std::vector<std::string>{"Megatron-LM", "Emerging-Optimizers"});
  CHECK(policy::muons_named("muon-original").empty());
  const auto refusal = [](const char* name) {
    return error_message([&] { policy::optimizer_id(name, "--optimizer"); });
  };
  const std::string all = messages::listed(policy::names_of(policy::known_optimizers));
  CHECK(refusal("spectrl") ==
        "--optimizer = spectrl: expected " + all + " (hint: did you mean spectral?)");
  CHECK(refusal("adam") == "--optimizer = adam: expected " + all + " (hint: did you mean adamw?)");
  // Words that many Muons go by: each factor would be a guess.
  for (const char* name : {"muon", "Muon", "DistMuon", "kimi", "lion"}) {
    CHECK_THAT(refusal(name),
               Catch::Matchers::ContainsSubstring("hint: name a Muon by its own factor") &&
                   Catch::Matchers::EndsWith("such as sign-sgd for Lion)"));
  }
}

TEST_CASE("Muon is refused where its rate or decay is not known") {
  CHECK_THAT(error_message([] {
               make_plan("complete-p",
                         {.model = tokens(), .base = tokens(), .optimizer = muon_original});
             }),
             Catch::Matchers::StartsWith("optimizer = muon-original: expected adamw"));
  CHECK_THAT(error_message([] { plan_for(muon_fan_ratio, DecayForm::l2); }),
             Catch::Matchers::StartsWith("decay = l2"));
}
