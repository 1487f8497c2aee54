// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/record_file.hpp"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "scalewise/check/recorder.hpp"
#include "support/catch.hpp"
#include "support/damage.hpp"
#include "support/error_message.hpp"
#include "support/file_size_limit.hpp"
#include "support/temporary_folder.hpp"

using namespace scalewise;
using namespace scalewise::check;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string in(const test::TemporaryFolder& folder, const char* name) {
  return (folder.path() / name).string();
}

Records some(long size, double value) {
  Recorder recorder({size, 3});
  recorder.record("layer.0.\"odd\" name", &value, 1, 0);
  recorder.record_update("w", &value, 1, 1);
  return recorder.records();
}

}  // namespace

TEST_CASE("Records of several processes come back merged, to the last bit") {
  const test::TemporaryFolder folder;
  const std::string a = in(folder, "a.jsonl");
  const std::string b = in(folder, "b.jsonl");
  append_records(a, some(64, 0.1));
  append_records(a, some(128, 1.0 / 3));
  append_records(b, some(256, 1e-300));
  Records expected = some(64, 0.1);
  expected.merge(some(128, 1.0 / 3));
  CHECK(read_records(a).records == expected);
  expected.merge(some(256, 1e-300));
  // Files put behind each other are one.
  files::write_file(in(folder, "all.jsonl"),
                    files::read_file(a, 1 << 20) + files::read_file(b, 1 << 20));
  CHECK(read_records(in(folder, "all.jsonl")).records == expected);
  CHECK(read_records(std::vector{a, b, in(folder, "all.jsonl")}).records == expected);
}

TEST_CASE("A file keeps the plan of each run, and reads lines without one") {
  const test::TemporaryFolder folder;
  const std::string path = in(folder, "plans.jsonl");
  Records planned = some(64, 0.1);
  planned.set_plan({64, 3}, "00ff00ff00ff00ff");
  append_records(path, planned);
  append_records(path, some(128, 0.2));
  CHECK(files::read_file(path, 1 << 20).find("\"seed\":3,\"plan\":\"00ff00ff00ff00ff\",") !=
        std::string::npos);
  const Records read = read_records(path).records;
  CHECK(read.plans() == planned.plans());
  for (const char* wrong : {"00ff", "00FF00FF00FF00FF", "00ff00ff00ff00ff0"}) {
    planned.set_plan({64, 3}, wrong);
    CHECK_THROWS_WITH(append_records(in(folder, wrong), planned),
                      ContainsSubstring("expected 16 hexadecimal digits, a plan's fingerprint"));
  }
}

TEST_CASE("A run that is there twice counts once, and must be the same") {
  const test::TemporaryFolder folder;
  const std::string a = in(folder, "a");
  const std::string b = in(folder, "b");
  append_records(a, some(64, 3));
  append_records(a, some(64, 3));
  CHECK(read_records(a).records == some(64, 3));
  append_records(b, some(128, 1));
  append_records(b, some(64, 4));
  CHECK(read_records(b).runs == std::set<Run>{{64, 3}, {128, 3}});
  const std::string message = test::error_message([&] {
    static_cast<void>(read_records(std::vector{a, b}));
  });
  CHECK_THAT(message, ContainsSubstring("b line 2 (other records of size 64, seed 3)") &&
                          ContainsSubstring("expected those of " + a + " line 1"));
}

TEST_CASE("A process killed while it wrote loses its run only, and the next one repairs the file") {
  const test::TemporaryFolder folder;
  const std::string path = in(folder, "torn");
  append_records(path, some(64, 1));
  const std::string whole = files::read_file(path, 1 << 20);
  files::write_file(path, whole + whole.substr(0, 40));
  CHECK(read_records(path).records == some(64, 1));
  CHECK(read_records(path).damage == path + ": left out damaged line 2");
  append_records(path, some(128, 1));
  Records both = some(64, 1);
  both.merge(some(128, 1));
  CHECK(read_records(path).records == both);
  CHECK(read_records(path).damage.empty());
}

