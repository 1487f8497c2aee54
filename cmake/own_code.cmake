# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# How our own code is compiled. Nothing of it is exported: users of the headers choose for themselves.

# In a unity build, as in most presets, all sources of a target become one, in which headers are compiled once.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)

# ---- scalewise_dev: what all of it links -----------------------------------------------------------

add_library(scalewise_dev INTERFACE)
set(options -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow)
if(SCALEWISE_WERROR)
  list(APPEND options -Werror)
endif()
target_compile_options(scalewise_dev INTERFACE "$<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:${options}>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)  # reports string concatenation at -O2 by mistake (bug 105329)
    target_compile_options(scalewise_dev INTERFACE -Wno-restrict)
  endif()
  # A GCC that seldom collects its garbage is faster by a twelfth, and takes a quarter more memory.
  cmake_host_system_information(RESULT mebibytes QUERY TOTAL_PHYSICAL_MEMORY)
  if(mebibytes GREATER_EQUAL 8000)
    target_compile_options(scalewise_dev INTERFACE --param=ggc-min-expand=400 --param=ggc-min-heapsize=1000000)
  endif()
endif()

# optimize_less(level target...): where nothing computes for long, compilers take longer to optimize a program than
# it runs. By target, since CMake leaves sources with options of their own out of a unity build.
function(optimize_less level)
  foreach(name IN LISTS ARGN)
    target_compile_options(${name} PRIVATE $<$<AND:$<CXX_COMPILER_ID:GNU,Clang>,$<CONFIG:Release>>:-O${level}>)
  endforeach()
endfunction()

# ---- scalewise_threads, scalewise_fast: for what computes: all cores, and the fastest products ------

add_library(scalewise_threads INTERFACE)
add_library(scalewise_fast INTERFACE)
find_package(OpenMP QUIET COMPONENTS CXX)
if(OpenMP_CXX_FOUND)
  target_link_libraries(scalewise_threads INTERFACE OpenMP::OpenMP_CXX)
endif()
target_link_libraries(scalewise_fast INTERFACE scalewise_threads)

# All that this processor has. For all targets alike: Eigen's vectors are of one size in a program.
if(SCALEWISE_NATIVE)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=native scalewise_has_march_native)
  if(scalewise_has_march_native)
    add_compile_options(-march=native)
    # GCC's own headers for the widest vectors read variables that nobody has set.
    add_compile_options("$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")
  endif()
endif()

# Libraries behind products, see dense/product.hpp. The library cuts every product into tiles for its own threads, so
# that these have to run on one: dense/blas.hpp tells OpenBLAS so, and oneDNN sees that it is in a parallel region of
# OpenMP.
string(TOUPPER "${SCALEWISE_BLAS}" blas)
if(blas STREQUAL "AUTO")
  foreach(BLA_VENDOR IN ITEMS OpenBLAS FLAME Intel10_64lp_seq)
    if(NOT BLAS_FOUND)
      find_package(BLAS QUIET)
    endif()
  endforeach()
elseif(blas)
  find_package(BLAS REQUIRED)
endif()
if(blas AND BLAS_FOUND)
  target_compile_definitions(scalewise_fast INTERFACE EIGEN_USE_BLAS)
  target_link_libraries(scalewise_fast INTERFACE BLAS::BLAS)
endif()
if(blas AND OpenMP_CXX_FOUND)  # by hand: Debian's package for CMake wants OpenCL, which nothing here uses
  find_path(SCALEWISE_ONEDNN_INCLUDE_DIR dnnl.h)
  find_library(SCALEWISE_ONEDNN_LIBRARY dnnl)
  mark_as_advanced(SCALEWISE_ONEDNN_INCLUDE_DIR SCALEWISE_ONEDNN_LIBRARY)
  if(SCALEWISE_ONEDNN_INCLUDE_DIR AND SCALEWISE_ONEDNN_LIBRARY)
    target_compile_definitions(scalewise_fast INTERFACE SCALEWISE_ONEDNN)
    target_include_directories(scalewise_fast SYSTEM INTERFACE ${SCALEWISE_ONEDNN_INCLUDE_DIR})
    target_link_libraries(scalewise_fast INTERFACE ${SCALEWISE_ONEDNN_LIBRARY})
  endif()
endif()

# ---- scalewise_all_headers: every public header, for clang-tidy ------------------------------------

# In parts, so that both cores have work; the kernels first, which take longer than all else.
add_library(scalewise_all_headers OBJECT EXCLUDE_FROM_ALL)
target_link_libraries(scalewise_all_headers PRIVATE scalewise_dev)
# clang-tidy looks at all of Eigen that is instantiated: as little of it as possible.
target_compile_definitions(scalewise_all_headers PRIVATE SCALEWISE_KERNELS_ELSEWHERE)
foreach(name IN ITEMS nn json scalewise)
  get_target_property(target scalewise::${name} ALIASED_TARGET)
  get_target_property(headers ${target} HEADER_SET)
  list(TRANSFORM headers REPLACE "^.*/include/(.*)" "#include <\\1>")
  list(JOIN headers "\n" text)
  file(CONFIGURE OUTPUT ${name}_headers.cpp CONTENT "${text}\n" @ONLY)
  target_sources(scalewise_all_headers PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${name}_headers.cpp)
  target_link_libraries(scalewise_all_headers PRIVATE scalewise::${name})
endforeach()
