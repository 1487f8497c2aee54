# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# cmake -D source=<dir> -P check_versions.cmake
# Fails unless CMakeLists.txt, CITATION.cff, the Python module and the top heading of CHANGELOG.md name
# one version.
cmake_minimum_required(VERSION 3.25)

function(read_version file pattern result)
  file(READ ${source}/${file} text)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "${file}: no version found")
  endif()
  set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

set(number "([0-9]+\\.[0-9]+\\.[0-9]+)")
read_version(CMakeLists.txt "project\\(scalewise[^)]*VERSION ${number}" cmake)
read_version(CITATION.cff "\nversion: \"?${number}" citation)
read_version(CHANGELOG.md "^[^#]*# [^#]*## \\[?${number}" changelog)
read_version(python/scalewise.py "__version__ = \"${number}" python)

if(NOT cmake STREQUAL citation OR NOT cmake STREQUAL changelog OR NOT cmake STREQUAL python)
  message(FATAL_ERROR "The versions differ: CMakeLists.txt ${cmake}, CITATION.cff ${citation}, "
    "CHANGELOG.md ${changelog}, python/scalewise.py ${python}")
endif()
message(STATUS "Version ${cmake} in all four files")
