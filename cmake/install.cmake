# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# What `cmake --install` and `cpack` take besides the programs (tools/CMakeLists.txt).
include(CMakePackageConfigHelpers)
set(config_dir ${CMAKE_INSTALL_DATADIR}/cmake/scalewise)

# One export set for each library: scalewise::scalewise must not drag in nlohmann-json or Eigen.
foreach(name IN ITEMS scalewise json nn torch)
  get_target_property(target scalewise::${name} ALIASED_TARGET)
  install(TARGETS ${target} EXPORT scalewise_${name}_targets
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT scalewise)
  install(EXPORT scalewise_${name}_targets NAMESPACE scalewise::
    DESTINATION ${config_dir} COMPONENT scalewise)
endforeach()

configure_package_config_file(cmake/scalewise-config.cmake.in ${PROJECT_BINARY_DIR}/scalewise-config.cmake
  INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/scalewise-config-version.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(
  FILES ${PROJECT_BINARY_DIR}/scalewise-config.cmake ${PROJECT_BINARY_DIR}/scalewise-config-version.cmake
  DESTINATION ${config_dir} COMPONENT scalewise)

# The modules for PyTorch; `pip install ./python` is the other way to them.
install(FILES python/scalewise.py python/scalewise_describe.py python/scalewise_plan.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/scalewise/python COMPONENT scalewise)

# For builds without CMake.
configure_file(cmake/scalewise.pc.in scalewise.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/scalewise.pc
  DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig COMPONENT scalewise)

# `cpack`: an archive, or with -G DEB Debian packages. The headers are one package; the programs are another, in a
# build that is not for this processor alone.
if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_GENERATOR TGZ)
  set(CPACK_COMPONENTS_ALL scalewise)
  if(SCALEWISE_BUILD_EXAMPLES AND NOT SCALEWISE_NATIVE)
    list(APPEND CPACK_COMPONENTS_ALL programs)
  endif()
  set(CPACK_PACKAGE_VENDOR "The scalewise authors")
  set(CPACK_PACKAGE_CONTACT "The scalewise authors <maintainers@scalewise.invalid>")
  set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_SCALEWISE_PACKAGE_NAME libscalewise-dev)
  set(CPACK_DEBIAN_SCALEWISE_PACKAGE_ARCHITECTURE all)
  set(CPACK_DEBIAN_SCALEWISE_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_SCALEWISE_PACKAGE_SUGGESTS "nlohmann-json3-dev, libfmt-dev, libeigen3-dev")
  set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME scalewise)
  set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
  include(CPack)
endif()
