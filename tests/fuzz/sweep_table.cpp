// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A table of runs: what was read is judged, and each run of it was in the table.

#include "scalewise/check/sweep_table.hpp"

#include <cmath>
#include <cstdlib>

#include "fuzz/cells.hpp"
#include "fuzz/fuzz.hpp"
#include "scalewise/check/judge_sweep.hpp"

namespace scalewise::fuzz::sweep_table_target {

static std::vector<std::string> seeds() {
  std::string csv = "arm,width,lr,seed,loss\n";
  std::string json;
  for (const long width : {8, 16, 32}) {
    for (int octave = -3; octave < 2; ++octave) {
      const std::string rate = std::to_string(std::exp2(octave));
      const std::string size = std::to_string(width);
      const std::string loss =
          std::to_string(2 + octave * octave + 1.0 / static_cast<double>(width));
      csv += "a," + size + "," + rate + ",1," + loss + "\n";
      json += "{\"depth\": " + size + ", \"rate\": " + rate + ", \"val\": " + loss + "}\n";
    }
  }
  return {csv, csv + "a,64,1,1,nan\na,64,2,2,\n\"a\",64,3,3,diverged\n",
          json + "{\"depth\": NaN}\n"};
}

static void run(std::string_view input) {
  const check::SweepTable table = check::parse_sweep_table(input, "table");
  if (table.rows.size() + table.missing.size() != table.all) std::abort();
  const check::JudgedSweep judged = check::judge_sweep_table(table);
  if (judged.judged.reason.empty()) std::abort();
  static_cast<void>(check::compare(judged.transfer, judged.transfer));
}

static const Added added{{"sweep_table", seeds, edited_cells, run}};

}  // namespace scalewise::fuzz::sweep_table_target
