// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/files/bytes.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/files/inputs.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "scalewise/nn/parameters.hpp"
#include "scalewise/plan/fingerprint.hpp"

namespace scalewise::nn {

/// The contents of a checkpoint besides the numbers.
struct CheckpointInfo {
  long step = 0;                      // steps done
  std::string plan;                   // plan_fingerprint()
  files::Inputs inputs;               // have to be the same when it is loaded
  std::vector<files::Setting> notes;  // whatever else has to be remembered
};

namespace detail {

/// The file format; docs/training.md writes it down.
inline constexpr std::string_view checkpoint_magic = "\x89SCALEW\n";
inline constexpr std::uint32_t checkpoint_version = 1;
inline constexpr std::size_t checkpoint_start =  // magic, version, length of the file
    checkpoint_magic.size() + sizeof(std::uint32_t) + sizeof(std::uint64_t);

[[noreturn]] inline void refuse_checkpoint(const std::string& path, const std::string& is,
                                           const std::string& expected,
                                           const std::string& hint = {}) {
  throw InvalidInput("checkpoint " + path, is, expected, hint);
}

inline std::string scalar_name(std::uint32_t bytes) { return bytes == 4 ? "float" : "double"; }

/// A checkpoint in memory.
template <class Scalar>
struct CheckpointContent {
  struct SavedTensor {
    std::string name;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
  };

  CheckpointInfo info;
  std::int64_t step = 0;
  std::int64_t optimizer_steps = 0;
  std::vector<SavedTensor> tensors;
  std::vector<Scalar> values, first, second;
};

template <class Scalar>
void write_numbers(files::ByteWriter& writer, const Scalar* data, Eigen::Index size) {
  writer.number(static_cast<std::uint64_t>(size));
  writer.numbers(data, static_cast<std::size_t>(size));
}

template <class Scalar>
std::vector<Scalar> read_numbers(files::ByteReader& reader) {
  const auto count = reader.number<std::uint64_t>();
  if (!reader.has(count, sizeof(Scalar))) return {};
  std::vector<Scalar> numbers(count);
  reader.numbers(numbers.data(), numbers.size());
  return numbers;
}

/// Reads all from after the scalar type up to the checksum.
template <class Scalar>
CheckpointContent<Scalar> read_body(files::ByteReader& reader) {
  CheckpointContent<Scalar> content;
  content.step = reader.number<std::int64_t>();
  content.info.plan = reader.text();
  content.info.inputs = files::read_inputs(reader);
  content.info.notes = files::read_inputs(reader);
  content.optimizer_steps = reader.number<std::int64_t>();
  for (auto count = reader.number<std::uint64_t>(); count > 0 && reader.good(); --count) {
    std::string name = reader.text();
    const auto rows = reader.number<std::int64_t>();
    content.tensors.push_back({std::move(name), rows, reader.number<std::int64_t>()});
  }
  content.values = read_numbers<Scalar>(reader);
  content.first = read_numbers<Scalar>(reader);
  content.second = read_numbers<Scalar>(reader);
  return content;
}

/// The bytes of a file that its checksum covers; refuses a file that is cut off or damaged.
inline std::string_view undamaged(const std::string& path, const std::string& bytes) {
  if (!std::string_view(bytes).starts_with(checkpoint_magic)) {
    refuse_checkpoint(path, bytes.empty() ? "(empty)" : "(another kind of file)", "a checkpoint");
  }
  files::ByteReader reader(bytes);
  reader.raw(checkpoint_magic.size());
  const auto version = reader.number<std::uint32_t>();
  if (reader.good() && version != checkpoint_version) {
    refuse_checkpoint(path, "version " + std::to_string(version),
                      "version " + std::to_string(checkpoint_version));
  }
  const auto length = reader.number<std::uint64_t>();
  if (!reader.good() || bytes.size() < length) {
    refuse_checkpoint(path, std::to_string(bytes.size()) + " bytes",
                      reader.good() ? std::to_string(length) + " bytes" : "more",
                      "the file is cut off");
  }
  const std::optional<std::string_view> covered = files::without_checksum(bytes);
  if (bytes.size() != length || !covered) {
    refuse_checkpoint(path, "(damaged)", "a file that matches its checksum");
  }
  return *covered;
}

/// A file that is whole and undamaged, taken apart.
template <class Scalar>
CheckpointContent<Scalar> read_checkpoint(const std::string& path) {
  const std::string bytes = files::read_file(path, (std::numeric_limits<std::size_t>::max)());
  files::ByteReader reader(undamaged(path, bytes));
  reader.raw(checkpoint_start);
  const auto scalar = reader.number<std::uint32_t>();
  if (scalar != sizeof(Scalar)) {
    refuse_checkpoint(path + ", scalar type", scalar_name(scalar), scalar_name(sizeof(Scalar)),
                      "numbers are not converted");
  }
  CheckpointContent<Scalar> content = read_body<Scalar>(reader);
  if (!reader.good() || !reader.at_end()) {
    refuse_checkpoint(path, "(damaged)", "what its own counts promise");
  }
  for (const std::int64_t steps : {content.step, content.optimizer_steps}) {
    if (steps >= 0 && steps <= (std::numeric_limits<long>::max)()) continue;
    refuse_checkpoint(path + ", steps", std::to_string(steps), "a number of steps");
  }
  content.info.step = static_cast<long>(content.step);
  return content;
}

/// Throws:   InvalidInput for the first input that is not the same, or the plan.
inline void require_same_run(const std::string& path, const CheckpointInfo& saved,
                             const CheckpointInfo& wanted) {
  files::require_same_inputs(wanted.inputs, saved.inputs, "checkpoint " + path,
                             "use another file for another experiment, or --overwrite");
  if (saved.plan != wanted.plan) {
    throw InvalidInput("plan", wanted.plan,
                       messages::printable(saved.plan) + ", as in checkpoint " + path,
                       "another rule, parameter of a rule, shape or base");
  }
}

/// Throws:   InvalidInput for the first tensor that is not the same.
template <class Scalar>
void require_same_tensors(const std::string& path, const CheckpointContent<Scalar>& content,
                          const Parameters<Scalar>& parameters) {
  const auto shown = [](const std::string& name, std::int64_t rows, std::int64_t columns) {
    return messages::printable(name) + " of " + std::to_string(rows) + " x " +
           std::to_string(columns);
  };
  const std::size_t count = content.tensors.size();
  for (std::size_t i = 0; i < count || i < parameters.size(); ++i) {
    std::string saved = "no more tensor";
    std::string wanted = saved;
    if (i < count) {
      const auto& tensor = content.tensors[i];
      saved = shown(tensor.name, tensor.rows, tensor.columns);
    }
    if (i < parameters.size()) {
      const ConstView<Scalar> value = parameters.value(i);
      wanted = shown(parameters.name(i), value.rows(), value.cols());
    }
    if (saved != wanted) refuse_checkpoint(path, saved, wanted, "the model has another shape");
  }
  if (content.values.size() != static_cast<std::size_t>(parameters.values().size())) {
    refuse_checkpoint(path, std::to_string(content.values.size()) + " values",
                      std::to_string(parameters.values().size()));
  }
}

inline void require_same_moments(const std::string& path, const char* which, std::size_t saved,
                                 Eigen::Index wanted) {
  if (saved == static_cast<std::size_t>(wanted)) return;
  refuse_checkpoint(path, std::to_string(saved) + " " + which, std::to_string(wanted),
                    "another optimizer");
}

}  // namespace detail

/// Writes parameters, optimizer state and what belongs to them into one file, which readers see
/// whole or not at all, and which is on disk when this returns. docs/training.md has the format.
/// Throws:   InvalidInput when not all can be written; what was there before is then still there.
template <class Scalar>
void save_checkpoint(const std::string& path, const Parameters<Scalar>& parameters,
                     const OptimizerState<Scalar>& state, const CheckpointInfo& info) {
  files::ByteWriter body;
  body.number(static_cast<std::uint32_t>(sizeof(Scalar)));
  body.number(static_cast<std::int64_t>(info.step));
  body.text(info.plan);
  files::write_inputs(body, info.inputs);
  files::write_inputs(body, info.notes);
  body.number(static_cast<std::int64_t>(state.steps));
  body.number(static_cast<std::uint64_t>(parameters.size()));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ConstView<Scalar> value = parameters.value(i);
    body.text(parameters.name(i));
    body.number(static_cast<std::int64_t>(value.rows()));
    body.number(static_cast<std::int64_t>(value.cols()));
  }
  const ConstView<Scalar> values = parameters.values();
  detail::write_numbers(body, values.data(), values.size());
  detail::write_numbers(body, state.first.data(), state.first.size());
  detail::write_numbers(body, state.second.data(), state.second.size());

