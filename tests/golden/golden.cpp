// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// golden [--dir DIR]: checks every case of the files of expected values in DIR and prints, file by
// file, how many numbers were checked.
// Exit code: 0 all agree, 1 some do not, 2 a file cannot be read or there is none.

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>

#include "golden/files.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/io/read_file.hpp"

namespace {

using namespace scalewise;

struct File {
  const char* name;
  long (*check)(const nlohmann::json& file, golden::Tally& tally);
};

constexpr File files[] = {
#ifdef SCALEWISE_GOLDEN_KERNELS  // slow to build
    {"kernels.json", golden::check_kernels},
#endif
    {"rules.json", golden::check_rules},
    {"signal_propagation.json", golden::check_signal_propagation},
};

/// Returns: whether all of a file agrees.
bool agrees(const File& file, const std::string& path) {
  golden::Tally tally;
  const long cases = file.check(parse_json(read_file(path, std::size_t{1} << 28U), path), tally);
  std::cout << "golden: " << file.name << ": " << cases << " cases, " << tally.checked()
            << " numbers checked, " << tally.failed() << " failed" << std::endl;
  return tally.failed() == 0 && tally.checked() > 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string dir = SCALEWISE_TEST_DIR "/golden";
  CLI::App app{"Compares rules and theory with expected values."};
  app.add_option("--dir", dir, "folder with the files of expected values")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    int found = 0;
    bool all = true;
    for (const File& file : files) {
      const std::string path = dir + "/" + file.name;
      if (!std::filesystem::exists(path)) continue;
      ++found;
      all = agrees(file, path) && all;
    }
    if (found == 0) throw InvalidInput("dir", dir, "a folder with a file such as rules.json");
    if (!std::cout) return 2;
    return all ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "golden: " << error.what() << '\n';
    return 2;
  }
}
