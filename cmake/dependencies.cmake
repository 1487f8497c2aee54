# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# The library itself needs nothing. What the system has is used; what our own code needs and the system lacks is
# fetched, in these versions.
include(FetchContent)

macro(scalewise_need name target repository tag)
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON SYSTEM
    FIND_PACKAGE_ARGS GLOBAL)
  if(NOT TARGET ${target} AND own_code)
    FetchContent_MakeAvailable(${name})
  elseif(NOT TARGET ${target})  # for users of scalewise::json and scalewise::nn; no error when absent
    find_package(${name} QUIET GLOBAL)
  endif()
endmacro()

scalewise_need(nlohmann_json nlohmann_json::nlohmann_json https://github.com/nlohmann/json.git v3.11.3)
scalewise_need(fmt fmt::fmt https://github.com/fmtlib/fmt.git 9.1.0)
scalewise_need(Eigen3 Eigen3::Eigen https://gitlab.com/libeigen/eigen.git 3.4.0)
if(own_code)
  scalewise_need(CLI11 CLI11::CLI11 https://github.com/CLIUtils/CLI11.git v2.4.2)
endif()
if(SCALEWISE_BUILD_TESTS)
  scalewise_need(Catch2 Catch2::Catch2 https://github.com/catchorg/Catch2.git v3.5.4)
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
