// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Only here to be compiled with the precompiled header that all test programs reuse.

#include "support/catch.hpp"
