// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A Hugging Face config.json, and the plan of the shape that it describes.

#include <filesystem>

#include "fuzz/fuzz.hpp"
#include "fuzz/json_edit.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/plan/make_plan.hpp"

namespace scalewise::fuzz::config_target {

static std::vector<std::string> seeds() {
  std::vector<std::string> all;
  const std::filesystem::path folder = SCALEWISE_TEST_DIR "/data/configs";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    all.push_back(files::read_file(file.path().string(), 1 << 16));
  }
  return all;
}

static std::string edited(std::string input, Random& random) { return edited_json(input, random); }

static void run(std::string_view input) {
  const Shape shape = shape_from_config(io::parse_json(input, "config.json"));
  if (shape.depth + shape.encoder_depth > 2) return;  // larger plans take longer, and say no more
  const Plan plan = make_plan("standard", {.model = shape});
  static_cast<void>(plan.parameter_count());
}

static const Added added{{"config", seeds, edited, run}};

}  // namespace scalewise::fuzz::config_target
