// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A file of records: what was read can be appended, and reads back the same.

#include <cstdlib>

#include "fuzz/fuzz.hpp"
#include "fuzz/lines.hpp"
#include "fuzz/scratch_file.hpp"
#include "scalewise/check/record_file.hpp"

namespace scalewise::fuzz::records_target {

using check::Moments;
using check::Signal;

static std::vector<std::string> seeds() {
  check::Records records;
  for (const long size : {16, 32}) {
    for (const long step : {0, 1}) {
      const auto count = static_cast<std::uint64_t>(size);
      records.add({Signal::value, "layer.0.mlp.output"}, step, {size, 1}, Moments{3, 5, count});
      records.add({Signal::gradient, "layer.0.mlp_up"}, step, {size, 1}, Moments{0, HUGE_VAL, 1});
    }
  }
  const files::Inputs inputs{{"--rule", "he"}, {"--steps", "10"}};
  return {unsealed(check::detail::record_lines(records, inputs))};
}

static std::string edited(std::string input, Random& random) { return edited_lines(input, random); }

static void run(std::string_view input) {
  const std::string path = scratch_file().with(sealed(input));
  const check::RecordFile first = check::read_records(path);
  const check::RecordFile again = check::resume_records(path, first.inputs);
  if (!(again.records == first.records) || again.runs != first.runs) std::abort();

  static_cast<void>(scratch_file().with(""));
  check::append_records(path, first.records, first.inputs);
  const check::RecordFile written = check::read_records(path);
  if (!(written.records == first.records) || !written.damage.empty()) std::abort();
}

static const Added added{{"records", seeds, edited, run}};

}  // namespace scalewise::fuzz::records_target
