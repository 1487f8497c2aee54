// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Mixtures of experts by their configurations, of which a base may have another number of experts.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "scalewise/architecture/presets.hpp"
#include "scalewise/io/describe_config.hpp"
#include "scalewise/io/published_configs.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

namespace config_experts {

using namespace scalewise;
using Catch::Matchers::ContainsSubstring;
using json = nlohmann::ordered_json;

json mixture_config(const std::string& preset) {
  json config = json::parse(io::published_config(preset)->json);
  config["num_experts_per_tok"] = 2;
  config["num_hidden_layers"] = 3;
  for (const char* key : {"num_experts", "num_local_experts"}) {
    if (config.contains(key)) config[key] = 8;
  }
  return config;
}

/// The same tensors with one for each expert, as files and release 4 have them.
/// Source: transformers, conversion_mapping.py (44bcb9d): gate_proj and up_proj, or w1 and w3, are one after the other.
ModelDescription separated(const ModelDescription& model) {
  ModelDescription result;
  for (const DescribedTensor& tensor : model.tensors) {
    const std::size_t fused = tensor.name.find("experts.gate_up_proj");
    const std::size_t down = tensor.name.find("experts.down_proj");
    if (fused == std::string::npos && down == std::string::npos) {
      result.tensors.push_back(tensor);
      continue;
    }
    const std::string list = tensor.name.substr(0, (std::min)(fused, down)) + "experts.";
    const long outputs = tensor.sizes[1] / (down == std::string::npos ? 2 : 1);
    for (long expert = 0; expert < tensor.sizes[0]; ++expert) {
      for (const char* part : {"gate_proj", "up_proj", "down_proj"}) {
        if ((part == std::string("down_proj")) != (down != std::string::npos)) continue;
        result.tensors.push_back({list + std::to_string(expert) + "." + part + ".weight",
                                  TensorKind::linear,
                                  "oi",
                                  {outputs, tensor.sizes[2]}});
      }
    }
  }
  return result;
}

/// The tensor side by side that has a tensor of one expert.
std::string fused_name(const std::string& name) {
  const std::size_t experts = name.find("experts.");
  if (experts == std::string::npos) return name;
  const bool down = name.find("down_proj") != std::string::npos;
  return name.substr(0, experts) + (down ? "experts.down_proj" : "experts.gate_up_proj");
}

TEST_CASE("Experts that are numbered have the plan of experts side by side") {
  std::size_t compared = 0;
  for (const char* preset : {"mixtral-8x7b", "olmoe-1b-7b", "qwen3-30b-a3b"}) {
    const json config = mixture_config(preset);
    for (const Base& base : {Base{1024, 2, 4}, Base{1024, 3, 0}}) {
      const io::ConfigDescription target = io::describe_config(config),
                                  small = io::describe_config(config, "", base);
      const DescribedModel side_by_side = from_descriptions(target.model, small.model, {},
                                                            target.shape, small.shape),
                           numbered =
                               from_descriptions(separated(target.model), separated(small.model),
                                                 {}, target.shape, small.shape);
      for (const char* rule : {"maximal-update", "depth-mup", "complete-p"}) {
        for (const char* table : {"mssp", "jiang"}) {
          const auto plan = [&](const DescribedModel& model) {
            return make_plan(rule, {.model = model.shape,
                                    .base = model.base,
                                    .parameters = {{table, 1}},
                                    .extras = model.tensors});
          };
          const Plan one = plan(side_by_side), many = plan(numbered);
          CHECK(many.parameter_count() == one.parameter_count());
          std::map<std::string, std::vector<double>> numbers;
          for (const Entry& entry : one.entries) {
            plan::for_each_number(entry, [&](const char*, const auto& number) {
              numbers[entry.name].push_back(number.value);
            });
          }
          for (const Entry& entry : many.entries) {
            std::size_t next = 0;
            plan::for_each_number(entry, [&](const char* what, const auto& number) {
              const double other = numbers.at(fused_name(entry.name)).at(next++);
              ++compared;
              if (std::abs(number.value - other) > 1e-12 * std::abs(other))
                FAIL_CHECK(preset << ", " << rule << ", " << table << ": " << entry.name << ", "
                                  << what);
            });
          }
        }
      }
    }
  }
  CHECK(compared > 10000);
}

TEST_CASE("A base of fewer experts is the model that a configuration of so many describes") {
  const json config = mixture_config("mixtral-8x7b");
  const io::ConfigDescription base =
      io::describe_config(config, "", {.width = 1024, .depth = 2, .experts = 4});
  json small = config;
  small["hidden_size"] = 1024;
  small["num_hidden_layers"] = 2;
  small["num_attention_heads"] = 8;
  small["num_key_value_heads"] = 2;
  small["intermediate_size"] = 3584;
  small["num_local_experts"] = 4;
  small["num_experts_per_tok"] = 1;
  const io::ConfigDescription other = io::describe_config(small);
  CHECK(base.model == other.model);
  CHECK(base.shape == other.shape);
  // MSSP (arXiv:2605.14200), the column of more and wider experts: m_N is 4 and m_E is 2.
  const io::ConfigDescription target = io::describe_config(config);
  const DescribedModel model =
      from_descriptions(target.model, base.model, target.roles, target.shape, base.shape);
  const Plan plan = make_plan("mup", {.model = model.shape,
                                      .base = model.base,
                                      .parameters = {{"mssp", 1}},
                                      .extras = model.tensors});
  const std::string at = "model.layers.2.mlp.";
  CHECK(plan.at(at + "gate.weight").init_variance.value == 1.0 / 4);
  CHECK(plan.at(at + "gate.weight").epsilon.value == 1.0 / 2);
  CHECK(plan.at(at + "experts.gate_up_proj").epsilon.value == 1.0 / 8);
  CHECK(plan.at(at + "experts.down_proj").init_variance.value == 1.0 / 4);
}

TEST_CASE("A base of fewer experts alone leaves each matrix what it is") {
  const json config = mixture_config("olmoe-1b-7b");
  const io::ConfigDescription target = io::describe_config(config),
                              base = io::describe_config(config, "", {.experts = 4});
  const DescribedModel model = from_descriptions(
      target.model, base.model, io::roles_of_config(config), target.shape, base.shape);
  const Plan plan = make_plan("mup", {.model = model.shape,
                                      .base = model.base,
                                      .parameters = {{"mssp", 1}},
                                      .extras = model.tensors});
  // MSSP, the column of more experts that are as narrow.
  CHECK(plan.at("model.layers.0.mlp.gate.weight").group == Group::router);
  CHECK(plan.at("model.layers.0.mlp.gate.weight").epsilon.value == 1.0 / 2);
  CHECK(plan.at("model.layers.0.mlp.experts.down_proj").init_variance.value == 2);
  CHECK(plan.at("model.layers.0.self_attn.q_proj.weight").learning_rate.value == 1);
}

TEST_CASE("A number of experts that no base can have is refused") {
  const auto message = [](const std::string& preset, long experts) {
    return test::error_message([&] {
      static_cast<void>(io::describe_config(mixture_config(preset), "", {.experts = experts}));
    });
  };
  CHECK(message("mixtral-8x7b", 6) ==
        "base experts = 6: expected a multiple of 4 (hint: a token activates the same share of "
        "them, 2 of 8)");
  CHECK_THAT(message("mixtral-8x7b", -4), ContainsSubstring("base experts = -4: expected a posit"));
  json more = mixture_config("mixtral-8x7b");
  more["num_experts_per_tok"] = 9;
  CHECK_THAT(test::error_message([&] { static_cast<void>(io::describe_config(more)); }),
             ContainsSubstring("num_experts_per_tok = 9: expected at most the 8 experts"));
  CHECK(message("gemma-2-2b", 4) == "base experts = 4: expected none: the model has no experts");
  Shape shape = preset_shape("llama-3-8b");
  const auto of_shape = [&](long experts) {
    return test::error_message([&] { static_cast<void>(base_like(shape, {.experts = experts})); });
  };
  CHECK_THAT(of_shape(2), ContainsSubstring("expected none: the model has no experts"));
  shape.experts = 8;
  shape.experts_per_token = 2;
  CHECK_THAT(of_shape(3), ContainsSubstring("a multiple of 4"));
  const Shape base = base_like(shape, {.experts = 4});
  CHECK(base.experts == 4);
  CHECK(base.experts_per_token == 1);
}

}  // namespace config_experts
