// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/safetensors.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/damage.hpp"
#include "support/model_bytes.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_file.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using Sizes = std::vector<std::int64_t>;
using scalewise::io::read_safetensors;
using scalewise::test::ModelBytes;
using scalewise::test::safetensors_bytes;
using scalewise::test::TemporaryFile;

scalewise::TensorFile safetensors_of(const std::string& header, std::size_t data) {
  return read_safetensors(TemporaryFile(safetensors_bytes(header, data)).path());
}

std::string safetensors_refusal(const std::string& header, std::size_t data) {
  return scalewise::test::refusal_of(safetensors_bytes(header, data), read_safetensors);
}

/// One tensor `w`, by its three values.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

}  // namespace

TEST_CASE("A safetensors file is read as its own library writes it", "[safetensors]") {
  // The bytes of test_serialization in safetensors/src/tensor.rs, without the data.
  const std::vector<int> written{
      64,  0,   0,   0,   0,   0,   0,   0,   123, 34, 97, 116, 116, 110, 46,  48, 34,  58,
      123, 34,  100, 116, 121, 112, 101, 34,  58,  34, 70, 51,  50,  34,  44,  34, 115, 104,
      97,  112, 101, 34,  58,  91,  49,  44,  50,  44, 51, 93,  44,  34,  100, 97, 116, 97,
      95,  111, 102, 102, 115, 101, 116, 115, 34,  58, 91, 48,  44,  50,  52,  93, 125, 125};
  ModelBytes bytes;
  for (const int byte : written) bytes.number(static_cast<std::uint64_t>(byte), 1);
  const TemporaryFile file(bytes.zeros(24).text());
  const scalewise::TensorFile read = read_safetensors(file.path());
  CHECK(read.format == "safetensors");
  CHECK(read.files == std::vector<std::string>{file.path()});
  CHECK_FALSE(read.shape.has_value());
  CHECK(read.notes.empty());
  REQUIRE(read.tensors.size() == 1);
  CHECK(read.tensors[0].name == "attn.0");
  CHECK(read.tensors[0].shape == Sizes{1, 2, 3});
  CHECK(read.tensors[0].type == "F32");
  CHECK(read.tensors[0].offset == 72);
  CHECK(read.tensors[0].bytes == 24);
  CHECK(read.tensors[0].file == 0);

  // Its test_empty.
  CHECK(safetensors_of("{}      ", 0).tensors.empty());
  CHECK(safetensors_of(R"({"__metadata__":{"framework":"pt"}}     )", 0).tensors.empty());
}

TEST_CASE("Tensors of safetensors keep the order of the header, not that of the data",
          "[safetensors]") {
  const std::string header = R"({ "b" : {"shape":[2,3], "data_offsets":[1,13], "dtype":"F16"},)"
                             R"("__metadata__": {"format":"pt", "a\"b":""},)"
                             R"("a.ü":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)"
                             R"("empty":{"dtype":"F64","shape":[5,0],"data_offsets":[13,13]}})";
  const auto tensors = safetensors_of(header, 13).tensors;
  const auto begin = static_cast<std::int64_t>(8 + header.size());
  REQUIRE(tensors.size() == 3);
  CHECK(tensors[0].name == "b");
  CHECK(tensors[0].shape == Sizes{2, 3});
  CHECK(tensors[0].offset == begin + 1);
  CHECK(tensors[0].bytes == 12);
  CHECK(tensors[1].name == "a.\xC3\xBC");
  CHECK(tensors[1].shape.empty());
  CHECK(tensors[1].offset == begin);
  CHECK(tensors[1].bytes == 1);
  CHECK(tensors[2].shape == Sizes{5, 0});
  CHECK(tensors[2].offset == begin + 13);
  CHECK(tensors[2].bytes == 0);
}

