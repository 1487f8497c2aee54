// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/architecture/observables.hpp"

#include <string>

#include "scalewise/files/read_file.hpp"
#include "support/catch.hpp"

using namespace scalewise;

TEST_CASE("The page of the reference transformer has every observable", "[observables]") {
  const std::string page =
      files::read_file(SCALEWISE_TEST_DIR "/../docs/reference_transformer.md", 1U << 20U);
  for (const architecture::Observable& known : architecture::observables) {
    const std::string row = "\n| `" + std::string(known.name) + "` | " + std::string(known.shape) +
                            " | " + std::string(known.meaning) + " |\n";
    INFO(row);
    CHECK(page.find(row) != std::string::npos);
  }
}

TEST_CASE("A misspelt observable is told from a known one", "[observables]") {
  CHECK(architecture::is_observable("mlp.output"));
  CHECK(architecture::is_observable("cross_attention.scores"));
  CHECK_FALSE(architecture::is_observable("mlp.ouput"));
  CHECK(architecture::nearest_observable("mlp.ouput").hint() == "did you mean mlp.output?");
}
