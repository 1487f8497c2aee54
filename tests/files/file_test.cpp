// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/files/file.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "scalewise/files/read_file.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/file_size_limit.hpp"
#include "support/temporary_folder.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Scratch {
  scalewise::test::TemporaryFolder own;
  fs::path path = own.path();
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), {}));
  }
};

}  // namespace

TEST_CASE("A file is replaced whole and nothing is left beside it", "[file]") {
  const Scratch scratch;
  const std::string path = (scratch.path / "plan.json").string();
  scalewise::files::write_file(path, "old");
  scalewise::files::write_file(path, "new");
  CHECK(content(path) == "new");
  CHECK(scratch.files() == 1);
}

TEST_CASE("A file that cannot be written leaves the folder as it was", "[file]") {
  const Scratch scratch;
  const std::string folder = (scratch.path / "folder").string();
  fs::create_directories(folder);
  CHECK_THROWS_AS(scalewise::files::write_file(folder, "text"), scalewise::InvalidInput);
  CHECK_THROWS_AS(
      scalewise::files::write_file((scratch.path / "none" / "plan.json").string(), "text"),
      scalewise::InvalidInput);
  CHECK(scratch.files() == 1);
}

#if defined(__unix__) || defined(__APPLE__)
TEST_CASE("A program that is started does not hold a lock", "[file]") {
  const Scratch scratch;
  const std::string path = (scratch.path / "runs").string();
  scalewise::files::OpenFile file(std::fopen(path.c_str(), "ab"));
  REQUIRE(scalewise::files::lock_file(file.get(), scalewise::files::IfLocked::refuse));
  REQUIRE(std::system("sleep 3 >/dev/null 2>&1 &") == 0);
  file.reset();
  file.reset(std::fopen(path.c_str(), "ab"));
  CHECK(scalewise::files::lock_file(file.get(), scalewise::files::IfLocked::refuse));
}

TEST_CASE("What a killed process left is taken over, what another writes is not", "[file]") {
  const Scratch scratch;
  const std::string path = (scratch.path / "plan.json").string();
  std::ofstream(path + ".scalewise-tmp0") << "longer than the new text";
  scalewise::files::write_file(path, "new");
  CHECK(content(path) == "new");
  CHECK(scratch.files() == 1);

  const scalewise::files::OpenFile busy(std::fopen((path + ".scalewise-tmp0").c_str(), "wb"));
  REQUIRE(scalewise::files::lock_file(busy.get(), scalewise::files::IfLocked::refuse));
  std::ofstream(path + ".scalewise-tmp0") << "part";
  scalewise::files::write_file(path, "newer");
  CHECK(content(path) == "newer");
  CHECK(content(path + ".scalewise-tmp0") == "part");
  CHECK(scratch.files() == 2);
}
#endif

#if defined(__unix__) || defined(__APPLE__)
TEST_CASE("A temporary file of two names is somebody's, and is not written into", "[file]") {
  const Scratch scratch;
  const std::string path = (scratch.path / "file").string();
  std::ofstream(scratch.path / "own") << "kept";
  fs::create_hard_link(scratch.path / "own", path + ".scalewise-tmp0");
  scalewise::files::write_file(path, "new");
  CHECK(content(path) == "new");
  CHECK(content(scratch.path / "own") == "kept");
  CHECK(content(path + ".scalewise-tmp0") == "kept");
  CHECK(scratch.files() == 3);
}
#endif

TEST_CASE("A link is followed, also to a file that is not there yet", "[file]") {
  const Scratch scratch;
  fs::create_directories(scratch.path / "folder");
  fs::create_symlink("folder/second", scratch.path / "first");
  fs::create_symlink("../target", scratch.path / "folder" / "second");
  const std::string path = (scratch.path / "first").string();
  for (const char* text : {"new", "replaced"}) {
    scalewise::files::write_file(path, text);
    CHECK(content(scratch.path / "target") == text);
    CHECK(fs::is_symlink(scratch.path / "first"));
    CHECK(fs::is_symlink(scratch.path / "folder" / "second"));
    CHECK_FALSE(fs::is_symlink(scratch.path / "target"));
  }
  CHECK(scratch.files() == 3);
}

TEST_CASE("A link that leads nowhere is refused and stays", "[file]") {
  const Scratch scratch;
  fs::create_symlink("circle", scratch.path / "circle");
  fs::create_symlink("none/file", scratch.path / "lost");
  const auto message = [&](const char* link) {
    return scalewise::test::error_message(
        [&] { scalewise::files::write_file((scratch.path / link).string(), "text"); });
  };
  CHECK_THAT(message("circle"), ContainsSubstring("its links lead nowhere"));
  CHECK_THAT(message("lost"), ContainsSubstring("is the folder there"));
  CHECK(fs::is_symlink(scratch.path / "circle"));
  CHECK(fs::is_symlink(scratch.path / "lost"));
  CHECK(scratch.files() == 2);
}

#if defined(__unix__) || defined(__APPLE__)

