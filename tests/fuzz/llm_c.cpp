// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A checkpoint of llm.c. An input is the numbers of a header that are not zero, then how large the
// file is: 8 whole numbers for GPT-2, and for Llama 12 of them and a factor. The file that the first
// refusal asks for is read as well.

#include "scalewise/io/llm_c.hpp"

#include <cctype>

#include "fuzz/fuzz.hpp"
#include "fuzz/stored_tensors.hpp"
#include "scalewise/messages/error.hpp"
#include "support/model_bytes.hpp"

namespace scalewise::fuzz::llm_c_target {

static std::vector<std::string> seeds() {
  test::ModelBytes gpt2;
  for (const unsigned n : {20240326U, 3U, 6U, 10U, 2U, 3U, 12U, 16U}) gpt2.u32(n);
  test::ModelBytes llama;
  for (const unsigned n : {20240803U, 5U, 6U, 10U, 2U, 4U, 2U, 16U, 8U, 1U, 3U, 1U}) llama.u32(n);
  return {gpt2.text(), llama.f32(1.3F).text()};
}

static std::string edited(std::string input, Random& random) {
  // At whole numbers alone.
  if (input.size() < 4) return input;
  const std::size_t at = below(input.size() / 4, random) * 4;
  return input.replace(at, 4, with_hostile_number(input.substr(at, 4), 4, random));
}

static void run(std::string_view input) {
  const std::size_t numbers = (std::min)(input.size(), std::size_t{48});
  std::string head(input.substr(0, numbers));
  head.resize(1024);
  head.append(input.substr(numbers, 4));
  head.resize(2048);
  try {
    const std::string path = sparse_file(head, head.size());
    check_stored(io::read_llm_c(path), head.size());
  } catch (const InvalidInput& error) {
    const std::string text = error.what();
    const std::string expected = ": expected ";
    std::size_t at = text.find(expected);
    if (text.find(": size = ") == std::string::npos || at == std::string::npos) throw;
    std::uintmax_t size = 0;
    for (at += expected.size(); std::isdigit(static_cast<unsigned char>(text[at])) != 0; ++at) {
      size = size * 10 + static_cast<std::uintmax_t>(text[at] - '0');
    }
    if (size > std::uintmax_t{1} << 40U) throw;
    // A header of 1024 bytes may be longer than its file.
    const std::string path = scratch_file().with(head);
    std::filesystem::resize_file(path, size);
    check_stored(io::read_llm_c(path), size);
  }
}

static const Added added{{"llm_c", seeds, edited, run}};

}  // namespace scalewise::fuzz::llm_c_target
