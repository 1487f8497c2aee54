// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#include "scalewise/io/describe_config.hpp"

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/architecture/from_descriptions.hpp"
#include "scalewise/io/published_configs.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace scalewise;
using Catch::Matchers::ContainsSubstring;
using json = nlohmann::ordered_json;

/// Lines of a file below tests/data, by name.
std::map<std::string, json> lines_of(const std::string& file) {
  std::ifstream lines(std::string(SCALEWISE_TEST_DIR) + "/data/" + file);
  std::map<std::string, json> all;
  for (std::string line; std::getline(lines, line);) {
    const json model = json::parse(line);
    all[model["name"]] = model;
  }
  return all;
}

/// Configurations with the number of their parameters; some are in the file of those seen.
std::map<std::string, json> families() {
  std::map<std::string, json> all = lines_of("family_configs.jsonl");
  const std::map<std::string, json> seen = lines_of("seen_configs.jsonl");
  for (auto& [name, model] : all) {
    if (!model.contains("config")) model["config"] = seen.at(name).at("config");
  }
  return all;
}

json shipped_config(const std::string& name) {
  return io::read_config_file(std::string(SCALEWISE_TEST_DIR) + "/data/configs/" + name + ".json");
}

std::int64_t numbers_of(const DescribedTensor& tensor) {
  std::int64_t count = 1;
  for (const long size : tensor.sizes) count *= size;
  return count;
}

std::int64_t numbers_in(const ModelDescription& model) {
  std::int64_t count = 0;
  for (const DescribedTensor& tensor : model.tensors)
    count += tensor.tied_to.empty() ? numbers_of(tensor) : 0;
  return count;
}

/// "linear oi 64 32", one line for each name that begins so.
std::vector<std::string> lines_of(const ModelDescription& model, const std::string& begin) {
  std::vector<std::string> lines;
  for (const DescribedTensor& tensor : model.tensors) {
    if (!tensor.name.starts_with(begin)) continue;
    std::string line = tensor.name.substr(begin.size()) + " " +
                       std::string(word(architecture::tensor_kind_words, tensor.kind)) + " " +
                       tensor.axes;
    for (const long size : tensor.sizes) line += " " + std::to_string(size);
    lines.push_back(line + (tensor.tied_to.empty() ? "" : " = " + tensor.tied_to));
  }
  return lines;
}

std::string table_refusal(const json& config, const Base& base = {}) {
  return test::error_message(
      [&] { static_cast<void>(io::describe_config(config, "config.json", base)); });
}

}  // namespace

/// Counts are those published (model cards, sizes of the files of weights), where `computed` is not set: those follow
/// from the modeling file by hand.
TEST_CASE("The tensors of a published configuration have the published number of parameters") {
  std::set<std::string> types;
  for (const auto& [name, model] : families()) {
    INFO(name);
    const io::ConfigDescription read = io::describe_config(model["config"], name);
    architecture::check_description(read.model);
    CHECK(numbers_in(read.model) == model["count"]);
    types.insert(model["config"]["model_type"]);
  }
  for (const std::string_view type : io::described_types()) {
    if (!detail::has_shape(type)) CHECK(types.contains(std::string(type)));
  }
}

/// A base of half the width and half the layers, as far as sizes stay whole.
std::optional<Base> smaller_base(const json& config) {
  const Shape shape = io::describe_config(config).shape;
  for (const long part : {2, 3, 4, 5, 71}) {  // falcon-7b has 71 heads
    const Base base{.width = shape.d_model % part == 0 ? shape.d_model / part : 0,
                    .depth = shape.depth / 2 + 1};
    if (base.width > 0 && table_refusal(config, base) == "no error") return base;
  }
  return {};
}

DescribedModel described_config(const json& config, const Base& base) {
  const io::ConfigDescription target = io::describe_config(config),
                              small = io::describe_config(config, "", base);
  return from_descriptions(target.model, small.model, target.roles, target.shape, small.shape);
}

Plan plan_by_role(const DescribedModel& model, const std::string& rule) {
  return make_plan(rule, {.model = model.shape, .base = model.base, .extras = model.tensors});
}

