// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/json_reader.hpp"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "support/catch.hpp"
#include "support/error_message.hpp"

namespace {

using scalewise::io::JsonReader;

/// The message with which a value is refused as a whole number.
std::string refusal(const nlohmann::ordered_json& value) {
  return scalewise::test::error_message([&] { JsonReader(value, "shape.vocab").integer(); });
}

}  // namespace

TEST_CASE("Whole numbers below 2^62 are read, those from there on refused", "[json]") {
  constexpr std::uint64_t bound = std::uint64_t{1} << 62U;
  const nlohmann::ordered_json below = bound - 1;
  CHECK(JsonReader(below, "shape.vocab").integer() == 4611686018427387903L);
  CHECK(refusal(bound) == "shape.vocab = 4611686018427387904: expected a whole number below 2^62");
  // These would become negative.
  CHECK(refusal(std::uint64_t{1} << 63U) ==
        "shape.vocab = 9223372036854775808: expected a whole number below 2^62");
  CHECK(refusal(std::numeric_limits<std::uint64_t>::max()) ==
        "shape.vocab = 18446744073709551615: expected a whole number below 2^62");
}

TEST_CASE("Only whole numbers are whole numbers", "[json]") {
  const nlohmann::ordered_json negative = -7;
  CHECK(JsonReader(negative, "x").integer() == -7);
  CHECK(refusal(1.5) == "shape.vocab = 1.5: expected a whole number");
  CHECK(refusal("12") == "shape.vocab = \"12\": expected a whole number");
  CHECK(refusal(true) == "shape.vocab = true: expected a whole number");
  CHECK(refusal(nullptr) == "shape.vocab = null: expected a whole number");
}
