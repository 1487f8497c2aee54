# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# Target scalewise_all_headers: every public header, for clang-tidy; in parts, so that both cores have
# work. It comes before the examples, because the kernels take longer than all else.
function(add_all_headers part)
  set(text "// Made by cmake/all_headers.cmake\n")
  foreach(header IN LISTS ARGN)
    string(REGEX REPLACE "^include/" "" header ${header})
    string(APPEND text "#include <${header}>\n")
  endforeach()
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${part}_headers.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
  target_sources(scalewise_all_headers PRIVATE ${file})
endfunction()
add_library(scalewise_all_headers OBJECT EXCLUDE_FROM_ALL)
add_all_headers(kernel ${SCALEWISE_KERNEL_HEADERS})
add_all_headers(nn ${SCALEWISE_NN_HEADERS})
add_all_headers(plain ${SCALEWISE_HEADERS} ${SCALEWISE_JSON_HEADERS} ${SCALEWISE_CHECK_HEADERS})
target_link_libraries(scalewise_all_headers PRIVATE
  scalewise::json scalewise::nn scalewise::check scalewise::kernels scalewise_dev)
# clang-tidy looks at all of Eigen that is instantiated: as little of it as possible.
target_compile_definitions(scalewise_all_headers PRIVATE SCALEWISE_KERNELS_ELSEWHERE)
