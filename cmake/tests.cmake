# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# Functions that add tests.
include(Catch)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# scalewise_add_test(name [OPTIMIZED] [SERIAL] FOLDERS folder... | SOURCES file... [LIBRARIES target...]
#                    [LABEL label])
# One test program of tests/; each of its test cases becomes one test of CTest, named "name.case". A case that prints
# "test skipped" counts as skipped. Most programs have all *_test.cpp of some folders; what ends in *_slow_test.cpp is
# a program of its own.
# OPTIMIZED:  keeps all of the build type's optimization, for what computes for long.
# SERIAL:     runs on one thread of OpenMP: models too small for two would wait for each other.
function(scalewise_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMIZED;SERIAL" "LABEL" "FOLDERS;SOURCES;LIBRARIES")
  foreach(folder IN LISTS arg_FOLDERS)
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_test.cpp)
    list(FILTER sources EXCLUDE REGEX "_slow_test[.]cpp$")
    list(APPEND arg_SOURCES ${sources})
  endforeach()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE scalewise_test ${arg_LIBRARIES})
  if(NOT arg_OPTIMIZED)
    optimize_less(1 ${name})
  endif()
  set(properties SKIP_REGULAR_EXPRESSION "test skipped")
  if(arg_LABEL)
    list(APPEND properties LABELS ${arg_LABEL})
  endif()
  if(arg_SERIAL)
    list(APPEND properties ENVIRONMENT OMP_NUM_THREADS=1)
  endif()
  catch_discover_tests(${name} TEST_PREFIX "${name}." PROPERTIES ${properties})
endfunction()

# scalewise_add_python_test(name script [argument...] [PYTHON interpreter] [LABELS label...]
#                           [PROPERTIES property value...])
# A script is skipped by exit code 77, or where unittest says that it left out a part and nothing failed. With the
# label "slow" it is added where SCALEWISE_TEST_SLOW is on.
function(scalewise_add_python_test name script)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "PYTHON" "LABELS;PROPERTIES")
  if("slow" IN_LIST arg_LABELS AND NOT SCALEWISE_TEST_SLOW)
    return()
  endif()
  if(NOT arg_PYTHON)
    set(arg_PYTHON ${Python3_EXECUTABLE})
  endif()
  cmake_path(ABSOLUTE_PATH script NORMALIZE)
  add_test(NAME ${name} COMMAND ${arg_PYTHON} ${script} ${arg_UNPARSED_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77
    SKIP_REGULAR_EXPRESSION "OK [(]skipped=" ${arg_PROPERTIES})
endfunction()

# scalewise_add_skipped_test(name reason): a test that this machine cannot run.
function(scalewise_add_skipped_test name reason)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "test skipped: ${reason}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "test skipped")
endfunction()
