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

TEST_CASE("A table is told from a layer in a module for embeddings") {
  const auto kind = [](const std::string& name) {
    TensorFile file;
    file.tensors = {{name, {64, 32}, "F32"}};
    const io::FileDescription read = io::describe_tensors(file);
    const DescribedTensor& tensor = read.model.tensors[0];
    return std::string(word(architecture::tensor_kind_words, tensor.kind)) + " " + tensor.axes +
           (read.doubts.empty() ? "" : ", doubted");
  };
  // RWKV, DiT, Llama's own file, CLIP's, T5, BART.
  for (const char* name :
       {"emb.weight", "y_embedder.embedding_table.weight", "tok_embeddings.weight",
        "positional_embedding", "pos_emb.weight", "shared.weight", "model.shared.weight"})
    CHECK(kind(name) == "embedding io");
  // Stable Diffusion's UNet, DiT, ViTs with a linear layer for patches, ALBERT.
  for (const char* name : {"time_embed.0.weight", "time_embed.2.weight", "t_embedder.mlp.0.weight",
                           "patch_embed.proj.weight", "patch_embed.weight",
                           "albert.encoder.embedding_hidden_mapping_in.weight"})
    CHECK(kind(name) == "linear oi, doubted");
  for (const char* name :
       {"embed_out.weight", "h.0.mlp.shared.up.weight", "h.0.mlp.up_shared.weight"})
    CHECK(kind(name) == "linear oi");
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
