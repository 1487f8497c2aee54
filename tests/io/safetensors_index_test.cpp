// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/safetensors_index.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/damage.hpp"
#include "support/error_message.hpp"
#include "support/model_bytes.hpp"
#include "support/temporary_folder.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using scalewise::io::read_safetensors_index;
using scalewise::test::safetensors_bytes;

/// A folder with an index and two files: `a` and `b`, each with two tensors of one byte.
class Shards {
 public:
  explicit Shards(const std::string& index) {
    write("model.safetensors.index.json", index);
    write("a.safetensors", safetensors_bytes(two("w.1", "w.0"), 2));
    write("b.safetensors", safetensors_bytes(two("w.2", "w.3"), 2));
  }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << content;
  }

  std::string path(const std::string& name = "model.safetensors.index.json") const {
    return (folder_.path() / name).string();
  }

  /// The message without the folder.
  std::string message() const {
    std::string text =
        scalewise::test::error_message([&] { static_cast<void>(read_safetensors_index(path())); });
    const std::string folder = folder_.path().string() + "/";
    const std::size_t at = text.find(folder);
    return at == std::string::npos ? text : text.erase(at, folder.size());
  }

  static std::string two(const std::string& first, const std::string& second) {
    return "{\"" + first + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},")" + second +
           R"(":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})";
  }

 private:
  scalewise::test::TemporaryFolder folder_;
};

std::string index_of(const std::string& map) {
  return R"({"metadata":{"total_size":4,"nested":[{"weight_map":{"x":3}}]},"weight_map":)" + map +
         "}";
}

const std::string good_map =
    R"({"w.0":"a.safetensors","w.2":"b.safetensors","w.1":"a.safetensors","w.3":"b.safetensors"})";

std::string refusal_of_map(const std::string& map) { return Shards(index_of(map)).message(); }

std::string refusal_of_index(const std::string& text) { return Shards(text).message(); }

}  // namespace

TEST_CASE("An index of safetensors leads to the tensors of all its files", "[safetensors]") {
  const Shards shards(index_of(good_map));
  const scalewise::TensorFile read = read_safetensors_index(shards.path());
  CHECK(read.format == "safetensors");
  CHECK(read.files ==
        std::vector<std::string>{shards.path("a.safetensors"), shards.path("b.safetensors")});
  REQUIRE(read.tensors.size() == 4);
  const std::vector<std::string> names{"w.1", "w.0", "w.2", "w.3"};
  const auto begin = static_cast<std::int64_t>(8 + Shards::two("w.1", "w.0").size());
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(read.tensors[i].name == names[i]);
    CHECK(read.tensors[i].file == i / 2);
    CHECK(read.tensors[i].offset == begin + static_cast<std::int64_t>(i % 2));
    CHECK(read.tensors[i].bytes == 1);
  }
}

TEST_CASE("An index of safetensors in the folder of the process is found", "[safetensors]") {
  const Shards shards(index_of(good_map));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(shards.path()).parent_path());
  const auto read = read_safetensors_index("model.safetensors.index.json");
  std::filesystem::current_path(before);
  CHECK(read.files == std::vector<std::string>{"a.safetensors", "b.safetensors"});
}

TEST_CASE("An index and its files say the same", "[safetensors]") {
  CHECK(refusal_of_map(good_map) == "no error");
  const std::string index = "model.safetensors.index.json: ";
  const std::string begin = R"({"w.0":"a.safetensors","w.1":"a.safetensors","w.2":)";
  CHECK(refusal_of_map(begin + R"("b.safetensors"})") ==
        index + "weight_map: w.3 (missing): expected its file, b.safetensors");
  CHECK(refusal_of_map(begin + R"("b.safetensors","w.3":"a.safetensors"})") ==
        index + "weight_map: w.3 = a.safetensors: expected b.safetensors");
  CHECK(refusal_of_map(begin + R"("b.safetensors","w.3":"b.safetensors","w.4":"a.safetensors"})") ==
        index + "weight_map: w.4 = a.safetensors: expected a file with this tensor");
  CHECK(refusal_of_map(begin + R"("b.safetensors","w.2":"b.safetensors"})") ==
        index + "weight_map: w.2 (given twice): expected one file for each tensor");
  CHECK_THAT(refusal_of_map(begin + R"("c.safetensors"})"),
             ContainsSubstring("c.safetensors (no such file): expected a file, as ") &&
                 ContainsSubstring("(hint: is the download complete?)"));

  const Shards twice(index_of(good_map));
  twice.write("b.safetensors", safetensors_bytes(Shards::two("w.2", "w.2"), 2));
  CHECK_THAT(twice.message(), ContainsSubstring("w.2 (given twice)") ||
                                  ContainsSubstring("w.3 = b.safetensors: expected a file with"));
  const Shards damaged(index_of(good_map));
  damaged.write("b.safetensors", safetensors_bytes(Shards::two("w.2", "w.3"), 1));
  CHECK(damaged.message() ==
        "b.safetensors: w.3: data_offsets = [1, 2]: expected at most the 1 bytes after the header");
}

