# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT

find_package(OpenMP QUIET COMPONENTS CXX)
if(OpenMP_CXX_FOUND)
  target_link_libraries(scalewise_fast INTERFACE OpenMP::OpenMP_CXX)
endif()

# The library cuts every product into tiles for its own threads, so the BLAS has to run on one:
# nn/blas.hpp tells OpenBLAS so.
if(SCALEWISE_BLAS)
  find_package(BLAS REQUIRED)
  target_link_libraries(scalewise_fast INTERFACE BLAS::BLAS)
  target_compile_definitions(scalewise_fast INTERFACE EIGEN_USE_BLAS)
endif()
