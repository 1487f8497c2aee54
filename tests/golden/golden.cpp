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
#include <map>
#include <string>
#include <vector>

#include "golden/files.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/parse_json.hpp"

namespace {

using namespace scalewise;

using Check = long (*)(const nlohmann::ordered_json& file, golden::Tally& tally);

const std::map<std::string, Check> checks{
#ifdef SCALEWISE_GOLDEN_KERNELS
    {"kernels.json", golden::check_kernels},
#endif
    {"rules.json", golden::check_rules},
    {"signal_propagation.json", golden::check_signal_propagation},
};

/// Returns: whether all of a file agrees.
bool agrees(const std::string& name, const std::string& path, bool every_rule) {
  if (!std::filesystem::exists(path)) {
    std::cerr << "golden: cannot open " << path << ": no such file\n";
    return false;
  }
  golden::Tally tally;
  const nlohmann::ordered_json json =
      io::parse_json(files::read_file(path, std::size_t{1} << 28U), path);
  const long cases = checks.at(name)(json, tally);
  if (name == "rules.json") {
    for (const std::string& missing : golden::rules_without_case(json)) {
      std::cout << "golden: " << name << ": no case for " << missing << '\n';
      if (every_rule) tally.complain(name, "none for " + missing);
    }
  }
  std::cout << "golden: " << name << ": " << cases << " cases, " << tally.checked()
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
  app.add_option("files", names, "the files to check; all if none is named")
      ->check(CLI::IsMember(checks));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (names.empty()) {
      for (const auto& [name, check] : checks) names.push_back(name);
#ifndef SCALEWISE_GOLDEN_KERNELS
      std::cout << "golden: kernels.json: not checked; this program was built with "
                   "SCALEWISE_TEST_KERNELS off\n";
#endif
    }
    bool all = true;
    for (const std::string& name : names) {
      all = agrees(name, dir + "/" + name, every_rule) && all;
    }
    if (!std::cout) return 2;
    return all ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "golden: " << error.what() << '\n';
    return 2;
  }
}
