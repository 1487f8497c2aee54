# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# Target scalewise_all_headers: every public header, for clang-tidy; in parts, so that both cores have
# work. It comes before the programs, because the kernels take longer than all else.
add_library(scalewise_all_headers OBJECT EXCLUDE_FROM_ALL)
foreach(name IN ITEMS nn json scalewise)
  set(text "// Made by cmake/all_headers.cmake\n")
  get_target_property(target scalewise::${name} ALIASED_TARGET)
  get_target_property(headers ${target} HEADER_SET)
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "^.*/include/" "" header ${header})
    string(APPEND text "#include <${header}>\n")
  endforeach()
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}_headers.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
  target_sources(scalewise_all_headers PRIVATE ${file})
  target_link_libraries(scalewise_all_headers PRIVATE scalewise::${name})
endforeach()
target_link_libraries(scalewise_all_headers PRIVATE scalewise_dev)
# clang-tidy looks at all of Eigen that is instantiated: as little of it as possible.
target_compile_definitions(scalewise_all_headers PRIVATE SCALEWISE_KERNELS_ELSEWHERE)
