// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#include "scalewise/plot/block_picture.hpp"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "instances/registry.hpp"
#include "scalewise/architecture/presets.hpp"
#include "support/catch.hpp"

namespace {

using namespace scalewise;
using scalewise::plot::block_svg;
using scalewise::plot::text_width;
using scalewise::plot::wrapped;

/// A text of a picture, and the rectangle that it fills at most: ascent and descent of DejaVu Sans.
struct Text {
  std::string text;
  double left, right, top, bottom;
};

double attribute(const std::string& tag, const std::string& name) {
  return std::atof(tag.c_str() + tag.find(" " + name + "=\"") + name.size() + 3);
}

/// What a reader sees of a text in the file.
std::string shown(std::string text) {
  const std::array<std::pair<std::string, char>, 4> escapes{
      {{"&quot;", '"'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}}};
  for (const auto& [escape, character] : escapes) {
    for (std::size_t at = text.find(escape); at != std::string::npos; at = text.find(escape, at)) {
      text.replace(at++, escape.size(), 1, character);
    }
  }
  return text;
}

std::vector<Text> texts_of(const std::string& svg) {
  std::vector<Text> texts;
  for (std::size_t at = svg.find("<text "); at != std::string::npos;
       at = svg.find("<text ", at + 1)) {
    const std::size_t end = svg.find('>', at);
    const std::string tag = svg.substr(at, end - at);
    const std::string text = shown(svg.substr(end + 1, svg.find("</text>", end) - end - 1));
    const double size = attribute(tag, "font-size");
    // Bold letters of DejaVu Sans are at most 1.262 times as wide as plain ones.
    const double bold = tag.find("bold") == std::string::npos ? 1 : 1.262;
    const double x = attribute(tag, "x");
    const double y = attribute(tag, "y");
    texts.push_back({text, x, x + bold * text_width(text, size), y - 0.93 * size, y + 0.24 * size});
  }
  return texts;
}

/// Pairs that overlap, and what leaves the picture.
std::vector<std::string> faults_of(const std::string& svg) {
  std::vector<std::string> faults;
  const std::vector<Text> texts = texts_of(svg);
  const double width = attribute(svg, "width");
  const double height = attribute(svg, "height");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Text& a = texts[i];
    if (a.left < 0 || a.right > width || a.top < 0 || a.bottom > height) faults.push_back(a.text);
    for (std::size_t j = 0; j < i; ++j) {
      const Text& b = texts[j];
      const bool apart =
          a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
      if (!apart) faults.push_back(a.text + " | " + b.text);
    }
  }
  return faults;
}

struct ModelAndBase {
  const char* preset;
  const char* base;
};

}  // namespace

TEST_CASE("No two texts overlap, whatever the rule and the model", "[block]") {
  for (const RuleInfo& rule : rules()) {
    long drawn = 0;
    for (const ModelAndBase kind :
         {ModelAndBase{"gpt2-xl", "gpt2"}, ModelAndBase{"llama-3-8b", "llama-3.2-1b"},
          ModelAndBase{"bert-large", "bert-base"}, ModelAndBase{"t5-large", "t5-base"},
          ModelAndBase{"vit-l16", "vit-b16"}}) {
      Shape shape = preset_shape(kind.preset);
      Shape base = preset_shape(kind.base);
      std::optional<Plan> plan;
      for (const bool simple : {false, true}) {
        if (simple) {
          for (Shape* s : {&shape, &base}) {
            s->activation = Activation::relu;
            s->gated_mlp = false;
          }
        }
        try {
          plan = make_plan(rule.id, adamw, shape,
                           rule.needs_base ? std::optional(base) : std::nullopt);
          break;
        } catch (const InvalidInput&) {  // a model for which the rule is not made
        }
      }
      if (!plan) continue;
      ++drawn;
      INFO(rule.id << ", " << kind.preset);
      CHECK(faults_of(block_svg(*plan)) == std::vector<std::string>{});
    }
    INFO(rule.id);
    CHECK(drawn > 0);
  }
}

TEST_CASE("A picture takes what users call things, and formulas of any length", "[block]") {
  const std::string name = "<a> & \"b\" \x01 \xff named so that it does not fit next to any column";
  Plan plan = make_plan("he", adamw, preset_shape("gpt2"), {}, {}, DecayForm::coupled,
                        {{"tensor", Group::query, "3", "4"}});
  plan.entries.back().name = name;
  plan.rule = name + name + name;
  for (Entry& entry : plan.entries) {
    entry.multiplier = {1.0 / 3, std::string(70, 'W') + "/n·(fi+fo)", ""};
    entry.init_mean = {-1.234567e-100, "-" + std::string(90, 'W'), ""};
  }
  const std::string svg = block_svg(plan);
  CHECK(faults_of(svg) == std::vector<std::string>{});
  CHECK(svg.find("&lt;a&gt; &amp; ") != std::string::npos);
  CHECK(svg.find("\x01") == std::string::npos);
  CHECK(svg.find("\xff") == std::string::npos);
}

TEST_CASE("A number that differs between layers is a range", "[block]") {
  const Plan plan = make_plan("ds-init", adamw, preset_shape("gpt2"));
  const auto variance = [&](int layer) {
    return plan.at("layer." + std::to_string(layer) + ".query").init_variance.value;
  };
  REQUIRE(variance(11) < variance(0));
  std::string all;
  for (const Text& text : texts_of(block_svg(plan))) all += text.text;
  CHECK(all.find(fmt::format("{:.4g}…{:.4g}=", variance(11), variance(0))) != std::string::npos);
}

TEST_CASE("Widths of texts are those of DejaVu Sans, and bounds of other letters", "[block]") {
  // Advance widths of the font file, in units of 1/2048 of its size: W 2025, i 569, 0 1303.
  // The table rounds each to a thousandth of the size.
  CHECK_THAT(text_width("Wi0", 2048),
             Catch::Matchers::WithinAbs(2025 + 569 + 1303, 3 * 0.0005 * 2048));
  CHECK(text_width("√", 10) == 10);  // 1305 of 2048
  CHECK(text_width("·", 10) == 5);   // 651 of 2048
  CHECK(text_width("", 10) == 0);
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
