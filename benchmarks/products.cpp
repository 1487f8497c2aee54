// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// products: rates of the products of a training step at some widths, by each library that was compiled in, on
// one thread, as a table in Markdown; docs/benchmarks.md explains it.

#include <fmt/core.h>

#include <string>

#include "product_rates.hpp"

int main() {
  using namespace scalewise::benchmark;
  const auto libraries = product_libraries();
  std::string header = "| rows, k, columns |", line = "|---|";
  for (const auto& [name, product] : libraries) {
    header += " " + name + " |";
    line += "---|";
  }
  fmt::print("{}\n{}\n", header, line);
  const auto print = [&](const ProductShape& s) {
    fmt::print("| {}{}, {}, {}{} |", s.rows, s.transposed_a ? " (transposed)" : "", s.k, s.columns,
               s.transposed_b ? " (transposed)" : "");
    for (const auto& [name, product] : libraries) {
      fmt::print(" {:.0f} |", product_rate(product, s, s.rows));
    }
    fmt::print("\n");
  };
  print({64, 16, 64, false, true});  // attention of one head: scores, and their mix of values
  print({64, 64, 16});
  print({64, 64, 64});
  for (const Eigen::Index width : {64, 128, 256, 512, 1024}) {
    print({256, width, 4 * width});               // forward
    print({256, 4 * width, width, false, true});  // gradient of the input
    print({width / 2, 512, 4 * width, true});     // gradient of the weights
  }
}
