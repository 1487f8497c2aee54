// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The header of a GGUF file, with zeros after it as data.

#include "scalewise/io/gguf.hpp"

#include "fuzz/fuzz.hpp"
#include "fuzz/stored_tensors.hpp"
#include "support/model_bytes.hpp"

namespace scalewise::fuzz::gguf_target {

static std::vector<std::string> seeds() {
  const auto model = [](const std::string& architecture) {
    test::GgufBytes gguf;
    gguf.text("general.architecture", architecture);
    const std::string key = architecture + ".";
    gguf.u32(key + "embedding_length", 4).u32(key + "block_count", 1);
    gguf.u32(key + "feed_forward_length", 8).u32(key + "context_length", 3);
    gguf.u32(key + "attention.head_count", 2).u32(key + "attention.head_count_kv", 1);
    gguf.u32(key + "attention.key_length", 2).u32("general.alignment", 32);
    gguf.value("split.count", 2, test::ModelBytes().number(1, 2));
    gguf.value("tokens", 9, test::ModelBytes().u32(8).u64(2).gguf_text("a").gguf_text("b"));
    gguf.value("nested", 9, test::ModelBytes().u32(9).u64(1).u32(7).u64(1).number(1, 1));
    gguf.next("token_embd.weight", {4, 5}, 0, 80).next("blk.0.attn_q.weight", {4, 4}, 24, 16);
    gguf.next("blk.0.attn_q.bias", {4}, 24, 4).next("q", {32, 1}, 2, 18);
    return gguf.bytes();
  };
  return {model("llama"), model("gpt2"), test::GgufBytes().bytes()};
}

static std::string edited(std::string input, Random& random) {
  return with_hostile_number(std::move(input), below(2, random) == 0 ? 8 : 4, random);
}

static void run(std::string_view input) {
  const std::uintmax_t size = input.size() + (std::uintmax_t{1} << 20U);
  const std::string path = sparse_file(input, size);
  check_stored(io::read_gguf(path), size);
}

static const Added added{{"gguf", seeds, edited, run}};

}  // namespace scalewise::fuzz::gguf_target
