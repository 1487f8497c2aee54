# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""What a recipe of Conan 2 uses, by its documentation, so that ours can be run without Conan."""

import types


class Options(dict):
    __getattr__ = dict.__getitem__


class ConanFile:
    def __init__(self, recipe_folder, work):
        self.recipe_folder = str(recipe_folder)
        self.export_sources_folder = self.source_folder = str(work / "sources")
        self.build_folder, self.package_folder = str(work / "build"), str(work / "package")
        assert self.options.keys() == self.default_options.keys()
        self.options = Options(self.default_options)
        self.required = []
        self.info = types.SimpleNamespace(clear=lambda: None)
        self.cpp_info = types.SimpleNamespace(properties={}, bindirs=["bin"], libdirs=["lib"], builddirs=[])
        self.cpp_info.set_property = self.cpp_info.properties.__setitem__

    def requires(self, reference):
        self.required.append(reference)
