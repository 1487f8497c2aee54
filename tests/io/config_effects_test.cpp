// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Keys of configurations that change which tensors are trained, or what the code does with them.
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/base_like.hpp"
#include "scalewise/architecture/from_descriptions.hpp"
#include "scalewise/io/describe_config.hpp"
#include "scalewise/plan/code_factors.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

namespace config_effects {

using namespace scalewise;
using Catch::Matchers::ContainsSubstring;
using json = nlohmann::ordered_json;

/// A configuration of tests/data, by its name.
json config_named(const std::string& name) {
  json found;
  for (const char* file : {"family_configs.jsonl", "seen_configs.jsonl"}) {
    std::ifstream lines(std::string(SCALEWISE_TEST_DIR) + "/data/" + file);
    for (std::string line; std::getline(lines, line);) {
      const json model = json::parse(line);
      if (model["name"] == name && model.contains("config")) found = model["config"];
    }
  }
  return found;
}

std::vector<std::string> notes_of(const json& config) { return io::describe_config(config).notes; }

/// Empty where there is none.
std::string last_note(const json& config) {
  const std::vector<std::string> notes = notes_of(config);
  return notes.empty() ? "" : notes.back();
}

std::string refusal_of(const json& config) {
  return test::error_message([&] { static_cast<void>(io::describe_config(config)); });
}

std::set<std::string> names_of(const json& config) {
  std::set<std::string> names;
  for (const DescribedTensor& tensor : io::describe_config(config).model.tensors)
    names.insert(tensor.name);
  return names;
}

/// Source:   modeling_distilbert.py (00b326f), Embeddings: sinusoidal positions have requires_grad = False.
TEST_CASE("Positions that DistilBERT does not train are not listed") {
  json config = config_named("distilbert");
  const std::string positions = "distilbert.embeddings.position_embeddings.weight";
  CHECK(names_of(config).contains(positions));
  config["sinusoidal_pos_embds"] = true;
  CHECK_FALSE(names_of(config).contains(positions));
}

/// Source:   modular_apertus.py (008e574), ApertusMLP: act_fn is ACT2CLS["xielu"] where hidden_act says so.
TEST_CASE("Apertus has numbers in its activation where that is xIELU") {
  json config = config_named("apertus-8b");
  const std::string number = "model.layers.0.mlp.act_fn.alpha_p";
  CHECK(names_of(config).contains(number));
  config.erase("hidden_act");
  CHECK(names_of(config).contains(number));
  config["hidden_act"] = "silu";
  CHECK_FALSE(names_of(config).contains(number));
}

/// Source:   modeling_mpt.py (4352620), MptAttention; multi-query attention, norms of queries and keys, and trained positions
///           are those of the code that these files were written by (llm-foundry), which transformers lacks.
TEST_CASE("Keys within a key of MPT's are used, noted or refused") {
  json config = config_named("mpt-7b");
  config["attn_config"] = json::parse(R"({"alibi": true, "alibi_bias_max": 8, "attn_impl": "torch",
      "attn_pdrop": 0, "attn_type": "multihead_attention", "attn_uses_sequence_id": false,
      "clip_qkv": null, "prefix_lm": false, "qk_ln": false, "softmax_scale": null})");
  CHECK(notes_of(config).empty());
  json changed = config;
  changed["attn_config"]["clip_qkv"] = 6;
  CHECK(notes_of(changed) ==
        std::vector<std::string>{
            "attn_config.clip_qkv = 6: the code clips queries, keys and values at it"});
  changed = config;
  changed["attn_config"]["softmax_scale"] = 1;  // in place of 1/√C
  CHECK(io::describe_config(changed).code == plan::CodeFactors{.scores = 1});
  for (const auto& [key, value] : std::map<std::string, json>{{"attn_type", "multiquery_attention"},
                                                              {"qk_ln", true},
                                                              {"alibi", false},
                                                              {"kv_n_heads", 8}}) {
    changed = config;
    changed["attn_config"][key] = value;
    CHECK_THAT(refusal_of(changed), ContainsSubstring("config.json: attn_config." + key + " = "));
  }
  changed = config;
  changed["attn_config"]["of_mine"] = 3;
  CHECK(last_note(changed) ==
        "config.json: attn_config.of_mine: not known of mpt, and taken to change nothing");
}

TEST_CASE("A class that a table does not describe is named") {
  json config = config_named("roberta-base");
  config["architectures"] = {"RobertaForMaskedLM"};
  CHECK(notes_of(config).empty());
  config["architectures"] = {"RobertaForSequenceClassification"};
  CHECK(notes_of(config) ==
        std::vector<std::string>{
            "config.json: architectures = RobertaForSequenceClassification: the tensors are those "
            "of RobertaForMaskedLM, which may differ, as in the head"});
  config["architectures"] = json::array();
  CHECK(notes_of(config).empty());

  config = config_named("electra-small");
  config["architectures"] = {"ElectraForMaskedLM"};
  CHECK_THAT(last_note(config), ContainsSubstring("those of ElectraForPreTraining"));
  config = config_named("mpt-7b");
  config["architectures"] = {"MPTForCausalLM"};
  CHECK(notes_of(config).empty());

  config = config_named("dinov2-base");
  config.erase("architectures");
  CHECK(notes_of(config) == std::vector<std::string>{"the tensors are those of Dinov2Model: the "
                                                     "head of your task is not in the list"});
  config["architectures"] = {"Dinov2Model"};
  CHECK(notes_of(config).empty());
  config["architectures"] = {"Dinov2ForImageClassification"};
  CHECK_THAT(last_note(config), ContainsSubstring("those of Dinov2Model, which"));
}