TEST_CASE("Each family has a plan by role") {
  std::size_t tried = 0;
  for (const auto& family : families()) {
    const std::string& name = family.first;
    const json& model = family.second;
    if (test::sanitized && tried++ % 6 != 0) continue;
    INFO(name);
    const std::optional<Base> base = smaller_base(model["config"]);
    REQUIRE(base);
    const auto plan = [&] {
      return plan_by_role(described_config(model["config"], *base), "complete-p");
    };
    if (name == "falcon-7b") {  // the one matrix of 71 queries, a key and a value
      CHECK_THAT(test::error_message([&] { static_cast<void>(plan()); }),
                 ContainsSubstring("query_key_value.weight, outputs = "));
    } else {
      const Plan made = plan();
      CHECK(made.parameter_count() == model["count"]);
      CHECK(static_cast<long>(made.model.residuals.size()) == made.shape.depth);
    }
  }
}

TEST_CASE("A table names the tensors as the code does") {
  const std::vector<std::string> mixtral{"input_layernorm.weight gain o 4096",
                                         "post_attention_layernorm.weight gain o 4096",
                                         "self_attn.q_proj.weight linear oi 4096 4096",
                                         "self_attn.k_proj.weight linear oi 1024 4096",
                                         "self_attn.v_proj.weight linear oi 1024 4096",
                                         "self_attn.o_proj.weight linear oi 4096 4096",
                                         "mlp.gate.weight linear oi 8 4096",
                                         "mlp.experts.gate_up_proj linear eoi 8 28672 4096",
                                         "mlp.experts.down_proj linear eoi 8 4096 14336"};
  const ModelDescription model = io::describe_config(families()["mixtral-8x7b"]["config"]).model;
  CHECK(lines_of(model, "model.layers.31.") == mixtral);
  CHECK(model.tensors.front().name == "model.embed_tokens.weight");
  CHECK(model.tensors.back().name == "lm_head.weight");
}

TEST_CASE("The language model of a wrapper has its names in the wrapper") {
  json config = families()["gemma-3-4b"]["config"];
  const io::ConfigDescription read = io::describe_config(config);
  CHECK(read.model.tensors.front().name == "model.language_model.embed_tokens.weight");
  CHECK(read.model.tensors.back().name == "lm_head.weight");
  CHECK(read.model.tensors.back().tied_to == "model.language_model.embed_tokens.weight");
  CHECK(lines_of(read.model, "model.language_model.layers.33.self_attn.q_proj") ==
        std::vector<std::string>{".weight linear oi 2048 2560"});
  CHECK(read.notes.back() ==
        "only the language model is listed: the vision tower and its projector are left out");
  config["text_config"]["num_key_value_heads"] = 1;
  for (const architecture::RoleOverride& role : io::describe_config(config).roles)
    CHECK(role.pattern.starts_with("model.language_model.layers.*."));
  config["text_config"]["model_type"] = "llama";
  CHECK_THAT(
      table_refusal(config),
      ContainsSubstring("config.json: text_config: model_type = \"llama\": expected gemma3_text"));
  config["text_config"] = "gemma3_text";
  CHECK_THAT(table_refusal(config),
             ContainsSubstring("text_config = \"gemma3_text\": expected an obj"));
  config = families()["gemma-3-4b"]["config"];
  config["projection_width"] = 8;
  CHECK_THAT(table_refusal(config), ContainsSubstring("config.json: projection_width = 8"));
}

TEST_CASE("A base has heads of the same size, and as many in proportion") {
  const json config = families()["qwen3-30b-a3b"]["config"];
  const io::ConfigDescription base = io::describe_config(config, "", {.width = 512, .depth = 3});
  CHECK(base.shape.d_model == 512);
  CHECK(base.shape.depth == 3);
  CHECK(base.shape.head_dim == 128);
  CHECK(
      lines_of(base.model, "model.layers.2.") ==
      std::vector<std::string>{
          "input_layernorm.weight gain o 512", "post_attention_layernorm.weight gain o 512",
          "self_attn.q_proj.weight linear oi 1024 512", "self_attn.k_proj.weight linear oi 128 512",
          "self_attn.v_proj.weight linear oi 128 512", "self_attn.o_proj.weight linear oi 512 1024",
          "self_attn.q_norm.weight gain o 128", "self_attn.k_norm.weight gain o 128",
          "mlp.gate.weight linear oi 128 512", "mlp.experts.gate_up_proj linear eoi 128 384 512",
          "mlp.experts.down_proj linear eoi 128 512 192"});
  CHECK(table_refusal(config, {.width = 128}) ==
        "base width = 128: expected a multiple of 512 (hint: the base has num_key_value_heads in "
        "proportion, 4 at a width of 2048)");
  CHECK(table_refusal(families()["falcon-7b"]["config"], {.width = 2272}) ==
        "base width = 2272: expected a multiple of 64 (hint: the base has num_attention_heads in "
        "proportion, 71 at a width of 4544)");
}

