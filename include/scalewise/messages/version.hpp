// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The version, and what the headers ask of compilers. Every door has this header.
#pragma once

#if __cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#error "scalewise needs C++20: compile with -std=c++20, or /std:c++20"
// Under such flags a comparison with NaN is what the compiler likes, and a run that diverged would pass.
#elif (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ != 0) || defined(_M_FP_FAST)
#error \
    "scalewise needs infinities and NaN: add -fno-finite-math-only after -ffast-math or -Ofast; /fp:precise instead of /fp:fast"
#elif !defined(__cpp_exceptions)
#error "scalewise reports bad input by exceptions: leave out -fno-exceptions, or add /EHsc"
#else
#define SCALEWISE_VERSION "0.1.0"
#define SCALEWISE_VERSION_MAJOR 0
#define SCALEWISE_VERSION_MINOR 1
#define SCALEWISE_VERSION_PATCH 0
#endif

// Exceptions thrown in a shared library with hidden symbols can be caught outside of it.
#if defined(__GNUC__)
#define SCALEWISE_VISIBLE __attribute__((visibility("default")))
#else
#define SCALEWISE_VISIBLE
#endif
