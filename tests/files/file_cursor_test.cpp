// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/files/file_cursor.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/temporary_file.hpp"

namespace {

using scalewise::files::FileCursor;
using scalewise::test::TemporaryFile;

/// 40000 bytes, each of which tells its place: several blocks.
std::string numbered_bytes() {
  std::string bytes;
  for (int i = 0; i < 40000; ++i) bytes += static_cast<char>((i * 7 + i / 256) % 256);
  return bytes;
}

}  // namespace

TEST_CASE("A file cursor reads what is in the file, in pieces of any size", "[file]") {
  const std::string bytes = numbered_bytes();
  const TemporaryFile file(bytes);
  for (const std::size_t piece : {1U, 3U, 1000U, 16384U, 16385U, 40000U}) {
    FileCursor cursor(file.path());
    CHECK(cursor.size() == bytes.size());
    std::string all;
    while (cursor.left() > 0) {
      all += cursor.text(std::min<std::size_t>(piece, cursor.left()), "text");
      REQUIRE(cursor.position() == all.size());
    }
    CHECK(all == bytes);
  }
}

TEST_CASE("A file cursor skips within a block and beyond it", "[file]") {
  const std::string bytes = numbered_bytes();
  const TemporaryFile file(bytes);
  for (const std::size_t skipped : {0U, 1U, 16383U, 16384U, 20000U, 39990U}) {
    FileCursor cursor(file.path());
    const char first = cursor.byte("first");
    CHECK(first == bytes[0]);
    cursor.skip(skipped, "middle");
    CHECK(cursor.position() == 1 + skipped);
    CHECK(cursor.peek("next") == bytes[1 + skipped]);
    CHECK(cursor.text(9, "next") == bytes.substr(1 + skipped, 9));
  }
  FileCursor cursor(file.path());
  cursor.skip(bytes.size(), "all");
  CHECK(cursor.left() == 0);
}

TEST_CASE("A file cursor reads numbers with the lowest byte first", "[file]") {
  const TemporaryFile file(std::string("\x01\x02\x03\x04\x05\x06\x07\xff", 8));
  const auto natural = [&](unsigned bytes) { return FileCursor(file.path()).natural(bytes, "n"); };
  CHECK(natural(1) == 0x01);
  CHECK(natural(2) == 0x0201);
  CHECK(natural(4) == 0x04030201);
  CHECK(natural(8) == 0xFF07060504030201);
}

TEST_CASE("A file cursor names what the file is too short for", "[file]") {
  const TemporaryFile file("abcde");
  const auto message = [&](const auto& read) {
    std::string text = scalewise::test::error_message([&] {
      FileCursor cursor(file.path());
      cursor.byte("first");
      read(cursor);
    });
    return text.starts_with(file.path()) ? text.substr(file.path().size()) : text;
  };
  const std::string end = " (cut short): expected ";
  CHECK(message([](FileCursor& c) { c.natural(8, "n"); }) ==
        ": n" + end + "8 bytes, where 4 are left");
  CHECK(message([](FileCursor& c) { c.text(5, "name"); }) ==
        ": name" + end + "5 bytes, where 4 are left");
  CHECK(message([](FileCursor& c) { c.skip(~std::uint64_t{0}, "rest"); }) ==
        ": rest" + end + "18446744073709551615 bytes, where 4 are left");
  CHECK(message([](FileCursor& c) {
          c.skip(4, "rest");
          c.byte("last");
        }) == ": last" + end + "1 bytes, where 0 are left");
}

TEST_CASE("A file cursor knows places beyond 4 GiB", "[file]") {
  const TemporaryFile file("a");
  std::filesystem::resize_file(file.path(), (std::uintmax_t{1} << 33U) + 1);
  FileCursor cursor(file.path());
  CHECK(cursor.size() == 8589934593);
  CHECK(cursor.byte("first") == 'a');
  cursor.skip(8589934591, "middle");
  CHECK(cursor.byte("last") == '\0');
  CHECK(cursor.left() == 0);
}
