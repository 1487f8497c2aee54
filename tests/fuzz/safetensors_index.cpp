// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A model.safetensors.index.json, next to the two files that it may name.

#include "scalewise/io/safetensors_index.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fuzz/fuzz.hpp"
#include "fuzz/json_edit.hpp"
#include "fuzz/stored_tensors.hpp"
#include "support/model_bytes.hpp"
#include "support/temporary_folder.hpp"

namespace scalewise::fuzz::safetensors_index_target {

namespace {

constexpr std::size_t data = 2;  // bytes in a file

std::string header(const std::string& first, const std::string& second) {
  return "{\"" + first + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},")" + second +
         R"(":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})";
}

std::string shard(const std::string& first, const std::string& second) {
  return test::safetensors_bytes(header(first, second), data);
}

/// The folder with both files, which have the same size.
const std::filesystem::path& folder() {
  static const test::TemporaryFolder temporary(scratch_folder());
  static const bool written = [] {
    for (const auto& [name, content] :
         {std::pair{"a", shard("w.0", "w.1")}, {"b", shard("w.2", "w.3")}}) {
      std::ofstream(temporary.path() / (std::string(name) + ".safetensors"), std::ios::binary)
          << content;
    }
    return true;
  }();
  if (!written) std::abort();
  return temporary.path();
}

}  // namespace

static std::vector<std::string> seeds() {
  const std::string map =
      R"({"w.0":"a.safetensors","w.2":"b.safetensors","w.1":"a.safetensors","w.3":"b.safetensors"})";
  return {
      R"({"metadata":{"total_size":4,"nested":[{"weight_map":{"x":3}}]},"weight_map":)" + map + "}",
      R"({"weight_map":{"w.3":"b.safetensors","w.2":"b.safetensors"}})", "{}"};
}

/// A value is another of the index, or one at which programs fail.
static std::string edited(std::string input, Random& random) {
  static const std::vector<std::string> names{
      "a.safetensors", "b.safetensors", "c.safetensors", "index.json", "../a.safetensors",
      "w.0",           "w.1",           "w.2",           "w.3",        "weight_map"};
  const std::string& name = names[below(names.size(), random)];
  const std::string& other = names[below(names.size(), random)];
  const std::size_t at = input.find(name);
  if (at == std::string::npos || below(2, random) == 0) return edited_json(input, random);
  return input.replace(at, name.size(), other);
}

static void run(std::string_view input) {
  const std::filesystem::path path = folder() / "index.json";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << input;
  const TensorFile read = io::read_safetensors_index(path.string());
  check_stored(read, shard("w.0", "w.1").size());
  if (read.tensors.size() != data * read.files.size()) std::abort();
}

static const Added added{{"safetensors_index", seeds, edited, run}};

}  // namespace scalewise::fuzz::safetensors_index_target
