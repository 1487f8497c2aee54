// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A training loop, and the lines that add the coordinate check to it. They are marked with "check".
#pragma once

#include <random>
#include <scalewise/check.hpp>
#include <scalewise/scalewise.hpp>

#include "model.hpp"

namespace own {

/// A model that starts by a plan, with the plan's rates or with one rate.
inline Model started(const scalewise::Plan& plan, std::mt19937& random, bool one_rate) {
  Model m;
  m.n = static_cast<Size>(plan.shape.d_model);
  m.logit_multiplier = static_cast<float>(plan.model.logit_multiplier.value);
  const auto set_up = [&](Tensor& t, const char* name) {
    const scalewise::Entry& e = plan.at(name);
    const double factor = one_rate ? 1 : e.learning_rate.value;
    init(t, static_cast<Size>(e.rows * e.columns), 0.25 * std_dev(e.init_variance), 0.01 * factor,
         random);
  };
  set_up(m.embedding, "token_embedding");
  set_up(m.up, "layer.0.mlp_up");
  set_up(m.down, "layer.0.mlp_down");
  set_up(m.head, "head");
  return m;
}

/// Trains for a few steps, all on the same batch, and returns what was recorded.
inline scalewise::check::Records trained(const scalewise::Plan& plan, unsigned seed,
                                         bool one_rate) {
  scalewise::check::Recorder recorder({plan.shape.d_model, seed});  // check
  std::mt19937 random(seed);
  Symbols symbols(examples), next(examples);
  for (Size r = 0; r < examples; ++r) {
    symbols[r] = random() % vocab;
    next[r] = (7 * symbols[r] + 3) % vocab;
  }
  Model m = started(plan, random, one_rate);
  for (int step = 0; step <= 3; ++step) {
    forward_backward(m, symbols, next);
    recorder.record("embedding", m.x.data(), m.x.size(), step);                           // check
    recorder.record("layer.0.mlp.hidden", m.hidden.data(), m.hidden.size(), step);        // check
    recorder.record("layer.0.mlp.output", m.branch.data(), m.branch.size(), step);        // check
    recorder.record("final_hidden", m.final_hidden.data(), m.final_hidden.size(), step);  // check
    recorder.record("logits", m.logits.data(), m.logits.size(), step);                    // check
    recorder.record_gradient("head", m.head.g.data(), m.head.g.size(), step);             // check
    recorder.record_gradient("layer.0.mlp_up", m.up.g.data(), m.up.g.size(), step);       // check
    for (Tensor* t : {&m.embedding, &m.up, &m.down, &m.head}) adam(*t, step + 1);
  }
  return recorder.records();  // check
}

/// The plan of a width; rates were tuned at 16.
inline scalewise::Plan plan_of(long width) {
  scalewise::Shape shape;
  shape.d_model = width;
  shape.depth = 1;
  shape.heads = width / 16;
  shape.vocab = long{vocab};
  shape.context = 1;
  const scalewise::Shape base = base_like(shape, {.width = 16});
  return scalewise::make_plan(scalewise::MaximalUpdate{}, {.model = shape, .base = base});
}

}  // namespace own
