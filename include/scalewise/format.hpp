// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Plans as text: formatters of fmt, tables, training code for other programs. Needs nlohmann-json and fmt.
#pragma once

#include "scalewise/check/format.hpp"
#include "scalewise/io/fairseq_groups.hpp"
#include "scalewise/io/megatron_overrides.hpp"
#include "scalewise/io/named_table.hpp"
#include "scalewise/io/neox_groups.hpp"
#include "scalewise/io/plan_table.hpp"
#include "scalewise/io/tensor_rows.hpp"
#include "scalewise/io/torch_groups.hpp"
#include "scalewise/io/torchtitan_groups.hpp"
