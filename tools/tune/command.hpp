// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A run by a command of the user.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/messages/words.hpp"

namespace scalewise::tune {

/// Where a command prints its loss: in its last line that is a JSON object with "loss", or as the last number of its last line.
enum class LossFrom { json, number };
inline constexpr messages::Spelling<LossFrom, 2> loss_from_words{
    {{LossFrom::json, "json"}, {LossFrom::number, "number"}}};

/// The result of a run.
struct Outcome {
  double loss = 0;          // infinite: it failed
  std::string reason = {};  // why
};

/// A command with each {name} replaced by its value as one word of the shell; other braces are left alone.
std::string filled(std::string_view command,
                   const std::vector<std::pair<std::string, std::string>>& values);

/// The loss in the output of a command that ended well.
Outcome loss_in(std::string_view output, LossFrom from);

/// Runs a command by sh, in a process group of its own, and reads its loss. What it writes goes to `log`.out and
/// `log`.err, which stay where it fails.
/// Returns:  nothing when the program was asked to stop; then the command and all that it started have been stopped.
std::optional<Outcome> run_command(const std::string& command, LossFrom from,
                                   const std::string& log);

}  // namespace scalewise::tune
