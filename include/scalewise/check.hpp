// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Checks: records of a model that trains, and verdicts on them. Needs nlohmann-json and fmt.
#pragma once

#include "scalewise/check/alignment.hpp"
#include "scalewise/check/coordinate_check.hpp"
#include "scalewise/check/family.hpp"
#include "scalewise/check/judge_sweep.hpp"
#include "scalewise/check/judge_transfer.hpp"
#include "scalewise/check/optimizer_check.hpp"
#include "scalewise/check/profile.hpp"
#include "scalewise/check/record_csv.hpp"
#include "scalewise/check/record_file.hpp"
#include "scalewise/check/recorder.hpp"
#include "scalewise/check/sweep.hpp"
#include "scalewise/check/sweep_table.hpp"
#include "scalewise/check/tangent_kernel.hpp"
