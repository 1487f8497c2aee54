# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# The layers, written here and nowhere else: a header in include/scalewise/<folder> includes headers of its own
# folder, of folders that stand before it in its library, and of libraries that its library needs
# (tests/house/check_tree.py). The doors, include/scalewise/*.hpp, are what users include.

# scalewise_add_library(name FOLDERS folder... DOORS door... [NEEDS target...])
function(scalewise_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FOLDERS;DOORS;NEEDS")
  string(REPLACE scalewise_scalewise scalewise target scalewise_${name})
  list(TRANSFORM arg_FOLDERS REPLACE "(.+)" "include/scalewise/\\1/*.hpp" OUTPUT_VARIABLE patterns)
  file(GLOB headers CONFIGURE_DEPENDS ${patterns})
  list(TRANSFORM arg_DOORS REPLACE "(.+)" "include/scalewise/\\1.hpp" OUTPUT_VARIABLE doors)
  add_library(${target} INTERFACE)
  add_library(scalewise::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_link_libraries(${target} INTERFACE ${arg_NEEDS})
  target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS include FILES ${headers} ${doors})
endfunction()

# The standard library alone.
scalewise_add_library(scalewise
  FOLDERS messages files numeric scaling architecture policy plan dialect propagation
  DOORS scalewise names theory)
# Files, tables, checks.
scalewise_add_library(json
  FOLDERS io plot check testing
  DOORS json format check testing
  NEEDS scalewise nlohmann_json::nlohmann_json fmt::fmt)
# Models and kernels. Link OpenMP::OpenMP_CXX next to it to use all cores.
scalewise_add_library(nn
  FOLDERS dense nn data kernels
  DOORS nn kernels
  NEEDS scalewise Eigen3::Eigen)
# LibTorch is linked where a project has found it by find_package(Torch).
scalewise_add_library(torch
  FOLDERS libtorch
  DOORS torch
  NEEDS scalewise_json $<TARGET_NAME_IF_EXISTS:torch> $<TARGET_NAME_IF_EXISTS:torch_library>)

# The preset dev compiles each header on its own. LibTorch's need it; Eigen's take half a minute each.
set_target_properties(scalewise_torch PROPERTIES VERIFY_INTERFACE_HEADER_SETS OFF)
set_target_properties(scalewise_nn PROPERTIES VERIFY_INTERFACE_HEADER_SETS ${SCALEWISE_TEST_SLOW})
