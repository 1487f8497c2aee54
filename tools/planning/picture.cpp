// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#include "planning/picture.hpp"

#include "scalewise/messages/error.hpp"
#include "scalewise/plot/block_picture.hpp"
#include "scalewise/plot/heat_map.hpp"
#include "scalewise/plot/layer_map.hpp"

namespace scalewise::tools {

std::string draw_plan(const std::vector<Plan>& plans, bool layers) {
  if (plans.size() != 1) {
    throw InvalidInput("--format", "svg", "--rule", "a picture shows one plan");
  }
  return layers ? plot::heat_map_svg(plot::layer_map(plans.front()))
                : plot::block_svg(plans.front());
}

}  // namespace scalewise::tools
