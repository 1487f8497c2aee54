// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// What golden knows to check: one function per file of expected values.
#pragma once

#include <nlohmann/json.hpp>

#include "golden/tally.hpp"

namespace scalewise::golden {

/// Each checks every case of its file. Returns: how many cases there are.
long check_kernels(const nlohmann::json& file, Tally& tally);
long check_rules(const nlohmann::json& file, Tally& tally);
long check_signal_propagation(const nlohmann::json& file, Tally& tally);

/// Complains of each rule of the registry without a case under an optimizer that it supports.
void check_every_rule(const nlohmann::json& rules, Tally& tally);

}  // namespace scalewise::golden
