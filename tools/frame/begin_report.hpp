// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "frame/options.hpp"

namespace scalewise::frame {

/// How every report in JSON begins.
/// Returns:  "schema", scalewise.<name>/<version>; "settings", what was asked for; "machine", what
///           computed it: "products", "vectors" and "threads".
nlohmann::ordered_json begin_report(const std::string& name, int version, const Options& options);

}  // namespace scalewise::frame
