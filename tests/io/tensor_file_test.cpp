// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/tensor_file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/damage.hpp"
#include "support/error_message.hpp"
#include "support/model_bytes.hpp"
#include "support/temporary_file.hpp"
#include "support/temporary_folder.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using scalewise::read_tensor_file;
using scalewise::test::GgufBytes;
using scalewise::test::ModelBytes;
using scalewise::test::safetensors_bytes;
using scalewise::test::TemporaryFile;

std::string file_refusal(const std::string& bytes) {
  return scalewise::test::refusal_of(bytes, read_tensor_file);
}

/// A header of one tensor of one byte, padded to a length.
std::string padded_header(std::size_t length) {
  std::string header = R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  return header + std::string(length - header.size(), ' ');
}

}  // namespace

TEST_CASE("A model's file is told by its bytes, not by its name", "[tensor_file]") {
  const scalewise::test::TemporaryFolder folder;
  const auto format_of = [&](const std::string& name, const std::string& bytes) {
    const std::string path = (folder.path() / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return read_tensor_file(path).format;
  };
  const std::string safetensors = safetensors_bytes(padded_header(64), 1);
  CHECK(format_of("a.gguf", safetensors) == "safetensors");
  CHECK(format_of("a.safetensors", GgufBytes().next("w", {1}, 24, 1).bytes()) == "GGUF");
  // 123 is '{': where a header of safetensors begins, GGUF counts tensors.
  GgufBytes many;
  for (int i = 0; i < 123; ++i) many.next(std::to_string(i), {1}, 24, 1);
  CHECK(format_of("many", many.bytes()) == "GGUF");
  ModelBytes checkpoint;
  for (const unsigned number : {20240326U, 3U, 1U, 1U, 1U, 1U, 1U, 1U}) checkpoint.u32(number);
  // 2 C for the embeddings, 12 C^2 + 13 C for the layer, 2 C, with C = 1.
  checkpoint.zeros(1024 - checkpoint.size() + 4 * 29);
  CHECK(format_of("model.onnx", checkpoint.text()) == "llm.c");

  std::ofstream(folder.path() / "s.safetensors", std::ios::binary) << safetensors;
  CHECK(format_of("i.json", R"({"weight_map":{"w":"s.safetensors"}})") == "safetensors");
}

TEST_CASE("A safetensors header whose length looks like another format is read", "[tensor_file]") {
  // 0x280 and 0x480 begin as pickles do, 0x120108 as ONNX.
  for (const std::size_t length : {0x280U, 0x480U, 0x120308U}) {
    const TemporaryFile file(safetensors_bytes(padded_header(length), 1));
    CHECK(read_tensor_file(file.path()).tensors.size() == 1);
  }
}

TEST_CASE("Formats that are not read are named", "[tensor_file]") {
  const std::string expected =
      ": expected safetensors, a model.safetensors.index.json, GGUF or a checkpoint of llm.c "
      "(hint: ";
  const std::string save = "save the tensors as safetensors";
  const std::vector<std::pair<std::string, std::pair<std::string, std::string>>> formats{
      {std::string("PK\x03\x04\x14\x00\x00\x00{", 9), {"a zip archive, as torch.save()", save}},
      {std::string("\x80\x02\x8a\nl\xfc\x9c"
                   "F\xf9",
                   9),
       {"a pickle, as torch.save()", save}},
      {"\x80\x04\x95", {"a pickle", save}},
      {std::string("\x93NUMPY\x01\x00v", 9), {"an array of NumPy", save}},
      {"\x89HDF\r\n\x1a\n", {"HDF5", save}},
      {"\x08\x07\x12\x07pytorch", {"ONNX", save}},
      {"version https://git-lfs.github.com/spec/v1\n", {"a pointer of Git LFS", "git lfs pull"}},
      {ModelBytes().u32(20240527).zeros(2000).text(), {"an optimizer state of llm.c", "model_"}},
      {"tjgg\x03", {"a model older than GGUF", "convert it"}},
      {"", {"empty", save}},
      {"{\"weight_map\":{}}", {"another format", save}},
      {"something else", {"another format", save}}};
  for (const auto& [bytes, said] : formats) {
    CHECK_THAT(file_refusal(bytes), ContainsSubstring("FILE (" + said.first) &&
                                        ContainsSubstring(expected) &&
                                        ContainsSubstring(said.second));
  }
}

TEST_CASE("Every beginning of a model's file is refused by name", "[tensor_file]") {
  for (const std::string& good :
       {safetensors_bytes(padded_header(60), 1), GgufBytes().next("w", {1}, 24, 1).bytes()}) {
    REQUIRE(file_refusal(good) == "no error");
    scalewise::test::for_each_cut(good, [](const std::string& bad) {
      CHECK_THAT(file_refusal(bad), ContainsSubstring("FILE"));
    });
  }
}

TEST_CASE("A model's file is a regular file", "[tensor_file]") {
  const scalewise::test::TemporaryFolder folder;
  const auto message = [](const std::string& path) {
    return scalewise::test::error_message([&] { read_tensor_file(path); });
  };
  CHECK_THAT(message(folder.path().string()), ContainsSubstring("it is a directory"));
  CHECK_THAT(message((folder.path() / "none").string()), ContainsSubstring("no such file"));
  CHECK(message("") == "file name (empty): expected a file");
  if (std::filesystem::exists("/dev/zero")) {
    CHECK(message("/dev/zero") == "/dev/zero (a pipe or a device): expected a regular file");
  }
}
