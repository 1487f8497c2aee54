// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A checkpoint: one that is refused changes nothing, one that is accepted can be written again. An
// input is what stands between a checkpoint's first bytes and its checksum, or a whole file.

#include "scalewise/nn/checkpoint.hpp"

#include <cstdlib>
#include <cstring>

#include "fuzz/fuzz.hpp"
#include "fuzz/scratch_file.hpp"
#include "scalewise/plan/make_plan.hpp"

namespace scalewise::fuzz::checkpoint_target {

namespace {

Plan tiny_plan() {
  Shape shape;
  shape.d_model = shape.d_ff = shape.context = shape.vocab = 2;
  shape.depth = shape.heads = 1;
  return make_plan("gpt2", {.model = shape});
}

struct State {
  nn::Parameters<float> parameters{tiny_plan()};
  nn::OptimizerState<float> optimizer;
  nn::CheckpointInfo info{
      .step = 3, .plan = "0123456789abcdef", .inputs = {{"seed", "1"}}, .notes = {{"a", "b"}}};

  State() {
    parameters.values().setConstant(0.5F);
    optimizer.first = optimizer.second = dense::Memory<float>(parameters.values().size());
    optimizer.first.row() = optimizer.second.row() = parameters.values();
    optimizer.steps = 3;
  }

  std::string saved() const {
    const std::string path = scratch_file().path();
    save_checkpoint(path, parameters, optimizer, info);
    return files::read_file(path, 1 << 16);
  }
};

}  // namespace

static std::vector<std::string> seeds() {
  const std::string file = State().saved();
  constexpr std::size_t sum_size = 8;
  const std::size_t start = nn::detail::checkpoint_start;
  return {file.substr(start, file.size() - start - sum_size), file};
}

/// Eight bytes become a number at which programs fail.
static std::string edited(std::string input, Random& random) {
  static const std::vector<std::uint64_t> numbers{
      0, 1, 2, 1ULL << 31U, 1ULL << 32U, 1ULL << 61U, 1ULL << 62U, 1ULL << 63U, ~0ULL};
  if (input.size() < 8) return input;
  const std::uint64_t number = numbers[below(numbers.size(), random)];
  std::memcpy(input.data() + below(input.size() - 7, random), &number, 8);
  return input;
}

static void run(std::string_view input) {
  std::string file(input);
  if (!input.starts_with(nn::detail::checkpoint_magic)) {
    files::ByteWriter writer;
    writer.raw(nn::detail::checkpoint_magic);
    writer.number(nn::detail::checkpoint_version);
    writer.number(static_cast<std::uint64_t>(nn::detail::checkpoint_start + input.size() + 8));
    writer.raw(input);
    file = files::with_checksum(std::move(writer).take());
  }
  State state;
  static const std::string untouched = State().saved();
  const std::string path = scratch_file().with(file);
  try {
    state.info = load_checkpoint(path, state.parameters, state.optimizer, state.info);
  } catch (const InvalidInput&) {
    if (state.saved() != untouched) std::abort();
    throw;
  }
  if (state.saved() != file) std::abort();
}

static const Added added{{"checkpoint", seeds, edited, run}};

}  // namespace scalewise::fuzz::checkpoint_target
