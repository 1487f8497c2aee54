// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Every key of every configuration class that is read, and configurations as people have them.
// Keys: transformers, models/*/configuration_*.py, typed from revision c0ce2e4 (release 5) and, where 4 has
// others, from 0171fcd (BART), 008f5c8 (BERT), 01ae98a (GPT-2) and 008e574 (Granite).

#include "scalewise/io/config_keys.hpp"

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scalewise/architecture/tensor.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/scaling/formula.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

namespace {

using json = nlohmann::ordered_json;
using namespace scalewise;
using Catch::Matchers::ContainsSubstring;

json config_file(const std::string& name) {
  std::ifstream in(std::string(SCALEWISE_TEST_DIR) + "/data/configs/" + name + ".json");
  return json::parse(in);
}

/// The effect of another value of a key.
struct KeysOf {
  std::string base;  // a file of tests/data/configs
  json changing;     // another value for each key that changes the shape, the code or the start
  json refused;      // a value of each key that no shape or plan can have
  json harmless;     // keys that change nothing, with any value
};

/// Of all classes: those of PretrainedConfig.
const json common_keys = json::parse(R"({
  "return_dict": false, "output_hidden_states": true, "output_attentions": true, "torchscript": true,
  "torch_dtype": "bfloat16", "dtype": "float16", "pruned_heads": {}, "is_decoder": true,
  "cross_attention_hidden_size": null, "tie_encoder_decoder": false, "chunk_size_feed_forward": 4,
  "finetuning_task": "x", "id2label": {"0": "a", "1": "b"}, "label2id": {"a": 0},
  "tokenizer_class": "X", "prefix": "x", "bos_token_id": 5, "pad_token_id": 6, "eos_token_id": [7, 8],
  "sep_token_id": 9, "decoder_start_token_id": 2, "problem_type": "x", "_name_or_path": "x",
  "transformers_version": "5.17.0", "use_cache": false, "gradient_checkpointing": true,
  "max_length": 20, "num_beams": 4, "task_specific_params": {"a": 1}, "attn_implementation": "eager",
  "_attn_implementation_autoset": true, "quantization_config": {"bits": 4}, "use_bfloat16": false,
  "model_type": null, "auto_map": {"AutoModel": "x"}})");

const json rotary_keys =
    json::parse(R"({"rope_theta": 5, "rope_scaling": {"factor": 2}, "rope_parameters": {},
  "rms_norm_eps": 1e-5, "attention_dropout": 0.1, "sliding_window": 12, "pretraining_tp": 2})");