TEST_CASE("A shape names the class that it describes, too") {
  json config =
      io::read_config_file(std::string(SCALEWISE_TEST_DIR) + "/data/configs/t5-base.json");
  CHECK(io::model_config(config).notes.empty());
  config["architectures"] = {"T5EncoderModel"};
  CHECK(io::model_config(config).notes ==
        std::vector<std::string>{
            "config.json: architectures = T5EncoderModel: the tensors are those of "
            "T5ForConditionalGeneration, which may differ, as in the head"});
}

TEST_CASE("Each type that is read has the class that it describes") {
  std::set<std::string_view> types;
  for (const detail::ModelClass& model : detail::model_classes) types.insert(model.type);
  CHECK(types.size() == std::size(detail::model_classes));
  std::set<std::string_view> read;
  for (const std::string_view type : io::described_types()) read.insert(type);
  for (const detail::ConfigModel& model : detail::config_models) read.insert(model.type);
  CHECK(types == read);
}

TEST_CASE("A message says where a type is read, and gives no hint that leads nowhere") {
  const auto no_shape = [](const json& config) {
    return test::error_message([&] { static_cast<void>(io::model_config(config)); });
  };
  const std::string table =
      "plan --config reads it by a table of its tensors, and inspect --describe lists them)";
  CHECK_THAT(no_shape({{"model_type", "mixtral"}}),
             ContainsSubstring("(hint: a mixture of experts; " + table));
  CHECK_THAT(no_shape({{"model_type", "mt5"}}),
             ContainsSubstring("(hint: there is no shape for mt5: " + table));
  CHECK_THAT(no_shape({{"model_type", "gemma3"}, {"text_config", {{"model_type", "gemma3_text"}}}}),
             ContainsSubstring("its layers have four norms: a shape has two; " + table));
  CHECK_THAT(refusal_of({{"model_type", "mistral3"}, {"text_config", {{"model_type", "mistral"}}}}),
             ContainsSubstring("under text_config: give that object as a file"));
  for (const auto& [type, text] :
       std::map<std::string, std::string>{{"llama4", "llama4_text"},
                                          {"siglip", "siglip_text_model"},
                                          {"clip", "clip_text_model"}}) {
    const std::string message =
        refusal_of({{"model_type", type}, {"text_config", {{"model_type", text}}}});
    CHECK_THAT(message, !ContainsSubstring("text_config"));
    CHECK_THAT(message, ContainsSubstring("describe the model (docs/any_model.md)"));
  }
}

TEST_CASE("An error names the key that the configuration has") {
  json config = config_named("deepseek-v2-lite");
  config["n_routed_experts"] = nullptr;
  CHECK_THAT(refusal_of(config),
             ContainsSubstring("config.json: n_routed_experts = null: expected"));
  config.erase("n_routed_experts");
  CHECK_THAT(refusal_of(config), ContainsSubstring("n_routed_experts (missing): expected"));
}

TEST_CASE("A ratio may be written with a decimal point") {
  json config = config_named("dinov2-base");
  const ModelDescription model = io::describe_config(config).model;
  config["mlp_ratio"] = 4.0;
  CHECK(io::describe_config(config).model == model);
  config["mlp_ratio"] = 2.5;
  CHECK_THAT(refusal_of(config), ContainsSubstring("mlp_ratio = 2.5: expected a whole number"));
  config["mlp_ratio"] = 4;
  config["num_hidden_layers"] = 12.0;
  CHECK_THAT(refusal_of(config), ContainsSubstring("num_hidden_layers = 12.0: expected a whole"));
}

/// Source:   modular_deepseek_v3.py (000c33f), DeepseekV3Attention; DeepseekV2Attention there has no such factor, but that of
///           modeling_deepseek.py on the Hub has.
TEST_CASE("DeepSeek's factor of the scores for longer texts is said") {
  const json yarn{{"type", "yarn"}, {"factor", 40}, {"mscale", 1.0}, {"mscale_all_dim", 1.0}};
  json config = config_named("deepseek-v2-lite");
  CHECK(notes_of(config).empty());
  config["rope_scaling"] = yarn;
  CHECK_THAT(last_note(config), ContainsSubstring("mscale_all_dim = 1.0: the authors' code"));
  config["rope_scaling"]["mscale_all_dim"] = 0;
  CHECK(notes_of(config).empty());
  config = config_named("deepseek-v3");
  CHECK(io::describe_config(config).code == plan::CodeFactors{});
  const double m = 0.1 * std::log(40) + 1;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    json scaled = config;
    scaled[key] = yarn;
    CHECK(io::describe_config(scaled).code ==
          plan::CodeFactors{.scores = m * m / sqrt(symbols::C)});
    scaled[key]["factor"] = 1;
    CHECK(io::describe_config(scaled).code == plan::CodeFactors{});
  }
}