TEST_CASE("Every type of safetensors has its size", "[safetensors]") {
  // Bytes of eight entries, by the names of the types.
  const std::vector<std::pair<std::string, std::size_t>> types{
      {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
      {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
      {"I64", 64},        {"U64", 64}};
  for (const auto& [type, bytes] : types) {
    INFO(type);
    const std::string offsets = "[0," + std::to_string(bytes) + "]";
    const auto tensors = safetensors_of(one('"' + type + '"', "[2,4]", offsets), bytes).tensors;
    REQUIRE(tensors.size() == 1);
    CHECK(tensors[0].type == type);
    CHECK(tensors[0].bytes == static_cast<std::int64_t>(bytes));
  }
  CHECK(types.size() == scalewise::detail::safetensors_types.size());
  CHECK(safetensors_refusal(one("\"F4\"", "[3]", "[0,2]"), 2) ==
        "FILE: w: shape = [3]: expected a whole number of bytes");
}

TEST_CASE("Offsets of safetensors have 64 bits", "[safetensors]") {
  const std::string header =
      R"({"big":{"dtype":"U8","shape":[5,1073741824],"data_offsets":[0,5368709120]},)"
      R"("last":{"dtype":"U8","shape":[2],"data_offsets":[5368709120,5368709122]}})";
  const TemporaryFile file(safetensors_bytes(header, 0));
  const auto begin = static_cast<std::int64_t>(8 + header.size());
  std::filesystem::resize_file(file.path(), static_cast<std::uintmax_t>(begin) + 5368709122U);
  const auto tensors = read_safetensors(file.path()).tensors;
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].bytes == 5368709120);
  CHECK(tensors[1].offset == begin + 5368709120);
}

TEST_CASE("A safetensors file that is cut short is refused by name", "[safetensors]") {
  const std::string good = safetensors_bytes(
      R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"__metadata__":{"k":"v"}})", 4);
  scalewise::test::for_each_cut(good, [](const std::string& bad) {
    CHECK_THAT(scalewise::test::refusal_of(bad, read_safetensors),
               ContainsSubstring("FILE: header length ") ||
                   ContainsSubstring("FILE: a: data_offsets = [0, 4]: expected at most the "));
  });
}

TEST_CASE("No flipped bit of a safetensors header does more than change it", "[safetensors]") {
  const std::string header =
      R"({"ab":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"__metadata__":{"k":"v"}})";
  const std::string good = safetensors_bytes(header, 4);
  scalewise::test::for_each_flip(good.substr(0, 8 + header.size()), [](const std::string& bad) {
    const std::string message =
        scalewise::test::refusal_of(bad + std::string(4, '\0'), read_safetensors);
    if (message != "no error") CHECK_THAT(message, ContainsSubstring("FILE: "));
  });
}

TEST_CASE("The length of a safetensors header is checked", "[safetensors]") {
  const auto with_length = [](std::uint64_t length) {
    return scalewise::test::refusal_of(ModelBytes().u64(length).raw("{}").text(), read_safetensors);
  };
  CHECK(with_length(2) == "no error");
  CHECK(with_length(0) == "FILE: header (empty): expected a JSON object");
  CHECK(with_length(1) ==
        "FILE: JSON = {: expected valid JSON (hint: byte 9 of the file cannot stand there)");
  CHECK(with_length(3) == "FILE: header length = 3: expected at most the 2 bytes after it");
  CHECK(with_length(~std::uint64_t{0}) ==
        "FILE: header length = 18446744073709551615: expected at most the 2 bytes after it");

  const TemporaryFile large(ModelBytes().u64(16777217).raw("{}").text());
  std::filesystem::resize_file(large.path(), 1U << 26U);
  CHECK_THAT(scalewise::test::error_message([&] { read_safetensors(large.path()); }),
             ContainsSubstring("header length = 16777217: expected at most 16777216"));
}

TEST_CASE("A safetensors header is one JSON object and nothing after it", "[safetensors]") {
  CHECK(safetensors_refusal(" {}", 0) == "FILE: header (something else): expected a JSON object");
  CHECK(safetensors_refusal("[]", 0) == "FILE: header (something else): expected a JSON object");
  CHECK_THAT(safetensors_refusal("{}{}", 0),
             ContainsSubstring("FILE: JSON = {}{: expected valid JSON"));
  CHECK(safetensors_refusal(std::string("{}\0{}", 5), 0) ==
        "FILE: JSON (a control character): expected valid JSON");
  CHECK_THAT(safetensors_refusal("{\"\xff\":{}}", 0), ContainsSubstring("FILE: JSON = "));
  CHECK_THAT(safetensors_refusal(R"({"a":{},})", 0), ContainsSubstring("FILE: a: dtype (missing)"));
  CHECK(safetensors_refusal("{}   \n\t\r ", 0) == "no error");
}

