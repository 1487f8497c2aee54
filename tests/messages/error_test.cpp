// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/messages/error.hpp"

#include <string>

#include "support/catch.hpp"

using namespace scalewise;

TEST_CASE("A message holds nothing that a terminal obeys, whatever the value") {
  const std::string message = InvalidInput("name", "a\x1b[2Jb\nc", "a name", "not\rthis").what();
  for (const char c : message) {
    INFO(static_cast<int>(c));
    CHECK(static_cast<unsigned char>(c) >= 0x20);
  }
  CHECK(message.find('\x1b') == std::string::npos);
  CHECK(message.find('\r') == std::string::npos);
}
