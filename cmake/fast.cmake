# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# What makes our own programs fast. Nothing of it is exported: users of the headers choose for
# themselves.

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

find_package(OpenMP QUIET COMPONENTS CXX)
if(OpenMP_CXX_FOUND)
  target_link_libraries(scalewise_threads INTERFACE OpenMP::OpenMP_CXX)
endif()
target_link_libraries(scalewise_fast INTERFACE scalewise_threads)

# Libraries behind products, see dense/product.hpp. The library cuts every product into tiles for its own
# threads, so that these have to run on one: dense/blas.hpp tells OpenBLAS so, and oneDNN sees that it is in a
# parallel region of OpenMP.
string(TOUPPER "${SCALEWISE_BLAS}" blas)
if(blas STREQUAL "AUTO")
  foreach(BLA_VENDOR IN ITEMS OpenBLAS FLAME Intel10_64lp_seq)
    if(NOT BLAS_FOUND)
      find_package(BLAS QUIET)
    endif()
  endforeach()
  unset(BLA_VENDOR)
elseif(blas)
  find_package(BLAS REQUIRED)
endif()
if(blas AND BLAS_FOUND)
  target_compile_definitions(scalewise_fast INTERFACE EIGEN_USE_BLAS)
  target_link_libraries(scalewise_fast INTERFACE BLAS::BLAS)
endif()
# By hand: Debian's package for CMake wants OpenCL, which nothing here uses.
if(blas)
  find_path(SCALEWISE_ONEDNN_INCLUDE_DIR dnnl.h)
  find_library(SCALEWISE_ONEDNN_LIBRARY dnnl)
  mark_as_advanced(SCALEWISE_ONEDNN_INCLUDE_DIR SCALEWISE_ONEDNN_LIBRARY)
endif()
if(blas AND OpenMP_CXX_FOUND AND SCALEWISE_ONEDNN_INCLUDE_DIR AND SCALEWISE_ONEDNN_LIBRARY)
  target_compile_definitions(scalewise_fast INTERFACE SCALEWISE_ONEDNN)
  target_include_directories(scalewise_fast SYSTEM INTERFACE ${SCALEWISE_ONEDNN_INCLUDE_DIR})
  target_link_libraries(scalewise_fast INTERFACE ${SCALEWISE_ONEDNN_LIBRARY})
endif()