TEST_CASE("No flipped bit and no cut of a record file changes records silently") {
  const test::TemporaryFolder folder;
  const std::string path = in(folder, "records");
  const files::Inputs inputs{{"--rule", "he"}};
  std::map<Run, Records> runs;
  runs[{64, 3}].add({Signal::value, "x"}, 0, {64, 3}, {0.1, 0.01, 1});
  runs[{128, 3}].add({Signal::value, "x"}, 0, {128, 3}, {1.0 / 3, 1.0 / 9, 1});
  for (const auto& [run, records] : runs) append_records(path, records, inputs);
  const std::string whole = files::read_file(path, 1 << 20);
  const auto some_of_the_runs = [&](const RecordFile& file) {
    Records expected;
    for (const Run& run : file.runs) expected.merge(runs.at(run));
    return file.records == expected && (file.runs.empty() || file.inputs == inputs);
  };
  long refused = 0;
  long listed = 0;
  test::for_each_flip(whole, [&](const std::string& bad) {
    std::ofstream(path, std::ios::binary) << bad;
    try {
      const RecordFile file = read_records(path);
      REQUIRE(some_of_the_runs(file));
      REQUIRE(file.runs.size() < 2);
      REQUIRE_THAT(file.damage, ContainsSubstring(path + ": left out damaged line"));
      ++listed;
    } catch (const InvalidInput& error) {
      REQUIRE_THAT(error.what(), ContainsSubstring("expected"));
      ++refused;
    }
  });
  CHECK(refused == 0);
  CHECK(listed == test::flips_per_byte * static_cast<long>(whole.size()));
  test::for_each_cut(whole, [&](const std::string& bad) {
    std::ofstream(path, std::ios::binary) << bad;
    const RecordFile file = read_records(path);
    REQUIRE(some_of_the_runs(file));
    REQUIRE(file.damage.empty() == (bad.empty() || bad.back() == '\n'));
  });
}

#if defined(__unix__) || defined(__APPLE__)
TEST_CASE("A reader waits for a process that is writing") {
  const test::TemporaryFolder folder;
  const std::string path = in(folder, "records");
  append_records(path, some(64, 1));
  auto writer = std::make_unique<io::LineFile>(path, record_schema, files::IfLocked::wait);
  std::ofstream(path, std::ios::app) << "{\"schema\"";  // half a line
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    writer->append(check::detail::record_lines(some(128, 1), {}));
    writer.reset();
  });
  const RecordFile file = read_records(path);
  end.join();
  CHECK(file.damage.empty());
  CHECK(file.runs.size() == 2);
}
#endif

#if SCALEWISE_TEST_FULL_DISK
TEST_CASE("A full disk costs a record file nothing but the run that found no room") {
  const test::TemporaryFolder folder;
  const std::string path = in(folder, "records");
  append_records(path, some(64, 1));
  const std::string before = files::read_file(path, 1 << 20);
  CHECK_THAT(test::error_message([&] {
               const test::FileSizeLimit limit(before.size() + 10);
               append_records(path, some(128, 1));
             }),
             ContainsSubstring("is the disk full?"));
  CHECK(files::read_file(path, 1 << 20) == before);
}
#endif

TEST_CASE("Records of other inputs are refused by the first that differs") {
  const test::TemporaryFolder folder;
  const std::string a = in(folder, "a");
  const std::string b = in(folder, "b");
  const files::Inputs inputs{{"--rule", "he"}, {"--steps", "10"}};
  const files::Inputs others{{"--rule", "he"}, {"--steps", "11"}};
  append_records(a, some(64, 1), inputs);
  append_records(b, some(128, 1), others);
  const std::string before = files::read_file(a, 1 << 20);
  CHECK_THAT(test::error_message([&] { append_records(a, some(128, 1), others); }),
             ContainsSubstring("--steps = 11: expected 10, as in " + a));
  CHECK(files::read_file(a, 1 << 20) == before);
  CHECK_THAT(test::error_message([&] {
               static_cast<void>(read_records(std::vector{a, b}));
             }),
             ContainsSubstring("--steps = 11: expected 10, as in " + a + " line 1"));

  CHECK(resume_records(a, inputs).runs == std::set<Run>{{64, 3}});
  CHECK(read_records(a).inputs == inputs);
  CHECK_THAT(test::error_message([&] { static_cast<void>(resume_records(a, others)); }),
             ContainsSubstring("--steps = 11: expected 10"));
  CHECK(resume_records(in(folder, "new"), inputs).runs.empty());
  CHECK_THAT(test::error_message(
                 [&] { static_cast<void>(resume_records(in(folder, "no/such/file"), inputs)); }),
             ContainsSubstring("(cannot be written)"));
}

