# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# Configures, builds and runs project/ in one mode, then looks for flags that our target leaked.
cmake_minimum_required(VERSION 3.25)

set(arguments -D MODE=${mode})
if(mode MATCHES "^find_package")
  list(APPEND arguments -D CMAKE_PREFIX_PATH=${prefix})
  if(mode STREQUAL "find_package")
    # The library must be found where nlohmann-json and Eigen are not.
    list(APPEND arguments -D CMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON
      -D CMAKE_DISABLE_FIND_PACKAGE_fmt=ON -D CMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
  else()
    list(APPEND arguments -D nlohmann_json_DIR=${json_dir} -D fmt_DIR=${fmt_dir} -D Eigen3_DIR=${eigen_dir})
  endif()
elseif(mode STREQUAL "add_subdirectory")
  list(APPEND arguments -D SCALEWISE_DIR=${source})
elseif(mode STREQUAL "fetch_content")
  list(APPEND arguments -D FETCHCONTENT_SOURCE_DIR_SCALEWISE=${source})
endif()

unset(ENV{CXXFLAGS})
file(REMOVE_RECURSE ${build})
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/project -B ${build} -G ${generator}
    -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_EXPORT_COMPILE_COMMANDS=ON ${arguments}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${build} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${build}/consumer COMMAND_ERROR_IS_FATAL ANY)

foreach(unwanted tests tools examples lab)
  if(EXISTS ${build}/scalewise/${unwanted} OR EXISTS ${build}/_deps/scalewise-build/${unwanted})
    message(FATAL_ERROR "The ${unwanted} of scalewise are part of the consumer's build")
  endif()
endforeach()

# Allowed in a compile command: the compiler, include paths, the standard, and input and output.
file(READ ${build}/compile_commands.json commands)
string(JSON count LENGTH "${commands}")
math(EXPR last "${count} - 1")
foreach(i RANGE ${last})
  string(JSON command GET "${commands}" ${i} command)
  separate_arguments(words UNIX_COMMAND "${command}")
  list(POP_FRONT words)
  while(words)
    list(POP_FRONT words word)
    if(word MATCHES "^(-o|-c|-isystem)$")
      list(POP_FRONT words)
    elseif(NOT word MATCHES "^(-I.*|-std=(c|gnu)[+][+]20|-DFMT_SHARED)$" AND NOT (mode MATCHES "torch" AND word MATCHES "^-D"))
      # fmt and Torch have their own
      message(FATAL_ERROR "The target leaks ${word} into: ${command}")
    endif()
  endwhile()
endforeach()
message(STATUS "No flag leaked in ${count} compile commands")
