# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""conan create packaging/conan"""

import os

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy


class Scalewise(ConanFile):
    name = "scalewise"
    version = "0.1.0"
    license = "MIT"
    description = "Initial variances, learning rates and multipliers of transformers under published rules"
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"check": [True, False], "nn": [True, False]}
    default_options = {"check": False, "nn": False}
    no_copy_source = True

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "python/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def requirements(self):
        if self.options.check:
            self.requires("nlohmann_json/3.11.3")
            self.requires("fmt/9.1.0")
        if self.options.nn:
            self.requires("eigen/3.4.0")

    def generate(self):
        toolchain = CMakeToolchain(self)
        for name in ("TESTS", "EXAMPLES"):
            toolchain.variables[f"SCALEWISE_BUILD_{name}"] = False
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["share/cmake/scalewise"]
