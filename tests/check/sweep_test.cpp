// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/sweep.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "scalewise/check/sweep_journal.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace scalewise::check;
using Catch::Matchers::ContainsSubstring;
using scalewise::files::Inputs;
using scalewise::test::error_message;

constexpr double infinite = std::numeric_limits<double>::infinity();
using Loss = std::function<double(long size, double octave, long seed)>;
using Key = std::tuple<long, double, long>;

Key key(const SweepTask& task) { return {task.size, task.octave, task.seed}; }

/// Makes what is missing until nothing is, and checks that nothing is made twice.
std::vector<RateRun> finish(const std::vector<long>& sizes, long seeds, const Loss& loss,
                            std::vector<RateRun> done = {}) {
  std::set<Key> known;
  for (const RateRun& run : done) known.insert({run.size, run.octave, run.seed});
  for (;;) {
    const Sweep state = sweep(sizes, seeds, done);
    if (state.missing.empty()) return state.runs;
    for (const SweepTask& task : state.missing) {
      REQUIRE(known.insert(key(task)).second);
      done.push_back({task.size, task.octave, task.seed, loss(task.size, task.octave, task.seed)});
    }
  }
}

/// The first and last rate of each size.
std::map<long, std::pair<double, double>> ranges(const std::vector<RateRun>& runs) {
  std::map<long, std::pair<double, double>> found;
  for (const RateRun& run : runs) {
    auto& range = found.try_emplace(run.size, run.octave, run.octave).first->second;
    range.first = std::min(range.first, run.octave);
    range.second = std::max(range.second, run.octave);
  }
  return found;
}

bool same(const std::vector<RateRun>& a, const std::vector<RateRun>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const RateRun& x, const RateRun& y) {
    return x.size == y.size && x.octave == y.octave && x.seed == y.seed && x.loss == y.loss;
  });
}

Loss bowl_at(const std::function<double(long size, long seed)>& optimum) {
  return [=](long size, double octave, long seed) {
    const double away = octave - optimum(size, seed);
    return 2 + away * away;
  };
}

const Inputs inputs{{"--rule", "standard"}, {"--steps", "10"}};

struct JournalFile {
  scalewise::test::TemporaryFolder folder;
  std::string path = (folder.path() / "runs.jsonl").string();
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  void write(const std::string& text) const { std::ofstream(path, std::ios::binary) << text; }
};

const std::vector<RateRun> three{{16, -2, 1, 2.5}, {16, -1, 1, infinite}, {32, 0, 2, 0.1}};

/// A journal of three runs, one of them diverged.
std::string three_runs(const JournalFile& scratch) {
  SweepJournal journal(scratch.path, inputs);
  for (const RateRun& run : three) journal.append(run);
  return scratch.content();
}

}  // namespace

TEST_CASE("A sweep is expected to have the runs that it has with optima an octave away",
          "[check]") {
  const Loss loss = bowl_at([](long, long) { return 1.0; });
  for (const long seeds : {1, 2, 3, 8}) {
    INFO(seeds);
    const long expected = expected_runs({16, seeds}) + expected_runs({32, seeds});
    CHECK(expected == static_cast<long>(finish({16, 32}, seeds, loss).size()));
  }
}

TEST_CASE("A sweep begins with five rates around the centre and three seeds", "[check]") {
  const Sweep fresh = sweep({16, 32}, 4, {});
  CHECK(fresh.runs.empty());
  std::set<Key> wanted;
  for (const long size : {16, 32}) {
    for (const double octave : {-2, -1, 0, 1, 2}) {
      for (long seed = 1; seed <= 3; ++seed) wanted.insert({size, octave, seed});
    }
  }
  std::set<Key> missing;
  for (const SweepTask& task : fresh.missing) missing.insert(key(task));
  CHECK(missing == wanted);
  CHECK(fresh.missing.size() == 30);
}

TEST_CASE("All seeds are run at seven rates around the best", "[check]") {
  const std::vector<RateRun> runs = finish({16}, 5, bowl_at([](long, long) { return 2.9; }));
  std::map<long, std::set<double>> rates;
  for (const RateRun& run : runs) rates[run.seed].insert(run.octave);
  const std::set<double> near{1, 2, 2.5, 3, 3.5, 4, 5};
  CHECK(rates.at(4) == near);
  CHECK(rates.at(5) == near);
  CHECK(rates.at(3) == std::set<double>{-2, -1, 0, 1, 2, 2.5, 3, 3.5, 4, 5});
}

TEST_CASE("Seeds do not repeat what made a scout diverge", "[check]") {
  const std::vector<RateRun> runs = finish({16}, 5, [](long, double octave, long) {
    return octave > 0.5 ? infinite : 2 - 0.1 * octave;
  });
  std::map<long, std::set<double>> rates;
  for (const RateRun& run : runs) rates[run.seed].insert(run.octave);
  CHECK(rates.at(1).count(0.5) == 1);
  CHECK(rates.at(4) == std::set<double>{-2, -1, -0.5, 0, 0.5});
}

