# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
include(CMakePackageConfigHelpers)

set(scalewise_config_dir ${CMAKE_INSTALL_DATADIR}/cmake/scalewise)

# One export set for each library: scalewise::scalewise must not drag in nlohmann-json or Eigen.
get_property(libraries GLOBAL PROPERTY scalewise_libraries)
foreach(name IN LISTS libraries)
  get_target_property(target scalewise::${name} ALIASED_TARGET)
  install(TARGETS ${target} EXPORT scalewise_${name}_targets
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT scalewise)
  install(EXPORT scalewise_${name}_targets NAMESPACE scalewise::
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

# The modules for PyTorch; `pip install ./python` is the other way to them.
install(FILES ${PROJECT_SOURCE_DIR}/python/scalewise.py ${PROJECT_SOURCE_DIR}/python/scalewise_plan.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/scalewise/python COMPONENT scalewise)

# For builds without CMake.
configure_file(${CMAKE_CURRENT_LIST_DIR}/scalewise.pc.in ${PROJECT_BINARY_DIR}/scalewise.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/scalewise.pc
  DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig COMPONENT scalewise)
