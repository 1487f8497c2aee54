// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A thousand layers: values stay finite forward and backward, and memory grows with the depth, not
// with its square.

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>

#include "instances/transformer.hpp"
#include "scalewise/nn/initialize.hpp"
#include "scalewise/nn/normalize_matrices.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "scalewise/policy/all.hpp"
#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/told.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;

Shape deep(long depth) {
  Shape s{.d_model = 64, .depth = depth, .heads = 4, .d_ff = 96, .context = 3, .vocab = 19};
  s.tied_head = false;
  return s;
}

/// Two sequences of three tokens.
Batch<float> batch() {
  Batch<float> b;
  b.size = 2;
  b.tokens = {3, 1, 4, 1, 5, 9};
  b.targets = {2, 6, 5, 3, 5, 8};
  return b;
}

/// One forward and backward pass through a thousand layers; the rule's own start.
template <class P>
void check_thousand(const Config& config, const P& policy = {}) {
  const Plan plan = make_plan(test::told(policy), {.model = deep(1000), .base = deep(2)});
  INFO(plan.rule);
  Transformer<float> model(plan, config);
  initialize(model.parameters(), plan, 1, BaseDeviation::uniform(0.1));
  normalize_matrices(model.parameters(), plan);
  const double loss = model.loss_and_gradient(batch());
  CHECK(std::isfinite(loss));
  CHECK(loss < 20);  // log 19 is 2.9
  CHECK(model.parameters().gradients().allFinite());
  for (const char* name : {"layer.0.mlp_down", "layer.999.mlp_down"}) {  // it arrives everywhere
    INFO(name);
    const long at = model.parameters().find(name);
    REQUIRE(at >= 0);
    CHECK(model.parameters().gradient(static_cast<std::size_t>(at)).cwiseAbs().maxCoeff() > 0);
  }
}

/// Bytes that the heap and anonymous mappings have given out; 0 where the system does not say. Large arrays are
/// mappings of their own (dense/memory.hpp), as are large blocks of the heap.
double memory_in_use() {
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
  double mapped = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, inode = 0;
    char mode[5] = "", path[2] = "";
    const int fields =
        std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu %1s", &begin, &end, mode, &inode, path);
    if (fields == 4 && mode[1] == 'w') mapped += static_cast<double>(end - begin);
  }
  return mapped + static_cast<double>(mallinfo2().uordblks);
#endif
#endif
  return 0;
}

/// The activations of a model after one pass.
double memory_of_model(long depth) {
  const Plan plan = make_plan(Gpt2{}, {.model = deep(depth)});
  const double before = memory_in_use();
  Transformer<float> model(plan, {});
  initialize(model.parameters(), plan, 1);
  model.loss_and_gradient(batch());
  return memory_in_use() - before;
}

}  // namespace

TEST_CASE("A thousand layers run forward and backward") {
  check_thousand<Gpt2>({});
  check_thousand<DeepNorm>({.placement = NormPlacement::post});
  check_thousand<DeepScaleLM>({.activation = Activation::relu});
  check_thousand<NuGpt>({.activation = Activation::silu, .rotary = true});
}

TEST_CASE("Memory grows linearly with depth") {
  memory_of_model(250);  // threads come with the first
  const double quarter = memory_of_model(250);
  if (quarter <= 0) {
    WARN("this C library, or a sanitizer, does not tell what memory is in use");
    return;
  }
  const double half = memory_of_model(500);
  const double whole = memory_of_model(1000);
  CAPTURE(quarter, half, whole);
  const double per_layer = (whole - half) / 500;
  // At least values and gradients: 4 64² + 2 64 96 of the matrices in single precision.
  CHECK(per_layer >= 2 * 4 * (4 * 64 * 64 + 2 * 64 * 96));
  // A straight line through the first two meets the third; tables that grow by doubling are the
  // slack.
  CHECK(std::abs((whole - half) - 2 * (half - quarter)) < 1e-3 * whole);
}
