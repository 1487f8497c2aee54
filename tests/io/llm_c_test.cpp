// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/llm_c.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/presets.hpp"
#include "support/catch.hpp"
#include "support/damage.hpp"
#include "support/model_bytes.hpp"
#include "support/temporary_file.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using scalewise::io::read_llm_c;
using scalewise::test::ModelBytes;
using scalewise::test::TemporaryFile;
using Numbers = std::vector<std::int64_t>;
using Slabs = std::vector<std::pair<std::string, Numbers>>;

/// The header of a checkpoint: 256 whole numbers, and for Llama as many floating-point ones.
std::string header(const Numbers& numbers, const std::vector<float>& floats = {}) {
  ModelBytes bytes;
  for (const std::int64_t number : numbers) bytes.u32(static_cast<std::uint64_t>(number));
  bytes.zeros(1024 - bytes.size());
  if (floats.empty()) return bytes.text();
  for (const float number : floats) bytes.f32(number);
  return bytes.zeros(2048 - bytes.size()).text();
}

// magic, version, maxT, V, L, NH, C, Vp
Numbers gpt2_numbers() { return {20240326, 3, 6, 10, 2, 3, 12, 16}; }

// magic, version, maxT, V, L, NH, NKV, C, multiple_of, use_scaled_rope, 3, 1
Numbers llama_numbers() { return {20240803, 5, 6, 10, 2, 4, 2, 16, 8, 1, 3, 1}; }

/// A file of a size, of which only the header is written.
std::string llm_c_refusal(const std::string& head, std::uintmax_t size) {
  const TemporaryFile file(head);
  std::filesystem::resize_file(file.path(), size);
  const std::string text =
      scalewise::test::error_message([&] { static_cast<void>(read_llm_c(file.path())); });
  return text.starts_with(file.path()) ? "FILE" + text.substr(file.path().size()) : text;
}

std::string llm_c_refusal(const std::string& head) { return llm_c_refusal(head, head.size()); }

scalewise::TensorFile read_checkpoint(const std::string& head, std::uintmax_t size) {
  const TemporaryFile file(head);
  std::filesystem::resize_file(file.path(), size);
  return read_llm_c(file.path());
}

/// Tensors are those of the list, one after another from `begin` to the end of the file.
void check_slabs(const std::vector<scalewise::StoredTensor>& tensors, const Slabs& slabs,
                 const std::string& type, std::int64_t width, std::int64_t begin,
                 std::int64_t size) {
  REQUIRE(tensors.size() == slabs.size());
  for (std::size_t i = 0; i < slabs.size(); ++i) {
    INFO(slabs[i].first);
    CHECK(tensors[i].name == slabs[i].first);
    CHECK(tensors[i].shape == slabs[i].second);
    CHECK(tensors[i].type == type);
    CHECK(tensors[i].offset == begin);
    std::int64_t bytes = width;
    for (const std::int64_t n : slabs[i].second) bytes *= n;
    CHECK(tensors[i].bytes == bytes);
    begin += bytes;
  }
  CHECK(begin == size);
}

}  // namespace

TEST_CASE("A GPT-2 of llm.c has its 16 tensors", "[llm.c]") {
  // fill_in_parameter_sizes() of train_gpt2.cu, with L = 2, C = 12, maxT = 6, Vp = 16.
  const Slabs slabs{{"wte", {16, 12}},
                    {"wpe", {6, 12}},
                    {"ln1w", {2, 12}},
                    {"ln1b", {2, 12}},
                    {"qkvw", {2, 36, 12}},
                    {"qkvb", {2, 36}},
                    {"attprojw", {2, 12, 12}},
                    {"attprojb", {2, 12}},
                    {"ln2w", {2, 12}},
                    {"ln2b", {2, 12}},
                    {"fcw", {2, 48, 12}},
                    {"fcb", {2, 48}},
                    {"fcprojw", {2, 12, 48}},
                    {"fcprojb", {2, 12}},
                    {"lnfw", {12}},
                    {"lnfb", {12}}};
  // 264 for the embeddings, per layer 12 C^2 + 13 C, 2 C at the end.
  const std::int64_t entries = 264 + 2 * (12 * 144 + 13 * 12) + 24;
  Numbers numbers = gpt2_numbers();
  for (const bool bf16 : {false, true}) {
    numbers[1] = bf16 ? 5 : 3;
    const std::int64_t width = bf16 ? 2 : 4;
    const std::int64_t size = 1024 + width * entries;
    const auto read = read_checkpoint(header(numbers), static_cast<std::uintmax_t>(size));
    CHECK(read.format == "llm.c");
    check_slabs(read.tensors, slabs, bf16 ? "BF16" : "F32", width, 1024, size);
    REQUIRE(read.shape.has_value());
    const scalewise::Shape& shape = *read.shape;
    CHECK(shape.d_model == 12);
    CHECK(shape.depth == 2);
    CHECK(shape.heads == 3);
    CHECK(shape.d_ff == 48);
    CHECK(shape.context == 6);
    CHECK(shape.vocab == 10);
    CHECK(shape.tied_head == true);
    CHECK(shape.activation == scalewise::Activation::gelu);
    CHECK(shape.biases);
    CHECK(shape.learned_positions);
    CHECK(read.notes == std::vector<std::string>{"6 rows of wte are padding"});
  }
}

