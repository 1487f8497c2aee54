// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// For modules of LibTorch: descriptions of any of them, initialize, parameter groups, the optimizer read back, and a
// recorder for the coordinate check. The target is scalewise::torch.
#pragma once

#include "scalewise/libtorch/describe.hpp"
#include "scalewise/libtorch/module_recorder.hpp"
#include "scalewise/libtorch/planned_module.hpp"
#include "scalewise/libtorch/planned_optimizer.hpp"
