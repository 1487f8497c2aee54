// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The same bits whatever the number of threads.

#ifdef _OPENMP
#include <omp.h>
#endif

#include <cmath>
#include <cstring>
#include <vector>

#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/model_gradient.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

/// Wider than a tile of any product, with 5 sequences of 33 tokens.
Shape target() {
  Shape s{.d_model = 132, .depth = 2, .heads = 6, .kv_heads = 3, .head_dim = 24, .d_ff = 140};
  s.gated_mlp = true;
  s.context = 40;
  s.vocab = 135;
  s.head_bias = true;
  return s;
}

Shape base() {
  Shape s = target();
  s.d_model = 33;
  s.head_dim = 8;
  s.d_ff = 50;
  return s;
}

struct Result {
  double loss = 0;
  Matrix<double> gradients;

  /// Bit by bit: -0 is not 0, and a number that is none is itself.
  bool operator==(const Result& other) const {
    return std::memcmp(&loss, &other.loss, sizeof loss) == 0 &&
           gradients.size() == other.gradients.size() &&
           std::memcmp(gradients.data(), other.gradients.data(),
                       static_cast<std::size_t>(gradients.size()) * sizeof(double)) == 0;
  }
};

Result evaluate_model(Transformer<double>& model, const Batch<double>& batch) {
  Result result;
  result.loss = model.loss_and_gradient(batch);
  result.gradients = model.parameters().gradients();
  return result;
}

std::vector<int> thread_counts() {
#ifdef _OPENMP
  return {1, 2, 3, 1};
#else
  return {1, 1};
#endif
}

void set_threads([[maybe_unused]] int count) {
#ifdef _OPENMP
  omp_set_dynamic(0);
  omp_set_num_threads(count);
#endif
}

/// Checks that a model gives the same bits with every number of threads, and anew.
void check_bits(const Plan& plan, const Config& config, Index tokens, Index source_tokens) {
  const Batch<double> batch = random_batch(plan.shape, 5, tokens, source_tokens);
  std::vector<Result> results;
  for (const int count : thread_counts()) {
    set_threads(count);
    Transformer<double> model(plan, config);
    prepare(model, plan);
    for (int repeat = 0; repeat < 2; ++repeat) results.push_back(evaluate_model(model, batch));
    // A batch of another size in between leaves nothing behind.
    evaluate_model(model, random_batch(plan.shape, 2, 3, 4));
    results.push_back(evaluate_model(model, batch));
  }
  CHECK(std::isfinite(results.front().loss));
  CHECK(results.front().gradients.cwiseAbs().maxCoeff() > 0);
  for (const Result& result : results) CHECK(result == results.front());
}

Plan mup(const Shape& shape, int table) {
  return make_plan(
      "maximal-update",
      {.model = shape, .base = base(), .optimizer = sgd, .parameters = {{"table", double(table)}}});
}

}  // namespace

TEST_CASE("Loss and gradients have the same bits with any number of threads and again") {
  const Config config{.activation = Activation::silu, .rotary = true};
  check_bits(mup(target(), 9), config, 33, 0);
}

TEST_CASE("Experts have the same bits with any number of threads and again") {
  Shape s = target();
  s.experts = 5;
  s.experts_per_token = 2;
  check_bits(make_plan("standard", {.model = s}), {.gates = Gates::renormalized}, 33, 0);
}

TEST_CASE("Dropout has the same bits with any number of threads and again") {
  check_bits(mup(target(), 9), {.dropout = 0.3}, 33, 0);
}

#ifdef _OPENMP
TEST_CASE("Bits are the same where OpenMP chooses the team, and inside of a parallel region") {
  Shape s = target();
  s.d_ff = 1500;  // long enough sums that Eigen would cut them by its own number of threads
  const Plan plan = mup(s, 8);
  const Batch<double> batch = random_batch(plan.shape, 5, 33, 0);
  const auto run = [&] {
    Transformer<double> model(plan, {});
    prepare(model, plan);
    return evaluate_model(model, batch);
  };
  set_threads(2);
  const Result expected = run();
  omp_set_dynamic(1);
  CHECK(run() == expected);
  omp_set_dynamic(0);
  Result inside[2];
#pragma omp parallel for num_threads(2)
  for (int i = 0; i < 2; ++i) inside[i] = run();
  CHECK(inside[0] == expected);
  CHECK(inside[1] == expected);
  omp_set_num_threads(4);
  CHECK(run() == expected);
}
#endif

TEST_CASE("An encoder-decoder has the same bits with any number of threads and again") {
  Shape s = target();
  s.encoder_depth = 1;
  s.depth = 1;
  s.tied_head = true;
  check_bits(make_plan("deep-norm", {.model = s}), {.placement = NormPlacement::post}, 33, 29);
}

TEST_CASE("A normalized transformer has the same bits with any number of threads and again") {
  Shape s = target();
  s.kv_heads = 6;
  const Plan plan = make_plan("nu-gpt", {.model = s, .base = s});
  check_bits(plan, {.activation = Activation::silu, .rotary = true}, 33, 0);
}

TEST_CASE("A patch model has the same bits with any number of threads and again") {
  Shape s = target();
  s.input = Input::patch;
  s.patch_dim = 130;
  s.classes = 7;
  check_bits(make_plan("layer-scale", {.model = s}), {.causal = false}, 33, 0);
}
