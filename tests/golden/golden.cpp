// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// golden [--dir DIR] [--every-rule] [FILE...]: checks every case of the files of expected values in
// DIR, all of them unless some are named, and prints, file by file, how many numbers were checked.
// Exit code: 0 all agree, 1 some do not or a file is missing, 2 a file or option cannot be read.

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "golden/files.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/messages/nearest.hpp"

namespace {

using namespace scalewise;

struct File {
  const char* name;
  long (*check)(const nlohmann::ordered_json& file, golden::Tally& tally);
};

constexpr File json_files[] = {
    {"kernels.json", golden::check_kernels},
    {"rules.json", golden::check_rules},
    {"signal_propagation.json", golden::check_signal_propagation},
};

/// Throws: InvalidInput for a name that this program has no check for.
const File& file_of(const std::string& name) {
  messages::Nearest known(name);
  for (const File& file : json_files) {
    known.offer(file.name);
    if (name == file.name) return file;
  }
  throw InvalidInput("file", name, "a file that this program checks", known.hint());
}

/// Returns: whether all of a file agrees.
bool agrees(const File& file, const std::string& path, bool every_rule) {
  if (!std::filesystem::exists(path)) {
    std::cerr << "golden: cannot open " << path << ": no such file\n";
    return false;
  }
  golden::Tally tally;
  const nlohmann::ordered_json json =
      io::parse_json(files::read_file(path, std::size_t{1} << 28U), path);
  const long cases = file.check(json, tally);
  if (file.check == golden::check_rules) {
    for (const std::string& missing : golden::rules_without_case(json)) {
      std::cout << "golden: " << file.name << ": no case for " << missing << '\n';
      if (every_rule) tally.complain(file.name, "none for " + missing);
    }
  }
  std::cout << "golden: " << file.name << ": " << cases << " cases, " << tally.checked()
            << " numbers checked, " << tally.failed() << " failed" << std::endl;
  return tally.failed() == 0 && tally.checked() > 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string dir = SCALEWISE_TEST_DIR "/golden";
  std::vector<std::string> names;
  bool every_rule = false;
  CLI::App app{"Compares rules and theory with expected values."};
  app.add_option("--dir", dir, "folder with the files of expected values")->capture_default_str();
  app.add_flag("--every-rule", every_rule, "fail if rules.json has no case for a rule");
  app.add_option("files", names, "the files to check; all if none is named");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (names.empty()) {
      for (const File& file : json_files) names.emplace_back(file.name);
    }
    bool all = true;
    for (const std::string& name : names) {
      all = agrees(file_of(name), dir + "/" + name, every_rule) && all;
    }
    if (!std::cout) return 2;
    return all ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "golden: " << error.what() << '\n';
    return 2;
  }
}
