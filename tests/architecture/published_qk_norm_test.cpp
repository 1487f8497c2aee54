// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The same as published_lists_test.cpp for models with norms of queries and keys, or with biases on
// attention alone.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/published/checks.hpp"
#include "support/published/mutations.hpp"
#include "support/published/qk_norm.hpp"
#include "support/published/shapes.hpp"

namespace {

namespace published = scalewise::test::published;

struct BigRelative {
  published::Model model;
  std::int64_t numbers;  // as published
  std::size_t tensors;   // in its files
};

std::vector<BigRelative> big_relatives() {
  using published::llama_like;
  return {
      {published::qwen2(llama_like(896, 24, 14, 2, 64, 4864, 151936, true), "Qwen2.5-0.5B"),
       494032768, 290},
      {published::qwen2(llama_like(3584, 28, 28, 4, 128, 18944, 152064), "Qwen2.5-7B"), 7615616512,
       339},
      {published::qwen3(llama_like(1024, 28, 16, 8, 128, 3072, 151936, true), "Qwen3-0.6B"),
       596049920, 310},
      {published::qwen3(llama_like(4096, 36, 32, 8, 128, 12288, 151936), "Qwen3-8B"), 8190735360,
       399},
      {published::olmo2(llama_like(2048, 16, 16, 16, 128, 8192, 100352), "OLMo-2-1B"), 1484916736,
       179},
      {published::olmo2(llama_like(4096, 32, 32, 32, 128, 11008, 100352), "OLMo-2-7B"), 7298617344,
       355},
  };
}

}  // namespace

TEST_CASE("Published lists of LLaMA's relatives hold each tensor of their shape once",
          "[published]") {
  using published::small_llama;
  for (const published::Model& model :
       {published::qwen2(small_llama()), published::qwen3(small_llama()),
        published::olmo2(small_llama()),
        published::hf_llama_with_attention_biases(small_llama())}) {
    INFO(model.dialect << ", " << model.title);
    CHECK(published::faults(model) == "");
    CHECK(published::unowned(model) == 0);
    std::map<published::Mistake, int> made;
    for (const auto& mutation : published::mutations(model)) ++made[mutation.mistake];
    CHECK(made[published::Mistake::dropped] == static_cast<int>(model.owners.size()));
  }
}

TEST_CASE("Published lists of LLaMA's relatives have as many numbers as their models",
          "[published]") {
  for (const BigRelative& big : big_relatives()) {
    INFO(big.model.dialect << ", " << big.model.title);
    CHECK(published::faults(big.model) == "");
    CHECK(parameters(big.model) == big.numbers);
    CHECK(listed(big.model).size() == big.tensors);
  }
}
