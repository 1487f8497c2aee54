// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/gguf.hpp"

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
using scalewise::io::read_gguf;
using scalewise::test::GgufBytes;
using scalewise::test::ModelBytes;
using scalewise::test::TemporaryFile;

scalewise::TensorFile gguf_of(const GgufBytes& gguf) {
  return read_gguf(TemporaryFile(gguf.bytes()).path());
}

std::string gguf_refusal(const std::string& bytes) {
  return scalewise::test::refusal_of(bytes, read_gguf);
}

std::string gguf_refusal(const GgufBytes& gguf) { return gguf_refusal(gguf.bytes()); }

/// The head of a file with these counts, and what comes after it.
std::string gguf_head(std::uint32_t version, std::uint64_t tensors, std::uint64_t values) {
  return ModelBytes().raw("GGUF").u32(version).u64(tensors).u64(values).text();
}

constexpr std::uint32_t f32 = 0;
constexpr std::uint32_t i8 = 24;

}  // namespace

TEST_CASE("Tensors of GGUF are in PyTorch's order of dimensions", "[gguf]") {
  GgufBytes gguf;
  gguf.next("a.weight", {3, 5}, f32, 60)
      .next("b", {7}, i8, 7)
      .next("c", {2, 3, 4, 5}, i8, 120)
      .next("scalar", {}, f32, 4)
      .next("empty", {0, 4}, f32, 0);
  for (const std::uint32_t version : {2U, 3U}) {
    gguf.version = version;
    const TemporaryFile file(gguf.bytes());
    const auto begin = static_cast<std::int64_t>(gguf.begin());
    const scalewise::TensorFile read = read_gguf(file.path());
    CHECK(read.format == "GGUF");
    CHECK(read.files == std::vector<std::string>{file.path()});
    REQUIRE(read.tensors.size() == 5);
    CHECK(read.tensors[0].name == "a.weight");
    CHECK(read.tensors[0].shape == Sizes{5, 3});
    CHECK(read.tensors[0].type == "F32");
    CHECK(read.tensors[0].offset == begin);
    CHECK(read.tensors[0].bytes == 60);
    CHECK(read.tensors[1].shape == Sizes{7});
    CHECK(read.tensors[1].offset == begin + 64);
    CHECK(read.tensors[2].shape == Sizes{5, 4, 3, 2});
    CHECK(read.tensors[2].offset == begin + 96);
    CHECK(read.tensors[3].shape.empty());
    CHECK(read.tensors[3].bytes == 4);
    CHECK(read.tensors[4].shape == Sizes{4, 0});
    CHECK(read.tensors[4].bytes == 0);
  }
}

