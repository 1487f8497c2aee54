// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "train/data.hpp"

#include <filesystem>
#include <system_error>
#include <vector>

namespace scalewise::train {

std::string data_file(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code failed;
  // Linux says where the program is: in the folder bin of where it is installed.
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  const fs::path installed =
      program.parent_path().parent_path() / "share" / "scalewise" / "data" / name;
  if (fs::is_regular_file(installed, failed)) return installed.string();
  return SCALEWISE_DATA_DIR "/" + name;
}

namespace {

Data read_text(const Settings& s) {
  Data data;
  const std::vector<int> tokens = data::read_byte_tokens(s.text);
  const auto size = static_cast<long>(tokens.size());
  if (size / 10 <= s.seq) {
    throw InvalidInput("--text", s.text + " of " + std::to_string(size) + " bytes",
                       "a tenth, to validate, that is longer than --seq = " + std::to_string(s.seq),
                       "a longer text or a smaller --seq");
  }
  data.tokens = data::split_tokens(tokens);
  data.description = std::to_string(data.tokens.train.size()) + " bytes to learn from, " +
                     std::to_string(data.tokens.validation.size()) + " to validate";
  return data;
}

Data read_images(const Settings& s) {
  Data data;
  data.text = false;
  const data::Images images = data::read_digits(s.digits);
  if (images.side % s.patch != 0) {
    throw InvalidInput("--patch", std::to_string(s.patch),
                       "a divisor of the images' side = " + std::to_string(images.side));
  }
  data.images = data::split_images(images, 0.2, s.seed);
  data.description = std::to_string(data.images.train.size()) + " images to learn from, " +
                     std::to_string(data.images.test.size()) + " to validate";
  return data;
}

}  // namespace

Data read_data(const Settings& s) { return s.digits.empty() ? read_text(s) : read_images(s); }

Shape data_shape(const Settings& s, const Data& data) {
  Shape shape;
  if (data.text) {
    shape.vocab = denoises(s) ? bytes + 2 : unmasks(s) ? bytes + 1 : bytes;
    shape.context = s.seq;
    shape.encoder_depth = denoises(s) ? s.depth : 0;
  } else {
    shape.input = Input::patch;
    shape.patch_dim = s.patch * s.patch;
    shape.context = (data.images.train.side / s.patch) * (data.images.train.side / s.patch);
    shape.classes = 10;
  }
  return shape;
}

}  // namespace scalewise::train
