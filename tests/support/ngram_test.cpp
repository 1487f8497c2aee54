// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "support/ngram.hpp"

#include <string>

#include "scalewise/data/text.hpp"
#include "support/catch.hpp"
#include "support/tolerances.hpp"

namespace {

using namespace scalewise::test;
using Catch::Matchers::WithinRel;

}  // namespace

TEST_CASE("On the shipped text a 3-gram reaches what another implementation does", "[support]") {
  const auto text = scalewise::data::split_tokens(scalewise::data::read_byte_tokens(
      std::string(SCALEWISE_TEST_DIR) + "/../tools/data/austen_persuasion.txt"));
  const Ngram model(text.train, 256);
  // Counted again in Python, with expectation maximization until nothing changes.
  CHECK_THAT(model.nats_per_token(text.validation, text.validation.size() - 1),
             WithinRel(1.8972275680788326, 1e-6));
  CHECK_THAT(model.weights()[3], WithinRel(0.9828212708, 1e-6));
}