TEST_CASE("A device that never ends is read to a limit, a pipe to its end", "[file]") {
  CHECK_THAT(scalewise::test::error_message([] {
               static_cast<void>(scalewise::files::read_file(
                   "/dev/zero", std::numeric_limits<std::size_t>::max()));
             }),
             ContainsSubstring("/dev/zero (larger): expected at most 268435456 bytes"));
  CHECK(scalewise::files::read_file("/dev/null", 10).empty());
  int ends[2] = {};
  REQUIRE(::pipe(ends) == 0);
  REQUIRE(::write(ends[1], "text", 4) == 4);
  ::close(ends[1]);
  CHECK(scalewise::files::read_file("/dev/fd/" + std::to_string(ends[0]), 10) == "text");
  ::close(ends[0]);
}

#endif

#if SCALEWISE_TEST_FULL_DISK

TEST_CASE("A disk that fills up costs neither the old file nor the space", "[file]") {
  const Scratch scratch;
  const std::string path = (scratch.path / "plan.json").string();
  scalewise::files::write_file(path, "old");
  const std::string message = scalewise::test::error_message([&] {
    const scalewise::test::FileSizeLimit limit(4096);
    scalewise::files::write_file(path, std::string(1 << 20, 'x'));
  });
  CHECK_THAT(message, ContainsSubstring("is the disk full?"));
  CHECK(content(path) == "old");
  CHECK(scratch.files() == 1);
}

TEST_CASE("A file is tried without a trace, and refused by the name of its option", "[file]") {
  using scalewise::files::try_file;
  const Scratch scratch;
  const std::string path = (scratch.path / "plan.json").string();
  try_file(path, "--save");
  CHECK(scratch.files() == 0);
  scalewise::files::write_file(path, "old");
  fs::create_symlink("circle", scratch.path / "circle");
  fs::create_symlink("new", scratch.path / "link");
  try_file(path, "--save");
  try_file((scratch.path / "link").string(), "--save");
  try_file("/dev/null", "--save");
  CHECK(content(path) == "old");
  CHECK(scratch.files() == 3);

  const auto message = [&](const std::string& file) {
    return scalewise::test::error_message([&] { try_file(file, "--save"); });
  };
  CHECK_THAT(message(scratch.path.string()), ContainsSubstring("it is not a file"));
  CHECK_THAT(message((scratch.path / "circle").string()), ContainsSubstring("its links lead"));
  CHECK_THAT(message((scratch.path / "none" / "file").string()),
             ContainsSubstring("is the folder there"));
  CHECK_THAT(message(""), ContainsSubstring("--save (empty): expected a file"));
  {
    const scalewise::test::FileSizeLimit limit(0);
    CHECK_THAT(message(path), ContainsSubstring("is the disk full?"));
  }
  CHECK(content(path) == "old");
  CHECK(scratch.files() == 3);
}

TEST_CASE("A folder is made and tried, and refused by the name of its option", "[file]") {
  using scalewise::files::try_folder;
  const Scratch scratch;
  const fs::path folder = scratch.path / "a" / "b";
  try_folder(folder.string(), "--out");
  CHECK(fs::is_empty(folder));
  const auto message = [&](const fs::path& path) {
    return scalewise::test::error_message([&] { try_folder(path.string(), "--out"); });
  };
  scalewise::files::write_file((scratch.path / "file").string(), "text");
  CHECK_THAT(message(scratch.path / "file"), ContainsSubstring("a folder that can be written"));
  CHECK_THAT(message(scratch.path / "file" / "c"), ContainsSubstring("--out = "));
  const scalewise::test::FileSizeLimit limit(0);
  CHECK_THAT(message(folder), ContainsSubstring("is there room?"));
  CHECK(fs::is_empty(folder));
}

TEST_CASE("Why a file cannot be read is said", "[file]") {
  const Scratch scratch;
  const std::string path = (scratch.path / "plan.json").string();
  const auto message = [](const std::string& file) {
    return scalewise::test::error_message([&] { scalewise::files::read_file(file, 1 << 20); });
  };
  scalewise::files::write_file(path, "{}");
  fs::permissions(path, fs::perms::none);
  if (::access(path.c_str(), R_OK) != 0)
    CHECK(message(path) == "cannot read " + path + ": Permission denied");
  fs::create_symlink("circle", scratch.path / "circle");
  CHECK_THAT(message((scratch.path / "circle").string()),
             ContainsSubstring("evels of symbolic links"));
#if defined(__linux__)
  CHECK(message("/proc/self/mem") == "cannot read /proc/self/mem: Input/output error");
#endif
}

TEST_CASE("A folder is locked for one at a time", "[file]") {
  const Scratch scratch;
  const std::string folder = scratch.path.string();
  {
    const auto lock = scalewise::files::lock_folder(folder);
    CHECK_THAT(scalewise::test::error_message([&] { scalewise::files::lock_folder(folder); }),
               ContainsSubstring("(in use): expected a folder that no other process writes"));
  }
  CHECK(scalewise::test::error_message([&] { scalewise::files::lock_folder(folder); }) ==
        "no error");
  CHECK(scratch.files() == 0);
}

#endif
