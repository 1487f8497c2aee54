// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/begin_report.hpp"

#include <nlohmann/json.hpp>

#include "frame/machine.hpp"

namespace scalewise::frame {

nlohmann::ordered_json begin_report(const std::string& name, int version, const Options& options) {
  return {{"schema", "scalewise." + name + "/" + std::to_string(version)},
          {"settings", options.settings()},
          {"machine", {{"products", products()}, {"vectors", vectors()}, {"threads", threads()}}}};
}

}  // namespace scalewise::frame
