// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Records with commas: what was read is the same when it is written as JSON.

#include "scalewise/check/record_csv.hpp"

#include <cstdlib>
#include <utility>

#include "fuzz/fuzz.hpp"
#include "fuzz/json_edit.hpp"
#include "fuzz/scratch_file.hpp"
#include "scalewise/check/record_file.hpp"

namespace scalewise::fuzz::record_csv_target {

static std::vector<std::string> seeds() {
  return {
      "size,seed,step,signal,name,sum_abs,sum_squares,count\n"
      "16,1,0,value,layer.0.mlp.output,3,5.5,16\n"
      "32,1,1,update,\"a \"\"b\"\", c\",1e-3,nan,32\n",
      "count,name,signal,step,seed,size,sum_squares,sum_abs\r\n3,x,change,1,4,32,inf,1.5\r\n"};
}

/// One cell is another, or what a program fails at.
static std::string edited(std::string input, Random& random) {
  std::vector<std::size_t> ends;  // of cells
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (input[i] == ',' || input[i] == '\n') ends.push_back(i);
  }
  if (ends.empty()) return input;
  const auto cell = [&] {
    const std::size_t at = below(ends.size(), random);
    const std::size_t begin = at == 0 ? 0 : ends[at - 1] + 1;
    return std::pair{begin, ends[at] - begin};
  };
  const auto [from, length] = cell();
  const std::string other =
      below(2, random) == 0 ? input.substr(from, length) : hostile_json(random);
  const auto [begin, count] = cell();
  return input.replace(begin, count, other);
}

static void run(std::string_view input) {
  const check::detail::RecordCsv csv("run.csv", input);
  check::Records records;
  for (const auto& [run, found] : csv.runs()) records.merge(found.records);
  static_cast<void>(scratch_file().with(""));
  check::append_records(scratch_file().path(), records);
  if (!(check::read_records(scratch_file().path()).records == records)) std::abort();
}

static const Added added{{"record_csv", seeds, edited, run}};

}  // namespace scalewise::fuzz::record_csv_target
