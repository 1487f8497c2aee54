# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# How our own code is compiled. Nothing of it is exported: users of the headers choose for themselves.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)  # in a unity build, as in most presets, a target's sources become one

# scalewise_dev: what all of it links. GCC before 13 reports string concatenation at -O2 by mistake (bug 105329); if it
# seldom collects its garbage it is faster by a twelfth. Clang needs to be told that lambdas' variables shadow others too.
add_library(scalewise_dev INTERFACE)
target_compile_options(scalewise_dev INTERFACE "$<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-Wall;-Wextra;-Wpedantic;\
-Wconversion;-Wsign-conversion;-Wshadow;$<$<BOOL:${SCALEWISE_WERROR}>:-Werror>>"
  "$<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wshadow-uncaptured-local>")
target_compile_options(scalewise_dev INTERFACE "$<$<CXX_COMPILER_ID:GNU>:\
$<$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>:-Wno-restrict>;--param=ggc-min-expand=400;--param=ggc-min-heapsize=1000000>")

# optimize_less(level target...): where nothing computes for long, compilers take longer to optimize a program than
# it runs. By target, since CMake leaves sources with options of their own out of a unity build.
function(optimize_less level)
  foreach(name IN LISTS ARGN)
    target_compile_options(${name} PRIVATE $<$<AND:$<CXX_COMPILER_ID:GNU,Clang>,$<CONFIG:Release>>:-O${level}>)
  endforeach()
endfunction()

# All that this processor has. For all targets alike: Eigen's vectors are of one size in a program.
if(SCALEWISE_NATIVE)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=native scalewise_has_march_native)
  if(scalewise_has_march_native)  # GCC's own headers for the widest vectors read variables that nobody has set
    add_compile_options(-march=native "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")
  endif()
endif()

# scalewise_threads, scalewise_fast: for what computes, all cores and the fastest products. dense/product.hpp cuts each
# product into tiles for its own threads. oneDNN by hand: Debian's package wants OpenCL, which nothing here uses.
find_package(OpenMP QUIET COMPONENTS CXX)
add_library(scalewise_threads INTERFACE)
target_link_libraries(scalewise_threads INTERFACE $<TARGET_NAME_IF_EXISTS:OpenMP::OpenMP_CXX>)
add_library(scalewise_fast INTERFACE)
target_link_libraries(scalewise_fast INTERFACE scalewise_threads)
if(SCALEWISE_ONEDNN AND OpenMP_CXX_FOUND)
  find_path(SCALEWISE_ONEDNN_INCLUDE_DIR dnnl.h)
  find_library(SCALEWISE_ONEDNN_LIBRARY dnnl)
  if(SCALEWISE_ONEDNN_INCLUDE_DIR AND SCALEWISE_ONEDNN_LIBRARY)
    target_compile_definitions(scalewise_fast INTERFACE SCALEWISE_ONEDNN)
    target_include_directories(scalewise_fast SYSTEM INTERFACE ${SCALEWISE_ONEDNN_INCLUDE_DIR})
    target_link_libraries(scalewise_fast INTERFACE ${SCALEWISE_ONEDNN_LIBRARY})
  endif()
endif()

# scalewise_all_headers: every public header once, for clang-tidy, with as little as possible of Eigen's instantiated.
# Without SCALEWISE_TEST_KERNELS those of kernels are left out: they are templates of Eigen's, two thirds of the time.
foreach(name IN ITEMS scalewise json nn)
  get_target_property(headers scalewise::${name} HEADER_SET)
  list(APPEND all_headers ${headers})
endforeach()
if(NOT SCALEWISE_TEST_KERNELS)
  list(FILTER all_headers EXCLUDE REGEX "/scalewise/kernels[/.]")
endif()
list(TRANSFORM all_headers REPLACE "^.*/include/(.*)" "#include <\\1>")
list(JOIN all_headers "\n" text)
file(CONFIGURE OUTPUT all_headers.cpp CONTENT "${text}\n" @ONLY)
add_library(scalewise_all_headers OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/all_headers.cpp)
target_compile_definitions(scalewise_all_headers PRIVATE SCALEWISE_KERNELS_ELSEWHERE)
target_link_libraries(scalewise_all_headers PRIVATE scalewise_dev scalewise::json scalewise::nn)

# scalewise_add_instances(name source target...): templates of instances/ that many tests and programs use and that
# take long to compile. They are compiled once, side by side, and only where a test or program links them.
function(scalewise_add_instances name source)
  add_library(${name} STATIC EXCLUDE_FROM_ALL instances/${source})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARGN} PRIVATE scalewise_dev)
endfunction()
scalewise_add_instances(instances_kernels kernels.cpp scalewise::nn)
target_compile_definitions(instances_kernels PUBLIC SCALEWISE_KERNELS_ELSEWHERE)
scalewise_add_instances(instances_models_float transformer_float.cpp scalewise::nn scalewise_fast)
scalewise_add_instances(instances_models_double transformer_double.cpp scalewise::nn scalewise_fast)
scalewise_add_instances(instances_models_serial transformer_double.cpp scalewise::nn)  # by Eigen's own products
add_library(instances_models INTERFACE)
target_link_libraries(instances_models INTERFACE instances_models_float instances_models_double)
optimize_less(1 instances_models_serial)
