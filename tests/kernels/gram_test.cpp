// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/kernels/gram.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "scalewise/kernels/stored_gram.hpp"
#include "support/catch.hpp"
#include "support/damage.hpp"
#include "support/file_size_limit.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

using namespace scalewise;
using namespace scalewise::kernels;
using Catch::Matchers::ContainsSubstring;
using Eigen::Index;

namespace {

double first(Index i, Index j) { return 1 / (1.0 + static_cast<double>(i + j)); }
double second(Index i, Index j) { return static_cast<double>(i * j) + 0.5; }

KernelValue pair(Index i, Index j) { return {first(i, j), second(i, j)}; }

void check_all(const GramMatrices& gram, Index n) {
  REQUIRE(gram.nngp.rows() == n);
  REQUIRE(gram.ntk.cols() == n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      REQUIRE(gram.nngp(i, j) == first(i, j));
      REQUIRE(gram.ntk(i, j) == second(i, j));
    }
  }
}

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("scalewise-gram-" + std::to_string(::getpid()));
  Folder() { std::filesystem::remove_all(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("A Gram matrix has every pair once, whatever the blocks") {
  for (const Index n : {1, 31, 32, 33, 100}) check_all(gram(n, pair), n);
  for (const Index block : {1, 7, 200}) {
    long pairs = 0;
    for (const GramBlock& b : symmetric_blocks(100, block)) pairs += b.pairs();
    CHECK(pairs == 100 * 101 / 2);
  }
}

TEST_CASE("A report counts pairs and can stop") {
  long last = 0;
  gram(100, pair, [&](long done, long all) {
    CHECK(all == 5050);
    CHECK(done > last);
    last = done;
    return true;
  });
  CHECK(last == 5050);
  CHECK(gram(100, pair, [](long, long) { return false; }).nngp.size() == 0);
}

TEST_CASE("Bad kernels and no inputs are refused") {
  const auto infinite = [](Index i, Index j) {
    return KernelValue{1, i + j == 40 ? HUGE_VAL : 1.0};
  };
  CHECK_THROWS_WITH(gram(50, infinite), ContainsSubstring("kernel of inputs") &&
                                            ContainsSubstring("inf: expected a finite number"));
  CHECK_THROWS_WITH(gram(0, pair), ContainsSubstring("inputs = 0"));
}

TEST_CASE("A stored Gram matrix goes on where it stopped") {
  const Folder folder;
  const auto open = [&](const std::string& kernel = "a kernel", Index n = 50) {
    return StoredGram(folder.path.string(), n, {{"--kernel", kernel}}, 16);
  };
  CHECK(open().missing().size() == 10);
  CHECK_FALSE(open().compute(pair, [](long done, long) { return done < 300; }));
  const std::size_t left = open().missing().size();
  CHECK(left > 0);
  CHECK(left < 10);
  CHECK_THROWS_WITH(open().load(), ContainsSubstring("no such file"));

  std::atomic<long> computed = 0;
  long rest = 0;
  for (const GramBlock& b : open().missing()) rest += b.pairs();
  CHECK(open().compute([&](Index i, Index j) {
    ++computed;
    return pair(i, j);
  }));
  CHECK(computed == rest);
  check_all(open().load(), 50);

  CHECK_THROWS_WITH(open("another kernel"),
                    ContainsSubstring("--kernel = another kernel: expected a kernel, as in"));
  CHECK_THROWS_WITH(open("a kernel", 51), ContainsSubstring("rows of the Gram matrix = 51: "));
  {
    const StoredGram held = open();
    CHECK_THROWS_WITH(open(), ContainsSubstring("no other process"));
  }
  std::fstream file(folder.path / "block_0_1.bin", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);
  file.put('x');
  file.close();
  CHECK_THROWS_WITH(open().load(), ContainsSubstring("block_0_1.bin (damaged"));
  REQUIRE(open().missing().size() == 1);
  CHECK(open().compute(pair));
  check_all(open().load(), 50);
}

TEST_CASE("No flipped bit and no cut of a stored Gram matrix goes unseen") {
  const Folder folder;
  const auto open = [&] { return StoredGram(folder.path.string(), 3, {{"--kernel", "first"}}, 2); };
  CHECK(open().compute(pair));
  const auto write = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder.path / name, std::ios::binary) << bytes;
  };
  const auto read = [&](const std::string& name) {
    return files::read_file((folder.path / name).string(), 1 << 20);
  };
  for (const std::string name : {"block_0_0.bin", "block_0_1.bin", "block_1_1.bin"}) {
    const std::string good = read(name);
    {
      const StoredGram gram = open();
      const auto missing = [&](const std::string& bad) {
        write(name, bad);
        REQUIRE(gram.missing().size() == 1);
        REQUIRE_THROWS_WITH(gram.load(), ContainsSubstring(name + " (damaged"));
      };
      test::for_each_flip(good, missing);
      test::for_each_cut(good, missing);
    }
    CHECK(open().compute(pair));
    CHECK(read(name) == good);
    check_all(open().load(), 3);
  }
  const std::string good = read("inputs.bin");
  const auto refused = [&](const std::string& bad) {
    write("inputs.bin", bad);
    REQUIRE_THROWS_WITH(open(), ContainsSubstring("inputs.bin (damaged)"));
  };
  test::for_each_flip(good, refused);
  test::for_each_cut(good, refused);
  write("inputs.bin", good);
  CHECK(open().missing().empty());
}

