// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// What a configuration leaves out, has as null or as -1, of types that have a table of tensors.
// Source: transformers at c0ce2e4, models/<type>/configuration_<type>.py; deberta-v2's modeling_deberta_v2.py at
//         0038a3c, falcon's modeling_falcon.py at 00dcc6d.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/io/describe_config.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

namespace config_defaults {

using namespace scalewise;
using json = nlohmann::ordered_json;
using Catch::Matchers::ContainsSubstring;

json config(const std::string& type, const json& more = json::object()) {
  json all{{"model_type", type}};
  if (type.find("t5") != std::string::npos) {
    all.update({{"d_model", 512}, {"num_layers", 2}, {"num_heads", 8}, {"d_ff", 1024}});
  } else {
    all.update({{"hidden_size", 512}, {"num_hidden_layers", 4}, {"num_attention_heads", 8}});
    if (type != "falcon" && type != "dinov2") all["intermediate_size"] = 1024;
  }
  if (type.find("vi") == std::string::npos && type.find("dino") == std::string::npos)
    all["vocab_size"] = 1000;
  if (type.starts_with("deepseek")) {
    all.update({{"moe_intermediate_size", 128},
                {"n_routed_experts", 8},
                {"num_experts_per_tok", 2},
                {"q_lora_rank", 96},
                {"kv_lora_rank", 64},
                {"qk_rope_head_dim", 16},
                {"qk_nope_head_dim", 32},
                {"v_head_dim", 32},
                {"n_shared_experts", 1}});
  }
  if (type == "glm4_moe") {
    all.update({{"moe_intermediate_size", 64},
                {"n_routed_experts", 8},
                {"n_shared_experts", 1},
                {"num_key_value_heads", 2},
                {"head_dim", 64}});
  }
  if (type == "gpt_oss") all.update({{"num_local_experts", 4}, {"num_attention_heads", 16}});
  if (type == "dinov2") all.update({{"mlp_ratio", 4}});
  if (type == "deberta-v2") {
    all.update({{"max_position_embeddings", 128},
                {"relative_attention", true},
                {"share_att_key", true},
                {"pos_att_type", "p2c|c2p"}});
  }
  all.update(more);
  return all;
}

std::vector<std::string> tensors_of(const json& config) {
  std::vector<std::string> lines;
  for (const DescribedTensor& tensor : io::describe_config(config).model.tensors) {
    lines.push_back(tensor.name + (tensor.tied_to.empty() ? "" : " tied"));
    for (const long size : tensor.sizes) lines.back() += " " + std::to_string(size);
  }
  return lines;
}

bool has(const json& config, const std::string& line) {
  const std::vector<std::string> lines = tensors_of(config);
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

std::string refusal(const json& config) {
  return test::error_message([&] { static_cast<void>(io::describe_config(config)); });
}

TEST_CASE("A key that is missing has the default of its type", "[config]") {
  struct Row {
    json config;
    std::string key;
    json missing, other;
  };
  for (const auto& [given, key, missing, other] :
       std::vector<Row>{{config("deepseek_v2"), "first_k_dense_replace", 0, 1},
                        {config("deepseek_v3"), "first_k_dense_replace", 3, 0},
                        {config("glm4_moe"), "first_k_dense_replace", 1, 0},
                        {config("gpt_oss"), "num_key_value_heads", 8, 16},
                        {config("gpt_oss"), "head_dim", 64, 32},
                        {config("t5"), "feed_forward_proj", "relu", "gated-gelu"},
                        {config("mt5"), "feed_forward_proj", "gated-gelu", "relu"},
                        {config("umt5"), "feed_forward_proj", "gated-gelu", "relu"},
                        {config("dinov2"), "patch_size", 14, 16},
                        {config("vit"), "patch_size", 16, 14},
                        {config("deberta-v2"), "norm_rel_ebd", "none", "layer_norm"},
                        {config("deberta-v2"), "max_relative_positions", -1, 64},
                        {config("deberta-v2"), "position_buckets", -1, 64},
                        {config("falcon", {{"new_decoder_architecture", true}}),
                         "num_ln_in_parallel_attn", 2, 1},
                        {config("falcon"), "num_ln_in_parallel_attn", 1, 2}}) {
    INFO(given.dump() << " " << key);
    json with = given;
    with[key] = missing;
    CHECK(tensors_of(given) == tensors_of(with));
    with[key] = other;
    CHECK(tensors_of(given) != tensors_of(with));
  }
}

TEST_CASE("A key whose default is that of one model is required, and named", "[config]") {
  for (const auto& [type, key] : {std::pair{"deepseek_v3", "q_lora_rank"},
                                  {"deepseek_v2", "n_shared_experts"},
                                  {"deepseek_v3", "n_routed_experts"},
                                  {"glm4_moe", "n_shared_experts"},
                                  {"mixtral", "num_local_experts"},
                                  {"seed_oss", "head_dim"}}) {
    json given = config(type, {{"num_key_value_heads", 8}});
    given.erase(key);
    CHECK_THAT(refusal(given), ContainsSubstring(std::string(key) + " (missing)"));
  }
}

TEST_CASE("A key that is null or -1 is what the type makes of it", "[config]") {
  CHECK(has(config("deepseek_v2", {{"q_lora_rank", nullptr}, {"num_experts_per_tok", nullptr}}),
            "model.layers.0.self_attn.q_proj.weight 384 512"));
  CHECK(has(config("gpt_oss", {{"head_dim", nullptr}}),
            "model.layers.0.self_attn.k_proj.weight 256 512"));
  CHECK(has(config("seed_oss", {{"num_key_value_heads", nullptr}, {"head_dim", nullptr}}),
            "model.layers.0.self_attn.k_proj.weight 512 512"));
  CHECK(has(config("deberta-v2", {{"position_buckets", -1}}),
            "deberta.encoder.rel_embeddings.weight 256 512"));
}

TEST_CASE("Norms of a falcon follow its branches first", "[config]") {
  const json rows{{"new_decoder_architecture", true}, {"parallel_attn", false}};
  for (const json& more : {rows, json{{"parallel_attn", false}}}) {
    CHECK(has(config("falcon", more), "transformer.h.0.input_layernorm.weight 512"));
    CHECK(has(config("falcon", more), "transformer.h.0.post_attention_layernorm.weight 512"));
    CHECK_FALSE(has(config("falcon", more), "transformer.h.0.ln_mlp.weight 512"));
  }
}

TEST_CASE("Key heads divide the heads", "[config]") {
  for (const char* type : {"llama", "cohere2", "qwen3", "gpt_oss"}) {
    for (const int keys : {3, 32}) {
      json given = config(type, {{"num_key_value_heads", keys}});
      CHECK_THAT(refusal(given), ContainsSubstring("num_key_value_heads = " + std::to_string(keys) +
                                                   ": expected a divisor of the "));
    }
  }
}

TEST_CASE("DeBERTa divides scores by the number of products too", "[config]") {
  const auto scores = [](const json& kinds) {
    return io::describe_config(config("deberta-v2", {{"pos_att_type", kinds}})).code.scores;
  };
  CHECK(scores("p2c|c2p") == 1 / sqrt(3 * symbols::C));
  CHECK(scores({"c2p", "p2c"}) == 1 / sqrt(3 * symbols::C));
  CHECK(scores({"p2c"}) == 1 / sqrt(2 * symbols::C));
  CHECK(scores(nullptr) == 1 / sqrt(symbols::C));
}

TEST_CASE("A head of mT5 that is tied has no factor", "[config]") {
  CHECK(has(config("mt5"), "lm_head.weight tied 1000 512"));
  CHECK(io::describe_config(config("mt5")).code == plan::CodeFactors{.scores = 1});
}

TEST_CASE("A flag is no size, and text is no flag", "[config]") {
  CHECK(refusal(config("gpt_oss", {{"num_local_experts", true}})) ==
        "config.json: num_local_experts = true: expected a whole number from 1 to 2^30");
  CHECK(refusal(config("gpt_oss", {{"num_key_value_heads", false}})) ==
        "config.json: num_key_value_heads = false: expected a whole number from 1 to 2^30");
  CHECK(refusal(config("llama", {{"attention_bias", "true"}})) ==
        "config.json: attention_bias = \"true\": expected true, false or a whole number");
}

}  // namespace config_defaults
