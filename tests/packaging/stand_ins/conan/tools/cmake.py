# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
import subprocess

_variables = {}


class CMakeToolchain:
    def __init__(self, _):
        self.variables = {}

    def generate(self):
        _variables.update(self.variables)


class CMake:
    def __init__(self, recipe):
        self._recipe = recipe

    def configure(self):
        settings = [f"-D{name}={'ON' if value is True else 'OFF' if value is False else value}"
                    for name, value in _variables.items()]
        self._run("-S", self._recipe.source_folder, "-B", self._recipe.build_folder, "-DCMAKE_BUILD_TYPE=Release",
                  f"-DCMAKE_INSTALL_PREFIX={self._recipe.package_folder}", *settings)

    def install(self):
        self._run("--install", self._recipe.build_folder)

    @staticmethod
    def _run(*arguments):
        subprocess.run(["cmake", *arguments], check=True, stdout=subprocess.DEVNULL)
