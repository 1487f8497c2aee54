// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A Hugging Face config.json, and the plan of the shape that it describes.

#include <filesystem>
#include <fstream>

#include "fuzz/fuzz.hpp"
#include "fuzz/json_edit.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/io/describe_config.hpp"
#include "scalewise/plan/make_plan.hpp"

namespace scalewise::fuzz::config_target {

static std::vector<std::string> seeds() {
  std::vector<std::string> all;
  const std::filesystem::path folder = SCALEWISE_TEST_DIR "/data/configs";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    all.push_back(files::read_file(file.path().string(), 1 << 16));
  }
  std::ifstream families(SCALEWISE_TEST_DIR "/data/family_configs.jsonl");
  for (std::string line; std::getline(families, line);) {
    const nlohmann::ordered_json family = nlohmann::ordered_json::parse(line);
    if (family.contains("config")) all.push_back(family["config"].dump());
  }
  return all;
}

static std::string edited(std::string input, Random& random) { return edited_json(input, random); }

static void run(std::string_view input) {
  const nlohmann::ordered_json config = io::parse_json(input, "config.json");
  try {
    static_cast<void>(io::describe_config(config, "config.json", {.width = 64}));
  } catch (const InvalidInput&) {  // has a shape nevertheless
  }
  const Shape shape = shape_from_config(config);
  if (shape.depth + shape.encoder_depth > 2) return;  // larger plans take longer, and say no more
  const Plan plan = make_plan("standard", {.model = shape});
  static_cast<void>(plan.parameter_count());
}

static const Added added{{"config", seeds, edited, run}};

}  // namespace scalewise::fuzz::config_target
