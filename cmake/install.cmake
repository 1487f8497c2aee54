# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
include(CMakePackageConfigHelpers)

set(scalewise_config_dir ${CMAKE_INSTALL_DATADIR}/cmake/scalewise)

# One export set per target: scalewise::scalewise must not drag in nlohmann-json or Eigen.
install(TARGETS scalewise EXPORT scalewise_targets
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT scalewise)
install(EXPORT scalewise_targets NAMESPACE scalewise::
  DESTINATION ${scalewise_config_dir} COMPONENT scalewise)

foreach(component json nn check kernels)
  install(TARGETS scalewise_${component} EXPORT scalewise_${component}_targets
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT scalewise)
  install(EXPORT scalewise_${component}_targets NAMESPACE scalewise::
    DESTINATION ${scalewise_config_dir} COMPONENT scalewise)
endforeach()

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
