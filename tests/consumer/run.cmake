# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# Configures, builds and runs project/ in one mode, then looks for flags that our target leaked.
# Needs: mode, arguments (a list), build (folder), generator, compiler.
cmake_minimum_required(VERSION 3.25)

unset(ENV{CXXFLAGS})
file(REMOVE_RECURSE ${build})
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/project -B ${build} -G ${generator}
    -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_EXPORT_COMPILE_COMMANDS=ON -D MODE=${mode} ${arguments}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${build} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${build}/consumer COMMAND_ERROR_IS_FATAL ANY)

foreach(unwanted tests tools examples lab)
  if(EXISTS ${build}/scalewise/${unwanted} OR EXISTS ${build}/_deps/scalewise-build/${unwanted})
    message(FATAL_ERROR "The ${unwanted} of scalewise are part of the consumer's build")
  endif()
endforeach()

# Allowed in a compile command: the compiler, include paths, the standard, input and output, and what fmt and Torch
# bring themselves.
set(own -DFMT_SHARED)
if(mode MATCHES "torch")
  set(own -D.*)
endif()
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
    elseif(NOT word MATCHES "^(-I.*|-std=(c|gnu)[+][+]20|${own})$")
      message(FATAL_ERROR "The target leaks ${word} into: ${command}")
    endif()
  endwhile()
endforeach()
message(STATUS "No flag leaked in ${count} compile commands")
