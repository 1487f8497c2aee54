#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The Debian package of the programs: it is built, unpacked, and each program in it run.

    programs_package.py CXX BUILD

Builds in the folder BUILD, for any processor and for one level of x86-64: another level differs in a flag alone. Exit
code 77, with a message, where packages cannot be made.
"""

import os
import pathlib
import platform
import shutil
import subprocess
import sys

CXX, BUILD = sys.argv[1], pathlib.Path(sys.argv[2])
ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTORS = {"x86-64": "SSE2", "x86-64-v3": "AVX2"}


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, encoding="utf-8", check=False, **options)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def main():
    if platform.machine() != "x86_64" or not shutil.which("dpkg-deb") or not shutil.which("cpack"):
        print("skipped: needs x86-64, dpkg-deb and cpack")
        return 77
    shutil.rmtree(BUILD, ignore_errors=True)
    packaging = {**os.environ, "SOURCE_DATE_EPOCH": "1"}
    configure = ["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Release", "-D",
                 f"CMAKE_CXX_COMPILER={CXX}", "-D", "SCALEWISE_BUILD_TESTS=OFF", "-D", "CMAKE_INSTALL_PREFIX=/usr"]
    run(*configure, env=packaging)
    cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    assert "SCALEWISE_LEVELS:STRING=x86-64-v2;x86-64-v3;x86-64-v4\n" in cache
    assert "SCALEWISE_NATIVE:BOOL=OFF\n" in cache
    run(*configure, "-D", "SCALEWISE_LEVELS=x86-64-v3", env=packaging)
    run("cmake", "--build", BUILD, "-j", "2")
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", BUILD / "packages", cwd=BUILD)
    (package,) = (BUILD / "packages").glob("scalewise_*.deb")
    unpacked = BUILD / "unpacked"
    run("dpkg-deb", "-x", package, unpacked)
    programs = sorted((unpacked / "usr" / "bin").iterdir())
    levels = unpacked / "usr" / "libexec" / "scalewise"
    computing = {path.name for path in (levels / "x86-64").iterdir()}
    assert {"train", "coordinate_check", "kernel_regression"} <= computing, computing
    assert not {"plan", "inspect"} & computing, computing
    for level, vectors in VECTORS.items():
        assert {path.name for path in (levels / level).iterdir()} == computing, level
        for name in computing:
            said = run(levels / level / name, "--version")
            assert f"vectors {vectors}," in said, (level, name, said)
    best = "AVX2" if "avx2" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split() else "SSE2"
    for program in programs:
        said = run(program, "--version")
        assert f"vectors {best if program.name in computing else 'SSE2'}," in said, (program, said)
    text = unpacked.resolve() / "usr" / "share" / "scalewise" / "data" / "austen_persuasion.txt"
    assert str(text) in run(unpacked / "usr" / "bin" / "coordinate_check", "--help")
    run(unpacked / "usr" / "bin" / "train", "--width", "16", "--depth", "1", "--steps", "3", "--warmup", "0", "--quiet")
    print(f"{len(programs)} programs, {len(computing)} of them for {len(VECTORS)} levels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