TEST_CASE("The grid grows until every optimum is interior", "[check]") {
  const auto found =
      ranges(finish({16, 32, 64, 128}, 2, bowl_at([](long size, long) {
                      return size == 16 ? 0.0 : size == 32 ? 5.2 : size == 64 ? -4.0 : 2.0;
                    })));
  CHECK(found.at(16) == std::pair(-2.0, 2.0));
  CHECK(found.at(32) == std::pair(-2.0, 7.0));
  CHECK(found.at(64) == std::pair(-6.0, 2.0));
  CHECK(found.at(128) == std::pair(-2.0, 4.0));
}

TEST_CASE("Every seed's own optimum is interior too", "[check]") {
  // The mean over seeds is lowest at 0.
  const auto found =
      ranges(finish({16}, 2, bowl_at([](long, long seed) { return seed == 1 ? 3 : -3; })));
  CHECK(found.at(16) == std::pair(-4.0, 4.0));
}

TEST_CASE("Every size is run at the best rate of the first", "[check]") {
  const auto found = ranges(
      finish({16, 32, 64}, 1, bowl_at([](long size, long) { return size == 16 ? 4.0 : -1.0; })));
  CHECK(found.at(16) == std::pair(-2.0, 6.0));
  CHECK(found.at(32) == std::pair(-3.0, 4.0));
  CHECK(found.at(64) == std::pair(-3.0, 4.0));
  const auto low =
      ranges(finish({16, 32}, 1, bowl_at([](long size, long) { return size == 16 ? -4.0 : 1.0; })));
  CHECK(low.at(16) == std::pair(-6.0, 2.0));
  CHECK(low.at(32) == std::pair(-4.0, 3.0));
}

TEST_CASE("Divergence sends the grid down, and the grid ends", "[check]") {
  const auto cliff = ranges(finish({16}, 2, [](long, double octave, long) {
    return octave > -5 ? infinite : 2.0 - 0.1 * octave;
  }));
  CHECK(cliff.at(16) == std::pair(-7.0, 2.0));
  const auto all = ranges(finish({16}, 1, [](long, double, long) { return infinite; }));
  CHECK(all.at(16) == std::pair(-12.0, 2.0));
  const auto ever_better =
      ranges(finish({16}, 1, [](long, double octave, long) { return 100.0 - octave; }));
  CHECK(ever_better.at(16) == std::pair(-2.0, 12.0));
}

TEST_CASE("Seeds go where they narrow the drift most at their cost", "[check]") {
  // Neyman: weight × scatter / √cost; at most 8 × 5 at width 32, 5/3 × 2 × 4 = 13.3 at 64, 5/3 × 1.41 × 2.
  std::vector<long> seeds;
  for (const SweepSize& s : allocate({32, 64, 128, 256}, {1, 4, 16, 64}, 5))
    seeds.push_back(s.seeds);
  CHECK(seeds == std::vector<long>{40, 14, 5, 5});
  seeds.clear();
  for (const SweepSize& s : allocate({32, 64, 128}, {1, 100, 10000}, 4)) seeds.push_back(s.seeds);
  CHECK(seeds == std::vector<long>{32, 3, 4});
  CHECK(allocate({8}, {7}, 1).front().seeds == 1);
  CHECK(allocate({8, 16}, {2, 2}, 2).front().seeds == 3);
}

TEST_CASE("A sweep that lost or reordered runs asks for exactly those it lost", "[check]") {
  const Loss loss = bowl_at([](long size, long seed) {
    return size == 16 ? 3.3 : -2.7 + 0.1 * static_cast<double>(seed);
  });
  const std::vector<RateRun> whole = finish({16, 32}, 3, loss);
  for (std::size_t keep = 0; keep < whole.size(); keep += 7) {
    std::vector<RateRun> some(whole.rbegin(), whole.rbegin() + static_cast<long>(keep));
    CHECK(same(finish({16, 32}, 3, loss, some), whole));
  }
  for (std::size_t lost = 0; lost < whole.size(); ++lost) {
    std::vector<RateRun> some = whole;
    some.erase(some.begin() + static_cast<long>(lost));
    const Sweep state = sweep({16, 32}, 3, some);
    REQUIRE(state.missing.size() == 1);
    CHECK(key(state.missing[0]) == Key{whole[lost].size, whole[lost].octave, whole[lost].seed});
  }
}

