// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/record_file.hpp"

#include <cmath>
#include <filesystem>
#include <string>

#include "scalewise/check/recorder.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace scalewise;
using namespace scalewise::check;

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
  CHECK(read_records(a) == expected);
  expected.merge(some(256, 1e-300));
  // Files put behind each other are one.
  write_file(in(folder, "all.jsonl"), read_file(a, 1 << 20) + read_file(b, 1 << 20));
  CHECK(read_records(in(folder, "all.jsonl")) == expected);
}

TEST_CASE("Parts of one tensor on several ranks add up") {
  const test::TemporaryFolder folder;
  append_records(in(folder, "ranks"), some(64, 3));
  append_records(in(folder, "ranks"), some(64, 4));
  const Records records = read_records(in(folder, "ranks"));
  CHECK(records.all().at({Signal::update, "w"}).at(1).at({64, 3}) == Moments{7, 25, 2});
}

TEST_CASE("A process killed while it wrote loses its last line only") {
  const test::TemporaryFolder folder;
  const std::string path = in(folder, "torn");
  append_records(path, some(64, 1));
  const std::string whole = read_file(path, 1 << 20);
  write_file(path, whole + whole.substr(0, 40));
  CHECK(read_records(path) == some(64, 1));
}

TEST_CASE("What is not finite is kept as such") {
  const test::TemporaryFolder folder;
  append_records(in(folder, "nan"), some(64, std::nan("")));
  const Records records = read_records(in(folder, "nan"));
  CHECK_FALSE(std::isfinite(records.all().at({Signal::update, "w"}).at(1).at({64, 3}).rms()));
}

TEST_CASE("Another file is refused by its line") {
  const test::TemporaryFolder folder;
  const std::string path = in(folder, "other");
  const auto message = [&](const std::string& text) {
    write_file(path, text);
    try {
      static_cast<void>(read_records(path));
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  append_records(in(folder, "good"), some(64, 1));
  const std::string good = read_file(in(folder, "good"), 1 << 20);
  CHECK(message(good + "no json\n").find("line 3") != std::string::npos);
  CHECK(message("{\"schema\":\"x\"}\n").find("scalewise.coordinates/1") != std::string::npos);
  CHECK(message(std::string(good).replace(good.find("\"size\":64"), 9, "\"size\":-4"))
            .find("size = -4") != std::string::npos);
  CHECK_THROWS_AS(read_records(in(folder, "none")), InvalidInput);
  CHECK_THROWS_AS(append_records(in(folder, "no/such/file"), some(64, 1)), InvalidInput);
}