TEST_CASE("A block is not taken from another place or another store") {
  const Folder folder;
  const std::filesystem::path other = folder.path / "other";
  const auto open = [](const std::filesystem::path& path, const std::string& kernel) {
    return StoredGram(path.string(), 6, {{"--kernel", kernel}}, 2);
  };
  CHECK(open(folder.path, "first").compute(pair));
  CHECK(open(other, "second").compute([](Index, Index) { return KernelValue{2, 2}; }));
  const auto over = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(folder.path / "block_0_1.bin", folder.path / "block_0_2.bin", over);
  std::filesystem::copy_file(other / "block_1_1.bin", folder.path / "block_1_1.bin", over);
  CHECK(open(folder.path, "first").missing().size() == 2);
  CHECK_THROWS_WITH(open(folder.path, "first").load(), ContainsSubstring("of another place"));
  CHECK(open(folder.path, "first").compute(pair));
  check_all(open(folder.path, "first").load(), 6);

  files::write_file((other / "settings.txt").string(), "scalewise.gram/1\n");
  CHECK_THROWS_WITH(open(other, "second"), ContainsSubstring("an older version wrote them"));
}

TEST_CASE("A store takes any bytes in its name and its inputs") {
  const Folder folder;
  const auto open = [&](const std::string& text) {
    return StoredGram((folder.path / "caf\xe9").string(), 3, {{"--text", text}}, 2);
  };
  CHECK(open("na\xefve").compute(pair));
  check_all(open("na\xefve").load(), 3);
  CHECK_THROWS_WITH(open("na\xeeve"), ContainsSubstring("--text = na?ve: expected na?ve"));
}

#if SCALEWISE_TEST_FULL_DISK
TEST_CASE("A full disk costs a stored Gram matrix nothing but the block that found no room") {
  const Folder folder;
  const auto open = [&] { return StoredGram(folder.path.string(), 33, {}, 32); };
  {
    const test::FileSizeLimit limit(4000);
    CHECK_THROWS_WITH(open().compute(pair), ContainsSubstring("is the disk full?"));
  }
  CHECK_FALSE(std::filesystem::exists(folder.path / "block_0_0.bin"));
  CHECK_FALSE(std::filesystem::exists(folder.path / "block_0_0.bin.scalewise-tmp0"));
  CHECK(open().compute(pair));
  check_all(open().load(), 33);
}
#endif
