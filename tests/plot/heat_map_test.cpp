// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#include "scalewise/plot/heat_map.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "scalewise/architecture/presets.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/plot/layer_map.hpp"
#include "support/catch.hpp"
#include "support/svg_texts.hpp"

namespace {

using namespace scalewise;
using scalewise::plot::heat_map_svg;
using scalewise::plot::HeatMap;
using scalewise::plot::HeatRow;
using scalewise::plot::layer_map;
using scalewise::test::attribute;
using scalewise::test::faults_of;

/// A cell of a picture, and the text that pointing at it shows.
struct DrawnCell {
  std::string hover;
  double shade;  // below 0: orange, above: blue; NaN: grey
  bool framed;
  double x, width;
};

std::vector<DrawnCell> cells_of(const std::string& svg) {
  std::vector<DrawnCell> cells;
  for (std::size_t at = svg.find("<rect "); at != std::string::npos;
       at = svg.find("<rect ", at + 1)) {
    const std::size_t end = svg.find('>', at);
    const std::string tag = svg.substr(at, end - at);
    const std::size_t name = tag.find("class=\"") + 7;
    const std::string kind = tag.substr(name, tag.find('"', name) - name);
    if (svg.substr(end + 1, 7) != "<title>") continue;
    const std::string hover = svg.substr(end + 8, svg.find("</title>", end) - end - 8);
    const double opacity = attribute(tag, "fill-opacity");
    const double shade = kind[0] == 'n'   ? std::numeric_limits<double>::quiet_NaN()
                         : kind[0] == 'l' ? -opacity
                                          : opacity;
    cells.push_back({hover, shade, kind.find(" k") != std::string::npos, attribute(tag, "x"),
                     attribute(tag, "width")});
  }
  return cells;
}

const DrawnCell& cell_named(const std::vector<DrawnCell>& cells, const std::string& hover) {
  for (const DrawnCell& cell : cells) {
    if (cell.hover == hover) return cell;
  }
  FAIL("no cell " + hover);
  return cells.front();
}

/// Two panels with so many columns, one of them with a number, one framed.
HeatMap map_of(long columns, const std::string& text) {
  HeatMap map{"title " + text, "subtitle " + text, {{"block " + text, {}, {}}}, {}, {text}};
  HeatRow row{text, {}, text, true};
  for (const char* title : {"left", "right"}) {
    plot::HeatPanel panel{title, {}};
    for (long i = 0; i < columns; ++i) {
      panel.columns.push_back(i);
      row.cells.push_back(plot::HeatCell{0.3, text, "+0.30", i == 1});
    }
    map.blocks[0].panels.push_back(panel);
  }
  map.blocks[0].rows = {row, row};
  map.blocks.push_back(map.blocks[0]);
  map.scale = {0.5, {{-0.5, "-0.5"}, {0, "0"}, {0.5, "+0.5"}}, text};
  return map;
}

}  // namespace

TEST_CASE("The texts of a heat map neither overlap nor leave it", "[heat_map]") {
  const std::string longest = "<b> & \xff " + std::string(60, 'W') + " named so that nothing fits";
  for (const long columns : {1L, 2L, 11L, 96L, 1000L}) {
    for (const std::string& text : {std::string("logits"), longest}) {
      INFO(columns << " columns, " << text);
      const std::string svg = heat_map_svg(map_of(columns, text));
      CHECK(faults_of(svg) == std::vector<std::string>{});
      const std::vector<DrawnCell> cells = cells_of(svg);
      CHECK(cells.size() == static_cast<std::size_t>(8 * columns + 3));
      for (const DrawnCell& cell : cells) CHECK(cell.x + cell.width <= 860 - 14);
    }
  }
  CHECK(faults_of(heat_map_svg({"nothing", "", {}, {1, {}, "x"}})) == std::vector<std::string>{});
}

TEST_CASE("Colours are proportional, symmetric about 0 and full from the limit on", "[heat_map]") {
  HeatMap map{"", "", {{"", {{"", {}}}, {{"row", {}}}}}, {0.5, {}, ""}};
  const std::vector<double> values{-9, -0.5, -0.2, -0.1, 0, 0.1, 0.2, 0.5, 9};
  for (std::size_t i = 0; i < values.size(); ++i) {
    map.blocks[0].panels[0].columns.push_back(static_cast<long>(i));
    map.blocks[0].rows[0].cells.push_back(plot::HeatCell{values[i], std::to_string(i)});
  }
  std::vector<double> shades;
  for (const DrawnCell& cell : cells_of(heat_map_svg(map))) shades.push_back(cell.shade);
  CHECK(shades == std::vector<double>{-0.75, -0.75, -0.3, -0.15, 0, 0.15, 0.3, 0.75, 0.75});

  map.blocks[0].rows[0].cells[3]->value = std::numeric_limits<double>::quiet_NaN();
  map.blocks[0].rows[0].cells[4].reset();
  map.blocks[0].rows[0].cells[5]->marked = true;
  const std::vector<DrawnCell> cells = cells_of(heat_map_svg(map));
  REQUIRE(cells.size() == values.size() - 1);
  CHECK(std::isnan(cells[3].shade));
  CHECK(cells[4].hover == "5");
  CHECK(cells[4].framed);
  CHECK_FALSE(cells[3].framed);
}

TEST_CASE("A map of layers says what differs between them", "[heat_map]") {
  // 2/((fi+fo)l) of layers from 1.
  const Plan plan = make_plan("ds-init", {.model = preset_shape("gpt2")});
  const HeatMap map = layer_map(plan);
  CHECK(map.title == "ds-init: initial variance falls 12-fold from the first layer to the last");
  REQUIRE(map.blocks.size() == 1);
  CHECK(map.scale.limit == 1.5);  // 2/5 of 1/12 is 10^-1.48
  const std::vector<DrawnCell> cells = cells_of(heat_map_svg(map));
  for (int layer = 0; layer < 12; ++layer) {
    const double times_fan_in = 2 * 3072 / (3840.0 * (layer + 1));  // of mlp_down
    const std::string hover =
        fmt::format("layer.{} mlp_down: initial variance {:.4g} = 2/((fi+fo)l)", layer,
                    2 / (3840.0 * (layer + 1)));
    CHECK_THAT(cell_named(cells, hover).shade,
               Catch::Matchers::WithinAbs(0.75 * std::log10(times_fan_in) / 1.5, 0.0005));
  }

  Shape target = preset_shape("gpt2-xl");
  const HeatMap equal =
      layer_map(make_plan("complete-p", {.model = target, .base = preset_shape("gpt2")}));
  CHECK(equal.title ==
        "complete-p: all 48 layers alike; residual_branch and epsilon depend on the depth");

  const HeatMap two = layer_map(make_plan("deep-norm", {.model = preset_shape("t5-large")}));
  CHECK(two.title.starts_with("deep-norm: all layers of a stack alike; initial variance"));
  REQUIRE(two.blocks[0].panels.size() == 2);
  CHECK(two.blocks[0].panels[0].title == "encoder layer");
  CHECK(two.blocks[0].panels[1].columns.size() == 24);
}
