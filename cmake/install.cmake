# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
include(CMakePackageConfigHelpers)

set(scalewise_config_dir ${CMAKE_INSTALL_DATADIR}/cmake/scalewise)

# One export set per target: scalewise::scalewise must not drag in nlohmann-json.
install(TARGETS scalewise EXPORT scalewise_targets
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT scalewise)
install(EXPORT scalewise_targets NAMESPACE scalewise::
  DESTINATION ${scalewise_config_dir} COMPONENT scalewise)

if(SCALEWISE_JSON_HEADERS)
  install(TARGETS scalewise_json EXPORT scalewise_json_targets
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT scalewise)
else()
  install(TARGETS scalewise_json EXPORT scalewise_json_targets)
endif()
install(EXPORT scalewise_json_targets NAMESPACE scalewise::
  DESTINATION ${scalewise_config_dir} COMPONENT scalewise)

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/scalewise-config.cmake.in
  ${PROJECT_BINARY_DIR}/scalewise-config.cmake
  INSTALL_DESTINATION ${scalewise_config_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/scalewise-config-version.cmake
  COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
install(
  FILES
    ${PROJECT_BINARY_DIR}/scalewise-config.cmake
    ${PROJECT_BINARY_DIR}/scalewise-config-version.cmake
  DESTINATION ${scalewise_config_dir} COMPONENT scalewise)