const std::vector<KeysOf> class_keys = {
    {"llama-3-8b", json::parse(R"({"vocab_size": 7, "hidden_size": 8192, "intermediate_size": 7,
       "num_hidden_layers": 7, "num_attention_heads": 64, "num_key_value_heads": 4, "hidden_act": "gelu",
       "max_position_embeddings": 7, "initializer_range": 0.5, "tie_word_embeddings": true,
       "attention_bias": true, "head_dim": 64})"),
     json::parse(R"({"mlp_bias": true, "pruned_heads": {"0": [1]}, "tie_encoder_decoder": true})"),
     rotary_keys},
    {"mistral-7b", json::parse(R"({"vocab_size": 7, "hidden_size": 8192, "intermediate_size": 7,
       "num_hidden_layers": 7, "num_attention_heads": 64, "num_key_value_heads": 4, "hidden_act": "gelu",
       "max_position_embeddings": 7, "initializer_range": 0.5, "tie_word_embeddings": true,
       "head_dim": 64})"),
     json::parse(R"({"attention_bias": true, "mlp_bias": true})"), rotary_keys},
    {"qwen2-7b", json::parse(R"({"vocab_size": 7, "hidden_size": 7168, "intermediate_size": 7,
       "num_hidden_layers": 7, "num_attention_heads": 56, "num_key_value_heads": 2, "hidden_act": "gelu",
       "max_position_embeddings": 7, "initializer_range": 0.5, "tie_word_embeddings": true})"),
     json::parse(R"({"qkv_bias": false, "layer_types": ["full_attention", "linear_attention"]})"),
     json::parse(R"({"use_sliding_window": true, "sliding_window": 4, "max_window_layers": 3,
       "layer_types": ["full_attention", "sliding_attention"], "attention_dropout": 0.1, "rope_theta": 7,
       "rms_norm_eps": 1e-5})")},
    {"qwen3-8b", json::parse(R"({"vocab_size": 7, "hidden_size": 8192, "intermediate_size": 7,
       "num_hidden_layers": 7, "num_attention_heads": 64, "num_key_value_heads": 4, "hidden_act": "gelu",
       "max_position_embeddings": 7, "initializer_range": 0.5, "tie_word_embeddings": true,
       "attention_bias": true, "head_dim": 64})"),
     json::parse(R"({"num_experts": 8, "mlp_bias": true})"),
     json::parse(R"({"use_sliding_window": true, "sliding_window": 4, "max_window_layers": 3,
       "layer_types": ["full_attention"], "attention_dropout": 0.1, "rope_theta": 7, "rms_norm_eps": 1e-5})")},
    {"gemma-2b", json::parse(R"({"vocab_size": 7, "hidden_size": 4096, "intermediate_size": 7,
       "num_hidden_layers": 7, "num_attention_heads": 16, "num_key_value_heads": 8,
       "hidden_activation": "relu", "max_position_embeddings": 7, "initializer_range": 0.5,
       "tie_word_embeddings": false, "attention_bias": true, "head_dim": 64})"),
     json::parse(R"({"query_pre_attn_scalar": 224, "attn_logit_softcapping": 50.0,
       "final_logit_softcapping": 30.0})"),
     json::parse(R"({"use_bidirectional_attention": true, "attention_dropout": 0.1, "rope_theta": 7,
       "rms_norm_eps": 1e-5})")},
    {"olmo-2-7b", json::parse(R"({"vocab_size": 7, "hidden_size": 8192, "intermediate_size": 7,
       "num_hidden_layers": 7, "num_attention_heads": 64, "num_key_value_heads": 4, "hidden_act": "gelu",
       "max_position_embeddings": 7, "initializer_range": 0.5, "tie_word_embeddings": true,
       "attention_bias": true})"),
     json::parse(R"({"clip_qkv": 8.0})"), rotary_keys},
    {"phi-3-mini", json::parse(R"({"vocab_size": 7, "hidden_size": 6144, "intermediate_size": 7,
       "num_hidden_layers": 7, "num_attention_heads": 64, "num_key_value_heads": 4, "hidden_act": "gelu",
       "max_position_embeddings": 7, "initializer_range": 0.5, "tie_word_embeddings": true})"),
     json::parse(R"({"attention_bias": true, "mlp_bias": true, "lm_head_bias": true})"),
     json::parse(R"({"resid_pdrop": 0.1, "embd_pdrop": 0.1, "attention_dropout": 0.1,
       "original_max_position_embeddings": 7, "sliding_window": 7, "partial_rotary_factor": 0.5,
       "interpolate_factor": 1, "full_attn_mod": 1, "rms_norm_eps": 1e-6, "rope_scaling": {}})")},
    {"gpt2",
     json::parse(R"({"vocab_size": 7, "n_positions": 7, "n_embd": 1536, "n_layer": 7, "n_head": 6,
       "n_inner": 7, "activation_function": "relu", "initializer_range": 0.5,
       "scale_attn_weights": false, "tie_word_embeddings": false})"),
     json::parse(R"({"scale_attn_by_inverse_layer_idx": true, "add_cross_attention": true})"),
     json::parse(R"({"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0, "layer_norm_epsilon": 1e-6,
       "summary_type": "x", "summary_use_proj": true, "summary_activation": "x",
       "summary_proj_to_labels": true, "summary_first_dropout": 0, "reorder_and_upcast_attn": true,
       "n_ctx": 3, "predict_special_tokens": true})")},
    {"pythia-160m", json::parse(R"({"vocab_size": 7, "hidden_size": 1536, "num_hidden_layers": 7,
       "num_attention_heads": 6, "intermediate_size": 7, "hidden_act": "relu",
       "max_position_embeddings": 7, "initializer_range": 0.5, "tie_word_embeddings": true})"),
     json::parse(R"({"attention_bias": false})"),
     json::parse(R"({"attention_dropout": 0.1, "hidden_dropout": 0.1, "classifier_dropout": 0.1,
       "layer_norm_eps": 1e-6, "rope_scaling": {}, "rotary_pct": 0.5, "rotary_emb_base": 7,
       "use_parallel_residual": false})")},
    {"opt-125m",
     json::parse(R"({"vocab_size": 7, "hidden_size": 1536, "num_hidden_layers": 7, "ffn_dim": 7,
       "max_position_embeddings": 7, "num_attention_heads": 6, "activation_function": "gelu",
       "init_std": 0.5, "enable_bias": false, "layer_norm_elementwise_affine": false,
       "tie_word_embeddings": false})"),
     json::parse(R"({"do_layer_norm_before": false, "_remove_final_layer_norm": true,
       "word_embed_proj_dim": 7})"),
     json::parse(
         R"({"dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1, "layerdrop": 0.1})")},
    {"bert-base", json::parse(R"({"vocab_size": 7, "hidden_size": 1536, "num_hidden_layers": 7,
       "num_attention_heads": 6, "intermediate_size": 7, "hidden_act": "relu",
       "max_position_embeddings": 7, "type_vocab_size": 7, "initializer_range": 0.5,
       "tie_word_embeddings": false})"),
     json::parse(R"({"position_embedding_type": "relative_key", "add_cross_attention": true,
       "embedding_size": 128})"),
     json::parse(R"({"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
       "layer_norm_eps": 1e-6, "classifier_dropout": 0.1, "pooler_fc_size": 7, "pooler_type": "x",
       "directionality": "bidi"})")},
    {"vit-b16",
     json::parse(R"({"hidden_size": 1536, "num_hidden_layers": 7, "num_attention_heads": 6,
       "intermediate_size": 7, "hidden_act": "relu", "initializer_range": 0.5, "image_size": [224, 384],
       "patch_size": [16, 8], "num_channels": 1, "num_labels": 7})"),
     json::parse(R"({"qkv_bias": false})"),
     json::parse(R"({"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
       "layer_norm_eps": 1e-6, "encoder_stride": 7, "pooler_output_size": 7, "pooler_act": "tanh"})")},
    {"t5-base",
     json::parse(R"({"vocab_size": 7, "d_model": 7, "d_kv": 7, "d_ff": 7, "num_layers": 7,
       "num_decoder_layers": 7, "num_heads": 7, "relative_attention_num_buckets": 7,
       "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false, "scale_decoder_outputs": false})"),
     json::parse(R"({"is_encoder_decoder": false})"),
     json::parse(R"({"relative_attention_max_distance": 7, "dropout_rate": 0.1,
       "layer_norm_epsilon": 1e-5, "initializer_factor": 2.0, "classifier_dropout": 0.1,
       "dense_act_fn": "relu", "is_gated_act": false})")},
    {"bart-large",
     json::parse(R"({"vocab_size": 7, "max_position_embeddings": 7, "encoder_layers": 7,
       "decoder_layers": 7, "d_model": 2048, "activation_function": "relu", "init_std": 0.5,
       "scale_embedding": true, "tie_word_embeddings": false})"),
     json::parse(R"({"encoder_ffn_dim": 7, "decoder_ffn_dim": 7, "encoder_attention_heads": 8,
       "decoder_attention_heads": 8, "is_encoder_decoder": false, "extra_pos_embeddings": 1,
       "normalize_before": true, "add_final_layer_norm": true, "do_blenderbot_90_layernorm": true,
       "normalize_embedding": false, "static_position_embeddings": true, "add_bias_logits": true})"),
     json::parse(R"({"encoder_layerdrop": 0.1, "decoder_layerdrop": 0.1, "dropout": 0.1,
       "attention_dropout": 0.1, "activation_dropout": 0.1, "classifier_dropout": 0.1,
       "classif_dropout": 0.1, "force_bos_token_to_be_generated": true, "forced_eos_token_id": 2,
       "num_hidden_layers": 12})")},
};

