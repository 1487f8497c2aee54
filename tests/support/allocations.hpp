// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Counts what the program asks of the heap. allocations.cpp has to be linked into the program.

#pragma once

namespace scalewise::benchmark {

/// Allocations so far, in all threads.
long allocation_count();

/// The calls that are counted: "malloc" (operator new included), "operator new", or "nothing" when a trial
/// allocation goes unseen, as under a sanitizer.
const char* counted_allocations();

}  // namespace scalewise::benchmark
