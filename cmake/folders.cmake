# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT

# scalewise_add_folder(name NEEDS target...): the headers of include/scalewise/<name>, which declare
# namespace scalewise::<name>, as the target scalewise::<name>. Its order below is the order of the
# layers: a folder includes nothing but the folders that it needs, and what those need.
function(scalewise_add_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" NEEDS)
  file(GLOB headers CONFIGURE_DEPENDS include/scalewise/${name}/*.hpp)
  add_library(scalewise_${name} INTERFACE)
  add_library(scalewise::${name} ALIAS scalewise_${name})
  set_target_properties(scalewise_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(scalewise_${name} INTERFACE cxx_std_20)
  target_link_libraries(scalewise_${name} INTERFACE ${arg_NEEDS})
  target_sources(scalewise_${name} INTERFACE FILE_SET HEADERS BASE_DIRS include FILES ${headers})
  set_property(GLOBAL APPEND PROPERTY scalewise_folders ${name})
endfunction()

# The standard library only.
scalewise_add_folder(messages)
scalewise_add_folder(files NEEDS scalewise_messages)
scalewise_add_folder(numeric NEEDS scalewise_messages)
scalewise_add_folder(scaling NEEDS scalewise_numeric)
scalewise_add_folder(architecture NEEDS scalewise_scaling)
scalewise_add_folder(policy NEEDS scalewise_architecture)
scalewise_add_folder(plan NEEDS scalewise_policy scalewise_files)
scalewise_add_folder(dialect NEEDS scalewise_plan)
scalewise_add_folder(propagation NEEDS scalewise_plan)

# JSON and fmt as well.
scalewise_add_folder(io NEEDS scalewise_dialect nlohmann_json::nlohmann_json fmt::fmt)
scalewise_add_folder(plot NEEDS scalewise_io)
scalewise_add_folder(check NEEDS scalewise_io)

# Matchers for users' unit tests.
scalewise_add_folder(testing NEEDS scalewise_check)
target_sources(scalewise_testing INTERFACE
  FILE_SET HEADERS FILES include/scalewise/testing.hpp)

# Eigen as well. Link OpenMP::OpenMP_CXX next to them to use all cores.
scalewise_add_folder(dense NEEDS Eigen3::Eigen)
scalewise_add_folder(nn NEEDS scalewise_plan scalewise_dense)
scalewise_add_folder(data NEEDS scalewise_nn)
scalewise_add_folder(kernels NEEDS scalewise_plan scalewise_dense)

# LibTorch as well. It is linked where a project has found it by find_package(Torch).
scalewise_add_folder(libtorch NEEDS scalewise_check)
set_target_properties(scalewise_libtorch PROPERTIES VERIFY_INTERFACE_HEADER_SETS OFF)
add_library(scalewise_torch INTERFACE)
add_library(scalewise::torch ALIAS scalewise_torch)
set_target_properties(scalewise_torch PROPERTIES EXPORT_NAME torch VERIFY_INTERFACE_HEADER_SETS OFF)
target_link_libraries(scalewise_torch INTERFACE
  scalewise_libtorch $<TARGET_NAME_IF_EXISTS:torch> $<TARGET_NAME_IF_EXISTS:torch_library>)
target_sources(scalewise_torch INTERFACE
  FILE_SET HEADERS BASE_DIRS include FILES include/scalewise/torch.hpp)

# All that needs the standard library only.
add_library(scalewise INTERFACE)
add_library(scalewise::scalewise ALIAS scalewise)
target_link_libraries(scalewise INTERFACE scalewise_propagation)
target_sources(scalewise INTERFACE
  FILE_SET HEADERS BASE_DIRS include FILES include/scalewise/scalewise.hpp)

# Formatters of fmt for what the library computes.
add_library(scalewise_format INTERFACE)
add_library(scalewise::format ALIAS scalewise_format)
set_target_properties(scalewise_format PROPERTIES EXPORT_NAME format)
target_link_libraries(scalewise_format INTERFACE scalewise_check)
target_sources(scalewise_format INTERFACE
  FILE_SET HEADERS BASE_DIRS include FILES include/scalewise/format.hpp)