bool same_config(const io::ModelConfig& a, const io::ModelConfig& b) {
  return a.shape == b.shape && a.code == b.code && a.initializer_std == b.initializer_std;
}

std::string refusal_of_config(const json& config) {
  return test::error_message([&] { static_cast<void>(resolved(io::model_config(config).shape)); });
}

std::int64_t parameters_of(const Shape& shape) {
  std::int64_t count = 0;
  for (const Tensor& tensor : tensors(resolved(shape)))
    count += std::int64_t{tensor.rows} * tensor.columns;
  return count;
}

}  // namespace

TEST_CASE("Every key of a configuration class is used, refused, or known to change nothing") {
  for (const KeysOf& keys : class_keys) {
    const json base = config_file(keys.base);
    const io::ModelConfig before = io::model_config(base);
    CHECK(before.notes.size() == (keys.base.starts_with("gemma") ? 1 : 0));  // its norms
    for (const auto& [key, value] : keys.changing.items()) {
      INFO(keys.base << ": " << key);
      json changed = base;
      changed.erase("word_embed_proj_dim");  // has to follow hidden_size
      changed[key] = value;
      CHECK_FALSE(same_config(io::model_config(changed), before));
    }
    for (const auto& [key, value] : keys.refused.items()) {
      INFO(keys.base << ": " << key);
      json changed = base;
      changed[key] = value;
      CHECK_THAT(refusal_of_config(changed),
                 ContainsSubstring("config.json: ") && ContainsSubstring(key));
    }
    for (const json* harmless : {&keys.harmless, &common_keys}) {
      for (const auto& [key, value] : harmless->items()) {
        if (key == "model_type" || (keys.base == "vit-b16" && key == "id2label")) continue;
        INFO(keys.base << ": " << key);
        json changed = base;
        changed[key] = value;
        const io::ModelConfig after = io::model_config(changed);
        CHECK(same_config(after, before));
        CHECK(after.notes == before.notes);
      }
    }
  }
}

