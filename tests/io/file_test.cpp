// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/file.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "support/catch.hpp"

namespace fs = std::filesystem;

namespace {

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Scratch {
  fs::path path = fs::temp_directory_path() / "scalewise_file_test";
  Scratch() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Scratch() { fs::remove_all(path); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), {}));
  }
};

}  // namespace

TEST_CASE("A file is replaced whole and nothing is left beside it", "[file]") {
  const Scratch scratch;
  const std::string path = (scratch.path / "plan.json").string();
  scalewise::write_file(path, "old");
  scalewise::write_file(path, "new");
  CHECK(content(path) == "new");
  CHECK(scratch.files() == 1);
}

TEST_CASE("A file that cannot be written leaves the folder as it was", "[file]") {
  const Scratch scratch;
  const std::string folder = (scratch.path / "folder").string();
  fs::create_directories(folder);
  CHECK_THROWS_AS(scalewise::write_file(folder, "text"), scalewise::InvalidInput);
  CHECK_THROWS_AS(scalewise::write_file((scratch.path / "none" / "plan.json").string(), "text"),
                  scalewise::InvalidInput);
  CHECK(scratch.files() == 1);
}