TEST_CASE("Every type of ggml has its number, its blocks and their size", "[gguf]") {
  // Number, name, entries of a block, bytes of a block: what ggml_blck_size() and ggml_type_size() of
  // ggml say for each type.
  struct Known {
    std::uint32_t id;
    const char* name;
    std::uint64_t block;
    std::size_t bytes;
  };
  const std::vector<Known> types{
      {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
      {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
      {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
      {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
      {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
      {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
      {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
      {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
      {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
      {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
      {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18}};
  GgufBytes all;
  for (const Known& type : types) {
    all.next(type.name, {2 * type.block, 3}, type.id, 6 * type.bytes);
  }
  const auto tensors = gguf_of(all).tensors;
  REQUIRE(tensors.size() == types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    CHECK(tensors[i].type == types[i].name);
    CHECK(tensors[i].bytes == static_cast<std::int64_t>(6 * types[i].bytes));
  }
  CHECK(types.size() == scalewise::io::ggml_types.size());
  for (const std::uint32_t none : {4U, 5U, 31U, 38U, 43U, 1000000U}) {
    CHECK(gguf_refusal(GgufBytes().tensor("blk.0.attn_q.weight", {32}, none, 0)) ==
          "FILE: blk.0.attn_q.weight: type = " + std::to_string(none) +
              ": expected the number of a type of ggml");
  }
  CHECK(gguf_refusal(GgufBytes().next("w", {48, 2}, 2, 54)) ==
        "FILE: w: dims = [2, 48]: expected rows of whole blocks of 32, as Q4_0 has them");
}

TEST_CASE("All types of GGUF's metadata are read past", "[gguf]") {
  GgufBytes gguf;
  for (std::uint32_t type = 0; type < 13; ++type) {
    // u8, i8, u16, i16, u32, i32, f32, bool, string, array, u64, i64, f64
    const int widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    const std::string key = "a." + std::to_string(type);
    ModelBytes values;
    ModelBytes text;
    text.gguf_text("some text").gguf_text("").gguf_text(std::string(100, 'x'));
    if (type == 8) {
      gguf.value(key, type, ModelBytes().gguf_text(std::string(1000, 'y')));
      gguf.value(key + "s", 9, ModelBytes().u32(8).u64(3).raw(text.text()));
    } else if (type == 9) {
      // [[1, 2], []], each of bytes.
      gguf.value(key, 9,
                 ModelBytes().u32(9).u64(2).u32(0).u64(2).number(1, 1).number(2, 1).u32(0).u64(0));
    } else {
      gguf.value(key, type, ModelBytes().number(1, widths[type]));
      const auto width = static_cast<std::size_t>(widths[type]);
      gguf.value(key + "s", 9, ModelBytes().u32(type).u64(5).zeros(5 * width));
    }
  }
  gguf.next("w", {4}, f32, 16);
  const auto tensors = gguf_of(gguf).tensors;
  REQUIRE(tensors.size() == 1);
  CHECK(tensors[0].offset == static_cast<std::int64_t>(gguf.begin()));
}

TEST_CASE("GGUF's alignment is that of its metadata", "[gguf]") {
  for (const std::size_t alignment : {8U, 24U, 64U, 4096U}) {
    GgufBytes gguf;
    gguf.alignment = alignment;
    gguf.u32("general.alignment", alignment).next("a", {3}, i8, 3).next("b", {3}, i8, 3);
    const auto tensors = gguf_of(gguf).tensors;
    REQUIRE(tensors.size() == 2);
    CHECK(tensors[0].offset == static_cast<std::int64_t>(gguf.begin()));
    CHECK(tensors[1].offset == tensors[0].offset + static_cast<std::int64_t>(alignment));
  }
  for (const std::uint64_t bad : {0U, 4U, 33U, 1U << 31U}) {
    CHECK(gguf_refusal(GgufBytes().u32("general.alignment", bad)) ==
          "FILE: general.alignment = " + std::to_string(bad) +
              ": expected a multiple of 8, at most 2^30");
  }
  CHECK(gguf_refusal(GgufBytes().text("general.alignment", "32")) ==
        "FILE: general.alignment = \"32\": expected a multiple of 8, at most 2^30");
}

TEST_CASE("Offsets of GGUF have 64 bits", "[gguf]") {
  GgufBytes gguf;
  gguf.tensor("big", {1073741824, 5}, i8, 0).tensor("last", {2}, i8, 5368709120);
  const TemporaryFile file(gguf.bytes());
  std::filesystem::resize_file(file.path(), gguf.begin() + 5368709122U);
  const auto tensors = read_gguf(file.path()).tensors;
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].bytes == 5368709120);
  CHECK(tensors[1].offset == static_cast<std::int64_t>(gguf.begin()) + 5368709120);
}

TEST_CASE("A GGUF file that is cut short is refused by name", "[gguf]") {
  GgufBytes gguf;
  gguf.u32("a", 1).text("general.architecture", "mamba");
  gguf.value("c", 9, ModelBytes().u32(8).u64(1).gguf_text("tok")).next("w", {2, 2}, f32, 16);
  REQUIRE(gguf_refusal(gguf) == "no error");
  scalewise::test::for_each_cut(gguf.bytes(), [](const std::string& bad) {
    CHECK_THAT(gguf_refusal(bad), ContainsSubstring("FILE: "));
  });
  scalewise::test::for_each_flip(gguf.bytes().substr(0, gguf.begin()), [](const std::string& bad) {
    const std::string message = gguf_refusal(bad + std::string(16, '\0'));
    if (message != "no error") CHECK_THAT(message, ContainsSubstring("FILE: "));
  });
  CHECK(gguf_refusal("GGU") == "FILE: magic (cut short): expected 4 bytes, where 3 are left");
  CHECK(gguf_refusal("GGUF") == "FILE: version (cut short): expected 4 bytes, where 0 are left");
}

TEST_CASE("GGUF's magic and version are checked", "[gguf]") {
  CHECK(gguf_refusal("GGUE" + gguf_head(3, 0, 0).substr(4)) ==
        "FILE: magic (another): expected GGUF");
  CHECK(gguf_refusal(gguf_head(3, 0, 0)) == "no error");
  CHECK(gguf_refusal(gguf_head(0, 0, 0)) == "FILE: version = 0: expected 2 or 3");
  CHECK(gguf_refusal(gguf_head(4, 0, 0)) == "FILE: version = 4: expected 2 or 3");
  CHECK_THAT(gguf_refusal(gguf_head(1, 0, 0)),
             ContainsSubstring("FILE: version = 1: expected 2 or 3 (hint: "
                               "convert the model again"));
  CHECK_THAT(gguf_refusal(gguf_head(0x03000000, 0, 0)),
             ContainsSubstring("FILE: version = 50331648: expected 2 or 3 (hint: it is a file for "
                               "machines with the highest byte first"));
}

TEST_CASE("Counts and lengths of GGUF are those of the file", "[gguf]") {
  const std::string zeros(4096, '\0');
  const std::string most_tensors = ": expected at most 262144 that fit in the file";
  CHECK(gguf_refusal(gguf_head(3, 171, 0) + zeros) == "FILE: n_tensors = 171" + most_tensors);
  CHECK(gguf_refusal(gguf_head(3, ~std::uint64_t{0}, 0) + zeros) ==
        "FILE: n_tensors = 18446744073709551615" + most_tensors);
  const std::string most_values = ": expected at most 16384 that fit in the file";
  CHECK(gguf_refusal(gguf_head(3, 0, 293) + zeros) == "FILE: n_kv = 293" + most_values);
  CHECK(gguf_refusal(gguf_head(3, 0, ~std::uint64_t{0}) + zeros) ==
        "FILE: n_kv = 18446744073709551615" + most_values);
  CHECK(gguf_refusal(gguf_head(3, 0, 16385) + std::string(300000, '\0')) ==
        "FILE: n_kv = 16385" + most_values);

  CHECK(gguf_refusal(gguf_head(3, 0, 1) + zeros) ==
        "FILE: length of a key = 0: expected 1 to 65535, and at most 1048576 bytes in all");
  CHECK_THAT(gguf_refusal(gguf_head(3, 0, 1) + ModelBytes().u64(65536).zeros(70000).text()),
             ContainsSubstring("FILE: length of a key = 65536: expected 1 to 65535"));
  CHECK(
      gguf_refusal(gguf_head(3, 0, 1) + ModelBytes().u64(5).raw("abcde").u32(4).zeros(2).text()) ==
      "FILE: abcde (cut short): expected 4 bytes, where 2 are left");
  CHECK(gguf_refusal(GgufBytes().value("k", 13, ModelBytes().zeros(64))) ==
        "FILE: k: type = 13: expected a type from 0 to 12");
  CHECK(gguf_refusal(GgufBytes().value("k", 9, ModelBytes().u32(77).u64(1).zeros(64))) ==
        "FILE: k: type = 77: expected a type from 0 to 12");
  for (const std::uint32_t type : {0U, 6U, 8U, 9U, 12U}) {
    CHECK_THAT(
        gguf_refusal(
            GgufBytes().value("k", 9, ModelBytes().u32(type).u64(std::uint64_t{1} << 61U))),
        ContainsSubstring("FILE: k (an array of 2305843009213693952): expected as many as the "
                          "file can hold"));
  }
  CHECK_THAT(gguf_refusal(GgufBytes().value("k", 8, ModelBytes().u64(~std::uint64_t{0}))),
             ContainsSubstring("FILE: k (cut short): expected 18446744073709551615 bytes"));
  CHECK(gguf_refusal(GgufBytes().value("k", 7, ModelBytes().number(2, 1))) ==
        "FILE: k = 2: expected 0 or 1, a boolean");
  ModelBytes deep;
  for (int depth = 0; depth < 5; ++depth) deep.u32(9).u64(1);
  CHECK(gguf_refusal(GgufBytes().value("k", 9, deep.u32(0).u64(0))) ==
        "FILE: k (nested deeper): expected at most 4 arrays in each other");
  CHECK(gguf_refusal(GgufBytes().u32("k", 1).u32("k", 1)) ==
        "FILE: k (given twice): expected one value for each key");

  // Files that seem large: what they say is in them would take long to read.
  GgufBytes endless;
  endless.value("k", 9, ModelBytes().u32(8).u64(std::uint64_t{1} << 30U));
  const TemporaryFile file(endless.bytes());
  std::filesystem::resize_file(file.path(), std::uint64_t{1} << 34U);
  CHECK_THAT(scalewise::test::error_message([&] { read_gguf(file.path()); }),
             ContainsSubstring("metadata (longer): expected at most 67108864 bytes"));
}

TEST_CASE("Descriptions of tensors in GGUF are checked", "[gguf]") {
  const std::string name(64, 'n');
  CHECK(gguf_of(GgufBytes().next(name, {1}, i8, 1)).tensors.at(0).name == name);
  CHECK(gguf_refusal(GgufBytes().next(name + "n", {1}, i8, 1)) ==
        "FILE: length of a tensor's name = 65: expected at most 64");
  CHECK(gguf_refusal(GgufBytes().next("w", {1, 1, 1, 1, 1}, i8, 1)) ==
        "FILE: w: n_dims = 5: expected at most 4");
  CHECK(gguf_refusal(GgufBytes().next("w", {std::uint64_t{1} << 63U}, i8, 1)) ==
        "FILE: w: dims = 9223372036854775808: expected sizes below 2^63");
  CHECK(gguf_refusal(
            GgufBytes().next("w", {std::uint64_t{1} << 32U, std::uint64_t{1} << 31U}, i8, 1)) ==
        "FILE: w: dims = [2147483648, 4294967296]: expected fewer than 2^63 bytes");
  CHECK(gguf_refusal(GgufBytes().next("w", {(std::uint64_t{1} << 63U) - 1}, f32, 1)) ==
        "FILE: w: dims = [9223372036854775807]: expected fewer than 2^63 bytes");
  CHECK(
      gguf_refusal(GgufBytes().next("w", {1}, i8, 1).next("v", {1}, i8, 1).next("w", {1}, i8, 1)) ==
      "FILE: w (given twice): expected one tensor of each name");
}

TEST_CASE("Tensors of GGUF follow each other", "[gguf]") {
  const auto two = [](std::uint64_t a, std::uint64_t b, std::size_t data) {
    GgufBytes gguf;
    gguf.tensor("a", {8}, f32, a).tensor("b", {4}, f32, b);
    gguf.data = data;
    return gguf;
  };
  CHECK(gguf_refusal(two(0, 32, 48)) == "no error");
  CHECK(gguf_refusal(two(32, 0, 64)) == "no error");  // in another order than their descriptions
  CHECK(gguf_refusal(two(0, 16, 48)) ==
        "FILE: b: offset = 16: expected 32 (hint: it overlaps the tensor before it)");
  CHECK(gguf_refusal(two(0, 0, 48)) ==
        "FILE: a: offset = 0: expected 32 (hint: it overlaps the tensor before it)");
  CHECK(gguf_refusal(two(0, 64, 80)) ==
        "FILE: b: offset = 64: expected 32 (hint: no tensor has the bytes before it)");
  CHECK(gguf_refusal(two(32, 64, 80)) ==
        "FILE: a: offset = 32: expected 0 (hint: no tensor has the bytes before it)");
  CHECK(gguf_refusal(two(0, 40, 80)) ==
        "FILE: b: offset = 40: expected 32 (hint: no tensor has the bytes before it)");
  CHECK(gguf_refusal(two(0, 32, 47)) ==
        "FILE: b: offset = 32: expected 16 bytes from there on, where the data has 47");
  // A tensor without a byte, and data that would begin beyond the end of the file.
  GgufBytes empty;
  empty.alignment = 8;
  empty.u32("general.alignment", 4096).next("a", {0}, i8, 0);
  CHECK_THAT(gguf_refusal(empty), Catch::Matchers::StartsWith("FILE: tensor data = at byte 4096: "
                                                              "expected a place within the file"));
  CHECK(gguf_refusal(two(0, ~std::uint64_t{0}, 48)) ==
        "FILE: b: offset = 18446744073709551615: expected a place in the file");
  CHECK(gguf_of(two(0, 32, 64)).notes.back().starts_with("no shape: "));
  // A 65th byte is not the last tensor's padding.
  CHECK(gguf_of(two(0, 32, 65)).notes.front() == "1 bytes after the last tensor belong to none");
}

TEST_CASE("One file of several is not a model in GGUF", "[gguf]") {
  const auto split = [](std::uint64_t count) {
    return gguf_refusal(GgufBytes().value("split.count", 2, ModelBytes().number(count, 2)));
  };
  CHECK(split(0) == "no error");
  CHECK(split(1) == "no error");
  CHECK(split(3) ==
        "FILE: split.count = 3: expected a model in one file (hint: merge the files with "
        "llama-gguf-split --merge)");
}

TEST_CASE("Hostile GGUF headers take little memory", "[gguf]") {
  GgufBytes keys;
  for (int i = 0; i < 17; ++i) keys.u32(std::to_string(100 + i) + std::string(65000, 'k'), 1);
  CHECK_THAT(gguf_refusal(keys),
             ContainsSubstring("FILE: length of a key = 65003: expected 1 to 65535, "
                               "and at most 1048576 bytes in all"));
  if (test::sanitized) return;
  // More than 32 MiB: 64 bytes of name, 32 of sizes, and what holds them.
  ModelBytes many;
  constexpr std::size_t count = 160000;
  many.raw(gguf_head(3, count, 0));
  for (std::size_t i = 0; i < count; ++i) {
    std::string name = std::to_string(i);
    name.resize(64, 'x');
    many.gguf_text(name).u32(4).u64(1).u64(1).u64(1).u64(1).u32(i8).u64(i * 32);
  }
  CHECK_THAT(gguf_refusal(many.text()), ContainsSubstring("FILE: tensors (more than ") &&
                                            ContainsSubstring("at most 32 MiB of memory"));
}
