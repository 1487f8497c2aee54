// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Logits of words of the input under a tied head, and the kernels between them: means over reference transformers of
// width 128, against the effective theory.

#include <cmath>
#include <vector>

#include "check/logit_gradient.hpp"
#include "scalewise/check/estimate.hpp"
#include "scalewise/kernels/effective_scales.hpp"
#include "scalewise/nn/initialize.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/meta_principled.hpp"
#include "support/catch.hpp"

namespace {

using namespace scalewise;
using Eigen::Index;

constexpr int contact_networks = 80;
constexpr int contact_draws = 5000;  // of logits alone
constexpr double contact_width = 128;
const std::vector<int> contact_words{3, 1, 2};

Plan contact_plan(double s) {
  MetaPrincipled policy;
  policy.s = s;
  policy.neural_tangent.init_constant[Group::token_embedding] = 1.5;
  policy.neural_tangent.init_constant[Group::position_embedding] = 0.5;
  policy.neural_tangent.rate_constant[Group::token_embedding] = 0.7;
  const Shape shape{.d_model = 128,
                    .depth = 2,
                    .heads = 8,
                    .d_ff = 256,
                    .context = 3,
                    .vocab = 5,
                    .tied_head = true,
                    .biases = false};
  return make_plan(policy, {.model = shape, .optimizer = sgd});
}

/// Before the head's norm.
kernels::Kernel stream_kernel(const kernels::EffectiveScales& scales) {
  kernels::Kernel k = kernels::language_stem({{3, 1, 2}}, scales);
  for (int layer = 0; layer < 2; ++layer) {
    k = kernels::attention_block(k, scales, /*causal=*/true).kernel;
    k = kernels::mlp_block(k, scales, kernels::Function::gelu).kernel;
  }
  return k;
}

nn::Batch<double> contact_batch() {
  nn::Batch<double> batch;
  batch.size = 1;
  batch.tokens = batch.targets = contact_words;
  return batch;
}

/// A measured mean against a prediction of the leading order in the width.
void check_contact_mean(const std::vector<double>& sample, double expected) {
  const check::Estimate measured = check::estimate(sample);
  INFO(measured.mean << " +- " << measured.standard_error << ", expected " << expected);
  CHECK(std::abs(measured.mean - expected) <
        4 * measured.standard_error + 2 / contact_width * expected);
  CHECK(measured.standard_error < 0.05 * expected);  // or nothing is tested
}

}  // namespace

TEST_CASE("Under a tied head the input's own words have the logits of the effective theory") {
  for (const double s : {0.0, 1.0}) {
    const Plan plan = contact_plan(s);
    const kernels::EffectiveScales scales = kernels::effective_scales(plan, s, 1e-5);
    const kernels::TiedContact contact = kernels::tied_contact(
        stream_kernel(scales), scales, contact_width, std::pow(contact_width, -s));
    nn::Transformer<double> model(plan, {});
    const nn::Batch<double> batch = contact_batch();
    std::vector<std::vector<double>> own(3), exchanged(3);
    // Of two tokens each the logit of the other's word; parameters of the embedding only.
    const View<double> embedding = model.parameters().value(0);
    REQUIRE(plan.entries[0].group == Group::token_embedding);
    const auto gradient = [&](Index row, int word) {
      experiment::logit_gradient(model, batch, row, word);
      const View<double> all = model.parameters().gradients();
      return Eigen::VectorXd(Eigen::Map<const Eigen::VectorXd>(all.data(), embedding.size()));
    };
    for (int seed = 0; seed < contact_networks; ++seed) {
      initialize(model.parameters(), plan, static_cast<std::uint64_t>(seed));
      model.loss(batch);
      for (Index a = 0; a < 3; ++a)
        own[static_cast<std::size_t>(a)].push_back(
            model.logits()(a, contact_words[static_cast<std::size_t>(a)]));
      for (Index a = 0; a < 3; ++a) {
        const Index b = (a + 1) % 3;
        const double product = gradient(a, contact_words[static_cast<std::size_t>(b)])
                                   .dot(gradient(b, contact_words[static_cast<std::size_t>(a)]));
        exchanged[static_cast<std::size_t>(a)].push_back(plan.entries[0].learning_rate.value *
                                                         product);
      }
    }
    for (Index a = 0; a < 3; ++a) {
      INFO("s = " << s << ", token " << a);
      check_contact_mean(own[static_cast<std::size_t>(a)],
                         contact.own_logit[static_cast<std::size_t>(a)]);
      check_contact_mean(exchanged[static_cast<std::size_t>(a)], contact.exchanged(a, (a + 1) % 3));
    }
  }
}

TEST_CASE("Under a tied head the input's own words have the kernels of the effective theory") {
  for (const double s : {0.0, 1.0}) {
    const Plan plan = contact_plan(s);
    const kernels::EffectiveScales all = kernels::effective_scales(plan, s, 1e-5);
    kernels::EffectiveScales scales = all;  // with the rate of the words alone
    for (kernels::GroupScale* of :
         {&scales.position_embedding, &scales.query, &scales.key, &scales.value,
          &scales.attention_output, &scales.mlp_up, &scales.mlp_down, &scales.head}) {
      of->rate = 0;
    }
    const kernels::TiedContact contact = kernels::tied_contact(
        stream_kernel(scales), scales, contact_width, std::pow(contact_width, -s));
    nn::Transformer<double> model(plan, {});
    const nn::Batch<double> batch = contact_batch();
    const auto word = [](Index a) { return contact_words[static_cast<std::size_t>(a)]; };
    std::vector<std::vector<double>> squares(3), products(3), own(3);
    for (int seed = 0; seed < contact_draws; ++seed) {
      initialize(model.parameters(), plan, static_cast<std::uint64_t>(seed));
      model.loss(batch);
      for (Index a = 0; a < 3; ++a) {
        const Index b = (a + 1) % 3;
        const auto z = [&](Index row, Index of) { return model.logits()(row, word(of)); };
        const double off = z(a, a) - contact.own_logit[static_cast<std::size_t>(a)];
        squares[static_cast<std::size_t>(a)].push_back(off * off);
        products[static_cast<std::size_t>(a)].push_back(z(a, b) * z(b, a));
      }
      if (seed >= contact_networks) continue;
      for (Index a = 0; a < 3; ++a) {
        experiment::logit_gradient(model, batch, a, word(a));
        own[static_cast<std::size_t>(a)].push_back(plan.entries[0].learning_rate.value *
                                                   model.parameters().gradient(0).squaredNorm());
      }
    }
    for (Index a = 0; a < 3; ++a) {
      INFO("s = " << s << ", token " << a);
      const auto at = static_cast<std::size_t>(a);
      check_contact_mean(squares[at], contact.own_variance[at]);
      check_contact_mean(products[at], contact.exchanged_nngp(a, (a + 1) % 3));
      check_contact_mean(own[at], contact.own_ntk[at]);
    }
  }
}