TEST_CASE("What a table does not know is refused by name") {
  json config = families()["mixtral-8x7b"]["config"];
  config["moe_shared_width"] = 64;
  CHECK_THAT(table_refusal(config),
             ContainsSubstring("moe_shared_width = 64: expected no key that may change a model"));
  config = families()["deepseek-v2-lite"]["config"];
  config["moe_layer_freq"] = 2;
  CHECK_THAT(table_refusal(config), ContainsSubstring("moe_layer_freq = 2: expected 1"));
  config = families()["deberta-v3-base"]["config"];
  config.erase("share_att_key");
  CHECK_THAT(table_refusal(config), ContainsSubstring("share_att_key (missing): expected true"));
  config = families()["mixtral-8x7b"]["config"];
  config.erase("num_local_experts");
  CHECK_THAT(table_refusal(config),
             ContainsSubstring("num_local_experts (missing): expected a whole number"));
  config["num_local_experts"] = "8";
  CHECK_THAT(table_refusal(config), ContainsSubstring("num_local_experts = \"8\""));
  config["num_local_experts"] = 8;
  config["num_attention_heads"] = 24;
  CHECK_THAT(table_refusal(config),
             ContainsSubstring("config.json: n/H = 4096/24: expected a whole number (hint: n is "
                               "hidden_size, H is num_attention_heads)"));
  config["num_attention_heads"] = 0;
  CHECK_THAT(table_refusal(config),
             ContainsSubstring("num_attention_heads = 0: expected a whole number from 1"));
  config["num_attention_heads"] = 32;
  config["num_hidden_layers"] = 1 << 30;
  CHECK_THAT(table_refusal(config),
             ContainsSubstring("num_hidden_layers = 1073741824: expected a whole "
                               "number from 1 to 5000"));
  config["num_hidden_layers"] = 4;
  CHECK_THAT(table_refusal(config, {.width = -8}), ContainsSubstring("base width = -8"));
  CHECK_THAT(table_refusal(config, {.depth = 5001}), ContainsSubstring("base depth = 5001"));
  config["hidden_size"] = config["num_local_experts"] = 1 << 30;
  CHECK_THAT(table_refusal(config), ContainsSubstring("at most 2^60 numbers"));
  config = shipped_config("t5-base");
  config["feed_forward_proj"] = "gated";
  CHECK_THAT(table_refusal(config),
             ContainsSubstring("feed_forward_proj = \"gated\": expected one of gated-gelu "));
  CHECK_THAT(
      table_refusal({{"model_type", "mamba"}}),
      ContainsSubstring(
          "model_type = \"mamba\": expected a type that docs/any_model.md lists (hint: not of "
          "attention and MLPs alone"));
}

TEST_CASE("Layers differ where the configuration says so") {
  json config = families()["qwen2-57b-a14b"]["config"];
  config["mlp_only_layers"] = {1};
  config["decoder_sparse_step"] = 2;
  const ModelDescription model = io::describe_config(config).model;
  const auto has_experts = [&](int layer) {
    return !lines_of(model, "model.layers." + std::to_string(layer) + ".mlp.experts").empty();
  };
  CHECK_FALSE(has_experts(0));
  CHECK_FALSE(has_experts(1));  // of the list
  CHECK_FALSE(has_experts(2));
  CHECK(has_experts(3));
  const DescribedModel planned_model = described_config(config, {.width = 1792, .depth = 6});
  CHECK(planned_model.shape.depth == 28);  // though layers are not alike
  CHECK(planned_model.base.depth == 6);
  CHECK(described_config(config, {.width = 1792}).shape.depth == 28);
}

TEST_CASE("A key that is null is not one that is missing") {
  json config = shipped_config("mistral-7b");
  const auto keys = [&] {
    return lines_of(io::describe_config(config).model, "model.layers.0.self_attn.k_proj").front();
  };
  config["num_key_value_heads"] = nullptr;
  CHECK(keys() == ".weight linear oi 4096 4096");
  config.erase("num_key_value_heads");
  CHECK(keys() == ".weight linear oi 1024 4096");
}

TEST_CASE("A single key head stays one, and is hidden") {
  const json config = shipped_config("gemma-2b");
  const DescribedModel model = described_config(config, {.width = 512});
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    if (model.tensors[i].name != "model.layers.*.self_attn.k_proj.weight") continue;
    CHECK(model.tensors[i].columns == "256");
    CHECK(model.tensors[i].group == Group::hidden);
  }
}

