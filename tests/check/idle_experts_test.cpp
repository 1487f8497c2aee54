// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include <string>
#include <vector>

#include "scalewise/check.hpp"
#include "scalewise/check/idle_tensors.hpp"
#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/described_network.hpp"

using namespace scalewise;
using namespace scalewise::test::described_network;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("An expert that no token of a run chose leaves the verdict as it is") {
  const auto name_of = [](int expert, const char* matrix) {
    return "decoder.0.experts." + std::to_string(expert) + "." + matrix;
  };
  std::vector<check::Member> family;
  for (const long width : {32L, 64L, 128L}) {
    const auto numbered = [&](long n) {
      ModelDescription model = network(n);
      std::erase_if(model.tensors, [](const auto& t) { return t.axes == "eoi"; });
      for (int expert = 0; expert < 4; ++expert) {
        model.tensors.push_back({name_of(expert, "up"), TensorKind::linear, "oi", {2 * n, n}});
        model.tensors.push_back({name_of(expert, "down"), TensorKind::linear, "oi", {n, 2 * n}});
      }
      return model;
    };
    const DescribedModel model = from_descriptions(numbered(width), numbered(16));
    family.push_back(
        {width, fold(make_plan(MaximalUpdate{},
                               {.model = model.shape, .base = model.base, .extras = model.tensors}))
                    .plan});
  }
  Slopes slopes = as_planned();
  for (const char* matrix : {"up", "down"}) {
    for (const Signal signal : {Signal::parameter, Signal::gradient, Signal::update}) {
      for (int expert = 0; expert < 4; ++expert)
        slopes[{signal, name_of(expert, matrix)}] =
            slopes[{signal, std::string("decoder.0.") + matrix}];
      slopes.erase({signal, std::string("decoder.0.") + matrix});
    }
  }
  for (const Signal signal : {Signal::value, Signal::change}) {
    slopes[{signal, name_of(0, "up")}] = slopes[{signal, "decoder.0.up"}];
    slopes.erase({signal, "decoder.0.up"});
  }
  const auto without_tokens = [&](const std::string& name, auto idle) {
    check::Records records;
    records_of(slopes, family)
        .for_each([&](const check::Quantity& quantity, long step, const check::Run& run,
                      const check::Moments& moments) {
          const bool zero =
              quantity.name == name && idle(run) &&
              (quantity.signal == Signal::gradient || quantity.signal == Signal::update);
          records.add(quantity, step, run, zero ? check::Moments{0, 0, moments.count} : moments);
        });
    return check::coordinate_check(records, family);
  };
  const auto one_run = [](const check::Run& run) { return run == check::Run{64, 1}; };
  const check::Report idle = without_tokens(name_of(2, "up"), one_run);
  INFO(idle.diagnosis);
  CHECK(idle.verdict == check::Verdict::pass);
  REQUIRE(idle.left_out.size() == 1);
  CHECK_THAT(idle.left_out[0],
             ContainsSubstring("decoder.0.experts.2.up (gradient) at step 0 of size 64, seed 1"));
  // All runs of a size are the model's, and no token chooses another tensor.
  CHECK(without_tokens(name_of(2, "up"), [](const check::Run& run) {
          return run.size == 64;
        }).verdict == check::Verdict::fail);
  CHECK(without_tokens("decoder.0.router", one_run).verdict != check::Verdict::pass);
}