  files::ByteWriter file;
  file.raw(detail::checkpoint_magic);
  file.number(detail::checkpoint_version);
  constexpr std::size_t sum_size = sizeof(std::uint64_t);
  file.number(
      static_cast<std::uint64_t>(detail::checkpoint_start + body.bytes().size() + sum_size));
  file.raw(body.bytes());
  files::write_file(path, files::with_checksum(std::move(file).take()));
}

/// Reads a checkpoint back, bit for bit, and returns its contents besides the numbers.
/// Requires: `wanted` has the plan and the inputs of the run that is resumed; its step and notes are
///           ignored.
/// Throws:   InvalidInput, and changes nothing, for a file that is missing, no checkpoint, of
///           another version, cut off or damaged; for another scalar type; for another input or
///           plan, which it names; for other tensors, naming the first and both sizes; for another
///           optimizer.
template <class Scalar>
CheckpointInfo load_checkpoint(const std::string& path, Parameters<Scalar>& parameters,
                               OptimizerState<Scalar>& state, const CheckpointInfo& wanted) {
  const auto content = detail::read_checkpoint<Scalar>(path);
  detail::require_same_run(path, content.info, wanted);
  detail::require_same_tensors(path, content, parameters);
  detail::require_same_moments(path, "first moments", content.first.size(), state.first.size());
  detail::require_same_moments(path, "second moments", content.second.size(), state.second.size());

  const auto copy = [](const std::vector<Scalar>& from, Scalar* to) {
    std::copy(from.begin(), from.end(), to);
  };
  copy(content.values, parameters.values().data());
  copy(content.first, state.first.data());
  copy(content.second, state.second.data());
  state.steps = static_cast<long>(content.optimizer_steps);
  return content.info;
}

}  // namespace scalewise::nn