TEST_CASE("An expression of a table has the usual precedence") {
  const detail::SizeExpression::Value value = [](const std::string& name) {
    return name == "H" ? 8L : name == "l" ? 3L : 0L;
  };
  const detail::SizeExpression::Contains contains = [](const std::string&, long element) {
    return element == 3;
  };
  const auto at = [&](std::string_view text) {
    return detail::SizeExpression(text, value, contains).evaluate();
  };
  CHECK(at("2+3*H") == 26);
  CHECK(at("(2+3)*H/4-1") == 9);
  CHECK(at("H%3 = 2 and not l = 2") == 1);
  CHECK(at("not (l in dense) or l >= 4") == 0);
  CHECK(at("l+1 <= 4 and l<H") == 1);
  for (const char* wrong : {"", "2+", "(2", "2 3", "H/3", "H/0", "1073741824*2", "2)"})
    CHECK_THROWS_AS(at(wrong), detail::SizeExpression::Refused);
}

TEST_CASE("The page of described models lists the types that have a table") {
  const std::string page =
      files::read_file(std::string(SCALEWISE_TEST_DIR) + "/../docs/any_model.md", 1 << 20);
  const std::size_t begin = page.find("| | `model_type` |");
  REQUIRE(begin != std::string::npos);
  std::set<std::string> listed;
  std::string name;
  bool inside = false;
  for (std::size_t i = begin + 18; i < page.find("\n\n", begin); ++i) {
    if (page[i] != '`') {
      if (inside) name += page[i];
      continue;
    }
    if (inside && name != "plan") listed.insert(name);
    inside = !inside;
    name.clear();
  }
  std::set<std::string> types;
  for (const std::string_view type : io::described_types()) types.insert(std::string(type));
  CHECK(listed == types);
}

TEST_CASE("A base that is less deep alone leaves each matrix what it is") {
  std::map<std::string, json> all = families();
  std::size_t tried = 0;
  for (const auto& [name, row] : all) {
    if (test::sanitized && tried++ % 12 != 0) continue;
    INFO(name);
    const json& config = row["config"];
    const io::ConfigDescription target = io::describe_config(config, name);
    const io::ConfigDescription base = io::describe_config(config, name, {.width = 0, .depth = 4});
    const auto read = [&](const std::vector<architecture::RoleOverride>& roles) {
      return from_descriptions(target.model, base.model, roles, target.shape, base.shape);
    };
    CHECK_THROWS_WITH(read(target.roles), ContainsSubstring("as wide as in the base"));
    const DescribedModel model = read(io::roles_of_config(config, name));
    const Plan plan =
        make_plan("depth-mup", {.model = model.shape, .base = model.base, .extras = model.tensors});
    // Depth-μP, Table 1 of CompleteP at α = 1/2: rates in the layers go as m_L^(-1/2), and others do not.
    const std::regex layers("(^|\\.)(layers?|h|blocks?)\\.[0-9]+\\.");
    std::size_t hidden = 0;
    for (const Entry& entry : plan.entries) {
      const Role role = role_of(entry.group);
      if (!architecture::is_matrix(entry.group)) continue;
      INFO(entry.name);
      const bool in_layers = std::regex_search(entry.name, layers);
      CHECK(entry.learning_rate.scaling == (in_layers ? 1 / sqrt(symbols::m_L) : Scaling(1)));
      hidden += in_layers && role == Role::hidden ? 1 : 0;
    }
    CHECK(hidden >= 4 * static_cast<std::size_t>(model.shape.depth));
  }
}

TEST_CASE("Published configurations have the published number of parameters") {
  const std::map<std::string, json> all = families();
  const std::map<std::string_view, std::string> seen{{"gemma-2-2b", "gemma2_2b"},
                                                     {"gemma-2-9b", "gemma2_9b"},
                                                     {"gemma-3-1b", "gemma3_1b_it"},
                                                     {"gpt-j-6b", "gpt_j"}};
  for (const io::PublishedConfig& config : io::published_configs) {
    INFO(config.id);
    const auto other = seen.find(config.id);
    const json& published = all.at(other == seen.end() ? std::string(config.id) : other->second);
    const io::ConfigDescription read = io::describe_config(json::parse(config.json));
    CHECK(numbers_in(read.model) == published.at("count"));
    CHECK(io::published_config(config.id) == &config);
  }
  CHECK(io::published_config("gpt2") == nullptr);
}