TEST_CASE("A key that nobody knows is refused where its name says that it changes the model") {
  json config = config_file("llama-3-8b");
  for (const char* key : {"bias", "no_bias", "cross_layer_sharing", "embedding_multiplier",
                          "logit_scale", "num_local_experts", "qk_layernorm", "kv_lora_rank",
                          "scale_depth", "hidden_sizes", "mlp_ratio", "parallel_attn", "alibi"}) {
    INFO(key);
    json changed = config;
    changed[key] = std::string(key) == "no_bias" ? json(false) : json(2);
    CHECK_THAT(refusal_of_config(changed), ContainsSubstring(std::string(key) + " = ") &&
                                               ContainsSubstring("take it out of a"));
    changed[key] = nullptr;
    CHECK(refusal_of_config(changed) == "no error");
  }
  config["use_qk_norm"] = false;
  config["logit_scale"] = 1.0;
  CHECK(io::model_config(config).notes.empty());
  config["corpus"] = "a text";
  const std::vector<std::string> notes = io::model_config(config).notes;
  REQUIRE(notes.size() == 1);
  CHECK(notes.front() == "config.json: corpus: not known of llama, and taken to change nothing");
}

TEST_CASE("A configuration says what its code multiplies") {
  const auto code = [](const json& config) { return io::model_config(config).code; };
  CHECK(code(config_file("llama-3-8b")) == plan::CodeFactors{});
  CHECK(code(config_file("bart-large")) == plan::CodeFactors{});
  CHECK(code(config_file("gemma-2b")) == plan::CodeFactors{.embedding = sqrt(symbols::n)});

  json config = config_file("gpt2");
  CHECK(code(config) == plan::CodeFactors{});
  config["scale_attn_weights"] = false;
  CHECK(code(config) == plan::CodeFactors{.scores = 1});

  config = config_file("bart-large");
  config["scale_embedding"] = true;
  CHECK(code(config) == plan::CodeFactors{.embedding = sqrt(symbols::n)});

  // Tied: the last hidden state is multiplied by model_dim^-0.5; T5 1.1 is not tied.
  CHECK(code(config_file("t5-base")) ==
        plan::CodeFactors{.scores = 1, .tied_logits = 1 / sqrt(symbols::n)});
  CHECK(code(config_file("t5-1.1-xxl")) == plan::CodeFactors{.scores = 1});

  config = config_file("llama-3-8b");
  config["model_type"] = "granite";
  config["attention_multiplier"] = 0.0078125;
  config["embedding_multiplier"] = 12.0;
  config["logits_scaling"] = 16.0;
  config["residual_multiplier"] = 0.22;
  CHECK(code(config) == plan::CodeFactors{.scores = 0.0078125,
                                          .embedding = 12,
                                          .logits = 1.0 / 16,
                                          .tied_logits = 1.0 / 16,
                                          .branch = 0.22});
  config["logits_scaling"] = 0;
  CHECK_THAT(refusal_of_config(config),
             ContainsSubstring("logits_scaling = 0: expected a positive number"));
}

