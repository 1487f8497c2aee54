# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Every public header that needs the standard library alone behind hostile ones and with libc++,
by -fsyntax-only; and one error where the compiler is older than C++20.

    portability.py CXX ROOT

Exits with 77 (skipped) when all that could run passed, but clang or libc++ was missing.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

HOSTILE = """// What <torch/torch.h> declares.
template <class T, class U> constexpr bool pow(T, U) { return false; }
template <class T> constexpr bool sqrt(T) { return false; }
"""
MACROS = """
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define near
#define far
#define small char
"""


def public_headers(root):
    """As cmake/headers.cmake has them."""
    text = (root / "cmake" / "headers.cmake").read_text(encoding="utf-8")
    names = [word.strip("()") for word in text.split() if word.endswith(".hpp") or ".hpp)" in word]
    return [name.removeprefix("include/") for name in names]


def own_includes(root, header, seen):
    """All headers that one includes, directly or not."""
    if header in seen:
        return
    seen.add(header)
    for line in (root / "include" / header).read_text(encoding="utf-8").splitlines():
        if line.startswith('#include "scalewise/'):
            own_includes(root, line.split('"')[1], seen)


def needs_library(root, header):
    seen = set()
    own_includes(root, header, seen)
    text = "".join((root / "include" / name).read_text(encoding="utf-8") for name in seen)
    return "#include <Eigen" in text or "#include <nlohmann" in text or "#include <unsupported" in text


def main():
    compiler, root = sys.argv[1], pathlib.Path(sys.argv[2])
    folders = ["-I", str(root / "include")]
    headers = public_headers(root)
    plain = [h for h in headers if not needs_library(root, h)]
    failed, skipped = [], []
    with tempfile.TemporaryDirectory() as work:
        def check(name, command, names, prologue=""):
            source = pathlib.Path(work) / "all.cpp"
            source.write_text(prologue + "".join(f'#include "{h}"\n' for h in names), encoding="utf-8")
            run = subprocess.run([*command, "-fsyntax-only", *folders, str(source)],
                                 capture_output=True, text=True, check=False)
            print(f"{name}: {len(names)} headers, {'passed' if run.returncode == 0 else 'FAILED'}")
            if run.returncode != 0:
                print(run.stderr[:4000])
                failed.append(name)

        standard = "-std=c++20"
        includes = "".join(f"#include <{h}>\n" for h in (
            "algorithm", "array", "bit", "charconv", "chrono", "cmath", "complex", "filesystem",
            "fstream", "functional", "limits", "map", "memory", "numeric", "optional", "random",
            "set", "span", "sstream", "string", "string_view", "variant", "vector"))
        # Behind those of the standard library, as where other headers are included first.
        check("hostile templates and macros", [compiler, standard], plain,
              includes + HOSTILE + MACROS)

        old = pathlib.Path(work) / "old.cpp"
        old.write_text('#include "scalewise/scalewise.hpp"\n', encoding="utf-8")
        run = subprocess.run([compiler, "-std=c++17", "-fsyntax-only", *folders, str(old)],
                             capture_output=True, text=True, check=False)
        errors = [line for line in run.stderr.splitlines() if ": error:" in line]
        one = len(errors) == 1 and "C++20" in run.stderr
        print(f"C++17: {'one error' if one else 'FAILED'}")
        if not one:
            print(run.stderr[:2000])
            failed.append("C++17")

        clang = shutil.which("clang++") or shutil.which("clang++-14")
        probe = pathlib.Path(work) / "probe.cpp"
        probe.write_text("#include <string>\n", encoding="utf-8")

        def works(command):
            return clang is not None and subprocess.run(
                [clang, *command, standard, "-fsyntax-only", str(probe)], capture_output=True,
                check=False).returncode == 0

        libcxx = ["-stdlib=libc++"]
        if works(libcxx):
            check("clang with libc++", [clang, *libcxx, standard], plain)
        else:
            skipped.append("clang with libc++ (packages clang, libc++-dev and libc++abi-dev)")
    for name in skipped:
        print("skipped: " + name)
    return 1 if failed else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
