// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "scalewise/messages/error.hpp"

namespace scalewise::test {

/// The message of the one error type that is allowed.
template <class Error = InvalidInput, class F>
std::string error_message(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The field that f() complains of.
template <class F>
std::string refused_field(F&& f) {
  try {
    f();
  } catch (const InvalidInput& error) {
    return error.field();
  }
  return "accepted";
}

}  // namespace scalewise::test
