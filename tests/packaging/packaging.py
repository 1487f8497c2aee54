#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""What other tools than CMake take: each builds a consumer where the tool is installed.

    packaging.py CXX PREFIX BUILD

PREFIX is an installed copy, BUILD the build folder that cpack packs.
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

CXX, PREFIX, BUILD = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = ["scalewise.py", "scalewise_describe.py", "scalewise_plan.py", "scalewise_record.py", "scalewise_tensors.py"]
EXAMPLE = ROOT / "examples" / "01_first_plan.cpp"


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, encoding="utf-8", check=False, **options)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


@functools.cache
def expected():
    """What the example prints."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "expected"
        run(CXX, "-std=c++20", "-I", ROOT / "include", EXAMPLE, "-o", program)
        return run(program)


def files_below(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Packaging(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_pkg_config(self):
        if not shutil.which("pkg-config"):
            self.skipTest("pkg-config was not found")
        flags = run("pkg-config", "--cflags", "scalewise", env={"PKG_CONFIG_PATH": str(PREFIX / "share" / "pkgconfig"),
                                                               "PATH": "/usr/bin:/bin"}).split()
        run(CXX, "-std=c++20", *flags, "-fsyntax-only", EXAMPLE)

    def test_pip_without_a_network(self):
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
            self.skipTest("pip was not found")
        shutil.copytree(ROOT / "python", self.folder / "python")
        target = self.folder / "target"
        run(sys.executable, "-m", "pip", "install", "--no-index", "--target", target, self.folder / "python")
        self.assertEqual(sorted(path.name for path in target.glob("*.py")), MODULES)
        for name in MODULES:
            self.assertEqual((target / name).read_bytes(), (ROOT / "python" / name).read_bytes())
        self.assertTrue(list(target.glob("scalewise-*.dist-info/RECORD")))
        sys.path.insert(0, str(ROOT / "python"))
        import build_wheel  # pylint: disable=import-outside-toplevel
        wheel = self.folder / build_wheel.build_wheel(self.folder)
        self.assertIn((ROOT / "LICENSE").read_text(encoding="utf-8"), zipfile.ZipFile(wheel).read("scalewise-0.1.0.dist-info/LICENSE").decode())

    def test_meson(self):
        if not shutil.which("meson") or not shutil.which("ninja"):
            self.skipTest("meson or ninja was not found")
        (self.folder / "subprojects").mkdir()
        (self.folder / "subprojects" / "scalewise").symlink_to(ROOT)
        shutil.copy(EXAMPLE, self.folder / "main.cpp")
        (self.folder / "meson.build").write_text(
            "project('consumer', 'cpp', default_options: ['cpp_std=c++20'])\n"
            "executable('consumer', 'main.cpp', dependencies: dependency('scalewise', fallback: 'scalewise'))\n",
            encoding="utf-8")
        run("meson", "setup", "--buildtype=plain", "--wrap-mode=nodownload", self.folder / "build", self.folder)
        run("ninja", "-C", self.folder / "build")
        self.assertEqual(run(self.folder / "build" / "consumer"), expected())
        run("meson", "install", "-C", self.folder / "build", "--destdir", self.folder / "parent")
        self.assertEqual(files_below(self.folder / "parent"), {})  # a subproject installs nothing
        run("meson", "setup", "--prefix=/usr", self.folder / "own", ROOT)
        run("meson", "install", "-C", self.folder / "own", "--destdir", self.folder / "image")
        usr = self.folder / "image" / "usr"
        self.assertEqual(files_below(usr / "include"), files_below(ROOT / "include"))
        self.assertIn("Version: 0.1.0\n", (usr / "share" / "pkgconfig" / "scalewise.pc").read_text(encoding="utf-8"))

    def test_other_folders(self):
        """pkg-config finds headers in a folder of their own, as Nix has them, and data that lie deeper."""
        build, image = self.folder / "build", self.folder / "image"
        run("cmake", "-S", ROOT, "-B", build, "-DSCALEWISE_BUILD_TESTS=OFF", "-DSCALEWISE_BUILD_EXAMPLES=OFF", "-DCMAKE_INSTALL_PREFIX=/usr",
            "-DCMAKE_INSTALL_INCLUDEDIR=/opt/inc", "-DCMAKE_INSTALL_DATADIR=lib/x86/share")
        run("cmake", "--install", build, env={**os.environ, "DESTDIR": str(image)})
        pc = image / "usr" / "lib" / "x86" / "share" / "pkgconfig" / "scalewise.pc"
        folder = re.search(r"includedir=\$\{pcfiledir\}/(.*)", pc.read_text(encoding="utf-8"))[1]
        self.assertTrue((pc.parent / folder / "scalewise" / "scalewise.hpp").is_file())

    def test_needs_that_are_no_packages(self):
        """What a project adds from source cannot be found by users of its installed copy: the rest is installed."""
        project = self.folder / "project"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(parent CXX)\nadd_library(fmt INTERFACE)\nadd_library(fmt::fmt ALIAS fmt)\n"
            f"set(SCALEWISE_INSTALL ON)\nadd_subdirectory({ROOT} scalewise)\n", encoding="utf-8")
        said = run("cmake", "-S", project, "-B", self.folder / "build", "-DCMAKE_POLICY_DEFAULT_CMP0077=NEW")
        self.assertIn("scalewise::json will be no component of the installed copy: fmt::fmt is not from the system", said)
        prefix = self.folder / "prefix"
        run("cmake", "--install", self.folder / "build", "--prefix", prefix)
        use = "cmake_minimum_required(VERSION 3.25)\nproject(user CXX)\nfind_package(scalewise REQUIRED{})\n"
        (self.folder / "user").mkdir()
        for components, works in (("", True), (" COMPONENTS json", False)):
            (self.folder / "user" / "CMakeLists.txt").write_text(use.format(components), encoding="utf-8")
            done = subprocess.run(["cmake", "-S", self.folder / "user", "-B", self.folder / ("with" + components.replace(" ", "-")),
                                   f"-DCMAKE_PREFIX_PATH={prefix}"], capture_output=True, encoding="utf-8", check=False)
            self.assertEqual(done.returncode == 0, works, done.stderr)
        self.assertIn("no component json in this copy", " ".join(done.stderr.split()))

    def check_package(self, package):
        """That all is there, and that a consumer sees the headers of the source, with which it builds."""
        for name in ("share/cmake/scalewise/scalewise-config.cmake", "share/pkgconfig/scalewise.pc",
                     *(f"share/scalewise/python/{name}" for name in MODULES), "share/doc/scalewise/LICENSE"):
            self.assertTrue((package / name).is_file(), name)
        headers = files_below(ROOT / "include")
        self.assertIn(pathlib.Path("scalewise/scalewise.hpp"), headers)
        self.assertEqual(files_below(package / "include"), headers)

    def test_one_header(self):
        header = self.folder / "scalewise_rules.hpp"
        run(sys.executable, ROOT / "scripts" / "amalgamate.py", header)
        text = header.read_text(encoding="utf-8")
        self.assertNotIn('#include "scalewise', text)
        self.assertIn("Permission is hereby granted, free of charge", text)
        for words in (["--help"], [self.folder / "x.hpp", "nn.hpp"]):
            done = subprocess.run([sys.executable, ROOT / "scripts" / "amalgamate.py", *words], capture_output=True, encoding="utf-8",
                                  check=False, cwd=self.folder)
            self.assertEqual((done.returncode, "Traceback" in done.stderr), (1, False))
            self.assertFalse((self.folder / str(words[0])).exists())
        main = re.sub(r"#include <scalewise/[^>]*>\n", "", EXAMPLE.read_text(encoding="utf-8"))
        source = self.folder / "main.cpp"
        source.write_text('#include "scalewise_rules.hpp"\n' + main, encoding="utf-8")
        program = self.folder / "one"
        run(CXX, "-std=c++20", "-Wall", "-Wextra", "-Werror", source, "-o", program)
        self.assertEqual(run(program), expected())

    def test_installed_programs_find_their_data(self):
        if not (BUILD / "tools" / "coordinate_check").exists():
            self.skipTest("the programs were not built")
        prefix = self.folder / "prefix"
        run("cmake", "--install", BUILD, "--component", "programs", "--prefix", prefix)
        names = {path.name for path in (prefix / "bin").iterdir()}
        self.assertLessEqual({"plan", "inspect", "coordinate_check", "learning_rate_transfer", "deep_init", "tune"}, names)
        text = prefix.resolve() / "share" / "scalewise" / "data" / "austen_persuasion.txt"
        self.assertIn(str(text), run(prefix / "bin" / "coordinate_check", "--help"))
        self.assertTrue(text.is_file())

    def test_debian_package(self):
        if not shutil.which("dpkg-deb") or not shutil.which("cpack"):
            self.skipTest("dpkg-deb or cpack was not found")
        run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", self.folder, "-D",
            "CPACK_COMPONENTS_ALL=scalewise", cwd=BUILD)
        packages = list(self.folder.glob("libscalewise-dev_*_all.deb"))
        self.assertEqual(len(packages), 1)
        names = run("dpkg-deb", "-c", packages[0])
        for name in ("/usr/include/scalewise/scalewise.hpp", "/usr/share/cmake/scalewise/scalewise-config.cmake",
                     "/usr/share/pkgconfig/scalewise.pc", "/usr/share/scalewise/python/scalewise.py"):
            self.assertIn("." + name + "\n", names)
        unpacked = self.folder / "unpacked"
        run("dpkg-deb", "-x", packages[0], unpacked)
        self.check_package(unpacked / "usr")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
