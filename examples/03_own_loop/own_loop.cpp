// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Does your own training loop follow its plans?
//
//   own_loop [--forget-rates | --record FILE]

#include <iostream>
#include <scalewise/check.hpp>
#include <string>
#include <vector>

#include "training.hpp"

int main(int argc, char** argv) {
  const std::string option = argc > 1 ? argv[1] : "";
  namespace check = scalewise::check;
  check::Records records;             // check
  std::vector<check::Member> family;  // check
  for (const long width : {16, 32, 64, 128}) {
    family.push_back({width, own::plan_of(width)});  // check
    for (unsigned seed = 1; seed <= 3; ++seed) {
      records.merge(own::trained(family.back().plan, seed, option == "--forget-rates"));  // check
    }
  }
  if (option == "--record" && argc > 2) check::append_records(argv[2], records);      // check
  const check::Report report = check::coordinate_check(records, family);              // check
  std::cout << "verdict: " << to_string(report.verdict) << '\n' << report.diagnosis;  // check
  if (!report.diagnosis.empty()) std::cout << '\n';
  return exit_code(report.verdict);  // check
}
