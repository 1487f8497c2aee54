// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Names of code bases: which tensors of theirs a plan sets, and which model a list of tensors is.
#pragma once

#include "scalewise/dialect/all.hpp"
#include "scalewise/dialect/classify.hpp"
#include "scalewise/dialect/detect.hpp"
#include "scalewise/dialect/named_plan.hpp"