TEST_CASE("Where a configuration has no reader, the message says what to do instead") {
  const std::string way =
      "describe the model (docs/any_model.md), or give the nearest one by --preset and --set, its "
      "names by --names FILE";
  for (const char* type : {"albert", "phi3_v", "gpt_bigcode", "codegen", "llama4"}) {
    const std::string text = refusal_of_config(json{{"model_type", type}});
    CHECK_THAT(text, ContainsSubstring(way));
    CHECK_THAT(text, !ContainsSubstring("did you mean"));
  }
  CHECK_THAT(refusal_of_config(
                 json{{"model_type", "mistral3"}, {"text_config", {{"model_type", "mistral"}}}}),
             ContainsSubstring("under text_config: give that object as a file"));
  // Meta's file of LLaMA 7B: its w1 has 11008 rows.
  CHECK_THAT(refusal_of_config(json{{"dim", 4096},
                                    {"multiple_of", 256},
                                    {"n_heads", 32},
                                    {"n_layers", 32},
                                    {"norm_eps", 1e-6},
                                    {"vocab_size", -1}}),
             ContainsSubstring("this is Meta's params.json") &&
                 ContainsSubstring("--set d_model=4096 --set depth=32 --set heads=32") &&
                 ContainsSubstring("--set d_ff=11008, with --names meta-llama"));
  // That of Llama 3 8B: 14336.
  CHECK_THAT(refusal_of_config(json{{"dim", 4096},
                                    {"ffn_dim_multiplier", 1.3},
                                    {"multiple_of", 1024},
                                    {"n_heads", 32},
                                    {"n_kv_heads", 8},
                                    {"n_layers", 32},
                                    {"vocab_size", 128256}}),
             ContainsSubstring("--set kv_heads=8 --set d_ff=14336 --set vocab=128256"));
  json heads = config_file("llama-3-8b");
  heads["num_attention_heads"] = 24;
  CHECK_THAT(refusal_of_config(heads), ContainsSubstring("or give head_dim"));
}

/// 97 configurations of published models, and variants of which one key differs; some as mlc-llm has them
/// (python/mlc_llm/model/model_preset.py). Keys that say nothing of the model are left out. Counts follow from the
/// sizes by a formula for each family, and are those published where there are such.
TEST_CASE("Configurations as people have them are read with the right count, or refused") {
  std::ifstream lines(std::string(SCALEWISE_TEST_DIR) + "/data/seen_configs.jsonl");
  int read = 0, refused = 0;
  for (std::string line; std::getline(lines, line);) {
    const json seen = json::parse(line);
    INFO(seen["name"]);
    const std::string text = refusal_of_config(seen["config"]);
    if (seen.contains("count")) {
      ++read;
      REQUIRE(text == "no error");
      CHECK(parameters_of(io::model_config(seen["config"]).shape) == seen["count"]);
    } else {
      ++refused;
      CHECK_THAT(text, ContainsSubstring("config.json: " + seen["refused"].get<std::string>()) &&
                           ContainsSubstring("(hint: "));
    }
  }
  CHECK(read == 42);
  CHECK(refused == 55);
}
