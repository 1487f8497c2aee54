// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Sizes that would overflow are refused, and the largest that do not are counted right.

#include <string>

#include "scalewise/policy/standard.hpp"
#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

namespace {

using namespace scalewise;
using scalewise::test::error_message;

constexpr long largest = 1L << 30;

/// Every matrix has 2^60 entries: of one layer, six; and the token embedding.
Shape huge(long depth) {
  Shape s{.d_model = largest, .depth = depth, .heads = 1, .d_ff = largest, .context = 1};
  s.vocab = largest;
  s.tied_head = true;
  return s;
}

}  // namespace

TEST_CASE("The features of all heads together are bounded") {
  Shape s = huge(1);
  s.heads = 1L << 15;
  s.head_dim = 1L << 15;
  CHECK(resolved(s).head_dim == 1L << 15);
  s.head_dim += 1;
  const std::string refused = error_message([&] { resolved(s); });
  CHECK_THAT(refused, Catch::Matchers::ContainsSubstring("head_dim = 32769"));
  CHECK_THAT(refused, Catch::Matchers::ContainsSubstring("heads * head_dim at most 2^30"));
  s.heads = s.head_dim = largest;  // the product alone would still fit, that with d_model not
  CHECK_THAT(error_message([&] { resolved(s); }), Catch::Matchers::ContainsSubstring("head_dim"));
}

TEST_CASE("Parameters are counted up to 2^63 and refused from there on") {
  const auto count = [](const Shape& s) {
    return make_plan(Standard{}, {.model = s}).parameter_count();
  };
  // 7 matrices, one position, biases of 6 widths, and 3 norms with gain and bias.
  CHECK(count(huge(1)) == 7 * (1L << 60) + (1 + 6 + 4 + 2) * largest);
  CHECK_THAT(error_message([&] { count(huge(2)); }),
             Catch::Matchers::ContainsSubstring("parameter count"));
  Shape untied = huge(1);  // 8 matrices are 2^63 exactly
  untied.tied_head = false;
  CHECK_THAT(error_message([&] { count(untied); }),
             Catch::Matchers::ContainsSubstring("parameter count"));
}

TEST_CASE("Steps of training may be more than 2^30, sizes may not") {
  Shape s = huge(1);
  s.iterations = 1L << 40;
  CHECK(resolved(s).iterations == 1L << 40);
  s.vocab += 1;
  CHECK_THAT(error_message([&] { resolved(s); }),
             Catch::Matchers::ContainsSubstring("vocab = 1073741825: expected at most 2^30"));
}

TEST_CASE("Heads are a multiple of the heads of keys and values") {
  Shape s = huge(1);
  s.heads = 6;
  s.head_dim = 1;
  for (const long kv_heads : {1L, 2L, 3L, 6L}) {
    s.kv_heads = kv_heads;
    CHECK(resolved(s).kv_heads == kv_heads);
  }
  for (const long kv_heads : {4L, 5L, 12L}) {
    s.kv_heads = kv_heads;
    CHECK_THAT(error_message([&] { resolved(s); }),
               Catch::Matchers::ContainsSubstring("a divisor of heads = 6"));
  }
}
