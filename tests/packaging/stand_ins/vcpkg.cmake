# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# What vcpkg's functions do for our port, by their documentation, so that it can be run without vcpkg:
#   cmake -D port=FILE -D CURRENT_PACKAGES_DIR=FOLDER -D build=FOLDER -P vcpkg.cmake

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "vcpkg_cmake_configure: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${build} ${arg_OPTIONS}
    -D CMAKE_BUILD_TYPE=Release -D CMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} --no-warn-unused-cli
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_install)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${build} --target install COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Moves the package's files to share/<port>.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
  file(GLOB configs ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/*-config.cmake)
  if(NOT configs)
    message(FATAL_ERROR "vcpkg_cmake_config_fixup: no package in ${arg_CONFIG_PATH}")
  endif()
endfunction()

function(vcpkg_fixup_pkgconfig)
  file(GLOB_RECURSE files ${CURRENT_PACKAGES_DIR}/*.pc)
  if(NOT files)
    message(FATAL_ERROR "vcpkg_fixup_pkgconfig: no file")
  endif()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(COPY ${arg_FILE_LIST} DESTINATION ${CURRENT_PACKAGES_DIR}/share/scalewise)
endfunction()

include(${port})
