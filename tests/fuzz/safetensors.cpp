// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A safetensors file. An input is a header alone, which gets its length and the data that its largest
// offset asks for, or a whole file.

#include "scalewise/io/safetensors.hpp"

#include <algorithm>

#include "fuzz/fuzz.hpp"
#include "fuzz/json_edit.hpp"
#include "fuzz/stored_tensors.hpp"
#include "support/model_bytes.hpp"

namespace scalewise::fuzz::safetensors_target {

namespace {

/// Where the data end, by a header that may be anything.
std::uintmax_t data_end(std::string_view header) {
  const auto json = nlohmann::ordered_json::parse(header, nullptr, false);
  std::uintmax_t end = 0;
  if (!json.is_object()) return end;
  for (const auto& tensor : json) {
    if (!tensor.is_object() || !tensor.contains("data_offsets")) continue;
    for (const auto& offset : tensor["data_offsets"]) {
      if (offset.is_number_unsigned()) end = (std::max)(end, offset.get<std::uintmax_t>());
    }
  }
  return (std::min)(end, std::uintmax_t{1} << 40U);
}

}  // namespace

static std::vector<std::string> seeds() {
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("wte.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},)"
                             R"("b":{"dtype":"BF16","shape":[5],"data_offsets":[24,34]},)"
                             R"("s":{"dtype":"F4","shape":[2],"data_offsets":[34,35]}})";
  return {header, test::safetensors_bytes(header, 35), "{}"};
}

static std::string edited(std::string input, Random& random) {
  if (input.starts_with("{")) return edited_json(input, random);
  return with_hostile_number(std::move(input), 8, random);
}

static void run(std::string_view input) {
  std::string file(input);
  std::uintmax_t size = file.size();
  if (input.starts_with("{")) {
    file = test::safetensors_bytes(file, 0);
    size = file.size() + data_end(input);
  }
  const std::string path = sparse_file(file, size);
  check_stored(io::read_safetensors(path), size);
}

static const Added added{{"safetensors", seeds, edited, run}};

}  // namespace scalewise::fuzz::safetensors_target
