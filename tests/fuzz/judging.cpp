// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The verdict on arbitrary records. An input says which rule the model followed, then changes records
// that follow it: bytes for a quantity, step, size and seed, then what becomes of them.

#include <fuzzer/FuzzedDataProvider.h>

#include <cmath>
#include <cstdlib>

#include "fuzz/fuzz.hpp"
#include "scalewise/check/coordinate_check.hpp"
#include "scalewise/check/optimizer_check.hpp"
#include "scalewise/plan/make_plan.hpp"

namespace scalewise::fuzz::judging_target {

namespace {

using check::Member;
using check::Moments;
using check::Quantity;
using check::Records;
using check::Run;
using check::Signal;

std::vector<Member> family(const char* rule, Optimizer optimizer, bool along_depth, bool token) {
  std::vector<Member> members;
  std::optional<Shape> base;
  for (const long size : {4, 8, 16}) {
    Shape shape{.d_model = along_depth ? 4 : size, .depth = along_depth ? size : 1, .heads = 2};
    shape.context = 3;
    shape.vocab = 5;
    shape.biases = shape.norm_bias = false;  // fewer tensors, so that an input takes less time
    if (!token) {
      shape.input = Input::patch;
      shape.patch_dim = 3;
      shape.classes = 2;
    }
    if (!base) base = shape;
    members.push_back(
        {size, make_plan(rule, {.model = shape, .base = base, .optimizer = optimizer})});
  }
  return members;
}

const std::vector<std::vector<Member>>& families() {
  static const std::vector<std::vector<Member>> all{
      family("maximal-update", adamw, false, true), family("maximal-update", sgd, false, false),
      family("nu-gpt", adamw, false, true),         family("complete-p", adamw, true, true),
      family("standard", adamw, false, true),       family("neural-tangent", adamw, false, true)};
  return all;
}

const std::vector<Quantity>& quantities() {
  static const std::vector<Quantity> all{{Signal::value, "logits"},
                                         {Signal::value, "layer.0.mlp.output"},
                                         {Signal::change, "mlp.output"},
                                         {Signal::gradient, "layer.0.mlp_up"},
                                         {Signal::gradient, "token_embedding"},
                                         {Signal::update, "layer.0.query"},
                                         {Signal::update, "head"},
                                         {Signal::change, "logits"},
                                         {Signal::value, "layer.99999999999999999999.x"},
                                         {Signal::update, ""}};
  return all;
}

double number(FuzzedDataProvider& data) {
  switch (data.ConsumeIntegral<std::uint8_t>() % 8) {
    case 0:
      return 0;
    case 1:
      return HUGE_VAL;
    case 2:
      return NAN;
    case 3:
      return 5e-324;
    case 4:
      return 1e308;
    case 5:
      return -1;
    default:
      return data.ConsumeFloatingPoint<double>();
  }
}

/// Root mean squares that do not depend on the size.
void add_even(Records& records, const Quantity& quantity, std::size_t seeds) {
  for (const long step : {0, 1}) {
    for (const long size : {4, 8, 16}) {
      for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        const double scatter = 1 + 0.01 * static_cast<double>(seed);
        records.add(quantity, step, {size, seed}, Moments{scatter, scatter, 1});
      }
    }
  }
}

}  // namespace

static std::vector<std::string> seeds() {
  return {std::string(16, '\0'),
          std::string("\x01\x05\x02\x07\x01\x02\x03\x04\x05\x06\x07\x08", 12)};
}

static std::string edited(std::string input, Random& random) {
  input[below(input.size(), random)] = static_cast<char>(below(256, random));
  return input;
}

static void run(std::string_view input) {
  FuzzedDataProvider data(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  const std::vector<Member>& members =
      families()[data.ConsumeIntegral<std::uint8_t>() % families().size()];
  const check::Assumptions assumptions;
  Records records;
  const std::size_t even = data.ConsumeIntegralInRange<std::size_t>(0, 4);
  for (std::size_t i = 0; i < even; ++i) add_even(records, quantities()[i], 2);
  for (int i = 0; i < 16 && data.remaining_bytes() > 0; ++i) {
    const auto& quantity = quantities()[data.ConsumeIntegral<std::uint8_t>() % quantities().size()];
    const long step =
        data.ConsumeBool() ? data.ConsumeIntegralInRange<long>(0, 2) : data.ConsumeIntegral<long>();
    const long size = data.ConsumeBool() ? 4L << data.ConsumeIntegralInRange<unsigned>(0, 3)
                                         : data.ConsumeIntegral<long>();
    const Moments moments{number(data), number(data), data.ConsumeIntegral<std::uint8_t>()};
    records.add(quantity, step, {size, data.ConsumeIntegral<std::uint8_t>()}, moments);
  }
  const check::Report report = coordinate_check(
      data.ConsumeBool() ? records : pooled_layers(records, members.front().plan.shape), members,
      assumptions);
  if ((report.verdict == check::Verdict::pass) != report.diagnosis.empty() &&
      report.verdict == check::Verdict::pass) {
    std::abort();
  }
}

static const Added added{{"judging", seeds, edited, run}};

}  // namespace scalewise::fuzz::judging_target
