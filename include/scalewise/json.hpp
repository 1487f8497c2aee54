// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Files: plans, shapes and dialects as JSON, config.json, files of models. Needs nlohmann-json and fmt.
#pragma once

#include "scalewise/io/config_json.hpp"
#include "scalewise/io/describe_config.hpp"
#include "scalewise/io/description_json.hpp"
#include "scalewise/io/dialect_json.hpp"
#include "scalewise/io/named_plan_json.hpp"
#include "scalewise/io/plan_json.hpp"
#include "scalewise/io/shape_json.hpp"
#include "scalewise/io/tensor_file.hpp"
