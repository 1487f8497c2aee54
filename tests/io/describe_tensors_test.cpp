// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Kinds by names against those that the tables of configurations state for the same tensors.
#include "scalewise/io/describe_tensors.hpp"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "scalewise/io/describe_config.hpp"
#include "scalewise/io/published_configs.hpp"
#include "support/catch.hpp"

using namespace scalewise;

namespace {

TensorFile file_of(const ModelDescription& model) {
  TensorFile file;
  for (const DescribedTensor& tensor : model.tensors) {
    if (!tensor.tied_to.empty()) continue;  // no file has it
    file.tensors.push_back({tensor.name, {tensor.sizes.begin(), tensor.sizes.end()}, "F32"});
  }
  return file;
}

}  // namespace

TEST_CASE("Names of published models say what tables say, or are doubted") {
  std::size_t compared = 0;
  std::set<std::string> differing;
  const auto compare = [&](const std::string& id, const nlohmann::ordered_json& config) {
    const ModelDescription model = io::describe_config(config, id).model;
    const io::FileDescription read = io::describe_tensors(file_of(model));
    std::string doubts;
    for (const std::string& doubt : read.doubts) doubts += doubt + "\n";
    std::map<std::string, const DescribedTensor*> by_name;
    for (const DescribedTensor& tensor : read.model.tensors) by_name[tensor.name] = &tensor;
    for (const DescribedTensor& tensor : model.tensors) {
      if (!tensor.tied_to.empty()) continue;
      ++compared;
      const DescribedTensor& got = *by_name.at(tensor.name);
      if (got.kind == tensor.kind && got.axes == tensor.axes) continue;
      if (doubts.find(tensor.name + ": ") == std::string::npos)
        differing.insert(id + " " + tensor.name);
    }
  };
  for (const io::PublishedConfig& config : io::published_configs)
    compare(std::string(config.id), nlohmann::ordered_json::parse(config.json));
  std::ifstream lines(std::string(SCALEWISE_TEST_DIR) + "/data/family_configs.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::ordered_json model = nlohmann::ordered_json::parse(line);
    if (model.contains("config")) compare(model["name"], model["config"]);
  }
  std::string text;
  for (const std::string& name : differing) text += name + "\n";
  CAPTURE(text);
  CHECK(differing.empty());
  CHECK(compared > 10000);
}

TEST_CASE("GPT-2's layers have their inputs first where transformers wrote the file") {
  const auto axes = [](std::int64_t rows, std::int64_t columns) {
    TensorFile file;
    file.tensors = {{"h.0.attn.c_attn.weight", {rows, columns}, "F32"},
                    {"h.0.attn.c_proj.weight", {768, 768}, "F32"},
                    {"wte.weight", {50257, 768}, "F32"},
                    {"h.0.attn.bias_k", {768, 2}, "F32"}};
    const io::FileDescription read = io::describe_tensors(file);
    CHECK(read.doubts ==
          std::vector<std::string>{"h.0.attn.bias_k: a matrix that no layer's name has"});
    return read.model.tensors[0].axes + " " + read.model.tensors[1].axes + " " +
           read.model.tensors[2].axes;
  };
  CHECK(axes(768, 2304) == "io io io");
  CHECK(axes(2304, 768) == "oi oi io");  // nanoGPT
}
