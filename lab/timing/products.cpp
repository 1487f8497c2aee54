// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// products: rates of the products of a training step at some widths, by each library that was compiled in, on
// one thread, in GFLOP/s, as JSON; lab/timing/README.md explains it.

#include <iostream>
#include <nlohmann/json.hpp>

#include "product_rates.hpp"

int main() {
  using namespace scalewise::benchmark;
  nlohmann::ordered_json result = nlohmann::ordered_json::array();
  const auto libraries = product_libraries();
  const auto measure = [&](const ProductShape& s) {
    nlohmann::ordered_json row{{"rows", s.rows},
                               {"k", s.k},
                               {"columns", s.columns},
                               {"transposed", s.transposed_a   ? "left"
                                              : s.transposed_b ? "right"
                                                               : ""}};
    for (const auto& [name, product] : libraries) row[name] = product_rate(product, s, s.rows);
    result.push_back(row);
  };
  measure({64, 16, 64, false, true});  // attention of one head: scores, and their mix of values
  measure({64, 64, 16});
  measure({64, 64, 64});
  for (const Eigen::Index width : {64, 128, 256, 512, 1024}) {
    measure({256, width, 4 * width});               // forward
    measure({256, 4 * width, width, false, true});  // gradient of the input
    measure({width / 2, 512, 4 * width, true});     // gradient of the weights
  }
  std::cout << nlohmann::ordered_json{{"gflop_per_s", result}}.dump() << '\n';
}
