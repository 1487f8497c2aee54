# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# cmake -D source=<dir> -P check_versions.cmake
# Fails unless CMakeLists.txt, meson.build, CITATION.cff, the Python module and the top heading of CHANGELOG.md
# name one version.
cmake_minimum_required(VERSION 3.25)

function(read_version file pattern)
  file(READ ${source}/${file} text)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "${file}: no version found")
  endif()
  if(DEFINED version AND NOT version STREQUAL CMAKE_MATCH_1)
    message(FATAL_ERROR "${file}: version ${CMAKE_MATCH_1}: expected ${version}, as in CMakeLists.txt")
  endif()
  set(version ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

set(number "([0-9]+\\.[0-9]+\\.[0-9]+)")
read_version(CMakeLists.txt "project\\(scalewise[^)]*VERSION ${number}")
read_version(meson.build "project\\([^)]* version: '${number}")
read_version(CITATION.cff "\nversion: \"?${number}")
read_version(CHANGELOG.md "^[^#]*# [^#]*## \\[?${number}")
read_version(python/scalewise.py "__version__ = \"${number}")
