# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT

if(CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang|AppleClang)$")
  target_compile_options(scalewise_dev INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
    $<$<BOOL:${SCALEWISE_WERROR}>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports string concatenation at -O2 by mistake (GCC bug 105329).
  target_compile_options(scalewise_dev INTERFACE -Wno-restrict)
endif()