TEST_CASE("Sizes and seeds can be added later", "[check]") {
  const Loss loss = bowl_at([](long size, long) { return size == 64 ? 2.5 : 0.2; });
  const std::vector<RateRun> small = finish({16, 32}, 2, loss);
  CHECK(same(finish({16, 32, 64}, 3, loss, small), finish({16, 32, 64}, 3, loss)));
  // Less than what was run is a sweep too.
  CHECK(same(finish({16, 32}, 2, loss, finish({16, 32, 64}, 3, loss)), small));
}

TEST_CASE("A journal keeps halves of octaves, and whole ones as whole numbers", "[check]") {
  const JournalFile scratch;
  {
    SweepJournal journal(scratch.path, inputs);
    journal.append({16, -1.5, 1, 2.5});
    journal.append({16, -1, 1, 2.5});
  }
  const SweepJournal journal(scratch.path, inputs);
  CHECK(journal.runs()[0].octave == -1.5);
  CHECK(journal.runs()[1].octave == -1);
  CHECK_THAT(scratch.content(),
             ContainsSubstring("\"octave\":-1.5,") && ContainsSubstring("\"octave\":-1,"));
}

TEST_CASE("Every finished run is in the file before append returns", "[check]") {
  const JournalFile scratch;
  SweepJournal journal(scratch.path, inputs);
  CHECK_THAT(scratch.content(), ContainsSubstring("\"schema\":\"scalewise.sweep/2\""));
  journal.append({16, 3, 1, 2.5});
  CHECK_THAT(scratch.content(),
             ContainsSubstring("\n{\"size\":16,\"octave\":3,\"seed\":1,\"loss\":2.5,\"sum\":\""));
}

TEST_CASE("A journal that is cut at any byte goes on with the runs before, to the last bit",
          "[check]") {
  const JournalFile scratch;
  const std::string whole = three_runs(scratch);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    scratch.write(whole.substr(0, size));
    const auto lines = std::count(whole.begin(), whole.begin() + static_cast<long>(size), '\n');
    std::vector<RateRun> left(three.begin(),
                              three.begin() + std::max<std::ptrdiff_t>(lines - 1, 0));
    {
      SweepJournal journal(scratch.path, inputs);
      REQUIRE(same(journal.runs(), left));
      REQUIRE(journal.damage().empty() == (lines == 0 || whole[size - 1] == '\n'));
      journal.append({64, 0, 1, 1.5});
    }
    left.push_back({64, 0, 1, 1.5});
    REQUIRE(same(SweepJournal(scratch.path, inputs).runs(), left));
  }
}

TEST_CASE("A journal without its inputs, or of others, is refused and left alone", "[check]") {
  const JournalFile scratch;
  std::string text = three_runs(scratch);
  CHECK_THAT(error_message([&] {
               SweepJournal(scratch.path, {{"--rule", "xavier"}});
             }),
             ContainsSubstring("--rule = xavier: expected standard, as in " + scratch.path));
  CHECK(scratch.content() == text);
  text[text.find("standard")] = 'S';
  scratch.write(text);
  CHECK_THAT(error_message([&] { SweepJournal(scratch.path, inputs); }),
             ContainsSubstring("runs.jsonl line 1 (damaged): expected the inputs of the sweep"));
  CHECK(scratch.content() == text);
}

TEST_CASE("A run with two results is refused, one with the same twice is one", "[check]") {
  const JournalFile scratch;
  three_runs(scratch);
  SweepJournal(scratch.path, inputs).append({32, 0, 2, 0.1});
  CHECK(SweepJournal(scratch.path, inputs).runs().size() == 3);
  SweepJournal(scratch.path, inputs).append({32, 0, 2, 0.2});
  CHECK_THAT(error_message([&] { SweepJournal(scratch.path, inputs); }),
             ContainsSubstring("line 6 (") && ContainsSubstring("that of line 4"));
}

#if defined(__unix__) || defined(__APPLE__)
TEST_CASE("Two sweeps do not write one journal", "[check]") {
  const JournalFile scratch;
  const SweepJournal journal(scratch.path, inputs);
  CHECK_THAT(error_message([&] { SweepJournal(scratch.path, inputs); }),
             ContainsSubstring("(in use)"));
}
#endif

TEST_CASE("Threads write whole lines", "[check]") {
  const JournalFile scratch;
  {
    SweepJournal journal(scratch.path, inputs);
    std::vector<std::thread> threads;
    for (long size = 1; size <= 4; ++size) {
      threads.emplace_back([&journal, size] {
        for (long seed = 1; seed <= 25; ++seed) journal.append({size, 0, seed, 0.5});
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const SweepJournal journal(scratch.path, inputs);
  std::set<Key> found;
  for (const RateRun& run : journal.runs()) found.insert({run.size, run.octave, run.seed});
  CHECK(found.size() == 100);
}

TEST_CASE("Without a path runs are kept in memory", "[check]") {
  SweepJournal journal("", inputs);
  journal.append({16, 0, 1, 2});
  CHECK(journal.runs().size() == 1);
}