TEST_CASE("Inputs may be any bytes, and names any text that can be shown") {
  const test::TemporaryFolder folder;
  const std::string path = in(folder, "bytes");
  const files::Inputs inputs{{"--text", "caf\xe9\n"}, {"--set", "caf\xc3\xa9"}};
  const double value = 1;
  Recorder recorder({64, 3});
  recorder.record("caf\xc3\xa9", &value, 1, 0);
  append_records(path, recorder.records(), inputs);
  const RecordFile file = read_records(path);
  CHECK(file.records == recorder.records());
  CHECK(file.inputs == inputs);
  const std::string text = files::read_file(path, 1 << 20);
  CHECK_THAT(text, ContainsSubstring("{\"bytes\":\"636166e90a\"}"));
  CHECK_THAT(text, ContainsSubstring("\"caf\xc3\xa9\""));

  Recorder hidden({64, 4});
  hidden.record("caf\xe9", &value, 1, 0);
  CHECK(test::error_message([&] { append_records(path, hidden.records(), inputs); }) ==
        "name of a record = caf?: expected a name in UTF-8 without control characters");
  CHECK(files::read_file(path, 1 << 20) == text);
}

TEST_CASE("Lines that end as on another system, blank lines and a byte order mark are no damage") {
  const test::TemporaryFolder folder;
  const std::string path = in(folder, "edited");
  const auto line = [&](long size) { return check::detail::record_lines(some(size, 1), {}); };
  const auto other_end = [](std::string text) { return text.insert(text.size() - 1, "\r"); };
  const std::string text =
      "\xEF\xBB\xBF\r\n" + other_end(line(64)) + "\r\n\n" + other_end(line(128)) + "\n";
  files::write_file(path, text);
  Records expected = some(64, 1);
  expected.merge(some(128, 1));
  CHECK(read_records(path).records == expected);
  CHECK(read_records(path).damage.empty());
  append_records(path, some(256, 1));
  CHECK(files::read_file(path, 1 << 20) == text + line(256));
  expected.merge(some(256, 1));
  CHECK(read_records(path).records == expected);
  files::write_file(path, text + "\r\r\n");  // one of them is of the line
  CHECK(read_records(path).damage == path + ": left out damaged line 7");
}

