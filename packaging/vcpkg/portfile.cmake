# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# An overlay port: vcpkg install scalewise --overlay-ports=packaging/vcpkg
set(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../..")
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DSCALEWISE_BUILD_TESTS=OFF -DSCALEWISE_BUILD_EXAMPLES=OFF -DSCALEWISE_INSTALL=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/scalewise)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
