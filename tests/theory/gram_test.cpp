// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/theory/kernels/gram.hpp"

#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "scalewise/theory/kernels/stored_gram.hpp"
#include "support/catch.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/wait.h>
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
  const GramMatrices cross = cross_gram(3, 40, pair);
  REQUIRE(cross.nngp.rows() == 3);
  REQUIRE(cross.ntk.cols() == 40);
  CHECK(cross.ntk(2, 39) == second(2, 39));
  CHECK(cross.nngp(1, 0) == first(1, 0));
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

TEST_CASE("Bad kernels and sets are refused") {
  const auto infinite = [](Index i, Index j) {
    return KernelValue{1, i + j == 40 ? HUGE_VAL : 1.0};
  };
  CHECK_THROWS_WITH(gram(50, infinite), ContainsSubstring("kernel of inputs") &&
                                            ContainsSubstring("inf: expected a finite number"));
  CHECK_THROWS_WITH(gram(0, pair), ContainsSubstring("inputs = 0"));
  CHECK_THROWS_WITH(cross_gram(2, 0, pair), ContainsSubstring("inputs = 0"));
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
  CHECK_THROWS_WITH(open().load(), ContainsSubstring("(missing)"));

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
  CHECK_THROWS_WITH(open().load(), ContainsSubstring("block_0_1.bin = (damaged"));
  REQUIRE(open().missing().size() == 1);
  CHECK(open().compute(pair));
  check_all(open().load(), 50);
}

#if defined(__unix__) || defined(__APPLE__)
TEST_CASE("A stored Gram matrix survives kill -9") {
  const Folder folder;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // without threads: those of OpenMP do not follow into a child
    StoredGram gram(folder.path.string(), 40, {{"--kernel", "a kernel"}}, 8);
    gram.compute([&](Index i, Index j) {
      if (i == 12) {  // in the second row of blocks, one of which is half written
        std::ofstream(folder.path / "block_1_1.bin.tmp0") << "part";
        ::kill(::getpid(), SIGKILL);
      }
      return pair(i, j);
    });
    ::_exit(1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  StoredGram gram(folder.path.string(), 40, {{"--kernel", "a kernel"}}, 8);
  CHECK_FALSE(std::filesystem::exists(folder.path / "block_1_1.bin.tmp0"));
  CHECK(gram.missing().size() == 10);  // of 5 in the first row and 4 + 3 + 2 + 1
  CHECK(gram.compute(pair));
  check_all(gram.load(), 40);
}
#endif
