// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Published numbers of parameters, as the model cards and the sizes of the weight files have them, against
// the tensors that a dialect gives the shape of the published config.json.

#include <string>

#include "scalewise/dialect/all.hpp"
#include "scalewise/dialect/classify.hpp"
#include "scalewise/io/config_json.hpp"
#include "support/catch.hpp"

using namespace scalewise;

namespace {

struct Published {
  const char* config;
  const char* dialect;
  std::int64_t count;
  std::int64_t without = 0;  // published, but of tensors that no shape has
  std::int64_t more = 0;     // of ours, but not published
};

// BERT: the published base model ends with the last block and has a pooler; ours has a head with its bias.
constexpr std::int64_t bert_pooler = 768 * 768 + 768, bert_head_bias = 30522;

constexpr Published published[] = {
    {"gpt2", "hf-gpt2", 124439808},
    {"gpt2-xl", "hf-gpt2", 1557611200},
    {"llama-2-7b", "hf-llama", 6738415616},
    {"llama-3-8b", "hf-llama", 8030261248},
    {"llama-3.2-1b", "hf-llama", 1235814400},
    {"mistral-7b", "hf-llama", 7241732096},
    {"qwen2-0.5b", "hf-llama", 494032768},
    {"qwen2-7b", "hf-llama", 7615616512},
    {"qwen3-0.6b", "hf-llama", 596049920},
    {"qwen3-8b", "hf-llama", 8190735360},
    {"olmo-2-7b", "olmo2", 7298617344},
    {"gemma-2b", "hf-llama", 2506172416},
    {"gemma-7b", "hf-llama", 8537680896},
    {"phi-3-mini", "phi3", 3821079552},
    {"pythia-160m", "gpt-neox", 162322944},
    {"pythia-1.4b", "gpt-neox", 1414647808},
    {"opt-125m", "opt", 125239296},
    {"bert-base", "hf-bert", 109482240, bert_pooler, bert_head_bias},
    {"vit-b16", "hf-vit", 86567656},
    {"t5-base", "hf-t5", 222903552},
    {"bart-large", "hf-bart", 406291456},
};

}  // namespace

TEST_CASE("The tensors of a published config.json have the published number of parameters") {
  for (const Published& model : published) {
    INFO(model.config);
    const std::string folder = SCALEWISE_TEST_DIR "/data/configs/";
    const Shape shape = resolved(shape_from_config_file(folder + model.config + ".json"));
    const dialect::Assignment usual =
        usual_tensors(dialect::dialect_named("dialect", model.dialect), shape);
    CHECK(usual.problems.empty());
    std::int64_t count = 0;
    for (const dialect::OwnerTensor& tensor : usual.tensors) {
      std::int64_t size = 1;
      for (const std::int64_t n : tensor.shape) size *= n;
      count += size;
    }
    CHECK(count == model.count - model.without + model.more);
  }
}

TEST_CASE("Models that a shape cannot describe are refused with the reason") {
  for (const auto& [type, reason] : scalewise::detail::other_models) {
    CHECK_THROWS_WITH(shape_from_config(nlohmann::ordered_json{{"model_type", type}}),
                      Catch::Matchers::ContainsSubstring(std::string(reason)));
  }
}