TEST_CASE("An index names files of its own folder only", "[safetensors]") {
  for (const char* name : {"../a.safetensors", "/etc/passwd", "sub/a.safetensors", "..", ".", "",
                           "C:a.safetensors", "..\\\\a.safetensors", "a\\u0000b", "a\\nb"}) {
    INFO(name);
    CHECK_THAT(refusal_of_map(R"({"w.0":")" + std::string(name) + "\"}"),
               ContainsSubstring("model.safetensors.index.json: weight_map: w.0 = ") &&
                   ContainsSubstring("expected the name of a file in the same folder"));
  }
  CHECK_THAT(refusal_of_map(R"({"w.0":")" + std::string(256, 'a') + "\"}"),
             ContainsSubstring("expected the name of a file in the same folder"));
  std::string many = "{";
  for (int i = 0; i < 4097; ++i) {
    many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"" + std::to_string(i) + "\"";
  }
  CHECK(refusal_of_map(many + "}") ==
        "model.safetensors.index.json: weight_map (more files): expected at most 4096 files");
}

TEST_CASE("An index of safetensors has its form", "[safetensors]") {
  const std::string index = "model.safetensors.index.json: ";
  CHECK(refusal_of_index("{}") ==
        index +
            "weight_map (missing): expected an object (hint: a config.json is for --config and "
            "--describe of inspect)");
  CHECK(refusal_of_index(R"({"weight_map":[]})") ==
        index + "weight_map (an array): expected one object");
  CHECK(refusal_of_index(R"({"weight_map":3})") == index + "weight_map = 3: expected one object");
  CHECK(refusal_of_index(R"({"weight_map":"a"})") ==
        index + "weight_map = \"a\": expected one object");
  CHECK(refusal_of_index(R"({"weight_map":{},"weight_map":{}})") ==
        index + "weight_map (given twice): expected one object");
  CHECK(refusal_of_index("[]") == index + "index (an array): expected an object");
  CHECK(refusal_of_index("3") == index + "index = 3: expected an object");
  CHECK(refusal_of_map(R"({"w":3})") == index + "weight_map: w = 3: expected the name of a file");
  CHECK(refusal_of_map(R"({"w":["a"]})") ==
        index + "weight_map: w (an array): expected the name of a file");
  CHECK(refusal_of_map(R"({"w":{}})") ==
        index + "weight_map: w (an object): expected the name of a file");
  CHECK_THAT(refusal_of_index(""), ContainsSubstring(index + "JSON = "));
  scalewise::test::for_each_cut(index_of(good_map), [&](const std::string& bad) {
    CHECK_THAT(refusal_of_index(bad), ContainsSubstring(index + "JSON = "));
  });

  const Shards large("{}");
  std::filesystem::resize_file(large.path(), (1U << 25U) + 1);
  CHECK(large.message() == index + "size = 33554433: expected at most 33554432");
}

TEST_CASE("Of a tensor that two files have, the index says which one counts", "[safetensors]") {
  const std::string map = R"({"w.0":"a.safetensors","w.1":"b.safetensors","w.2":"b.safetensors"})";
  const Shards shards(index_of(map));
  shards.write("b.safetensors", safetensors_bytes(Shards::two("w.2", "w.1"), 2));
  const scalewise::TensorFile read = read_safetensors_index(shards.path());
  REQUIRE(read.tensors.size() == 3);
  for (const scalewise::StoredTensor& tensor : read.tensors) {
    CHECK(tensor.file == (tensor.name == "w.0" ? 0U : 1U));
  }
  REQUIRE(read.notes.size() == 1);
  CHECK_THAT(read.notes.front(), ContainsSubstring("1 tensors that two files have"));

  shards.write("b.safetensors",
               safetensors_bytes(R"({"w.2":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                 R"("w.1":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                                 R"("w.3":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                                 3));
  CHECK_THAT(shards.message(), ContainsSubstring("weight_map: w.3 (missing)"));
}