TEST_CASE("llm.c's file of the published GPT-2 is that of the preset", "[llm.c]") {
  // gpt2_124M.bin: 124475904 numbers, the padding of the vocabulary included.
  const auto read = read_checkpoint(header({20240326, 3, 1024, 50257, 12, 12, 768, 50304}),
                                    1024 + 4 * 124475904ULL);
  REQUIRE(read.shape.has_value());
  scalewise::Shape expected = scalewise::preset_shape("gpt2");
  expected.d_ff = 3072;
  CHECK(*read.shape == expected);
}

TEST_CASE("A Llama of llm.c has its 16 tensors", "[llm.c]") {
  // fill_in_parameter_sizes() of train_llama3.cu in the branch llama3, with L = 2, C = 16, 4 heads of
  // 4, 2 of them for keys: 2/3 of 64 is 42, times 1.3 is 54, rounded up to 8: 56.
  const Slabs slabs{{"wte", {10, 16}},
                    {"wlmhead", {10, 16}},
                    {"ln1w", {2, 16}},
                    {"ln1b", {2, 16}},
                    {"qkvw", {2, 32, 16}},
                    {"qkvb", {2, 32}},
                    {"attprojw", {2, 16, 16}},
                    {"attprojb", {2, 16}},
                    {"ln2w", {2, 16}},
                    {"ln2b", {2, 16}},
                    {"fcw", {2, 112, 16}},
                    {"fcb", {2, 112}},
                    {"fcprojw", {2, 16, 56}},
                    {"fcprojb", {2, 16}},
                    {"lnfw", {16}},
                    {"lnfb", {16}}};
  std::int64_t entries = 0;
  for (const auto& [name, sizes] : slabs) {
    std::int64_t product = 1;
    for (const std::int64_t n : sizes) product *= n;
    entries += product;
  }
  const std::int64_t size = 2048 + 2 * entries;
  const auto read = read_checkpoint(header(llama_numbers(), {1.3F, 1e-5F, 500000.F}),
                                    static_cast<std::uintmax_t>(size));
  check_slabs(read.tensors, slabs, "BF16", 2, 2048, size);
  REQUIRE(read.shape.has_value());
  CHECK(read.shape->d_ff == 56);
  CHECK(read.shape->kv_heads == 2);
  CHECK(read.shape->tied_head == false);
  CHECK_FALSE(read.shape->biases);
  CHECK(read.notes.size() == 1);
}

TEST_CASE("llm.c's Llamas are those of the presets", "[llm.c]") {
  // Parameters: Meta's count, and the biases that llm.c adds: ln1b, attprojb, ln2b, fcprojb, qkvb and
  // fcb in each layer, and lnfb.
  struct Known {
    const char* preset;
    Numbers numbers;
    float factor;
    std::uint64_t parameters;
  };
  const std::vector<Known> models{// 8030261248 + 32 (4 * 4096 + 6144 + 28672) + 4096
                                  {"llama-3-8b",
                                   {20240803, 5, 8192, 128256, 32, 32, 8, 4096, 1024, 0, 3, 0},
                                   1.3F,
                                   8030261248 + 32 * (4 * 4096 + 6144 + 28672) + 4096},
                                  {"llama-3-70b",
                                   {20240803, 5, 8192, 128256, 80, 64, 8, 8192, 4096, 0, 3, 0},
                                   1.3F,
                                   70553706496 + 80 * (4 * 8192 + 10240 + 57344) + 8192}};
  for (const Known& model : models) {
    INFO(model.preset);
    const auto read = read_checkpoint(header(model.numbers, {model.factor, 1e-5F, 500000.F}),
                                      2048 + 2 * model.parameters);
    REQUIRE(read.shape.has_value());
    CHECK(*read.shape == scalewise::preset_shape(model.preset));
    CHECK(read.tensors.back().offset > (std::int64_t{1} << 32));
  }
}

