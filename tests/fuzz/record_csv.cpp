// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Records with commas: what was read is the same when it is written as JSON.

#include "scalewise/check/record_csv.hpp"

#include <cstdlib>

#include "fuzz/cells.hpp"
#include "fuzz/fuzz.hpp"
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

static void run(std::string_view input) {
  const check::detail::RecordCsv csv("run.csv", input);
  check::Records records;
  for (const auto& [run, found] : csv.runs()) records.merge(found.records);
  static_cast<void>(scratch_file().with(""));
  check::append_records(scratch_file().path(), records);
  if (!(check::read_records(scratch_file().path()).records == records)) std::abort();
}

static const Added added{{"record_csv", seeds, edited_cells, run}};

}  // namespace scalewise::fuzz::record_csv_target