TEST_CASE("Keys and values of a safetensors header have their form", "[safetensors]") {
  const auto expect = [](const std::string& header, const std::string& message) {
    CHECK(safetensors_refusal(header, 4) == "FILE: " + message);
  };
  expect(R"({"w":3})", "w = 3: expected an object");
  expect(R"({"w":[]})", "w (an array): expected an object");
  expect(R"({"w":{}})", "w: dtype (missing): expected a value");
  expect(R"({"w":{"dtype":"F32"}})", "w: shape (missing): expected a value");
  expect(R"({"w":{"dtype":"F32","shape":[1]}})", "w: data_offsets (missing): expected a value");
  expect(R"({"w":{"dtype":"F32","dtype":"F32"}})",
         "w: dtype (given twice): expected one value for each key");
  expect(R"({"w":{"strides":[1]}})", "w: strides (given): expected dtype, shape and data_offsets");
  expect(one("4", "[1]", "[0,4]"), "w: dtype = 4: expected a string");
  expect(one("null", "[1]", "[0,4]"), "w: dtype = null: expected a string");
  expect(one("{}", "[1]", "[0,4]"), "w: dtype (an object): expected a string");
  expect(one("\"F33\"", "[1]", "[0,4]"), "w: dtype = F33: expected a type of safetensors");

  const std::string sizes = ": expected an array of at most 8 whole numbers from 0 to 2^63 - 1";
  expect(one("\"F32\"", "1", "[0,4]"), "w: shape = 1" + sizes);
  expect(one("\"F32\"", "[-1]", "[0,4]"), "w: shape = -1" + sizes);
  expect(one("\"F32\"", "[-0]", "[0,4]"), "w: shape = -0" + sizes);
  expect(one("\"F32\"", "[1.0]", "[0,4]"), "w: shape = 1.0" + sizes);
  expect(one("\"F32\"", "[true]", "[0,4]"), "w: shape = true" + sizes);
  expect(one("\"F32\"", "[\"1\"]", "[0,4]"), "w: shape = \"1\"" + sizes);
  expect(one("\"F32\"", "[[1]]", "[0,4]"), "w: shape (an array)" + sizes);
  expect(one("\"F32\"", "[9223372036854775808]", "[0,4]"),
         "w: shape = 9223372036854775808" + sizes);
  expect(one("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), "w: shape (more)" + sizes);
  CHECK(safetensors_refusal(one("\"F32\"", "[1,1,1,1,1,1,1,1]", "[0,4]"), 4) == "no error");

  const std::string two = ": expected two whole numbers from 0 to 2^63 - 1";
  expect(one("\"F32\"", "[1]", "[0]"), "w: data_offsets (1 numbers)" + two);
  expect(one("\"F32\"", "[1]", "[0,4,4]"), "w: data_offsets (more)" + two);
  expect(one("\"F32\"", "[1]", "[0,-4]"), "w: data_offsets = -4" + two);
  expect(one("\"F32\"", "[1]", "{}"), "w: data_offsets (an object)" + two);
}

TEST_CASE("Metadata of safetensors are strings", "[safetensors]") {
  const auto with = [](const std::string& value) {
    return safetensors_refusal(R"({"__metadata__":)" + value + "}", 0);
  };
  CHECK(with(R"({"a":"b"})") == "no error");
  CHECK(with(R"({"a":1})") == "FILE: __metadata__ = 1: expected strings only");
  CHECK(with(R"({"a":{}})") == "FILE: __metadata__ (an object): expected strings only");
  CHECK(with(R"({"a":null})") == "FILE: __metadata__ = null: expected strings only");
  CHECK(with("\"a\"") == "FILE: __metadata__ = \"a\": expected an object");
  CHECK(with(R"({"a":"b","a":"b"})") ==
        "FILE: __metadata__: a (given twice): expected one value for each key");
  CHECK(with(R"({},"__metadata__":{})") ==
        "FILE: __metadata__ (given twice): expected one value for each key");
}

TEST_CASE("Tensors of safetensors fill the data without a gap or an overlap", "[safetensors]") {
  const auto two = [](const std::string& a, const std::string& b, std::size_t data) {
    return safetensors_refusal(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                                   R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                               data);
  };
  CHECK(two("[0,4]", "[4,8]", 8) == "no error");
  CHECK(two("[4,8]", "[0,4]", 8) == "no error");
  CHECK(two("[0,4]", "[3,7]", 7) ==
        "FILE: b: data_offsets = [3, 7]: expected a begin of 4 (hint: it overlaps the tensor "
        "before it)");
  CHECK(two("[0,4]", "[0,4]", 4) ==
        "FILE: b: data_offsets = [0, 4]: expected a begin of 4 (hint: it overlaps the tensor "
        "before it)");
  CHECK(two("[0,4]", "[5,9]", 9) ==
        "FILE: b: data_offsets = [5, 9]: expected a begin of 4 (hint: no tensor has the bytes "
        "before it)");
  CHECK(two("[1,5]", "[5,9]", 9) ==
        "FILE: a: data_offsets = [1, 5]: expected a begin of 0 (hint: no tensor has the bytes "
        "before it)");
  CHECK(two("[0,4]", "[4,8]", 7) ==
        "FILE: b: data_offsets = [4, 8]: expected at most the 7 bytes after the header");
  CHECK_THAT(two("[0,4]", "[4,8]", 9),
             ContainsSubstring("(hint: no tensor has the bytes at the end)"));
  CHECK(two("[0,3]", "[3,7]", 7) ==
        "FILE: a: data_offsets = [0, 3]: expected the 4 bytes of U8 [4]");
  CHECK(two("[4,0]", "[4,8]", 8) ==
        "FILE: a: data_offsets = [4, 0]: expected the 4 bytes of U8 [4]");
}

TEST_CASE("Sizes of safetensors that no file can have are refused", "[safetensors]") {
  CHECK(safetensors_refusal(one("\"U8\"", "[4294967296,4294967296]", "[0,0]"), 0) ==
        "FILE: w: shape = [4294967296, 4294967296]: expected fewer than 2^63 bits");
  // 2^63 entries times 8 bits.
  CHECK(safetensors_refusal(one("\"F64\"", "[9223372036854775807]", "[0,0]"), 0) ==
        "FILE: w: shape = [9223372036854775807]: expected fewer than 2^63 bits");
  CHECK(safetensors_refusal(one("\"U8\"", "[9223372036854775807,0]", "[0,0]"), 0) == "no error");
}

TEST_CASE("A name of safetensors is given once", "[safetensors]") {
  CHECK(safetensors_refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                            R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                            R"("a":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                            3) == "FILE: a (given twice): expected one tensor of each name");
}

TEST_CASE("Hostile safetensors headers take little memory", "[safetensors]") {
  CHECK(safetensors_refusal(R"({"__metadata__":{"a":")" + std::string(1100000, 'x') + "\"}}", 0) ==
        "FILE: JSON (a longer string): expected strings of at most 1 MiB");
  CHECK(safetensors_refusal(R"({"__metadata__":{"a":")" + std::string(1000000, 'x') + "\"}}", 0) ==
        "no error");
  CHECK(safetensors_refusal("{" + std::string(1100000, ' ') + "}", 0) == "no error");
  CHECK_THAT(safetensors_refusal(R"({"a":)" + std::string(70000, '1') + "}", 0),
             ContainsSubstring("(a longer run)"));
  std::string keys = R"({"__metadata__":{)";
  for (int i = 0; i < 65537; ++i) keys += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"\"";
  CHECK(safetensors_refusal(keys + "}}", 0) ==
        "FILE: __metadata__ (larger): expected at most 65536 keys");
  if (test::sanitized) return;
  std::string many = "{";
  for (int i = 0; i < 250000; ++i) {
    many += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
            R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  CHECK_THAT(safetensors_refusal(many + "}", 0), ContainsSubstring("FILE: tensors (more than ") &&
                                                     ContainsSubstring("at most 32 MiB of memory"));
}
