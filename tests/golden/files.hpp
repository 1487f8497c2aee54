// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// One function per file of expected values that golden checks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "golden/tally.hpp"

namespace scalewise::golden {

/// Each checks every case of its file. Returns: how many cases there are.
long check_kernels(const nlohmann::ordered_json& file, Tally& tally);
long check_rules(const nlohmann::ordered_json& file, Tally& tally);
long check_signal_propagation(const nlohmann::ordered_json& file, Tally& tally);

/// "rule under optimizer" for each that has no case.
std::vector<std::string> rules_without_case(const nlohmann::ordered_json& rules);

}  // namespace scalewise::golden
