// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/recorder.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"

using namespace scalewise::check;

TEST_CASE("A recorder measures sizes, and changes from step 0") {
  Recorder recorder({64, 7});
  const std::vector<double> first{3, -4};
  const std::vector<double> later{3, -1};
  recorder.record("h", first.data(), 2, 0);
  recorder.record("h", later.data(), 2, 1);
  recorder.record_parameter("w", later.data(), 2, 0);
  recorder.record_gradient("w", first.data(), 2, 0);
  recorder.record_update("w", later.data(), 2, 1);
  const auto& all = recorder.records().all();
  const Run run{64, 7};
  CHECK(all.at({Signal::value, "h"}).at(0).at(run) == Moments{7, 25, 2});
  CHECK(all.at({Signal::value, "h"}).at(1).at(run) == Moments{4, 10, 2});
  CHECK(all.at({Signal::change, "h"}).at(1).at(run) == Moments{3, 9, 2});
  CHECK_FALSE(all.at({Signal::change, "h"}).contains(0));
  CHECK(all.at({Signal::parameter, "w"}).at(0).at(run) == Moments{4, 10, 2});
  CHECK(all.at({Signal::gradient, "w"}).at(0).at(run) == Moments{7, 25, 2});
  CHECK(all.at({Signal::update, "w"}).at(1).at(run) == Moments{4, 10, 2});
}

TEST_CASE("What is recorded several times in a step is compared in that order") {
  Recorder recorder({64, 7});
  const std::array<std::vector<double>, 2> before{{{1, 2}, {5}}}, after{{{4, 2}, {7}}};
  for (const auto& data : before) recorder.record("h", data.data(), data.size(), 0);
  for (const auto& data : after) recorder.record("h", data.data(), data.size(), 1);
  const auto& all = recorder.records().all();
  CHECK(all.at({Signal::change, "h"}).at(1).at({64, 7}) == Moments{5, 13, 3});
  CHECK(all.at({Signal::value, "h"}).at(1).at({64, 7}) == Moments{13, 69, 3});
  // In another order, or once more, there is nothing to compare with.
  for (const std::size_t call : {1U, 0U, 0U})
    recorder.record("h", after.at(call).data(), after.at(call).size(), 2);
  CHECK_FALSE(all.at({Signal::change, "h"}).contains(2));
}

TEST_CASE("A change is that of every entry, however many there are") {
  const std::size_t count = 2500;
  std::vector<float> first, later;
  Moments expected;
  for (std::size_t i = 0; i < count; ++i) {  // whole numbers, so that sums are exact
    const int before = static_cast<int>(i * i % 101), after = static_cast<int>(i % 17);
    first.push_back(static_cast<float>(before));
    later.push_back(static_cast<float>(after));
    expected += {std::abs(after - before) * 1.0, (after - before) * (after - before) * 1.0, 1};
  }
  Recorder recorder({64, 7});
  recorder.record("h", first.data(), count, 0);
  recorder.record("h", later.data(), count, 1);
  CHECK(recorder.records().all().at({Signal::change, "h"}).at(1).at({64, 7}) == expected);
}

TEST_CASE("The same activation has the same moments at every step, to the last bit") {
  for (const std::size_t count : std::array<std::size_t, 4>{1, 1000, 1024, 2500}) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(std::sin(static_cast<double>(i)));
    Recorder recorder({64, 7});
    recorder.record("h", values.data(), count, 0);
    recorder.record("h", values.data(), count, 1);
    const auto& steps = recorder.records().all().at({Signal::value, "h"});
    INFO(count);
    CHECK(steps.at(0).at({64, 7}) == steps.at(1).at({64, 7}));
  }
}

TEST_CASE("A step before initialization is refused") {
  Recorder recorder({64, 7});
  const std::array<float, 2> x{1, 2};
  CHECK(scalewise::test::error_message([&] {
          recorder.record("logits", x.data(), x.size(), -1);
        }) == "step of logits = -1: expected 0 for initialization, k after k updates");
}

TEST_CASE("Layers of one role are pooled, whatever their number") {
  CHECK(place_of({}, "layer.3.mlp.output") == "mlp.output");
  CHECK(place_of({}, "encoder.12.attention.output") == "attention.output");
  CHECK(place_of({}, "decoder.0.query") == "query");
  CHECK(place_of({}, "logits") == "logits");
  CHECK(place_of({}, "layer.x.query") == "layer.x.query");
  CHECK(place_of({}, "layer.") == "layer.");
  // torch.nn.TransformerDecoderLayers, and the list of a model of its own, under the name of a stack
  const Shape of_tensors{.blocks = Blocks::listed};
  CHECK(place_of(of_tensors, "decoder.0.linear1.weight") == "decoder.0.linear1.weight");
  Records records;
  records.add({Signal::value, "layer.0.mlp.output"}, 0, {8, 1}, {1, 1, 1});
  records.add({Signal::value, "layer.1.mlp.output"}, 0, {8, 1}, {2, 4, 1});
  CHECK(pooled_layers(records, {}).all().at({Signal::value, "mlp.output"}).at(0).at({8, 1}) ==
        Moments{3, 5, 2});
}
