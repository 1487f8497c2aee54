// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/file.hpp"

#if __has_include(<sys/resource.h>)
#include <sys/resource.h>

#include <csignal>
#endif

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/temporary_folder.hpp"

namespace fs = std::filesystem;

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

#if __has_include(<sys/resource.h>)

namespace {

/// Lets no file grow beyond some bytes, as a full disk does, until the end of the scope.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(getrlimit(RLIMIT_FSIZE, &old_) == 0);
    const rlimit limit{bytes, old_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, signal_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_{};
  void (*signal_)(int);
};

}  // namespace

TEST_CASE("A disk that fills up costs neither the old file nor the space", "[file]") {
  const Scratch scratch;
  const std::string path = (scratch.path / "plan.json").string();
  scalewise::write_file(path, "old");
  const std::string message = scalewise::test::error_message([&] {
    const FileSizeLimit limit(4096);
    scalewise::write_file(path, std::string(1 << 20, 'x'));
  });
  CHECK_THAT(message, Catch::Matchers::ContainsSubstring("is the disk full?"));
  CHECK(content(path) == "old");
  CHECK(scratch.files() == 1);
}

#endif
