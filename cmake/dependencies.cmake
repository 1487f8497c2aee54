# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT

# The library itself needs nothing. What the system has is used; what the tests, the examples and
# the laboratory need and the system lacks is fetched, in these versions.
include(FetchContent)

FetchContent_Declare(nlohmann_json
  GIT_REPOSITORY https://github.com/nlohmann/json.git
  GIT_TAG v3.11.3
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS GLOBAL)
FetchContent_Declare(fmt
  GIT_REPOSITORY https://github.com/fmtlib/fmt.git
  GIT_TAG 9.1.0
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS GLOBAL)
FetchContent_Declare(Eigen3
  GIT_REPOSITORY https://gitlab.com/libeigen/eigen.git
  GIT_TAG 3.4.0
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS GLOBAL)
FetchContent_Declare(CLI11
  GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git
  GIT_TAG v2.4.2
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS)
FetchContent_Declare(Catch2
  GIT_REPOSITORY https://github.com/catchorg/Catch2.git
  GIT_TAG v3.5.4
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS)

if(SCALEWISE_BUILD_TESTS OR SCALEWISE_BUILD_EXAMPLES OR SCALEWISE_BUILD_FUZZERS)
  if(NOT TARGET nlohmann_json::nlohmann_json)
    FetchContent_MakeAvailable(nlohmann_json)
  endif()
  if(NOT TARGET fmt::fmt)
    FetchContent_MakeAvailable(fmt)
  endif()
  if(NOT TARGET Eigen3::Eigen)
    FetchContent_MakeAvailable(Eigen3)
  endif()
else()
  # For users of scalewise::json and scalewise::nn by add_subdirectory; no error when absent.
  if(NOT TARGET nlohmann_json::nlohmann_json)
    find_package(nlohmann_json QUIET GLOBAL)
  endif()
  if(NOT TARGET fmt::fmt)
    find_package(fmt QUIET GLOBAL)
  endif()
  if(NOT TARGET Eigen3::Eigen)
    find_package(Eigen3 QUIET GLOBAL)
  endif()
endif()
if((SCALEWISE_BUILD_TESTS OR SCALEWISE_BUILD_EXAMPLES OR SCALEWISE_BUILD_FUZZERS)
   AND NOT TARGET CLI11::CLI11)
  FetchContent_MakeAvailable(CLI11)
endif()
if(SCALEWISE_BUILD_TESTS)
  if(NOT TARGET Catch2::Catch2)
    FetchContent_MakeAvailable(Catch2)
  endif()
  # Where Catch.cmake lies: in an installed Catch2 beside its config, in the sources in extras/.
  list(APPEND CMAKE_MODULE_PATH "${Catch2_DIR}" "${catch2_SOURCE_DIR}/extras")
endif()

# For the adapter's test and example; nothing else needs it.
if(SCALEWISE_TEST_MODELS AND (SCALEWISE_BUILD_TESTS OR SCALEWISE_BUILD_EXAMPLES))
  set(FPHSA_NAME_MISMATCHED ON)  # Torch's own packages are warned of otherwise
  find_package(Torch QUIET)
  if(NOT Torch_FOUND)
    message(STATUS "LibTorch (libtorch-dev) was not found: its adapter is not tested, torch_gpt not built")
  endif()
endif()