/// Source:   modeling_<type>.py or modular_<type>.py: gemma2 006e869, gpt_neo 002fb3e, cohere 03ea97a, granitemoe 023633d,
///           umt5 00063ff.
TEST_CASE("A type without a shape says what its code multiplies") {
  const auto code = [](const json& config) { return io::describe_config(config).code; };
  CHECK(code(config_named("gpt-neo-125m")) == plan::CodeFactors{.scores = 1});
  CHECK(code(config_named("mixtral-8x7b")) == plan::CodeFactors{});
  CHECK(code(config_named("command-r")) ==
        plan::CodeFactors{.logits = 0.0625, .tied_logits = 0.0625});
  json config = config_named("command-r");
  config.erase("logit_scale");
  CHECK(code(config).logits == Scaling(0.0625));
  config = config_named("gemma2_2b");  // heads of 256
  CHECK(code(config) == plan::CodeFactors{.embedding = sqrt(symbols::n)});
  config["query_pre_attn_scalar"] = 144;
  CHECK(code(config) == plan::CodeFactors{.scores = 1.0 / 12, .embedding = sqrt(symbols::n)});
  config = config_named("granite-3.1-1b-a400m");
  config["attention_multiplier"] = config["embedding_multiplier"] = 1;
  config["logits_scaling"] = config["residual_multiplier"] = 1;
  CHECK(code(config) == plan::CodeFactors{.scores = 1});
  config = config_named("umt5-small");
  config["tie_word_embeddings"] = true;
  CHECK(code(config) == plan::CodeFactors{.scores = 1, .tied_logits = 1 / sqrt(symbols::n)});
  config["tie_word_embeddings"] = false;
  CHECK(code(config) == plan::CodeFactors{.scores = 1});
  config = config_named("mbart-large");
  config["scale_embedding"] = true;
  CHECK(code(config) == plan::CodeFactors{.embedding = sqrt(symbols::n)});
  CHECK(plan::code_lines(code(config_named("command-r")), true) ==
        std::vector<std::string>{"the code multiplies logits by 1/16"});
  CHECK(plan::code_lines({}, true).empty());
  for (const detail::TableCode& table : detail::table_codes) {
    CHECK_FALSE(detail::has_shape(table.type));
    CHECK(detail::table_of(table.type) != nullptr);
  }
}

/// The plans of a configuration by its shape and by its tensors, with a base half as wide and as deep.
std::pair<Plan, Plan> both_plans(const json& config, const std::string& rule) {
  const io::ModelConfig model = io::model_config(config);
  const Base half{.width = resolved(model.shape).d_model / 2, .depth = model.shape.depth / 2};
  const io::ConfigDescription target = io::describe_config(config),
                              base = io::describe_config(config, "", half);
  const DescribedModel listed =
      from_descriptions(target.model, base.model, target.roles, target.shape, base.shape);
  return {
      plan::with_code(make_plan(rule, {.model = model.shape, .base = base_like(model.shape, half)}),
                      model.code),
      plan::with_code(
          make_plan(rule, {.model = listed.shape, .base = listed.base, .extras = listed.tensors}),
          target.code)};
}

TEST_CASE("A plan of tensors counts what the code multiplies, as that of a shape does") {
  const auto file = [](const std::string& name) {
    return io::read_config_file(std::string(SCALEWISE_TEST_DIR) + "/data/configs/" + name +
                                ".json");
  };
  json granite = file("llama-3-8b"), gpt2 = file("gpt2"), bart = file("bart-large");
  granite["model_type"] = "granite";
  granite["attention_multiplier"] = 0.0078125;
  granite["embedding_multiplier"] = 12.0;
  granite["logits_scaling"] = 16.0;
  granite["residual_multiplier"] = 0.22;
  gpt2["scale_attn_weights"] = false;
  bart["scale_embedding"] = true;
  for (const json& config :
       {granite, gpt2, bart, file("gemma-2b"), file("t5-base"), file("t5-1.1-xxl")}) {
    for (const char* rule : {"maximal-update", "complete-p"}) {
      INFO(config["model_type"] << " " << rule);
      const auto [shape, list] = both_plans(config, rule);
      REQUIRE(shape.model.code);
      REQUIRE(list.model.code);
      CHECK(list.model.attention_scale.value == shape.model.attention_scale.value);
      CHECK(list.model.code->attention_scale == shape.model.code->attention_scale);
      CHECK(list.model.code->embedding_multiplier == shape.model.code->embedding_multiplier);
      CHECK(list.model.code->logit_multiplier == shape.model.code->logit_multiplier);
      CHECK(list.model.code->branch == shape.model.code->branch);
      CHECK(plan::code_notes(list).size() == plan::code_notes(shape).size());
    }
  }
}

}  // namespace config_effects
