# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# Target scalewise_all_headers: every public header, for clang-tidy; in parts, so that both cores have
# work. It comes before the programs, because the kernels take longer than all else.
add_library(scalewise_all_headers OBJECT EXCLUDE_FROM_ALL)
function(add_all_headers part)
  set(text "// Made by cmake/all_headers.cmake\n")
  foreach(folder IN LISTS ARGN)
    get_target_property(headers scalewise_${folder} HEADER_SET)
    foreach(header IN LISTS headers)
      string(REGEX REPLACE "^.*/include/" "" header ${header})
      string(APPEND text "#include <${header}>\n")
    endforeach()
    target_link_libraries(scalewise_all_headers PRIVATE scalewise_${folder})
  endforeach()
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${part}_headers.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
  target_sources(scalewise_all_headers PRIVATE ${file})
endfunction()
get_property(folders GLOBAL PROPERTY scalewise_folders)
list(REMOVE_ITEM folders kernels dense nn data libtorch)
add_all_headers(kernels kernels)
add_all_headers(nn dense nn data)
add_all_headers(other ${folders})
target_link_libraries(scalewise_all_headers PRIVATE scalewise_dev)
# clang-tidy looks at all of Eigen that is instantiated: as little of it as possible.
target_compile_definitions(scalewise_all_headers PRIVATE SCALEWISE_KERNELS_ELSEWHERE)