TEST_CASE("A checkpoint of llm.c that is cut short or longer is refused", "[llm.c]") {
  const std::string head = header(gpt2_numbers());
  const std::uintmax_t size = 1024 + 4 * 4056;
  REQUIRE(llm_c_refusal(head, size) == "no error");
  CHECK(llm_c_refusal(head, size - 1) ==
        "FILE: size = 17247: expected 17248, by the numbers in the header");
  CHECK(llm_c_refusal(head, size + 1) ==
        "FILE: size = 17249: expected 17248, by the numbers in the header");
  for (const auto& numbers : {gpt2_numbers(), llama_numbers()}) {
    const bool llama = numbers[0] == 20240803;
    const std::string whole = llama ? header(numbers, {1.3F}) : header(numbers);
    scalewise::test::for_each_cut(whole, [](const std::string& bad) {
      CHECK_THAT(llm_c_refusal(bad),
                 ContainsSubstring("FILE: ") && ContainsSubstring("(cut short)"));
    });
    scalewise::test::for_each_flip(whole.substr(0, 48), [&](const std::string& bad) {
      const std::string message = llm_c_refusal(bad + whole.substr(48), 17248);
      if (message != "no error") CHECK_THAT(message, ContainsSubstring("FILE: "));
    });
  }
}

TEST_CASE("Every number in the header of a GPT-2 of llm.c is checked", "[llm.c]") {
  const auto with = [](std::size_t place, std::int64_t value) {
    Numbers numbers = gpt2_numbers();
    numbers[place] = value;
    return llm_c_refusal(header(numbers), 17248);
  };
  CHECK(with(0, 20240327) == "FILE: magic = 20240327: expected 20240326 or 20240803");
  CHECK(with(1, 1) == "FILE: version = 1: expected 3 (float) or 5 (bfloat16)");
  CHECK(with(1, 4) == "FILE: version = 4: expected 3 (float) or 5 (bfloat16)");
  const std::vector<std::pair<std::size_t, std::string>> names{
      {2, "max_seq_len"}, {3, "vocab_size"}, {4, "num_layers"},
      {5, "num_heads"},   {6, "channels"},   {7, "padded_vocab_size"}};
  for (const auto& [place, name] : names) {
    const std::string most = place == 4 ? "5000" : place == 6 ? "268435456" : "1073741824";
    for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1073741825},
                                   std::int64_t{std::numeric_limits<std::int32_t>::min()}}) {
      CHECK(with(place, bad) == "FILE: " + name + " = " + std::to_string(bad) +
                                    ": expected a whole number from 1 to " + most);
    }
  }
  CHECK(with(5, 5) == "FILE: channels = 12: expected a multiple of num_heads = 5");
  CHECK(with(7, 9) == "FILE: padded_vocab_size = 9: expected at least vocab_size = 10");
}

TEST_CASE("Every number in the header of a Llama of llm.c is checked", "[llm.c]") {
  const auto with = [](std::size_t place, std::int64_t value, float factor = 1.3F) {
    Numbers numbers = llama_numbers();
    numbers[place] = value;
    return llm_c_refusal(header(numbers, {factor}), 3000);
  };
  CHECK(with(6, 3) == "FILE: num_kv_heads = 3: expected a divisor of num_heads = 4");
  CHECK(with(6, 0) == "FILE: num_kv_heads = 0: expected a whole number from 1 to 1073741824");
  CHECK(with(7, 18) == "FILE: channels = 18: expected a multiple of num_heads = 4");
  CHECK(with(8, 0) == "FILE: multiple_of = 0: expected a whole number from 1 to 1073741824");
  CHECK_THAT(with(9, 1024),
             ContainsSubstring("FILE: use_scaled_rope (another number): expected 0 or 1 (hint: "
                               "train_llama3.py of the branch master"));
  for (const float bad : {0.F, -1.F, 1025.F, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    CHECK(with(9, 0, bad) ==
          "FILE: ffn_dim_multiplier (another number): expected more than 0 and at most 1024");
  }
  // 2/3 of 2^32 times 1.3 is 3722304989, in the precision of a float.
  CHECK_THAT(with(7, 1 << 30), ContainsSubstring("FILE: ffn_dim_multiplier, multiple_of = 37223") &&
                                   ContainsSubstring(": expected a d_ff from 1 to 2^30"));
}

TEST_CASE("Sizes of llm.c whose products overflow are refused", "[llm.c]") {
  // qkvw has 5000 * 3 * 2^28 * 2^28 numbers, which is 2^69.9.
  CHECK(llm_c_refusal(header({20240326, 3, 1, 1, 5000, 1, 268435456, 1}), 4096) ==
        "FILE: qkvw = [5000, 805306368, 268435456]: expected fewer than 2^63 bytes");
}