TEST_CASE("Lines of JSON are not written under a name that is read as CSV") {
  const test::TemporaryFolder folder;
  const std::string path = in(folder, "records.csv");
  const std::string refusal = "records.csv: expected a name that does not end in .csv";
  CHECK_THAT(test::error_message([&] { append_records(path, some(8, 1)); }),
             ContainsSubstring(refusal));
  CHECK_THAT(test::error_message([&] { resume_records(path, {}); }), ContainsSubstring(refusal));
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("What is not finite is kept as such") {
  const test::TemporaryFolder folder;
  append_records(in(folder, "nan"), some(64, std::nan("")));
  const Records records = read_records(in(folder, "nan")).records;
  CHECK_FALSE(std::isfinite(records.all().at({Signal::update, "w"}).at(1).at({64, 3}).rms()));
}

TEST_CASE("A file that holds no records is refused and left alone") {
  const test::TemporaryFolder folder;
  const std::string path = in(folder, "other");
  const auto message = [&](const std::string& text) {
    files::write_file(path, text);
    const std::string reading = test::error_message([&] { static_cast<void>(read_records(path)); });
    const std::string writing = test::error_message([&] { append_records(path, some(64, 1)); });
    CHECK(files::read_file(path, 1 << 20) == text);
    CHECK(reading == writing);
    return reading;
  };
  CHECK_THAT(message("no json"), ContainsSubstring("(another kind of file): expected"));
  CHECK_THAT(message("{\"schema\":\"x\"}\n"), ContainsSubstring("(another kind of file)"));
  CHECK_THAT(message("{\"schema\":\"scalewise.coordinates/1\",\"size\":64}\n"),
             ContainsSubstring("scalewise.coordinates/1: expected scalewise.coordinates/2") &&
                 ContainsSubstring("another version"));
  CHECK_THAT(message(io::checked_line({{"schema", "scalewise.sweep/2"}, {"inputs", {}}})),
             ContainsSubstring("(another kind of file)"));
  CHECK_THROWS_AS(read_records(in(folder, "none")), InvalidInput);
  CHECK_THROWS_AS(append_records(in(folder, "no/such/file"), some(64, 1)), InvalidInput);
  CHECK_THAT(test::error_message([&] { append_records(folder.path().string(), some(64, 1)); }),
             ContainsSubstring("(no regular file)"));
}

TEST_CASE("What an undamaged line says is checked") {
  const test::TemporaryFolder folder;
  const std::string path = in(folder, "line");
  const nlohmann::ordered_json record{{"step", 0},    {"signal", "value"}, {"name", "x"},
                                      {"sum_abs", 1}, {"sum_squares", 1},  {"count", 1}};
  const auto message = [&](const char* key, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json line{{"schema", record_schema},
                                {"inputs", nlohmann::ordered_json::array()},
                                {"size", 64},
                                {"seed", 3},
                                {"records", nlohmann::ordered_json::array({record})}};
    (line.contains(key) ? line[key] : line["records"][0][key]) = value;
    files::write_file(path, io::checked_line(line));
    return test::error_message([&] { static_cast<void>(read_records(path)); });
  };
  CHECK(message("size", 64) == "no error");
  CHECK_THAT(message("size", -4), ContainsSubstring("line line 1.size = -4"));
  CHECK_THAT(message("seed", -1), ContainsSubstring("line 1.seed = -1"));
  CHECK_THAT(message("inputs", "he"), ContainsSubstring("line 1.inputs = "));
  CHECK_THAT(message("inputs", {{"--rule"}}), ContainsSubstring("a name and a value"));
  CHECK_THAT(message("name", {{"bytes", "0g"}}), ContainsSubstring("name.bytes = 0g"));
  CHECK_THAT(message("name", {{"bytes", "0"}}),
             ContainsSubstring("name.bytes = 0: expected pairs"));
  CHECK_THAT(message("records", {record, record}), ContainsSubstring("(given twice)"));
  CHECK_THAT(message("step", -1), ContainsSubstring("records[0].step = -1"));
  CHECK_THAT(message("signal", "light"), ContainsSubstring("records[0].signal = "));
  CHECK_THAT(message("sum_abs", -1),
             ContainsSubstring("records[0].sum_abs = -1: expected a sum, 0 or greater"));
  CHECK_THAT(message("count", 1.5), ContainsSubstring("records[0].count = 1.5"));
  CHECK_THAT(
      message("sum_squares", 2),
      ContainsSubstring("line line 1.records[0], value of x = sum_abs 1, sum_squares 2, count "
                        "1: expected sum_squares <= sum_abs^2"));
  CHECK_THAT(message("count", 0), ContainsSubstring("count 0: expected a count of at least 1"));
  CHECK_THAT(message("name", {{"bytes", "ff"}}),
             ContainsSubstring("records[0].name = ?: expected a name in UTF-8"));
  CHECK_THAT(message("colour", 1), ContainsSubstring("records[0].colour"));
}

TEST_CASE("What would not be read is not appended") {
  const test::TemporaryFolder folder;
  const std::string path = in(folder, "shared");
  append_records(path, some(64, 1));
  const std::string before = files::read_file(path, 1 << 20);
  const auto message = [&](Run run, Moments moments) {
    Records records;
    records.add({Signal::value, "x"}, 0, run, moments);
    const std::string told = test::error_message([&] { append_records(path, records); });
    CHECK(files::read_file(path, 1 << 20) == before);
    return told;
  };
  CHECK_THAT(message({0, 3}, {1, 1, 1}), ContainsSubstring("line 1.size = 0: expected"));
  CHECK_THAT(message({-4, 3}, {1, 1, 1}), ContainsSubstring("line 1.size = -4: expected"));
  CHECK_THAT(message({128, 3}, {1, 2, 1}),
             ContainsSubstring("sum_abs 1, sum_squares 2, count 1: expected"));
  CHECK_THAT(message({128, 3}, {1, 1, 0}), ContainsSubstring("a count of at least 1"));
  CHECK_THAT(message({128, 3}, {-1, 1, 1}), ContainsSubstring("sum_abs = -1"));
  CHECK_THAT(message({1L << 62, 3}, {1, 1, 1}), ContainsSubstring("line 1.size = "));
  append_records(in(folder, "other"), some(128, HUGE_VAL));  // diverged, which can be read
  CHECK(read_records(in(folder, "other")).runs.size() == 1);
  CHECK(read_records(path).records == some(64, 1));
}
