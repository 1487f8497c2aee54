// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#include "scalewise/plot/block_picture.hpp"

#include <optional>
#include <string>
#include <vector>

#include "scalewise/architecture/presets.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/plot/heat_map.hpp"
#include "scalewise/plot/layer_map.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"
#include "support/svg_texts.hpp"
#include "support/told.hpp"

namespace {

using namespace scalewise;
using scalewise::plot::block_svg;
using scalewise::plot::heat_map_svg;
using scalewise::plot::layer_map;
using scalewise::plot::wrapped;
using scalewise::test::faults_of;
using scalewise::test::Text;
using scalewise::test::texts_of;
using scalewise::test::told;

struct ModelAndBase {
  const char* preset;
  const char* base;
};

}  // namespace

TEST_CASE("No two texts overlap, whatever the rule and the model", "[block]") {
  for (const Rule& rule : rules()) {
    long drawn = 0;
    const std::vector<ModelAndBase> kinds{{"llama-3-8b", "llama-3.2-1b"},
                                          {"bert-large", "bert-base"},
                                          {"vit-l16", "vit-b16"},
                                          {"gpt2-xl", "gpt2"},
                                          {"t5-large", "t5-base"}};
    for (const ModelAndBase& kind : kinds) {
      if (scalewise::test::sanitized && drawn > 0) break;
      Shape shape = preset_shape(kind.preset);
      Shape base = preset_shape(kind.base);
      if (shape.depth < 48) shape.depth = 4, base.depth = 2;  // one of many layers is enough
      std::optional<Plan> plan;
      for (const bool simple : {false, true}) {
        if (simple) {
          for (Shape* s : {&shape, &base}) {
            s->activation = Activation::relu;
            s->gated_mlp = false;
          }
        }
        try {
          plan = make_plan(told(rule),
                           {.model = shape,
                            .base = policy::needs_base(rule) ? std::optional(base) : std::nullopt});
          break;
        } catch (const InvalidInput&) {  // a model for which the rule is not made
        }
      }
      if (!plan) continue;
      ++drawn;
      INFO(rule.id << ", " << kind.preset);
      CHECK(faults_of(block_svg(*plan)) == std::vector<std::string>{});
      CHECK(faults_of(heat_map_svg(layer_map(*plan))) == std::vector<std::string>{});
    }
    INFO(rule.id);
    CHECK(drawn > 0);
  }
}

TEST_CASE("A picture takes what users call things, and formulas of any length", "[block]") {
  const std::string name = "<a> & \"b\" \x01 \xff named so that it does not fit next to any column";
  Plan plan = make_plan(
      "he", {.model = preset_shape("gpt2"), .extras = {{"tensor", Group::query, "3", "4"}}});
  plan.entries.back().name = name;
  plan.rule = name + name + name;
  static const std::string wide_text(70, 'W');
  static const Symbol wide{wide_text.c_str(), "", "", "", "a long name"};
  for (Entry& entry : plan.entries) {
    entry.multiplier = {1.0 / 3, Scaling(wide) / symbols::n * symbols::fi_plus_fo};
    entry.init_mean = {-1.234567e-100, -1 * Scaling(wide)};
  }
  const std::string svg = block_svg(plan);
  CHECK(faults_of(svg) == std::vector<std::string>{});
  CHECK(svg.find("&lt;a&gt; &amp; ") != std::string::npos);
  CHECK(svg.find("\x01") == std::string::npos);
  CHECK(svg.find("\xff") == std::string::npos);
}

TEST_CASE("A number that differs between layers is a range", "[block]") {
  const Plan plan = make_plan("ds-init", {.model = preset_shape("gpt2")});
  const auto variance = [&](int layer) {
    return plan.at("layer." + std::to_string(layer) + ".query").init_variance.value;
  };
  REQUIRE(variance(11) < variance(0));
  std::string all;
  for (const Text& text : texts_of(block_svg(plan))) all += text.text;
  CHECK(all.find(fmt::format("{:.4g}…{:.4g}=", variance(11), variance(0))) != std::string::npos);
}

TEST_CASE("Texts are broken where they may be, and lose nothing but spaces", "[block]") {
  const auto lines = [](const char* text, double width) { return wrapped(text, width, 10); };
  CHECK(lines("one two", 100) == std::vector<std::string>{"one two"});
  CHECK(lines("one two", 25) == std::vector<std::string>{"one", "two"});
  CHECK(lines("2/(n+m)√L", 45) == std::vector<std::string>{"2/(n+m)", "√L"});
  CHECK(lines("= n/Wm", 35) == std::vector<std::string>{"= n/", "Wm"});
  CHECK(lines("0.25…0.5", 35) == std::vector<std::string>{"0.25…", "0.5"});
  CHECK(lines("WWWW", 20) == std::vector<std::string>{"WW", "WW"});
  CHECK(lines("√√", 1) == std::vector<std::string>{"√", "√"});
  CHECK(lines("", 1) == std::vector<std::string>{""});
}
