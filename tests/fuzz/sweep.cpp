// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A sweep's journal, a run that is appended to it, and the verdict on whatever runs it holds.

#include <cstdlib>

#include "fuzz/fuzz.hpp"
#include "fuzz/lines.hpp"
#include "fuzz/scratch_file.hpp"
#include "scalewise/check/judge_transfer.hpp"
#include "scalewise/check/sweep_journal.hpp"

namespace scalewise::fuzz::sweep_target {

namespace {

const files::Inputs inputs{{"--rule", "he"}, {"--steps", "10"}};

}  // namespace

static std::vector<std::string> seeds() {
  const std::string path = scratch_file().with("");
  {
    check::SweepJournal journal(path, inputs);
    for (const long size : {32, 64}) {
      for (const double octave : {-1, 0, 1}) {
        for (const long seed : {1, 2}) {
          const double distance = octave * octave + static_cast<double>(seed);
          journal.append({size, octave, seed, 2 + distance / static_cast<double>(size)});
        }
      }
    }
  }
  return {unsealed(files::read_file(path, 1 << 16))};
}

static std::string edited(std::string input, Random& random) { return edited_lines(input, random); }

static void run(std::string_view input) {
  const std::string path = scratch_file().with(sealed(input));
  std::vector<check::RateRun> runs;
  {
    check::SweepJournal journal(path, inputs);
    runs = journal.runs();
    journal.append({7, 1000, 7, HUGE_VAL});
  }
  const check::SweepJournal again(path, inputs);
  if (again.runs().size() < runs.size()) std::abort();
  for (const double expected : {0.0, -0.5}) {
    static_cast<void>(check::judge(check::analyse_transfer(runs, expected), "width"));
  }
}

static const Added added{{"sweep", seeds, edited, run}};

}  // namespace scalewise::fuzz::sweep_target
